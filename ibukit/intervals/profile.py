"""The profile likelihood: all distributions whose likelihood is not much below the largest.

The upper end of w . theta over {theta : f(theta) >= floor}, f(theta) = sum_z q_z log (theta M)_z,
is attained by a maximiser of f(theta) + t w . theta: a tilted maximiser (`tilted_likelihood`). The
search is for the tilt at which f has fallen to the floor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.intervals import sqp
from ibukit.intervals.tilted_likelihood import Likelihood, Tilted, likelihood_of_tally
from ibukit.tally.tally import Tally

# The search stops when a proved end is within this distance of an attained one, for weights from 0
# to 1.
ENDS_MEET = 1e-9
# The same, as a share of the end: it matters for tiny shares and very many reports.
RELATIVE_TOLERANCE = 1e-6
# Largest number of tilts tried for one end. After that the bound proved so far is returned, which
# may be further out than needed.
MAX_TILTS = 80
# The first tilt rho: far below that of most ends, and far above rounding.
FIRST_TILT = 1e-3
# A segment leads from a member of the region to a distribution outside. The place where it leaves
# the region is found to this share of its length, in at most this number of steps.
SEGMENT_TOLERANCE = 1e-13
MAX_NARROWINGS = 60


class Profile:
    """{theta : f(theta) >= floor}."""

    def __init__(self, likelihood: Likelihood, floor: float):
        self.likelihood, self.floor = likelihood, floor

    @classmethod
    def of(cls, tally: Tally, level: float) -> Profile:
        """Return {theta : 2 n (max f - f) <= z^2}, z the normal quantile of the level.

        By Wilks' theorem the left side, at the best theta with the true w . theta, is about
        chi-squared with one degree of freedom.
        """
        likelihood = likelihood_of_tally(tally)
        return cls(likelihood, likelihood.floor(normal_quantile(level) ** 2, tally.n))

    def highest(self, w: Floats) -> float:
        """Return the upper end, from outside."""
        least, most = float(w.min()), float(w.max())
        return least + (most - least) * self.bracket((w - least) / (most - least))[1]

    def bracket(self, w: Floats) -> tuple[float, float]:
        """Return a value that is attained and one that is not exceeded, for weights from 0 to 1."""
        best = self.likelihood.best
        if (w[best.theta > 0] == 1).all() or self.floor == -math.inf:
            return 1.0, 1.0
        best = best._replace(answer=float(w @ best.theta))
        attained, bound = best.answer, 1.0
        # Sequential quadratic programming takes few steps but may fail; the search along the tilts
        # then takes over, and always ends.
        for path in (sqp.steps(self.likelihood, w, self.floor), self._along_tilts(w)):
            inside, outside = best, None
            for point in path:
                bound = min(bound, self.bound(w, point))
                if point.fit < self.floor:
                    outside = point
                elif (w[point.theta > 0] == 1).all():
                    return 1.0, 1.0
                elif point.answer > inside.answer:
                    inside = point
                reached = inside.answer if outside is None else self._between(inside, outside)
                attained = max(attained, reached)
                if bound - attained <= min(ENDS_MEET, RELATIVE_TOLERANCE * bound):
                    return attained, bound
        return attained, bound

    def bound(self, w: Floats, point: Tilted) -> float:
        """Return an upper bound on w . theta over the region, whatever the point is.

        By Jensen, log sum_z (theta M)_z lam_z >= sum_z q_z log((theta M)_z lam_z / q_z). So with
        lam = q / (point M) every theta with f >= floor has theta . g >= exp(floor - f(point)) =: b,
        and therefore w . theta <= max_x w_x + (g_x - b) / t for every t > 0. At the end itself,
        with its own t, this is an equality.
        """
        if not (point.slope > 0 and math.isfinite(point.fit)):
            return 1.0
        return float((w + (point.ratios - math.exp(self.floor - point.fit)) / point.slope).max())

    def _between(self, inside: Tilted, outside: Tilted) -> float:
        """Return w . theta where the segment from `inside` to `outside` leaves the region."""
        share = self._share_inside(inside, outside)
        return (1 - share) * inside.answer + share * outside.answer

    def _share_inside(self, inside: Tilted, outside: Tilted) -> float:
        """Return the share of the segment from `inside` to `outside` that is in the region."""
        q, floor = self.likelihood.q, self.floor
        fit_low, fit_high = inside.fit, outside.fit
        rise = outside.p - inside.p

        def mixed(share: float) -> Floats:
            # Not inside.p + share * rise, which may round a tiny probability to 0.
            return np.asarray((1 - share) * inside.p + share * outside.p)

        low, high = 0.0, 1.0
        for _ in range(MAX_NARROWINGS):
            # f is concave along the segment: its chord leaves the region too early, its tangent too
            # late.
            if math.isfinite(fit_high):
                # Where a fitted probability is subnormal f may fall infinitely fast.
                with np.errstate(over="ignore"):
                    slope = float(q @ (rise / mixed(high)))
                tangent = high + (floor - fit_high) / slope if slope < 0 else high
                chord = low + (high - low) * (fit_low - floor) / (fit_low - fit_high)
                high = max(low, min(high, tangent))
                low = max(low, min(chord, high))
            else:
                middle = (low + high) / 2
                is_in = self.likelihood.fit_of(mixed(middle)) >= floor
                low, high = (middle, high) if is_in else (low, middle)
            fit_low = self.likelihood.fit_of(mixed(low))
            fit_high = self.likelihood.fit_of(mixed(high))
            # Towards the end, rounding may have reversed the order of the two fits.
            if high - low <= SEGMENT_TOLERANCE or not fit_high < floor <= fit_low:
                break
        return low

    def _along_tilts(self, w: Floats) -> Iterator[Tilted]:
        """Yield tilted maximisers on the way to the one with f = floor.

        The root of f = floor as a function of the tilt rho is bracketed, and then found by the
        Illinois rule: regula falsi that halves the value at an end which stays in place. The square
        root of the fall of f is used, because it is about proportional to rho.
        """
        face = self._on_face(w)
        if face is not None and face.fit >= self.floor:
            yield face
        top = self.likelihood.best.fit
        wanted = math.sqrt(top - self.floor)
        low, below, high, above = 0.0, -wanted, 1.0, math.inf
        rho, side = FIRST_TILT, 0
        for _ in range(MAX_TILTS):
            point = self.likelihood.tilted(w, rho)
            yield point
            miss = math.sqrt(max(top - point.fit, 0.0)) - wanted
            if miss <= 0:
                low, below, above = rho, miss, above / 2 if side < 0 else above
                side = -1
            else:
                high, above, below = rho, miss, below / 2 if side > 0 else below
                side = 1
            rho = next_tilt(low, below, high, above, wanted)
            if not low < rho < high:
                return

    def _on_face(self, w: Floats) -> Tilted | None:
        """Return the most likely distribution with w . theta = 1; None if a report excludes all."""
        theta = self.likelihood.on_face(w == 1)
        return None if theta is None else self.likelihood.at(theta, w, 0.0)


class End(NamedTuple):
    """An upper end of w . theta with the point that proves it, for weights from 0 to 1."""

    bound: float
    witness: Tilted | None
    """The point with the tightest bound; None if the largest possible value is not excluded."""


class ProfileWithWitness(Profile):
    """{theta : f(theta) >= floor}, whose ends come with the points that prove them."""

    def __init__(self, likelihood: Likelihood, floor: float):
        super().__init__(likelihood, floor)
        self._end = End(math.inf, None)

    @override
    def bound(self, w: Floats, point: Tilted) -> float:
        # The tightest bound of the search under way is remembered with its point.
        bound = super().bound(w, point)
        if bound < self._end.bound:
            self._end = End(bound, point)
        return bound

    def end(self, w: Floats) -> End:
        """Return the upper end, for weights from 0 to 1."""
        self._end = End(math.inf, None)
        _, bound = self.bracket(w)
        return self._end if bound < 1 else End(1.0, None)


def next_tilt(low: float, below: float, high: float, above: float, wanted: float) -> float:
    """Return the tilt to try next for the root of a rising function with the value -wanted at 0.

    It is between `low`, with the value `below` < 0, and `high`, with `above` > 0; `above` is inf as
    long as no tilt has been too large.
    """
    if math.isfinite(above):
        return low + (high - low) * below / (below - above)
    # Extrapolate in proportion and 5 % beyond, to have the root between two tilts, but never more
    # than halfway to the largest tilt.
    grown = 1.05 * low * wanted / max(wanted + below, 1e-12 * wanted)
    return min(grown, (low + high) / 2)
