"""The profile likelihood: all distributions whose likelihood is not much below the largest.

The upper end of w . theta over {theta : f(theta) >= floor}, f(theta) = sum_z q_z log (theta M)_z,
is the answer of the most likely distribution that leans towards w (`likelihood`) by as much as the
floor allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.intervals import sqp
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.intervals.tilted_likelihood import Likelihood, Tilted, likelihood_of_tally
from ibukit.tally.tally import Tally

# of the range of the answers: how far a certified end may be outside of one that is attained
ENDS_MEET = 1e-9
MAX_TILTS = 80
# where the search begins: far below what most functionals need, and far above rounding
FIRST_TILT = 1e-3


class Profile:
    """{theta : f(theta) >= floor}."""

    def __init__(self, likelihood: Likelihood, floor: float):
        self.likelihood, self.floor = likelihood, floor

    @classmethod
    def of(cls, tally: Tally, level: float) -> Profile:
        """N (max f - f) at most z^2 / 2, z the normal quantile: chi-squared with one degree of freedom."""
        likelihood = likelihood_of_tally(tally)
        return cls(likelihood, likelihood.best.fit - normal_quantile(level) ** 2 / 2 / tally.n)

    def highest(self, w: Floats) -> float:
        """The upper end, from outside."""
        least, most = float(w.min()), float(w.max())
        return least + (most - least) * self.bracket((w - least) / (most - least))[1]

    def bracket(self, w: Floats) -> tuple[float, float]:
        """An answer that is attained and one that is not exceeded, of weights from 0 to 1."""
        best = self.likelihood.best
        if (w[best.theta > 0] == 1).all():
            return 1.0, 1.0
        best = best._replace(answer=float(w @ best.theta))
        attained, bound = best.answer, 1.0
        # a bold way first, and a sure one where it does not lead to the end
        for path in (sqp.steps(self.likelihood, w, self.floor), self._along(w)):
            inside, outside = best, None
            for point in path:
                bound = min(bound, self.bound(w, point))
                if point.fit < self.floor:
                    outside = point
                elif (w[point.theta > 0] == 1).all():
                    return 1.0, 1.0
                elif point.answer > inside.answer:
                    inside = point
                attained = max(
                    attained, inside.answer if outside is None else self._between(inside, outside)
                )
                if bound - attained <= ENDS_MEET:
                    return attained, bound
        return attained, bound

    def bound(self, w: Floats, point: Tilted) -> float:
        """No distribution with f >= floor has a larger answer, whatever the point is.

        By Jensen log sum_z (theta M)_z lam_z >= sum_z q_z log((theta M)_z lam_z / q_z). So with lam
        = q / (point M) every such theta has theta . g >= exp(floor - f(point)) =: b, and w . theta
        <= max_x w_x + (g_x - b) / t, t > 0.
        """
        if not (point.slope > 0 and math.isfinite(point.fit)):
            return 1.0
        return float((w + (point.ratios - math.exp(self.floor - point.fit)) / point.slope).max())

    def _between(self, inside: Tilted, outside: Tilted) -> float:
        """The answer of nearly the last member on the way to a distribution beyond."""
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            is_in = self.likelihood.fit_of(inside.p + middle * (outside.p - inside.p)) >= self.floor
            low, high = (middle, high) if is_in else (low, middle)
        return (1 - low) * inside.answer + low * outside.answer

    def _along(self, w: Floats) -> Iterator[Tilted]:
        """The root of the fall of f, which is about proportional to rho, by Illinois' rule once it is between two."""
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
        """The most likely of the distributions with the largest answer; None where some report rules them out."""
        theta = self.likelihood.on_face(w == 1)
        return None if theta is None else self.likelihood.at(theta, w, 0.0)


class End(NamedTuple):
    """An upper end of w . theta with the point that proves it, for weights from 0 to 1."""

    bound: float
    witness: Tilted | None
    """The point with the tightest bound; None if the largest possible answer is not excluded."""


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
    """Where to look for the root of what is -wanted at 0 and rises, between a lean too small and one too large."""
    if math.isfinite(above):
        return low + (high - low) * below / (below - above)
    # nothing beyond yet: in proportion, a little more, and never more than halfway to the end
    grown = 1.05 * low * wanted / max(wanted + below, 1e-12 * wanted)
    return min(grown, (low + high) / 2)


def profile(request: IntervalRequest) -> Ends:
    """The ends of the profile likelihood."""
    request.refuse_frequencies("profile")
    request.refuse_if_too_slow("profile")
    return ends(Profile.of(request.checked_tally(), request.level), request.functionals)
