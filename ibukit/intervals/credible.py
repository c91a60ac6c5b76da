"""Credible intervals, under a prior that the caller states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ibukit.bayes import Posterior, posterior
from ibukit.errors import TooLarge
from ibukit.intervals.request import Ends, IntervalRequest
from ibukit.intervals.resampling import seeded


def credible(
    request: IntervalRequest, alpha: ArrayLike = 1.0, seed: int = 0, max_sweeps: int = 100_000
) -> Ends:
    """Return equal-tailed intervals of the posterior of w . P, or of w . F.

    The prior is Dirichlet(alpha), under which w . P is inside with posterior probability `level`.
    The coverage at a given truth is another question, which the prior decides if reports are few: a
    probability of 0 or 1 is in none of these intervals of the distribution. Single probabilities,
    and sums that weigh all secrets but one alike, are exact where `posterior` is. Other sums, and
    all where the exact posterior would take too many terms or reports get lost, have the quantiles
    of Gibbs draws. Of these at least 400 are effective, so that the probability beyond an end is
    off by sqrt(tail (1 - tail) / 400) at most, as a standard error: by .008 of .025 at level .95.
    `monte_carlo_errors` says how far off each end is, and so does `Estimate.summary`.

    Parameters
    ----------
    request : IntervalRequest
    alpha : float or array_like, shape (k,)
        The prior's parameter, above 0; a number is taken for every secret. 1 is uniform, 0.5 is
        Jeffreys' prior.
    seed : int
        Of the draws, not negative.
    max_sweeps : int
        Of each of the four Gibbs chains, at most.

    Returns
    -------
    (lower, upper) : ndarrays, shape (r,)

    Raises
    ------
    ConvergenceError
        If the Gibbs chains are not good enough after `max_sweeps`.
    """
    return _of_posteriors(request, Posterior.interval, alpha, seed, max_sweeps)


def monte_carlo_errors(
    request: IntervalRequest, alpha: ArrayLike = 1.0, seed: int = 0, max_sweeps: int = 100_000
) -> Ends:
    """Return Monte-Carlo standard errors of the ends of `credible` with the same arguments.

    They are 0 for exact ends.
    """
    return _of_posteriors(request, Posterior.interval_errors, alpha, seed, max_sweeps)


def _of_posteriors(
    request: IntervalRequest,
    method_of_posterior: Callable[..., Ends],
    alpha: ArrayLike,
    seed: int,
    max_sweeps: int,
) -> Ends:
    """Apply a method of `Posterior`: to the exact one for single secrets, to draws for the rest."""
    tally, functionals, rng = request.checked_tally(lossy=True), request.functionals, seeded(seed)
    # The exact posterior has quantiles of single probabilities alone, not of sums of several. There
    # is none where reports get lost.
    exact = functionals.of_one_secret()[0] >= 0
    if tally.efficiency is not None:
        request.refuse_frequencies("credible")
        exact[:] = False
    ends = np.empty((2, len(functionals)))
    if exact.any():
        try:
            ends[:, exact] = method_of_posterior(
                posterior(tally, alpha, request.target),
                request.level,
                functionals.part(exact).weights,
            )
        except TooLarge:
            exact[:] = False
    if not exact.all():
        drawn = posterior(
            tally,
            alpha,
            request.target,
            method="gibbs",
            rng=rng,
            max_sweeps=max_sweeps,
            strict=True,
        )
        ends[:, ~exact] = method_of_posterior(
            drawn, request.level, functionals.part(~exact).weights
        )
    return ends[0], ends[1]
