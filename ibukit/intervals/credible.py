"""Credible intervals, under a prior that the caller states."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ibukit._validate import Floats, Ints
from ibukit.errors import TooLarge
from ibukit.estimate.questions import Questions
from ibukit.intervals.asked import Asked, Ends
from ibukit.intervals.resampling import seeded
from ibukit.posterior import Posterior, posterior


def credible(asked: Asked, alpha: ArrayLike = 1.0, seed: int = 0, max_sweeps: int = 100_000) -> Ends:
    """Equal-tailed intervals of the posterior of w . P, or of w . F.

    Under the prior Dirichlet(alpha). The probability that the answer is inside is `level` by the posterior. How often
    that is so at a given truth is another question, which the prior decides where reports are few: a probability of 0
    or 1 is in none of these intervals of the distribution. Single probabilities, and sums that weigh all secrets but
    one alike, are exact where `posterior` is. Other sums, and all where the exact posterior would take too many terms,
    have the quantiles of Gibbs draws. Of these at least 400 are effective, so that the probability beyond an end is
    off by sqrt(tail (1 - tail) / 400) at most, as a standard error: by .008 of .025 at level .95.

    Parameters
    ----------
    asked : Asked
    alpha : float or array_like, shape (k,)
        The prior's parameter, above 0; a number is taken for every secret. 1 is uniform, 0.5 is Jeffreys' prior.
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
    tally, questions = asked.tally(), asked.questions
    rng, tail = seeded(seed), (1 - asked.level) / 2

    def drawn() -> Posterior:
        return posterior(tally, alpha, asked.target, method="gibbs", rng=rng, max_sweeps=max_sweeps, strict=True)

    secrets, base, slope = _of_one_secret(questions)
    single = secrets >= 0
    lower, upper = np.empty((2, len(questions)))
    gibbs = None if single.all() else drawn()
    if single.any():
        try:
            low, high = posterior(tally, alpha, asked.target).interval(asked.level)
        except TooLarge:
            gibbs = gibbs or drawn()
            low, high = gibbs.interval(asked.level)
        ends = np.stack([low, high])[:, secrets[single]] * slope[single]
        lower[single], upper[single] = base[single] + ends.min(axis=0), base[single] + ends.max(axis=0)
    if gibbs is not None and questions.weights is not None and not single.all():
        answers = np.sort(gibbs.draws() @ questions.weights[~single].T, axis=0)
        # one of the draws, as frequencies are discrete; nearly as many are below the lower end as above the upper
        rank = math.floor(tail * len(answers))
        lower[~single], upper[~single] = answers[rank], answers[-1 - rank]
    return np.maximum(lower, questions.least), np.minimum(upper, questions.most)


def _of_one_secret(questions: Questions) -> tuple[Ints, Floats, Floats]:
    """Secrets x, and b and c with w . theta = b + c theta_x, each of shape (r,); x = -1 if a question is of more."""
    k, weights = questions.k, questions.weights
    if weights is None:
        return np.arange(k), np.zeros(k), np.ones(k)
    base = np.sort(weights, axis=1)[:, (k - 1) // 2]  # the weight of all but one, if there is such a one
    others = weights != base[:, None]
    secrets = others.argmax(axis=1)
    slope = weights[np.arange(len(weights)), secrets] - base
    return np.where(others.sum(axis=1) <= 1, secrets, -1), base, slope
