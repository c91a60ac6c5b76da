"""Likelihood ratios for the difference and the ratio of w . theta in two independent samples.

The log-likelihood of both samples together is the sum of their own. A pair (theta_1, theta_2)
belongs to the region if 2 (max L_1 - L_1) + 2 (max L_2 - L_2) <= z^2. Let s_1^2 and s_2^2 be the
two terms, and let u_1(s) be the upper end of w . theta for the first sample and l_2(s) the lower
end for the second, each over the profile region in which the log-likelihood falls by s^2 / 2. Then
the largest difference over the region is

    max u_1(s_1) - l_2(s_2)   over   s_1^2 + s_2^2 = z^2,

a maximum over one angle. u_1 is concave and l_2 convex in s^2, so there is one peak. The same holds
for the ratio u_1 / l_2 of values that are not negative. The likelihood ratio of equal values is the
least s_1^2 + s_2^2 at which u_1 reaches l_2, the first sample being the one with the smaller value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy
from scipy.special import ndtr

from ibukit._ground.arguments import Floats
from ibukit.intervals.profile import ProfileWithWitness
from ibukit.intervals.tilted_likelihood import likelihood_of_tally
from ibukit.tally.tally import Tally

# Number of angles that the quick iteration tries, and the change of the angle at which it stops.
# The peak is flat, so the error of the value is then about the square of this change.
MAX_ANGLES, ANGLE_TOLERANCE = 8, 1e-5
# Nearness to 0 or a right angle where the quick iteration may have stopped beside the peak.
EDGE = 1e-3
# Change of the angle at which the slow search stops, whose peak need not be flat.
SLOW_ANGLE_TOLERANCE = 1e-7
# The difference of two gains is divided by their sum, or by this if the sum is less.
MIN_GAIN = 1e-300
# Least s that is tried, so that the region has an inside; values equal within it have p-value 1.
MIN_RADIUS = 1e-3
# Beyond this s the p-value is 0 as a double.
MAX_RADIUS = 39.0
# Precision of s, the square root of the likelihood ratio.
RADIUS_TOLERANCE = 1e-7
# An end this near to 0, for weights up to 1, counts as 0: ends are not known more exactly.
ZERO_TOLERANCE = 2e-9


class Reach(NamedTuple):
    """A pair of ends on a circle, upper of one sample and lower of the other, at one angle."""

    upper: float
    lower: float
    rise: float
    """Gain of the value for each nat that the first sample is allowed to fall."""
    fall: float
    """Gain of the value for each nat that the second sample is allowed to fall."""

    def next_angle(self, angle: float) -> float:
        """Return the angle of the peak if both ends were linear in s."""
        # The gains for each unit of s are s_1 rise and s_2 fall, and s_1 / s_2 = tan(angle).
        return math.atan2(math.sin(angle) * self.rise, math.cos(angle) * self.fall)


class Sample:
    """The profile regions of one tally."""

    def __init__(self, tally: Tally):
        self._likelihood, self._n = likelihood_of_tally(tally), tally.n

    def value(self, w: Floats) -> float:
        """Return w . theta of the most likely distribution."""
        return float(w @ self._likelihood.best.theta)

    def upper(self, w: Floats, s: float) -> tuple[float, float]:
        """Return the upper end where twice the fall of L is s^2, and its gain for each nat more."""
        s = max(s, MIN_RADIUS)
        least, span = float(w.min()), float(np.ptp(w))
        region = ProfileWithWitness(
            self._likelihood, self._likelihood.best.fit - s * s / 2 / self._n
        )
        bound, witness = region.end((w - least) / span)
        if witness is None:
            return least + span * bound, 0.0
        # This is the derivative of `Profile.bound` in the floor; one nat lowers the floor by 1 / n.
        room = math.exp(region.floor - witness.fit)
        slope = room / witness.slope / self._n
        return least + span * bound, span * slope

    def lower(self, w: Floats, s: float) -> tuple[float, float]:
        """Return the lower end where twice the fall of L is s^2, and its fall for each nat more."""
        end, slope = self.upper(-w, s)
        return -end + 0.0, slope


def difference_ends(first: Sample, second: Sample, w: Floats, z: float) -> tuple[float, float]:
    """Return the ends of w . theta_1 - w . theta_2 over the region."""
    if not np.ptp(w):
        return 0.0, 0.0
    return -_largest_difference(second, first, w, z), _largest_difference(first, second, w, z)


def ratio_ends(first: Sample, second: Sample, w: Floats, z: float) -> tuple[float, float]:
    """Return the ends of w . theta_1 / w . theta_2 over the region, for weights of at least 0."""
    if not np.ptp(w):
        return 1.0, 1.0
    inverse = _largest_ratio(second, first, w, z)
    return (1 / inverse if inverse else math.inf), _largest_ratio(first, second, w, z)


def equality_p_value(first: Sample, second: Sample, w: Floats) -> float:
    """Return the p-value of w . theta_1 = w . theta_2, chi-squared with one degree of freedom."""
    if not np.ptp(w):
        return 1.0
    if first.value(w) > second.value(w):
        first, second = second, first

    def gap(radius: float) -> float:
        return _largest_difference(first, second, w, radius)

    low, high = MIN_RADIUS, 1.0
    below = gap(low)
    if below >= 0:
        return 1.0
    above = gap(high)
    while above < 0 and high < MAX_RADIUS:
        # The gap closes about linearly in s, so extrapolate, and go a little beyond.
        guess = high + 1.1 * (high - low) * above / (below - above) if above > below else math.inf
        low, below, high = high, above, min(max(guess, 1.01 * high), MAX_RADIUS)
        above = gap(high)
    if above < 0:
        return 0.0
    radius = scipy.optimize.brentq(gap, low, high, xtol=RADIUS_TOLERANCE) if above > 0 else high
    return float(2 * ndtr(-radius))


def _largest_difference(first: Sample, second: Sample, w: Floats, z: float) -> float:
    reach = _peak(_circle(first, second, w, z, relative=False))
    return reach.upper - reach.lower


def _largest_ratio(first: Sample, second: Sample, w: Floats, z: float) -> float:
    zero = ZERO_TOLERANCE * float(w.max())
    if second.lower(w, z)[0] <= zero:
        return math.inf
    reach = _peak(_circle(first, second, w, z, relative=True))
    return reach.upper / reach.lower


def _circle(
    first: Sample, second: Sample, w: Floats, z: float, *, relative: bool
) -> Callable[[float], Reach]:
    """Return the function from an angle to the ends at s_1 = z sin, s_2 = z cos."""

    def at(angle: float) -> Reach:
        upper, rise = first.upper(w, z * math.sin(angle))
        lower, fall = second.lower(w, z * math.cos(angle))
        if relative:
            rise, fall = rise * lower, fall * upper
        return Reach(upper, lower, rise, fall)

    return at


def _peak(at: Callable[[float], Reach]) -> Reach:
    """Return the ends at the angle, from 0 to a right one, where the value is largest."""
    angle = math.pi / 4
    for _ in range(MAX_ANGLES):
        reach = at(angle)
        following = reach.next_angle(angle)
        if abs(following - angle) <= ANGLE_TOLERANCE and EDGE < angle < math.pi / 2 - EDGE:
            return reach
        angle = following
    # At the boundary of the simplex an end may have a kink, where the iteration has no limit, or it
    # may grow with s^2; the iteration then runs to an angle without a peak. At the peak one nat
    # more gains as much in either sample; a sample that has more nats than there gains less.
    low, high = at(0.0), at(math.pi / 2)
    if low.rise <= low.fall:
        return low
    if high.rise >= high.fall:
        return high

    def balance(angle: float) -> float:
        reach = at(angle)
        return (reach.rise - reach.fall) / max(reach.rise + reach.fall, MIN_GAIN)

    return at(float(scipy.optimize.brentq(balance, 0.0, math.pi / 2, xtol=SLOW_ANGLE_TOLERANCE)))
