"""The optimal design problem behind the best private channel: weights of given columns, with a proof of optimality.

Scaled to u with sum_x theta_x u_x = 1, the columns of a channel are points whose weights a are a
distribution, and rows that sum to 1 say that the mean of the points is the vector of ones. In an
orthonormal basis of {v : sum v = 0} let r be the coordinates of u - 1. The problem is

    minimise phi(J) = sum_j c(l_j^T J^-1 l_j) with J = sum_i a_i r_i r_i^T,
    subject to sum_i a_i r_i = 0, sum_i a_i = 1, a >= 0,

with c(t) = t (A-optimality) or sqrt(t), convex in both cases, and homogeneous of degree -p, p = 1
or 1/2.

Bound. For the G = -(1/p) dphi/dJ of any J, sum_i a_i q(r_i) = phi(J) with q(r) = r^T G r, and for
any vector nu

    phi(every feasible design) >= phi(J) (phi(J) / B)^p,   B = max_i q(r_i) - nu r_i,

because phi lies above its tangent at every multiple of J, and the weights make the term in nu
vanish. As q is convex the maximum over the extreme rays is that over the whole cone. At the optimum
B = phi(J): the equivalence theorem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls

from ibukit._ground.arguments import Floats

MAX_ITER = 100
# the path ends where the bound is this near, as a share of the criterion
NEAR_THE_BOUND = 1e-11
# weights whose mean is off by more belong to no channel
FEASIBLE = 1e-11
# a step goes this far towards where a weight or a slack would be 0
REACH = 0.995
# steps for each column that the least squares of the last weights may take: three are too few for
# 24 secrets
STEPS_FOR_A_COLUMN = 30
# columns that contribute less than this share of what a mean one does are on their way to 0
MIN_SHARE_USED = 1e-10


@dataclass(frozen=True)
class Criterion:
    """Phi of a matrix J by its loadings l_j, shape (terms, d), as squares (A-optimality) or as their roots."""

    loadings: Floats
    roots: bool

    @property
    def degree(self) -> float:
        """The p with phi(s J) = s^-p phi(J)."""
        return 0.5 if self.roots else 1.0

    def at(self, information: Floats) -> Slope:
        """Value, minus its gradient, and its second derivative as a matrix on vectorised J, at J."""
        inverse, ways, squares = self._ways(information)
        weights = 0.5 / np.sqrt(squares) if self.roots else np.ones(len(squares))
        gradient = (ways * weights) @ ways.T
        second = np.kron(inverse, gradient) + np.kron(gradient, inverse)
        if self.roots:
            products = (ways[:, None] * ways).reshape(-1, len(squares))
            second -= (products * (0.25 * squares**-1.5)) @ products.T
        return Slope(self._sum(squares), gradient, second)

    def value(self, information: Floats) -> float:
        """Phi alone, which takes no matrix of d^4 entries."""
        return self._sum(self._ways(information)[2])

    def _ways(self, information: Floats) -> tuple[Floats, Floats, Floats]:
        """J^-1, J^-1 l_j and l_j^T J^-1 l_j."""
        inverse = np.asarray(np.linalg.inv(information), dtype=np.float64)
        ways = inverse @ self.loadings.T
        return inverse, ways, (self.loadings.T * ways).sum(axis=0)

    def _sum(self, squares: Floats) -> float:
        return float((np.sqrt(squares) if self.roots else squares).sum())


class Dual(NamedTuple):
    """A tangent of phi: value and G at some J, and nu, which bound phi over all points whose highest score is known."""

    value: float
    quadratic: Floats
    linear: Floats
    degree: float

    def bound(self, highest: float) -> float:
        """No design is below, of points r with q(r) - nu r <= highest."""
        return float(self.value * (self.value * self.degree / highest) ** self.degree)


class Slope(NamedTuple):
    """What `Criterion.at` tells."""

    value: float
    gradient: Floats
    second: Floats


def optimal_design(points: Floats, start: Floats, criterion: Criterion) -> tuple[Floats, float]:
    """Weights of points r, shape (columns, d), and a bound on the criterion of any weights: an interior-point method.

    It begins with weights `start`, shape (columns,), under which the mean need not be 0. At most (d
    + 1) (d + 2) / 2 weights of the solution are positive; the constraints hold nearly, and are to
    be seen to by the caller.
    """
    points, criterion, _ = _rounded(points, start, criterion)
    spread, bound, _ = _central_path(points, start, criterion, NEAR_THE_BOUND)
    return _few(points, spread), bound


def spread_design(
    points: Floats, start: Floats, criterion: Criterion, near: float
) -> tuple[Floats, Dual]:
    """All the weights that the path ends with, where the bound is as near as that, and what the bound comes from."""
    points, criterion, root = _rounded(points, start, criterion)
    spread, _, dual = _central_path(points, start, criterion, near)
    half = solve_triangular(root, dual.quadratic, lower=True, trans="T")
    quadratic = solve_triangular(root, half.T, lower=True, trans="T")
    return spread, dual._replace(
        quadratic=quadratic, linear=solve_triangular(root, dual.linear, lower=True, trans="T")
    )


def _rounded(
    points: Floats, start: Floats, criterion: Criterion
) -> tuple[Floats, Criterion, Floats]:
    """Points and criterion in coordinates in which the problem is round, whatever epsilon is, and the change."""
    root = np.asarray(np.linalg.cholesky((points.T * start) @ points), dtype=np.float64)
    points = solve_triangular(root, points.T, lower=True).T
    return (
        points,
        Criterion(solve_triangular(root, criterion.loadings.T, lower=True).T, criterion.roots),
        root,
    )


def _central_path(
    points: Floats, weights: Floats, criterion: Criterion, near: float
) -> tuple[Floats, float, Dual]:
    """Weights and a bound, by Newton steps on a_i s_i = mu with slacks s_i = nu r_i + nu_0 - q(r_i), as mu falls."""
    n, d = points.shape
    vectorise = _symmetric(d)
    squares = (points[:, :, None] * points[:, None]).reshape(n, -1) @ vectorise
    moments = np.hstack([squares, points, np.ones((n, 1))])
    wanted = np.append(np.zeros(d), 1.0)
    multipliers, slacks = np.zeros(d + 1), np.empty(0)
    best, least, bounded = weights, np.inf, 0.0
    dual = Dual(0.0, np.zeros((d, d)), np.zeros(d), criterion.degree)
    for _ in range(MAX_ITER):
        slope = criterion.at((points.T * weights) @ points)
        scores = squares @ (slope.gradient.ravel() @ vectorise)
        missing = wanted - weights @ moments[:, -d - 1 :]
        highest = float((scores - points @ multipliers[:-1]).max())
        tangent = Dual(slope.value, slope.gradient, multipliers[:-1], criterion.degree)
        if tangent.bound(highest) > bounded:
            dual, bounded = tangent, tangent.bound(highest)
        if np.abs(missing).max() < FEASIBLE and slope.value < least:
            best, least = weights, slope.value
        if bounded >= (1 - near) * least:
            break
        if not slacks.size:
            multipliers[-1] = 1.1 * scores.max()
            slacks = multipliers[-1] - scores
        off = moments[:, -d - 1 :] @ multipliers - scores - slacks
        try:
            newton = _newton(
                moments, vectorise.T @ slope.second @ vectorise, weights, slacks, off, missing
            )
        except np.linalg.LinAlgError:
            break  # the end of what doubles can tell; the bound says how good it is
        far, (ahead, behind, turned) = newton.centred()
        weights, slacks, multipliers = (
            weights + far * ahead,
            slacks + far * behind,
            multipliers + far * turned,
        )
    return best, bounded, dual


@dataclass(frozen=True, eq=False)
class Newton:
    """The equations for one step, their symmetric matrix and that of the constraints alone inverted."""

    moments: Floats
    weights: Floats
    slacks: Floats
    off: Floats
    missing: Floats
    inverse: tuple[Floats, bool]
    constraints: Floats

    def step(self, target: float) -> tuple[Floats, Floats, Floats]:
        """Changes of weights, slacks and multipliers towards a_i s_i = target."""
        rows = len(self.missing)
        ratio, pull = self.weights / self.slacks, target / self.weights - self.slacks
        right = self.moments.T @ (ratio * (pull - self.off))
        right[-rows:] -= self.missing
        found = cho_solve(self.inverse, right)
        change = ratio * (pull - self.off - self.moments @ found)
        # the constraints once more by themselves: near the end the large matrix is too
        # ill-conditioned to keep them
        means = self.moments[:, -rows:]
        change += ratio * (means @ (self.constraints @ (self.missing - change @ means)))
        return change, pull - change / ratio, found[-rows:]

    def centred(self) -> tuple[float, tuple[Floats, Floats, Floats]]:
        """How far to go, and the changes: towards a target that a step to 0 would have come near to."""
        weights, slacks = self.weights, self.slacks
        ahead, behind, _ = self.step(0.0)
        left = (weights + reach(weights, ahead) * ahead) @ (slacks + reach(slacks, behind) * behind)
        mean = float(weights @ slacks)
        shrunk = min(max(min(float(left / mean), 1.0) ** 3, 1e-3), 0.5)
        changes = self.step(mean / len(weights) * shrunk)
        return min(reach(weights, changes[0]), reach(slacks, changes[1])), changes


def _newton(
    moments: Floats, second: Floats, weights: Floats, slacks: Floats, off: Floats, missing: Floats
) -> Newton:
    matrix = (moments.T * (weights / slacks)) @ moments
    rows = len(missing)
    constraints = np.asarray(np.linalg.inv(matrix[-rows:, -rows:]), dtype=np.float64)
    matrix[:-rows, :-rows] += np.linalg.inv(second)
    return Newton(moments, weights, slacks, off, missing, cho_factor(matrix), constraints)


def reach(values: Floats, change: Floats, share: float = REACH) -> float:
    """How far of a change to go: all of it, or a share of the way to where the first value would be 0."""
    falling = change < 0
    return min(1.0, share * float((-values[falling] / change[falling]).min(initial=np.inf)))


def _symmetric(d: int) -> Floats:
    """Orthonormal basis of the symmetric matrices among the vectorised ones, shape (d^2, d (d + 1) / 2)."""
    rows, columns = np.triu_indices(d)
    basis = np.zeros((d, d, len(rows)))
    each = np.arange(len(rows))
    size = np.where(rows == columns, 1.0, 0.5**0.5)
    basis[rows, columns, each] = basis[columns, rows, each] = size
    return basis.reshape(d * d, -1)


def _few(points: Floats, weights: Floats) -> Floats:
    """The same J, mean and sum with linearly independent columns, of which there are at most (d + 1) (d + 2) / 2."""
    shares = weights * (1 + (points**2).sum(axis=1))
    used = np.flatnonzero(shares > MIN_SHARE_USED * shares.mean())
    lifted = np.column_stack([points[used], np.ones(len(used))])
    products = (lifted[:, :, None] * lifted[:, None]).reshape(len(used), -1) @ _symmetric(
        lifted.shape[1]
    )
    # columns of one size: those of rare secrets are far out
    sizes = np.linalg.norm(products, axis=1)
    found, _ = nnls(
        (products / sizes[:, None]).T,
        weights[used] @ products,
        maxiter=STEPS_FOR_A_COLUMN * len(used),
    )
    few = np.zeros(len(weights))
    few[used] = found / sizes
    return few
