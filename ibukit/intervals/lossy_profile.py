r"""The profile likelihood where reports get lost.

With losses the likelihood of the reports seen is concave in the distribution phi of the secrets
seen, and theta_x is proportional to y_x = phi_x / e_x. For weights w the condition w . theta <= v
is linear in phi:

    u . phi <= 0  with  u_x = (w_x - v) / e_x.

The upper end of w . theta over the region {phi : f(phi) >= floor} is therefore the v at which the
largest u . phi is 0. This largest value falls as v grows, and Dinkelbach's iteration finds its root
from below: the next v is the value of w . theta at the phi with the largest u . phi.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.intervals import sqp
from ibukit.intervals.line_maximum import least_maximum
from ibukit.intervals.profile import ENDS_MEET, RELATIVE_TOLERANCE, Profile
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.intervals.tilted_likelihood import Likelihood, Tilted, likelihood_of_tally
from ibukit.tally.tally import Tally

# Largest number of values v tried for one end. Dinkelbach's iteration converges faster than
# linearly: five are mostly enough.
MAX_VALUES = 30
# Width of a bracket of u . phi, for weights u from 0 to 1, that doubles can still reach.
FINEST_BRACKET = 1e-14
# A round must reduce the distance between the attained value and the bound by this share.
MIN_PROGRESS = 1e-3


class LossyProfile(Profile):
    """{theta : f(phi) >= floor}, with phi_x proportional to theta_x e_x."""

    def __init__(self, likelihood: Likelihood, floor: float, efficiency: Floats):
        super().__init__(likelihood, floor)
        # Theta does not depend on the unit of the efficiencies.
        self._efficiency = efficiency / efficiency.max()
        # The point that the search visited last.
        self._last = likelihood.best

    @classmethod
    @override
    def of(cls, tally: Tally, level: float) -> LossyProfile:
        """Return {theta : 2 n (max f - f) <= z^2}, z the normal quantile of the level."""
        assert tally.efficiency is not None, "reports get lost"
        likelihood = likelihood_of_tally(tally.among_seen)
        floor = likelihood.floor(normal_quantile(level) ** 2, tally.n)
        return cls(likelihood, floor, tally.efficiency)

    @override
    def bracket(self, w: Floats) -> tuple[float, float]:
        """Return a value that is attained and one that is not exceeded, for weights from 0 to 1."""
        if self._holds_all_on(w):
            return 1.0, 1.0
        self._last = self.likelihood.best
        attained, bound = self._value(w, self._last.theta), 1.0
        along_tilts = False
        for _ in range(MAX_VALUES):
            if bound - attained <= min(ENDS_MEET, RELATIVE_TOLERANCE * bound):
                break
            before = attained, bound
            points = self._along_tilts if along_tilts else self._by_models
            attained, bound = self._improve(w, attained, bound, points)
            gained = attained - before[0] + before[1] - bound
            failed = gained <= MIN_PROGRESS * (before[1] - before[0])
            if failed and along_tilts:
                break
            # Sequential quadratic programming may fail; the search along the tilts then takes over.
            along_tilts = failed
        return attained, bound

    def _holds_all_on(self, w: Floats) -> bool:
        """Return whether a distribution on the secrets with the weight 1 is in the region."""
        # On these secrets theta and phi have the same support. The search for the largest w . phi
        # decides the question, mostly in a few steps.
        for point in sqp.steps(self.likelihood, w, self.floor):
            if self.bound(w, point) < 1:
                return False
            if point.fit >= self.floor and (w[point.theta > 0] == 1).all():
                return True
        face = self._on_face(w)
        return face is not None and face.fit >= self.floor

    def _improve(
        self, w: Floats, v: float, bound: float, points: Callable[[Floats], Iterator[Tilted]]
    ) -> tuple[float, float]:
        """Return a larger value that is attained, and a smaller one that is not exceeded.

        `points` yields points on the way to the largest u . phi.
        """
        u = (w - v) / self._efficiency
        least, span = float(u.min()), float(np.ptp(u))
        scaled = (u - least) / span
        # A bracket of u . phi with this width gives one of w . theta as narrow as asked for.
        best = self.likelihood.best
        total = float((best.theta / self._efficiency).sum())
        narrow = max(ENDS_MEET * min(1.0, total / span), FINEST_BRACKET)
        inside = best._replace(answer=float(scaled @ best.theta))
        outside: Tilted | None = None
        attained, highest, reached = v, 1.0, inside.answer
        for point in points(scaled):
            self._last = point
            bound = min(bound, self._bound_of_all(w, v, span, point))
            highest = min(highest, self.bound(scaled, point))
            if point.fit < self.floor:
                outside = point
            elif point.answer > inside.answer:
                inside = point
            phi = inside.theta
            if outside is not None:
                share = self._share_inside(inside, outside)
                phi = (1 - share) * inside.theta + share * outside.theta
            attained = max(attained, self._value(w, phi))
            reached = max(reached, float(scaled @ phi))
            if bound - attained <= ENDS_MEET or highest - reached <= narrow:
                break
        return attained, bound

    def _by_models(self, scaled: Floats) -> Iterator[Tilted]:
        # The last point is near the end for other values of v, too.
        return sqp.steps(self.likelihood, scaled, self.floor, self._last)

    def _value(self, w: Floats, phi: Floats) -> float:
        """Return w . theta."""
        y = phi / self._efficiency
        return float(w @ y / y.sum())

    def _bound_of_all(self, w: Floats, v: float, span: float, point: Tilted) -> float:
        """Return an upper bound on w . theta over the region, whatever the point is.

        As in `Profile.bound`, every phi of the region has phi . g >= b = exp(floor - f(point)).
        With phi_x proportional to theta_x e_x this is sum_x theta_x e_x (g_x - b) >= 0, hence w .
        theta <= max_x w_x + s e_x (g_x - b) for every s >= 0. At the end itself, with s the inverse
        of its slope in units of u, this is an equality.
        """
        if not (point.slope > 0 and math.isfinite(point.fit)):
            return 1.0
        excess = self._efficiency * (point.ratios - math.exp(self.floor - point.fit))
        return least_maximum(w, excess, span / point.slope)


def profile(request: IntervalRequest) -> Ends:
    r"""Return the range of each functional over the likely distributions.

    The range goes from the least to the greatest :math:`w \cdot \theta` over :math:`\{\theta :
    L(\theta) \ge \max L - z^2/2\}`, with z the normal quantile of the level. If reports get lost, L
    is the likelihood of the reports that were seen, given their number.

    Parameters
    ----------
    request : IntervalRequest

    Returns
    -------
    (lower, upper) : ndarrays, shape (r,)
        Bounds that are proved to contain the range.
    """
    request.refuse_frequencies("profile")
    request.refuse_if_too_slow("profile")
    tally = request.checked_tally(lossy=True)
    region = Profile if tally.efficiency is None else LossyProfile
    return ends(region.of(tally, request.level), request.functionals)
