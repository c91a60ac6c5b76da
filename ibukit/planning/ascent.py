"""Maximise the least variance over distributions, with a certificate.

The least variance v(theta) is concave. The best estimator u at any theta bounds v at every other
distribution: v(theta') <= c . theta' - (w . theta')^2 with c_x = sum_z M_xz u_z^2, and the maximum
of the right side over theta' is found exactly (`worst_case.max_variance`). At the worst theta bound
and value are equal. Newton's method with a logarithmic barrier climbs v inside the simplex.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from tqdm import tqdm

from ibukit._ground.arguments import Floats
from ibukit.domain.distributions import project_to_simplex
from ibukit.planning.worst_case import Worst, max_variance

# Relative difference of upper and lower bound at which the climb ends, and the largest number of
# steps. The bounds hold after every step, so a climb that ends early is still certified.
GAP_TOLERANCE, MAX_STEPS = 1e-7, 100
# Number of multiplications that many questions may take, which is minutes; and the usual number of
# steps of one climb, from which the cost of the questions is predicted.
MAX_WORK = 1e12
EXPECTED_STEPS = 30
# Largest step, as a share of the distance to the boundary of the simplex; and the share of the
# predicted gain that a step must bring to be accepted (Armijo's rule).
BOUNDARY_FRACTION, MIN_GAIN_SHARE = 0.9, 0.1


class Point(NamedTuple):
    """Best estimators of some questions at one distribution."""

    estimators: Floats
    """The estimators, in the form that `curvature` needs."""
    slopes: Floats
    """c_x = sum_z M_xz u_z^2 for each question, shape (k, r)."""
    variances: Floats
    """c . theta - (w . theta)^2, shape (r,)."""
    basis: Floats | None
    """A basis or a covariance that `curvature` may need."""


class VarianceSurface(Protocol):
    """The least variances from a mechanism's reports, as functions of the distribution."""

    k: int
    m: int

    def at(self, theta: Floats, w: Floats) -> Point:
        """Return the best estimators of the columns of w at a distribution without zeros."""

    def curvature(self, theta: Floats, point: Point, w: Floats) -> Floats:
        """Return minus the second derivatives of the sum of the variances."""


class Climb(NamedTuple):
    """Bounds on the maximal sum of variances, and a distribution that attains the lower one."""

    upper: float
    lower: float
    theta: Floats


def largest_variance(space: VarianceSurface, w: Floats, uppers: Floats, lowers: Floats) -> Worst:
    """Return the question of the largest variance, and bounds of that variance."""
    # Questions are climbed in the order of their upper bounds. When the largest bound that is left
    # is below the best value, no other question can be the answer.
    first, tried = int(lowers.argmax()), np.zeros(len(uppers), dtype=bool)
    best, uppers = (
        Worst(np.inf, float(lowers[first]), first, np.full(space.k, 1 / space.k)),
        uppers.copy(),
    )
    most = max(1, int(MAX_WORK / (EXPECTED_STEPS * 6 * space.k**2 * space.m)))
    bar = tqdm(total=min(most, len(uppers)), desc="questions", leave=False, disable=None)
    for _ in range(min(most, len(uppers))):
        question = int(np.where(tried, -np.inf, uppers).argmax())
        if uppers[question] <= best.lower * (1 + 2 * GAP_TOLERANCE):
            break
        found, tried[question] = climb(space, w[:, [question]]), True
        bar.update()
        uppers[question] = min(found.upper, uppers[question])
        if found.lower > best.lower:
            best = Worst(np.inf, found.lower, question, found.theta)
    bar.close()
    return best._replace(upper=float(uppers.max()))


def climb(space: VarianceSurface, w: Floats) -> Climb:
    """Maximise the sum of the variances of the columns of w: one question, or all probabilities."""
    theta = np.full(space.k, 1 / space.k)
    point = space.at(theta, w)
    upper, lower, best = np.inf, -np.inf, theta
    for _ in range(MAX_STEPS):
        upper = min(upper, _bound(point, w))
        if point.variances.sum() > lower:
            lower, best = float(point.variances.sum()), theta
        gap = upper - lower
        if gap <= GAP_TOLERANCE * upper:
            break
        step = _step(space, theta, point, w, mu=0.1 * gap / space.k)
        if step is None:
            break
        theta, point = step
    # Rounding may make the upper and the lower bound cross.
    return Climb(max(upper, lower), lower, best)


def _bound(point: Point, w: Floats) -> float:
    """Return an upper bound of the maximum, from the estimators at one point."""
    if w.shape[1] == 1:
        return max_variance(point.slopes[:, 0], w[:, 0])[0]
    # Summed over all single probabilities the bound is c . theta - ||theta||^2, whose maximiser is
    # the projection of c / 2 onto the simplex.
    c = point.slopes.sum(axis=1)
    theta = project_to_simplex(c / 2)
    return float(c @ theta - theta @ theta)


def _step(
    space: VarianceSurface, theta: Floats, point: Point, w: Floats, mu: float
) -> tuple[Floats, Point] | None:
    """Return one step of Newton's method on v + mu sum log theta; None if rounding stops it."""
    slope = point.slopes.sum(axis=1) - 2 * w @ (w.T @ theta)
    # The unknowns are relative changes of theta, in which the barrier's curvature is mu times
    # identity.
    curvature = space.curvature(theta, point, w) * np.outer(theta, theta)
    curvature[np.diag_indices_from(curvature)] += mu
    try:
        factor = cho_factor(curvature)
    except LinAlgError:
        return None
    uphill = theta * slope + mu
    # A constant slope gives no gain, because the sum of theta is fixed. It is removed, because its
    # rounding would count as a predicted gain.
    uphill -= uphill.sum() * theta
    gain, along = cho_solve(factor, uphill), cho_solve(factor, theta)
    move = gain - (theta @ gain) / (theta @ along) * along
    promised = float(move @ uphill)
    length = min(1.0, BOUNDARY_FRACTION / max(float(-move.min()), 1e-300))
    value = point.variances.sum() + mu * np.log(theta).sum()
    while length > 1e-10:
        candidate = theta * (1 + length * move)
        candidate /= candidate.sum()
        reached = space.at(candidate, w)
        if (
            reached.variances.sum() + mu * np.log(candidate).sum()
            >= value + MIN_GAIN_SHARE * length * promised
        ):
            return candidate, reached
        length /= 2
    return None
