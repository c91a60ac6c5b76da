"""Likelihood ratios for the difference and the ratio of w . theta in two independent samples.

The log-likelihood of both samples together is the sum of their own. A pair (theta_1, theta_2)
belongs to the region if F = n_1 (max f_1 - f_1) + n_2 (max f_2 - f_2), by how many nats it falls
below the best pair, is at most z^2 / 2. The largest w . theta_1 - r w . theta_2 over the region is
attained by a maximiser of

    price (w . theta_1 - r w . theta_2) - F,

so each theta is a tilted maximiser of its own sample, the first with the slope price / n_1 towards
w, and the second with r price / n_2 away from it. The search is for the price at which F has grown
to z^2 / 2. The ratio is the r at which the largest value is 0, found by Dinkelbach's iteration. The
likelihood ratio of equal values is twice the least F at which the smaller value reaches the other;
there the search is for the price at which they are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy
from scipy.special import ndtr

from ibukit._ground.arguments import Floats
from ibukit.intervals.comparison.tilt_curve import MAX_BISECTIONS, TiltCurve
from ibukit.intervals.profile import ENDS_MEET, RELATIVE_TOLERANCE, Profile
from ibukit.intervals.tilted_likelihood import MAX_REPORTS_TOLD, Tilted, likelihood_of_tally
from ibukit.tally.tally import Tally

# Largest number of prices tried for one end. After that the bound proved so far is returned.
MAX_PRICES = 60
# While all prices are too small, the next one is larger by at most the second factor, and from the
# third on by at least the first.
MIN_GROWTH, MAX_GROWTH = 4.0, 100.0
# Slopes of points that prove more where a slope is tiny. The error of a maximiser is up to 1e-12,
# and what a steeper point proves too little is about in proportion to its slope.
STEEPER = (1e-9, 1e-8, 1e-7, 1e-6)
# Largest number of ratios r tried. Dinkelbach's iteration converges faster than linearly.
MAX_RATIOS = 30
# Least s = sqrt(2 F) that is tried, so that the region has an inside; values equal within it have
# p-value 1.
MIN_RADIUS = 1e-3
# Beyond this s the p-value is 0 as a double.
MAX_RADIUS = 39.0
# Precision of s, the square root of the likelihood ratio.
RADIUS_TOLERANCE = 1e-7
# An end this near to 0, for weights up to 1, counts as 0: ends are not known more exactly.
ZERO_TOLERANCE = 2e-9


class Sample:
    """The likelihood of one tally."""

    def __init__(self, tally: Tally):
        self.likelihood, self.n = likelihood_of_tally(tally), min(tally.n, MAX_REPORTS_TOLD)

    def value(self, w: Floats) -> float:
        """Return w . theta of the most likely distribution."""
        return float(w @ self.likelihood.best.theta)

    def fall(self, point: Tilted) -> float:
        """Return by how many nats all reports are less likely than at the best distribution."""
        return self.n * max(self.likelihood.best.fit - point.fit, 0.0)

    def lowest(self, w: Floats, fall: float) -> float:
        """Return the lower end of w . theta at this fall of the likelihood, in nats."""
        region = Profile(self.likelihood, self.likelihood.best.fit - fall / self.n)
        return -region.highest(-w) + 0.0

    def bound(self, w: Floats, point: Tilted) -> Bound:
        """Return what the point proves about w . theta, for weights from 0 to 1."""
        if not (0 < point.slope < math.inf and math.isfinite(point.fit)):
            return Bound(1.0, 0.0, self.n)
        # This is `Profile.bound`, with the floor by `fall` nats below the maximum.
        room = math.exp(self.likelihood.best.fit - point.fit)
        start = float((w + (point.ratios - room) / point.slope).max())
        return Bound(start, room / point.slope, self.n)


class Bound(NamedTuple):
    """An upper bound on w . theta in one sample: a rising and concave function of its fall."""

    start: float
    gain: float
    n: float

    def at(self, fall: float) -> float:
        """Return the bound at this fall of the likelihood of all reports, in nats."""
        return min(1.0, self.start - self.gain * math.expm1(-fall / self.n))

    def fall_at_one(self) -> float:
        """Return the fall at which the bound is 1, the largest value that there is."""
        share = (1 - self.start) / self.gain if self.gain > 0 else 0.0
        return -self.n * math.log1p(-share) if share < 1 else math.inf


def joint_bound(first: Bound, second: Bound, weight: float, fall: float) -> float:
    """Return the bound on w_1 . theta_1 + weight w_2 . theta_2 where both fall by `fall` together.

    It is the maximum over all ways to divide the fall, of a concave function: where both gain as
    much by one nat more, or where one of them has reached 1.
    """
    one, other = first.gain / first.n, weight * second.gain / second.n
    if one > 0 and other > 0:
        equal = (fall / second.n + math.log(one / other)) / (1 / first.n + 1 / second.n)
    else:
        equal = fall if one > 0 else 0.0
    shares = (equal, first.fall_at_one(), fall - second.fall_at_one())
    return max(
        first.at(share) + weight * second.at(fall - share)
        for share in (min(max(share, 0.0), fall) for share in shares)
    )


class Pair(NamedTuple):
    """A distribution for each sample, at one price."""

    first: Tilted
    second: Tilted

    def value(self, weight: float) -> float:
        """Return w_1 . theta_1 + weight w_2 . theta_2."""
        return self.first.answer + weight * self.second.answer


class JointProfile:
    """Pairs of distributions in order of the price of w . theta_1 - r w . theta_2.

    Inside, the weights are those of w from 0 to 1 for the first sample, and 1 minus these for the
    second: the sum of both answers is what grows with the price.
    """

    def __init__(self, first: Sample, second: Sample, w: Floats):
        self._first, self._second, self._w = first, second, w
        self._least, self._span = float(w.min()), float(np.ptp(w))
        self._up = (w - self._least) / self._span
        self._curves = (
            TiltCurve(first.likelihood, self._up),
            TiltCurve(second.likelihood, 1 - self._up),
        )
        self._best = Pair(self._curves[0].best, self._curves[1].best)
        # The slope of a sample of n reports at its end is about in proportion to sqrt(n).
        self._price = 1 / math.sqrt(1 / first.n + 1 / second.n)

    def largest_difference(self, z: float) -> float:
        """Return the upper end of w . theta_1 - w . theta_2, from outside."""
        _, bound = self._end(1.0, max(z, MIN_RADIUS) ** 2 / 2)
        return self._span * (bound - 1)

    def largest_ratio(self, z: float) -> float:
        """Return the upper end of w . theta_1 / w . theta_2, for weights of at least 0."""
        fall = max(z, MIN_RADIUS) ** 2 / 2
        lowest = self._second.lowest(self._w, fall)
        if lowest <= ZERO_TOLERANCE * float(self._w.max()):
            return math.inf
        r, proved = self._quotient(self._best), math.inf
        for _ in range(MAX_RATIOS):
            pair, bound = self._end(r, fall)
            following = max(self._quotient(pair), r)
            # What w . theta_1 - r w . theta_2 can still be, over the least w . theta_2.
            excess = self._least * (1 - r) + self._span * (bound - r)
            before, proved = (r, proved), min(proved, r + max(excess, 0.0) / lowest)
            r = following
            if proved <= (1 + RELATIVE_TOLERANCE) * r + ENDS_MEET or before == (r, proved):
                break
        return max(r, proved)

    def p_value(self) -> float:
        """Return the p-value of equal values, chi-squared with one degree of freedom.

        The first sample is the one with the smaller value of w . theta.
        """
        inside, outside = self._best, None
        least, most = 0.0, math.inf
        if inside.value(1.0) >= 1:
            return 1.0
        for pair in self._pairs(1.0, lambda pair: pair.value(1.0) - 1):
            least = max(least, self._least_fall(pair))
            if pair.value(1.0) < 1:
                inside = pair
            else:
                outside = pair
            if outside is not None:
                missing, beyond = 1 - inside.value(1.0), outside.value(1.0) - 1
                share = missing / (missing + beyond)
                # F is convex, so it lies below its chord.
                most = min(most, (1 - share) * self._fall(inside) + share * self._fall(outside))
            if most <= MIN_RADIUS**2 / 2:
                return 1.0
            # The p-value is that of the least fall that is proved, so it is not too small.
            if min(math.sqrt(2 * most), MAX_RADIUS) - math.sqrt(2 * least) <= RADIUS_TOLERANCE:
                break
        radius = math.sqrt(2 * least)
        return float(2 * ndtr(-radius)) if radius < MAX_RADIUS else 0.0

    def _end(self, weight: float, fall: float) -> tuple[Pair, float]:
        """Return a pair that is attained within the fall, and a value that none exceeds."""
        full = 1 + weight
        if self._corner is not None and self._fall(self._corner) <= fall:
            return self._corner, full
        inside, outside = self._best, None
        attained, bound, allowed = inside, full, math.sqrt(fall)
        for pair in self._pairs(weight, lambda pair: math.sqrt(self._fall(pair)) - allowed):
            for one, other in self._bounds(pair):
                bound = min(bound, joint_bound(one, other, weight, fall))
            if self._fall(pair) > fall:
                outside = pair
            elif pair.value(weight) >= inside.value(weight):
                inside = pair
            reached = inside if outside is None else self._between(inside, outside, fall)
            if reached.value(weight) > attained.value(weight):
                attained = reached
            gap = bound - attained.value(weight)
            if gap <= min(ENDS_MEET, RELATIVE_TOLERANCE * bound):
                break
        return attained, max(bound, attained.value(weight))

    @cached_property
    def _corner(self) -> Pair | None:
        """The most likely pair with the largest value; None if a report excludes all."""
        one, other = (curve.on_face() for curve in self._curves)
        return None if one is None or other is None else Pair(one, other)

    def _pairs(self, weight: float, miss: Callable[[Pair], float]) -> Iterator[Pair]:
        """Yield pairs on the way to the price at which a rising function of the pair is 0.

        The root is bracketed, and then found by the Illinois rule: regula falsi that halves the
        value at an end which stays in place. The function should be about linear in the price.
        """
        wanted = -miss(self._best)
        low, below, high, above, side = 0.0, -wanted, math.inf, math.inf, 0
        price, growth, ends = self._price, 1.0, [self._best, self._best]
        for _ in range(MAX_PRICES):
            pair = self._at(price, weight)
            # Slopes between two points that are as near as slopes are told apart have no other.
            if any(pair.first is end.first and pair.second is end.second for end in ends):
                return
            yield pair
            missed = miss(pair)
            if missed <= 0:
                low, below, above, ends[0] = price, missed, above / 2 if side < 0 else above, pair
                side = -1
            else:
                high, above, below, ends[1] = price, missed, below / 2 if side > 0 else below, pair
                side = 1
            self._price = price
            price = _next_price(low, below, high, above, wanted, growth)
            growth = MIN_GROWTH
            if not low < price < high:
                return

    def _at(self, price: float, weight: float) -> Pair:
        one, other = self._curves
        return Pair(one.at(price / self._first.n), other.at(weight * price / self._second.n))

    def _fall(self, pair: Pair) -> float:
        total = 0.0
        samples = self._first, self._second
        for sample, point, best in zip(samples, pair, self._best, strict=True):
            fall = sample.fall(point)
            if point.slope < math.inf:
                # No more, because f + slope w . theta is not larger at the best distribution. In a
                # large sample the difference of two f may be rounding alone.
                most = sample.n * point.slope * max(point.answer - best.answer, 0.0)
                fall = min(fall, most)
            total += fall
        return total

    def _bounds(self, pair: Pair) -> list[tuple[Bound, Bound]]:
        """Return what the points prove, for each sample one that may be combined with each other.

        In the bound, rounding of the maximiser is divided by the slope. If a sample is by far the
        larger one, its slope is tiny, and steeper points prove more.
        """
        weights = self._up, 1 - self._up
        one, other = (
            [
                sample.bound(w, each)
                for each in [point, *(curve.at(slope) for slope in STEEPER if slope > point.slope)]
            ]
            for sample, w, curve, point in zip(
                (self._first, self._second), weights, self._curves, pair, strict=True
            )
        )
        return list(product(one, other))

    def _quotient(self, pair: Pair) -> float:
        """Return w . theta_1 / w . theta_2."""
        one = self._least + self._span * pair.first.answer
        other = self._least + self._span * (1 - pair.second.answer)
        return one / other if other > 0 else math.inf

    def _least_fall(self, pair: Pair) -> float:
        """Return the fall without which the values are not equal, as the pair proves."""
        bounds, most = self._bounds(pair), MAX_RADIUS**2 / 2

        def excess(fall: float) -> float:
            return min(joint_bound(one, other, 1.0, fall) for one, other in bounds) - 1

        if excess(0.0) >= 0:
            return 0.0
        if excess(most) <= 0:
            return most
        return float(
            scipy.optimize.brentq(
                excess, 0.0, most, xtol=1e-300, rtol=1e-12, maxiter=MAX_BISECTIONS
            )
        )

    def _between(self, inside: Pair, outside: Pair, fall: float) -> Pair:
        """Return a pair on the segment from `inside` to `outside` that has fallen no more."""
        # F is convex, so it lies below its chord, which rounding of F elsewhere does not touch.
        start, end = self._fall(inside), self._fall(outside)
        share = (fall - start) / (end - start)
        return Pair(*(_mixed(a, b, share) for a, b in zip(inside, outside, strict=True)))


def _mixed(inside: Tilted, outside: Tilted, share: float) -> Tilted:
    """Return the distribution on the segment with its answer; what else it has is that inside."""
    return inside._replace(
        theta=(1 - share) * inside.theta + share * outside.theta,
        answer=(1 - share) * inside.answer + share * outside.answer,
    )


def _next_price(
    low: float, below: float, high: float, above: float, wanted: float, growth: float
) -> float:
    """Return the price to try next, between `low` and `high`, or by `growth` above `low`."""
    if math.isfinite(above):
        return low + (high - low) * below / (below - above)
    if math.isfinite(high):
        return math.sqrt(low * high) if low > 0 else high / MAX_GROWTH
    # In proportion and 5 % beyond, to have the root between two prices.
    grown = 1.05 * wanted / max(wanted + below, 1e-12 * wanted)
    return low * min(max(grown, growth), MAX_GROWTH)
