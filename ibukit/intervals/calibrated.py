"""Calibrated intervals: likelihood ratios whose threshold is simulated at the end itself.

The profile's threshold holds only in the limit, and at the boundary of the simplex the limit is a
different one. Here an answer v belongs to the interval if its likelihood ratio is at most the
quantile, at the level of the interval, of the ratios of tallies that are drawn from the most likely
distribution with the answer v [fc]_.

.. [fc] Feldman and Cousins, "Unified approach to the classical statistical analysis of small
   signals", Phys. Rev. D 57, 1998.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.intervals.binomial.two_kinds import TwoKindsRegion, has_two_kinds
from ibukit.intervals.listed.fixed_answer import FixedAnswer, most_likely
from ibukit.intervals.listed.law import ListedLaw
from ibukit.intervals.listed.region import ListedRegion
from ibukit.intervals.profile import FIRST_TILT, Profile, next_tilt
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.intervals.resampling import enough_draws, rank_of, seeded, simulated
from ibukit.intervals.tilted_likelihood import Likelihood, Tilted, likelihood_of_tally
from ibukit.tally.tally import Tally

# Largest number of thresholds simulated for one end. Mostly two or three are enough for two of them
# to agree within their Monte-Carlo errors; otherwise the last one counts.
MAX_THRESHOLDS = 5
# Error allowed in a likelihood ratio: small compared with the error of a simulated threshold, which
# is a few tenths.
RATIO_TOLERANCE = 0.01
# Largest number of tilted maximisers computed for a constrained one. After that an interior point
# takes over.
MAX_TILTS = 60


class Constrained(NamedTuple):
    """The most likely distribution with a given value v of w . theta."""

    theta: Floats
    ratio: float
    """2 n (max f - f)."""
    tilt: float
    """rho / (distance of v from the best value), much the same for all draws, which begin there."""


def constrained(
    likelihood: Likelihood, n: int, w: Floats, v: float, tilt: float = 0.0
) -> Constrained:
    """Maximise f over {theta : w . theta = v}, for weights from 0 to 1.

    A maximiser of f + t w . theta proves that no distribution with w . theta = v has a larger f
    than the maximiser's f + t (w . theta - v). Between a maximiser whose w . theta is too small and
    one whose w . theta is too large there is a distribution with exactly v, even where w . theta
    jumps as t grows. The ratio of this distribution, which is attained, is returned as soon as it
    is within `RATIO_TOLERANCE` of the proved one. If that fails, an interior point searches among
    the distributions with exactly v.
    """
    # A value below the best one is a value above it for the opposite weights.
    if w @ likelihood.best.theta > v:
        w, v = 1 - w, 1 - v
    best = likelihood.best._replace(answer=float(w @ likelihood.best.theta))
    distance = v - best.answer
    if distance <= 0:
        return Constrained(best.theta, 0.0, tilt)

    def ratio(fit: float) -> float:
        return max(2 * n * (best.fit - fit), 0.0)

    if v >= 1:
        on_face = likelihood.on_face(w == 1)
        if on_face is None:
            return Constrained(best.theta, math.inf, tilt)
        return Constrained(on_face, ratio(likelihood.fit_of(likelihood.forward(on_face))), tilt)
    low, bound, theta = best, best.fit, best.theta
    high: Tilted | None = None
    rho = min(tilt * distance or FIRST_TILT, 0.5)
    # The tilt at which w . theta = v is bracketed, and then found by the Illinois rule.
    begin, below, end, above, side = 0.0, -distance, 1.0, math.inf, 0
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
            theta = (1 - share) * low.theta + share * high.theta
            fit = likelihood.fit_of((1 - share) * low.p + share * high.p)
            if ratio(fit) - ratio(bound) <= RATIO_TOLERANCE:
                return Constrained(theta, ratio(fit), end / distance)
        rho = next_tilt(begin, below, end, above, distance)
        if not begin < rho < end:
            break
    if likelihood.rows is None:
        return Constrained(theta, ratio(bound), tilt)
    # No tilt below 1 leads there if secrets with large weights make hardly any of the reports seen.
    found = most_likely(
        likelihood.rows, likelihood.q, FixedAnswer.of(w, v), RATIO_TOLERANCE / 4 / n
    )
    return Constrained(found.theta, ratio(found.fit), tilt)


class RatioRegion(ABC):
    """{v : ratio(v) <= c(v)} for a threshold c of v, sought near the profile's ends."""

    def __init__(self, tally: Tally, level: float):
        self._tally, self._level = tally, level
        self._likelihood = likelihood_of_tally(tally)

    @abstractmethod
    def threshold(self, w: Floats, v: float) -> tuple[float, float]:
        """Return c at the value v of w . theta, and the error of c."""

    def highest(self, w: Floats) -> float:
        """Return the value of w . theta beyond which the ratio exceeds its threshold."""
        least, most = float(w.min()), float(w.max())
        return least + (most - least) * self._end((w - least) / (most - least))

    def _end(self, w: Floats) -> float:
        """Find the root of ratio(v) = c(v), for weights from 0 to 1.

        The unknown is the ratio, because v grows with it. Bisection safeguards the fixed-point
        iteration.
        """
        guess, low, high = normal_quantile(self._level) ** 2, 0.0, math.inf
        for _ in range(MAX_THRESHOLDS):
            v = self._with_ratio(w, guess)
            threshold, error = self.threshold(w, v)
            here = constrained(self._likelihood, self._tally.n, w, v).ratio if v >= 1 else guess
            if v >= 1 and here <= threshold:
                return 1.0
            if abs(here - threshold) <= max(error, RATIO_TOLERANCE):
                return self._with_ratio(w, threshold)
            low, high = (here, high) if here < threshold else (low, here)
            guess = threshold if low < threshold < high else (low + high) / 2
        return self._with_ratio(w, min(guess, high))

    def _with_ratio(self, w: Floats, ratio: float) -> float:
        """Return the largest v whose ratio is at most `ratio`."""
        floor = self._likelihood.floor(ratio, self._tally.n)
        return Profile(self._likelihood, floor).bracket(w)[1]


