"""The profile likelihood: all distributions whose likelihood is not much below the largest.

The upper end of w . theta over {theta : f(theta) >= T}, f(theta) = sum_z q_z log (theta M)_z, T = max f - c, is where
g_x + t w_x <= nu with equality wherever theta_x > 0, nu = 1 + t w . theta, for the t >= 0 at which f = T. Divided by nu
that is the condition for a maximum of a likelihood: with a_x = 1 - rho w_x, rho = t / nu, and phi proportional to
a_x theta_x, phi maximises the likelihood of the channel whose rows are M_x / a_x. So each t costs one more estimate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ibukit._validate import Floats, readable
from ibukit.errors import TooLarge
from ibukit.estimate.questions import normal_quantile
from ibukit.solvers import interior_point
from ibukit.tally import Tally

# of the range of the answers: how far a certified end may be outside of one that is attained
ENDS_MEET = 1e-9
MOST_SOLVED = 80
# numbers in a matrix that is taken apart at every step (half a gigabyte), and its order
MOST_PROFILED, MOST_SECRETS_PROFILED = 2**26, 3000
# max g - 1 of the estimates along the way
ACCURATE = 1e-12
# where the search begins: far below what most questions need, and far above rounding
FIRST = 1e-3


class Tilted(NamedTuple):
    """The most likely distribution of those with its answer."""

    theta: Floats
    fit: float
    """f(theta)."""
    ratios: Floats
    """g."""
    answer: float
    """w . theta."""
    slope: float
    """t: nats by which the fit falls for each unit that the answer rises."""


class Profile:
    """{theta : n (max f - f(theta)) <= z^2 / 2}, z the normal quantile: chi-squared with one degree of freedom."""

    def __init__(self, tally: Tally, level: float):
        entries = tally.k * len(tally.counts)
        if tally.k > MOST_SECRETS_PROFILED or entries > MOST_PROFILED:
            raise TooLarge(
                f"profile intervals would decompose a matrix of {readable(tally.k)} x {readable(len(tally.counts))} "
                f"numbers, and at most {MOST_SECRETS_PROFILED} secrets and {MOST_PROFILED} numbers are accepted; "
                'take method="wald", or a coarser alphabet'
            )
        columns = tally.matrix()
        self._rows, self._q = columns / columns.max(axis=0), tally.frequencies
        # a maximum that is not quite reached makes the set larger, and the interval
        best, _ = interior_point.maximise(self._rows, self._q, ACCURATE)
        self._fit = self._fit_of(best)
        self._drop = normal_quantile(level) ** 2 / 2 / tally.n

    def _fit_of(self, theta: Floats) -> float:
        with np.errstate(divide="ignore"):
            return float(self._q @ np.log(theta @ self._rows))

    def highest(self, w: Floats) -> float:
        """The upper end, from outside."""
        least, most = float(w.min()), float(w.max())
        return least + (most - least) * self._highest((w - least) / (most - least))[1]

    def _highest(self, w: Floats) -> tuple[float, float]:
        """An answer that is attained and one that is not exceeded, of weights from 0 to 1."""
        target, wanted = self._fit - self._drop, math.sqrt(self._drop)
        face = w == 1
        if self._rows[face].any(axis=0).all():
            best, _ = interior_point.maximise(self._rows[face], self._q, ACCURATE)
            if float(self._q @ np.log(best @ self._rows[face])) >= target:
                return 1.0, 1.0
        attained, bound, inside = 0.0, 1.0, None
        # the root of the fall is about proportional to rho: Illinois' rule once there is a point on each side
        low, below, high, above = 0.0, -wanted, 1.0, math.inf
        rho, side = FIRST, 0
        for _ in range(MOST_SOLVED):
            point = self._tilted(w, rho)
            bound = min(bound, self._bound(w, point, target))
            miss = math.sqrt(max(self._fit - point.fit, 0.0)) - wanted
            if miss <= 0:
                attained, inside = max(attained, point.answer), point.theta
            elif inside is not None:
                attained = max(attained, float(w @ self._last_inside(inside, point.theta, target)))
            if bound - attained <= ENDS_MEET:
                break
            if miss <= 0:
                low, below, above = rho, miss, above / 2 if side < 0 else above
                side = -1
            else:
                high, above, below = rho, miss, below / 2 if side > 0 else below
                side = 1
            rho = self._next(low, below, high, above, wanted)
            if not low < rho < high:
                break
        return attained, bound

    @staticmethod
    def _next(low: float, below: float, high: float, above: float, wanted: float) -> float:
        if math.isfinite(above):
            return low + (high - low) * below / (below - above)
        # nothing beyond yet: in proportion, a little more, and never more than halfway to the end
        grown = 1.05 * low * wanted / max(wanted + below, 1e-12 * wanted)
        return min(grown, (low + high) / 2)

    def _tilted(self, w: Floats, rho: float) -> Tilted:
        a = 1 - rho * w
        phi, _ = interior_point.maximise(self._rows / a[:, None], self._q, ACCURATE)
        theta = phi / a
        theta /= theta.sum()
        p, answer = theta @ self._rows, float(w @ theta)
        return Tilted(theta, self._fit_of(theta), self._rows @ (self._q / p), answer, rho / (1 - rho * answer))

    @staticmethod
    def _bound(w: Floats, point: Tilted, target: float) -> float:
        """No distribution with f >= T has a larger answer, whatever the point is.

        By Jensen log sum_z (theta M)_z lam_z >= sum_z q_z log((theta M)_z lam_z / q_z). So with lam = q / (point M)
        every such theta has theta . g >= exp(T - f(point)) =: b, and w . theta <= max_x w_x + (g_x - b) / t for t > 0.
        """
        return float((w + (point.ratios - math.exp(target - point.fit)) / point.slope).max())

    def _last_inside(self, inside: Floats, outside: Floats, target: float) -> Floats:
        """On the way from a member of the set to a distribution beyond it, nearly the last one in it."""
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            if self._fit_of(inside + middle * (outside - inside)) >= target:
                low = middle
            else:
                high = middle
        return inside + low * (outside - inside)
