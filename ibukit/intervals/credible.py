"""Credible intervals, under a prior that the caller states."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from ibukit.bayes import Posterior, posterior
from ibukit.bayes.sums import exact_ends, exact_sums
from ibukit.domain.linear_functionals import has_two_values
from ibukit.domain.vectors import dirichlet_alpha_over
from ibukit.errors import TooLarge
from ibukit.intervals.request import Ends, IntervalRequest
from ibukit.intervals.resampling import seeded

# Exact intervals take some milliseconds a question. For more questions than this they take seconds,
# and draws, which serve all questions together, are faster.
MAX_EXACT_QUESTIONS = 1000


def credible(
    request: IntervalRequest, alpha: ArrayLike = 1.0, seed: int = 0, max_sweeps: int = 100_000
) -> Ends:
    """Return equal-tailed intervals of the posterior of w . P, or of w . F.

    Under the prior, Dirichlet(alpha), w . P is inside the interval with posterior probability
    `level`. The coverage at a given truth is another question, and if reports are few the prior
    decides it: a true probability of 0 or 1, for instance, is in none of these intervals of the
    distribution.

    Some intervals are exact and need no draws. For the distribution, if there are two secrets or
    under k-RR, these are the intervals of all questions whose weights have two values, such as
    single probabilities and sums of several (for up to `MAX_EXACT_QUESTIONS` questions and about
    100 million reports). Otherwise they are those of single probabilities, and of sums that weigh
    all secrets but one alike, where `posterior` is exact within its limits. For all other
    questions, and for all questions if reports get lost, the ends are quantiles of Gibbs draws. At
    least 400 of these are effective, so that the probability beyond an end has a standard error of
    at most sqrt(tail (1 - tail) / 400): .008 for a tail of .025 at level .95. `monte_carlo_errors`
    says how far off each end is, and so does `Estimate.summary`.

    Parameters
    ----------
    request : IntervalRequest
    alpha : float or array_like, shape (k,)
        The prior's parameter, above 0; a single number holds for every secret. 1 is the uniform
        prior, 0.5 is Jeffreys' prior.
    seed : int
        Seed of the draws, not negative.
    max_sweeps : int
        Largest number of sweeps of each of the four Gibbs chains.

    Returns
    -------
    (lower, upper) : ndarrays, shape (r,)

    Raises
    ------
    ConvergenceError
        If the Gibbs chains are not good enough after `max_sweeps`.
    """
    return _of_posteriors(request, alpha, seed, max_sweeps, errors=False)


def monte_carlo_errors(
    request: IntervalRequest, alpha: ArrayLike = 1.0, seed: int = 0, max_sweeps: int = 100_000
) -> Ends:
    """Return Monte-Carlo standard errors of the ends of `credible` with the same arguments.

    They are 0 for exact ends.
    """
    return _of_posteriors(request, alpha, seed, max_sweeps, errors=True)


def _of_posteriors(
    request: IntervalRequest, alpha: ArrayLike, seed: int, max_sweeps: int, errors: bool
) -> Ends:
    """Return the ends, or their errors, of exact posteriors where there are any, else of draws."""
    tally, functionals, rng = request.checked_tally(lossy=True), request.functionals, seeded(seed)
    lossy = tally.efficiency is not None
    if lossy:
        request.refuse_frequencies("credible")
    of_posterior = Posterior.interval_errors if errors else Posterior.interval
    found = np.zeros((2, len(functionals)))
    rest = np.ones(len(functionals), dtype=bool)
    # The exact law of sums is that of the distribution, not of the frequencies.
    if request.target == "distribution" and len(functionals) <= MAX_EXACT_QUESTIONS:
        sums = exact_sums(tally, dirichlet_alpha_over(alpha, tally.alphabet))
        two = np.array([has_two_values(w) for w in functionals.each()])
        if sums is not None and two.any():
            with suppress(TooLarge):
                # Only ends that this search finds are exact, so errors need the search as well.
                ends = exact_ends(sums, functionals.part(two), request.level)
                if not errors:
                    found[:, two] = ends
                rest &= ~two
    # The other exact posterior has quantiles of single probabilities only, and does not exist if
    # reports get lost.
    single = rest & (functionals.of_one_secret()[0] >= 0) & (not lossy)
    if single.any():
        with suppress(TooLarge):
            exact = posterior(tally, alpha, request.target)
            weights = functionals.part(single).weights
            found[:, single] = of_posterior(exact, request.level, weights)
            rest &= ~single
    if rest.any():
        drawn = posterior(
            tally,
            alpha,
            request.target,
            method="gibbs",
            rng=rng,
            max_sweeps=max_sweeps,
            strict=True,
        )
        found[:, rest] = of_posterior(drawn, request.level, functionals.part(rest).weights)
    return found[0], found[1]
