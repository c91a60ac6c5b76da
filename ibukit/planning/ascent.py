"""The distribution at which an answer is least certain: Newton's method inside the simplex, with a certificate.

v is concave. The best estimator u at any theta bounds the least variance at every other: v(theta')
<= c . theta' - (w . theta')^2, whose maximum over theta' is found exactly. At the worst theta the
two meet.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from tqdm import tqdm

from ibukit._ground.arguments import Floats
from ibukit.domain.distributions import project_to_simplex
from ibukit.planning.worst_case import Worst, greatest

# relative difference of the two bounds at which it ends, and the most steps; what is found before
# is certified, too
BOUNDS_MEET, MAX_CLIMBED = 1e-7, 100
# multiplications that may be spent on finding the hardest of many questions: minutes
MAX_WORK = 1e12
STEPS_EXPECTED = 30
# how far along the way to the border a step goes, and the share of the promised gain that it must
# bring
SHORT_OF_THE_BORDER, GAIN = 0.9, 0.1


class Point(NamedTuple):
    """The best estimators at one distribution."""

    estimators: Floats
    """What `curvature` needs to know of them."""
    slopes: Floats
    """c_x = sum_z M_xz u_z^2 for each question, shape (k, r)."""
    variances: Floats
    """c . theta - (w . theta)^2, shape (r,)."""
    basis: Floats | None
    """Another thing that `curvature` may need."""


class Space(Protocol):
    """The distributions of k secrets, as a mechanism sees them."""

    k: int
    m: int

    def at(self, theta: Floats, w: Floats) -> Point:
        """The best estimators of the questions, the columns of w, at a distribution without zeros."""

    def curvature(self, theta: Floats, point: Point, w: Floats) -> Floats:
        """Minus the second derivatives of the sum of their variances, along directions that keep the sum."""


class Climb(NamedTuple):
    """Bounds on the maximum of the sum of some questions' variances, and a distribution that attains the lower one."""

    upper: float
    lower: float
    theta: Floats


def hardest(space: Space, w: Floats, uppers: Floats, lowers: Floats) -> Worst:
    """Of several questions the one of the largest variance: those that cannot be it are not tried."""
    first, tried = int(lowers.argmax()), np.zeros(len(uppers), dtype=bool)
    best, uppers = (
        Worst(np.inf, float(lowers[first]), first, np.full(space.k, 1 / space.k)),
        uppers.copy(),
    )
    most = max(1, int(MAX_WORK / (STEPS_EXPECTED * 6 * space.k**2 * space.m)))
    bar = tqdm(total=min(most, len(uppers)), desc="questions", leave=False, disable=None)
    for _ in range(min(most, len(uppers))):
        question = int(np.where(tried, -np.inf, uppers).argmax())
        if uppers[question] <= best.lower * (1 + 2 * BOUNDS_MEET):
            break
        found, tried[question] = climb(space, w[:, [question]]), True
        bar.update()
        uppers[question] = min(found.upper, uppers[question])
        if found.lower > best.lower:
            best = Worst(np.inf, found.lower, question, found.theta)
    bar.close()
    return best._replace(upper=float(uppers.max()))


def climb(space: Space, w: Floats) -> Climb:
    """Maximise the sum over the columns of w; they are one question, or each single probability."""
    theta = np.full(space.k, 1 / space.k)
    point = space.at(theta, w)
    upper, lower, best = np.inf, -np.inf, theta
    for _ in range(MAX_CLIMBED):
        upper = min(upper, _bound(point, w))
        if point.variances.sum() > lower:
            lower, best = float(point.variances.sum()), theta
        gap = upper - lower
        if gap <= BOUNDS_MEET * upper:
            break
        moved = _step(space, theta, point, w, mu=0.1 * gap / space.k)
        if moved is None:
            break
        theta, point = moved
    return Climb(max(upper, lower), lower, best)  # they may cross by rounding


def _bound(point: Point, w: Floats) -> float:
    if w.shape[1] == 1:
        return greatest(point.slopes[:, 0], w[:, 0])[0]
    # c . theta - ||theta||^2 for the sum over all secrets
    c = point.slopes.sum(axis=1)
    theta = project_to_simplex(c / 2)
    return float(c @ theta - theta @ theta)


def _step(
    space: Space, theta: Floats, point: Point, w: Floats, mu: float
) -> tuple[Floats, Point] | None:
    """One step of Newton's method on v + mu sum log theta; None where rounding stops it."""
    slope = point.slopes.sum(axis=1) - 2 * w @ (w.T @ theta)
    # in multiples of theta, so that the barrier's curvature is mu for each
    curvature = space.curvature(theta, point, w) * np.outer(theta, theta)
    curvature[np.diag_indices_from(curvature)] += mu
    try:
        factor = cho_factor(curvature)
    except LinAlgError:
        return None
    uphill = theta * slope + mu
    uphill -= (
        uphill.sum() * theta
    )  # a constant slope leads nowhere, and its rounding would be promised as a gain
    gain, along = cho_solve(factor, uphill), cho_solve(factor, theta)
    move = gain - (theta @ gain) / (theta @ along) * along
    promised = float(move @ uphill)
    length = min(1.0, SHORT_OF_THE_BORDER / max(float(-move.min()), 1e-300))
    value = point.variances.sum() + mu * np.log(theta).sum()
    while length > 1e-10:
        there = theta * (1 + length * move)
        there /= there.sum()
        found = space.at(there, w)
        if found.variances.sum() + mu * np.log(there).sum() >= value + GAIN * length * promised:
            return there, found
        length /= 2
    return None