class Calibrated(RatioRegion):
    """{v : ratio(v) <= c(v)} with a threshold c from tallies that are drawn at v."""

    def __init__(self, tally: Tally, level: float, draws: int, seed: int):
        super().__init__(tally, level)
        self._draws, self._seed = draws, seed

    @override
    def threshold(self, w: Floats, v: float) -> tuple[float, float]:
        """Simulate the quantile of the ratios of v, and its Monte-Carlo error.

        The tallies are drawn from the most likely distribution with w . theta = v. All thresholds
        use the same seed, so that they differ only through v and not by chance.
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
        # The rank of the true quantile among the draws is binomial: its standard deviation gives
        # the order statistics between which the threshold is uncertain.
        rank = rank_of(self._draws, self._level)
        spread = math.sqrt(self._draws * self._level * (1 - self._level))
        first, last = (min(max(round(rank + side * spread), 1), self._draws) for side in (-1, 1))
        return float(ratios[rank - 1]), float(ratios[last - 1] - ratios[first - 1]) / 2


def calibrated(request: IntervalRequest, draws: int = 400, seed: int = 0) -> Ends:
    """Return the range of the values whose likelihood ratio is at most its simulated quantile.

    If there are two secrets and two kinds of reports, all tallies are enumerated instead, and the
    ends are exact.

    Where the possible reports can be listed (at most 64 secrets and 2^15 probabilities), each end
    is sought from outside. Evenly spaced answers are tested, beginning with one whose ratio is so
    large that it is certainly out, until one is accepted; bisection then refines the end between
    this answer and the last rejected one. Accepted answers between two rejected neighbours may be
    missed. Draws stop early where the result is clear. If there are at most 4,096 possible tallies,
    all of them are weighed by their probabilities, without draws. For geometric noise on a plane
    only the cells of a window are listed, outside which fewer than one report in a million is
    expected; all cells outside count as one report.

    Otherwise the search for each end begins at the profile's end. There `draws` tallies are drawn
    from the most likely distribution with that value of w . theta, and their ratios give the next
    threshold. This is repeated until two thresholds differ by no more than their Monte-Carlo error,
    but at most five times. If the set of accepted answers has gaps, one of its ends is returned.

    The test of an answer is exact up to its Monte-Carlo error where only one distribution has the
    answer, as at a vertex; elsewhere the most likely of the distributions with the answer stands
    for all of them, and the coverage is about `level`.

    Parameters
    ----------
    request : IntervalRequest
    draws : int
        Number of tallies for each threshold. There must be enough for the largest ratio to be the
        threshold: 19 at level 0.95.
    seed : int
        Seed of the draws, not negative.

    Returns
    -------
    (lower, upper) : ndarrays, shape (r,)
    """
    request.refuse_frequencies("calibrated")
    draws = enough_draws(draws, request.level)
    # A bad seed is refused before the work begins.
    seeded(seed)
    tally = request.checked_tally()
    if has_two_kinds(tally):
        return ends(TwoKindsRegion(tally, request.level), request.functionals)
    law, likelihood = ListedLaw.of(tally), likelihood_of_tally(tally)
    if law is not None and likelihood.rows is not None:
        region = ListedRegion(law, likelihood, request.level, draws, seed)
        return ends(region, request.functionals)
    return ends(Calibrated(tally, request.level, draws, seed), request.functionals)
