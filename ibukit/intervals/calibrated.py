"""Intervals by likelihood ratios whose threshold is simulated where the end is.

The profile's threshold is a limit, and at the boundary of the simplex another one. Here an answer v
belongs to the interval if its likelihood ratio is no larger than those of most tallies that are
drawn from the most likely distribution with the answer v [fc]_.

.. [fc] Feldman and Cousins, "Unified approach to the classical statistical analysis of small signals", Phys. Rev. D 57,
   1998.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from ibukit._ground.arguments import Floats
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.intervals.profile import FIRST_TILT, Profile, next_tilt
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.intervals.resampling import fewest_draws, rank_of, seeded, simulated
from ibukit.intervals.tilted_likelihood import Likelihood, Tilted, likelihood_of_tally
from ibukit.tally.tally import Tally

# thresholds simulated for one end; mostly two or three agree within their errors
MAX_THRESHOLDS = 5
# how far a ratio may be from the exact one: the simulated threshold has an error of some tenths
RATIO_WITHIN = 0.01
MAX_TILTS = 60


class Constrained(NamedTuple):
    """The most likely distribution with a given answer."""

    theta: Floats
    ratio: float
    """2 n (max f - f)."""
    tilt: float
    """Rho for each unit from the best answer on: about the same for all draws, which may begin there."""


def constrained(
    likelihood: Likelihood, n: int, w: Floats, v: float, tilt: float = 0.0
) -> Constrained:
    """The largest f with w . theta = v, of weights from 0 to 1; the ratio is attained, and close to the least.

    A distribution that maximises f + t w . theta proves that none with the answer v has more than f
    + t (w . theta - v) there. Between two that answer too little and too much there is one with the
    answer v, even where the answer jumps.
    """
    if w @ likelihood.best.theta > v:
        w, v = 1 - w, 1 - v
    best = likelihood.best._replace(answer=float(w @ likelihood.best.theta))
    distance = v - best.answer
    if distance <= 0:
        return Constrained(best.theta, 0.0, tilt)

    def ratio(fit: float) -> float:
        return max(2 * n * (best.fit - fit), 0.0)

    if v >= 1:
        theta = likelihood.on_face(w == 1)
        if theta is None:
            return Constrained(best.theta, math.inf, tilt)
        return Constrained(theta, ratio(likelihood.fit_of(likelihood.forward(theta))), tilt)
    low, bound, found = best, best.fit, best.theta
    high: Tilted | None = None
    rho, begin, below, end, above, side = (
        min(tilt * distance or FIRST_TILT, 0.5),
        0.0,
        -distance,
        1.0,
        math.inf,
        0,
    )
    for _ in range(MAX_TILTS):
        point = likelihood.tilted(w, rho)
        miss = point.answer - v
        bound = min(bound, point.fit + point.slope * miss)
        if miss < 0:
            low, begin, below, above = point, rho, miss, above / 2 if side < 0 else above
            side = -1
        else:
            high, end, above, below = point, rho, miss, below / 2 if side > 0 else below
            side = 1
        if high is not None:
            share = (v - low.answer) / (high.answer - low.answer)
            found = (1 - share) * low.theta + share * high.theta
            fit = likelihood.fit_of((1 - share) * low.p + share * high.p)
            if ratio(fit) - ratio(bound) <= RATIO_WITHIN:
                return Constrained(found, ratio(fit), end / distance)
        rho = next_tilt(begin, below, end, above, distance)
        if not begin < rho < end:
            break
    return Constrained(found, ratio(bound), tilt)


class Calibrated:
    """{v : ratio(v) <= c(v)}, near the profile's ends."""

    def __init__(self, tally: Tally, level: float, draws: int, seed: int):
        self._tally, self._level, self._draws, self._seed = tally, level, draws, seed
        self._likelihood = likelihood_of_tally(tally)

    def highest(self, w: Floats) -> float:
        """Where the ratio exceeds the threshold that is simulated there."""
        least, most = float(w.min()), float(w.max())
        return least + (most - least) * self._end((w - least) / (most - least))

    def _end(self, w: Floats) -> float:
        """The root of ratio = c, both taken at the answer that has this ratio; safe, as that grows with the ratio."""
        guess, low, high = normal_quantile(self._level) ** 2, 0.0, math.inf
        for _ in range(MAX_THRESHOLDS):
            v = self._with_ratio(w, guess)
            threshold, error = self.threshold(w, v)
            here = constrained(self._likelihood, self._tally.n, w, v).ratio if v >= 1 else guess
            if v >= 1 and here <= threshold:
                return 1.0
            if abs(here - threshold) <= max(error, RATIO_WITHIN):
                return self._with_ratio(w, threshold)
            low, high = (here, high) if here < threshold else (low, here)
            guess = threshold if low < threshold < high else (low + high) / 2
        return self._with_ratio(w, min(guess, high))

    def _with_ratio(self, w: Floats, ratio: float) -> float:
        """The largest answer whose ratio is no larger."""
        floor = self._likelihood.best.fit - ratio / 2 / self._tally.n
        return Profile(self._likelihood, floor).bracket(w)[1]

    def threshold(self, w: Floats, v: float) -> tuple[float, float]:
        """The quantile of the ratios of v over tallies drawn from the most likely distribution with that answer.

        And its Monte-Carlo error. All thresholds come from the same seed, so that they change with
        v and not by luck.
        """
        n, rng = self._tally.n, seeded(self._seed)
        at = constrained(self._likelihood, n, w, v)
        ratios, tilt = np.empty(self._draws), at.tilt
        for i in tqdm(range(self._draws), desc="threshold", disable=None, leave=False):
            drawn = constrained(
                likelihood_of_tally(simulated(self._tally, at.theta, rng)), n, w, v, tilt
            )
            ratios[i], tilt = drawn.ratio, drawn.tilt
        ratios.sort()
        rank, spread = (
            rank_of(self._draws, self._level),
            math.sqrt(self._draws * self._level * (1 - self._level)),
        )
        first, last = (min(max(round(rank + side * spread), 1), self._draws) for side in (-1, 1))
        return float(ratios[rank - 1]), float(ratios[last - 1] - ratios[first - 1]) / 2


def calibrated(request: IntervalRequest, draws: int = 400, seed: int = 0) -> Ends:
    """The answers v whose likelihood ratio is at most the quantile of ratios that are simulated at v.

    Each end begins at the profile's. There `draws` tallies are drawn from the most likely
    distribution with that answer, and their ratios give the next threshold, until two thresholds
    differ by no more than their Monte-Carlo error, or five times. The threshold is exact but for
    this error where only one distribution has the answer, as at a vertex; elsewhere the most likely
    of them stands for all, and coverage is about `level`. If the set has gaps, the end is one of
    its ends.

    Parameters
    ----------
    request : IntervalRequest
    draws : int
        Tallies for each threshold; at least so many that the largest ratio may be the threshold: 19
        at level 0.95.
    seed : int
        Not negative.

    Returns
    -------
    (lower, upper) : ndarrays, shape (r,)
    """
    request.refuse_frequencies("calibrated")
    draws = fewest_draws(draws, request.level)
    seeded(seed)  # which is refused before the work begins
    return ends(
        Calibrated(request.checked_tally(), request.level, draws, seed), request.functionals
    )
