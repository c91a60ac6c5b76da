"""The most likely distributions of one sample along w . theta, by the price of w . theta in nats.

The tilted maximisers of a sample (`tilted_likelihood`) form a curve on which w . theta and its
slope t, in nats per report, both rise with the tilt rho: t = rho / (1 - rho w . theta). Two samples
are matched by their slopes, so here the point with a given slope is found. Points that were
computed are kept, and the next one is looked for between its neighbours: on the segment between
them, as long as that is optimal, and else at the tilt that the segment suggests. Some points are on
such a segment only. An example is a sample of a single report, whose maximisers all have one tilt.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
import scipy

from ibukit._ground.arguments import Floats
from ibukit.intervals.tilted_likelihood import Likelihood, Tilted

# A slope counts as reached at this relative distance. The ends of a region change by its square.
SLOPE_TOLERANCE = 1e-4
# A point of a segment counts as a maximiser if w . theta could be larger by no more than this.
SEGMENT_TOLERANCE = 1e-10
# A tilt rho is found by its rest 1 - rho: the least one, and the factor by which it falls where no
# tilt has been too large.
MIN_REST, MAX_FALL_OF_REST = 1e-280, 1e-3
# Largest number of tilts tried for one slope. After that the nearest point is returned.
MAX_TRIES = 40
# More steps than a root between two doubles takes.
MAX_BISECTIONS = 3000


class TiltCurve:
    """Tilted maximisers of one likelihood towards w, for weights from 0 to 1.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> from ibukit.intervals.tilted_likelihood import likelihood_of_tally
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([500, 200, 300])
    >>> curve = TiltCurve(likelihood_of_tally(tally), np.array([0.0, 0.0, 1.0]))
    >>> [round(curve.at(slope).answer, 3) for slope in (0.0, 0.01, 0.1)]
    [0.23, 0.243, 0.374]
    """

    def __init__(self, likelihood: Likelihood, w: Floats):
        self._likelihood, self._w = likelihood, w
        best = likelihood.best
        self.best = best._replace(answer=float(w @ best.theta), slope=0.0)
        # The complements 1 - rho of the tilts, in descending order; they may be far below the
        # rounding of 1.
        self._rests, self._points = [1.0], [self.best]
        # A secret of value 1 that could not send any report seen: the end of the curve.
        (unseen,) = ((w == 1) & (best.ratios == 0)).nonzero()
        theta = np.zeros(likelihood.k)
        theta[unseen[:1]] = 1.0
        self._end = likelihood.at(theta, w, math.inf) if len(unseen) else None

    def at(self, slope: float) -> Tilted:
        """Return the point of a slope, to within `SLOPE_TOLERANCE`."""
        nearest = self.best
        for _ in range(MAX_TRIES):
            after = bisect_left([point.slope for point in self._points], slope)
            beside = self._points[max(after - 1, 0) : after + 1]
            nearest = min(beside, key=lambda point: abs(point.slope - slope))
            if abs(nearest.slope - slope) <= SLOPE_TOLERANCE * slope:
                break
            before = self._points[after - 1]
            low, high, beyond = 0.0, self._rests[after - 1], self._end
            if after < len(self._points):
                low, beyond = self._rests[after], self._points[after]
            if beyond is None:
                # The distance to the largest value is at most about in proportion to 1 / slope.
                missing = (1 - before.answer) * min(1.0, before.slope / slope)
            else:
                mixed = self._mixed(before, beyond, slope)
                if self._is_optimal(mixed):
                    return mixed
                missing = 1 - mixed.answer
            # The slope t is reached at the tilt t / (1 + t w . theta).
            rest = (1 - slope * missing) / (1 + slope * (1 - missing))
            if not low < rest < high:
                rest = math.sqrt(low * high) if low > 0 else MAX_FALL_OF_REST * high
            if not max(low, MIN_REST) < rest < high:
                break
            self._rests.insert(after, rest)
            self._points.insert(after, self._tilted(rest))
        return nearest

    def _tilted(self, rest: float) -> Tilted:
        """Return the maximiser at the tilt 1 - rest."""
        theta = self._likelihood.tilted_maximiser((1 - self._w) + rest * self._w)
        missing = float((1 - self._w) @ theta)
        slope = (1 - rest) / (missing + rest * (1 - missing))
        return self._likelihood.at(theta, self._w, slope)

    def on_face(self) -> Tilted | None:
        """Return the most likely distribution with w . theta = 1; None if a report excludes all."""
        theta = self._likelihood.on_face(self._w == 1)
        return None if theta is None else self._likelihood.at(theta, self._w, math.inf)

    def _mixed(self, before: Tilted, beyond: Tilted, slope: float) -> Tilted:
        """Return the maximiser of f + slope w . theta on the segment between two points."""
        q, rise = self._likelihood.q, beyond.p - before.p
        gain = slope * (beyond.answer - before.answer)

        def derivative(share: float) -> float:
            with np.errstate(divide="ignore", over="ignore"):
                return float(q @ (rise / ((1 - share) * before.p + share * beyond.p))) + gain

        # The derivative falls. At the end a report may have probability 0.
        if derivative(0.0) <= 0:
            share = 0.0
        elif derivative(1.0) >= 0:
            share = 1.0
        else:
            share = float(
                scipy.optimize.brentq(derivative, 0.0, 1.0, xtol=1e-15, maxiter=MAX_BISECTIONS)
            )
        theta = (1 - share) * before.theta + share * beyond.theta
        return self._likelihood.at(theta, self._w, slope)

    def _is_optimal(self, point: Tilted) -> bool:
        """Return whether no distribution has a larger f + slope w . theta, but for rounding."""
        excess = float((point.ratios + point.slope * self._w).max()) - 1
        return excess <= point.slope * (point.answer + SEGMENT_TOLERANCE)
