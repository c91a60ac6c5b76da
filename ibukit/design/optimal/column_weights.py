"""Optimal design behind the best private channel: weights of given columns, with a proof.

Scaled to u with sum_x theta_x u_x = 1, the columns of a channel are points, and their weights a_i
form a distribution. That the rows of the channel sum to 1 then means that the mean of the points is
the vector of ones. In an orthonormal basis of {v : sum v = 0} let r be the coordinates of u - 1.
The problem is

    minimise phi(J) = sum_j c(l_j^T J^-1 l_j) with J = sum_i a_i r_i r_i^T,
    subject to sum_i a_i r_i = 0, sum_i a_i = 1, a >= 0,

with c(t) = t (A-optimality) or sqrt(t). In both cases phi is convex, and homogeneous of degree -p
with p = 1 or 1/2.

Bound. For the G = -(1/p) dphi/dJ of any J, sum_i a_i q(r_i) = phi(J) with q(r) = r^T G r, and for
any vector nu

    phi(every feasible design) >= phi(J) (phi(J) / B)^p,   B = max_i q(r_i) - nu r_i,

because phi lies above its tangent at every multiple of J, and the weights make the term in nu
vanish. Because q is convex, its maximum over the extreme rays is also that over the whole cone. At
the optimum B = phi(J): the equivalence theorem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls

from ibukit._ground.arguments import Floats

MAX_ITERATIONS = 100
# The path ends where the bound is within this share of the criterion.
BOUND_TOLERANCE = 1e-11
# A larger residual of the constraints means that the weights belong to no channel.
FEASIBILITY_TOLERANCE = 1e-11
# Share of the way to the boundary (a weight or a slack of 0) that a step takes.
STEP_SHARE = 0.995
# Iterations of NNLS for each column when the weights are made few; 3, its default, are too few for
# 24 secrets.
NNLS_STEPS_PER_COLUMN = 30
# A column contributes a (1 + r^T r) to the trace of the moments. Below this share of the mean
# contribution its weight is on its way to 0.
MIN_SHARE_USED = 1e-10


@dataclass(frozen=True)
class Criterion:
    """The criterion phi(J) of loadings l_j, shape (terms, d): sum of squares, or of their roots."""

    loadings: Floats
    roots: bool

    @property
    def degree(self) -> float:
        """The p for which phi(s J) = s^-p phi(J)."""
        return 0.5 if self.roots else 1.0

    def at(self, information: Floats) -> CriterionDerivatives:
        """Value, minus the gradient, and the second derivative as a matrix on vectorised J."""
        inverse, solved, squares = self._solved_loadings(information)
        weights = 0.5 / np.sqrt(squares) if self.roots else np.ones(len(squares))
        # With t_j = l_j^T J^-1 l_j and c' the weights, -dphi/dJ = sum_j c'(t_j) J^-1 l_j l_j^T
        # J^-1. Its derivative has two Kronecker terms from J^-1 and, for roots, one from c''(t) =
        # -t^(-3/2)/4.
        gradient = (solved * weights) @ solved.T
        second = np.kron(inverse, gradient) + np.kron(gradient, inverse)
        if self.roots:
            products = (solved[:, None] * solved).reshape(-1, len(squares))
            second -= (products * (0.25 * squares**-1.5)) @ products.T
        return CriterionDerivatives(self._sum(squares), gradient, second)

    def value(self, information: Floats) -> float:
        """Phi alone, without the second derivative's d^4 entries."""
        return self._sum(self._solved_loadings(information)[2])

    def _solved_loadings(self, information: Floats) -> tuple[Floats, Floats, Floats]:
        """Return J^-1, the columns J^-1 l_j, and the squares l_j^T J^-1 l_j."""
        inverse = np.asarray(np.linalg.inv(information), dtype=np.float64)
        solved = inverse @ self.loadings.T
        return inverse, solved, (self.loadings.T * solved).sum(axis=0)

    def _sum(self, squares: Floats) -> float:
        return float((np.sqrt(squares) if self.roots else squares).sum())


class Dual(NamedTuple):
    """A tangent of phi at some J: value, G, and the multiplier nu of the mean.

    With the highest score of any point it bounds phi from below (see the module's docstring).
    """

    value: float
    quadratic: Floats
    linear: Floats
    degree: float

    def bound(self, highest: float) -> float:
        """Lower bound on phi of every design whose points score q(r) - nu r <= highest."""
        return float(self.value * (self.value * self.degree / highest) ** self.degree)


class CriterionDerivatives(NamedTuple):
    """Value, minus the gradient, and the second derivative of a criterion at one J."""

    value: float
    gradient: Floats
    second: Floats


def optimal_design(points: Floats, start: Floats, criterion: Criterion) -> tuple[Floats, float]:
    """Optimal weights of points r, shape (columns, d), and a bound on the criterion of any weights.

    An interior-point method. It begins with weights `start`, shape (columns,), under which the mean
    need not be 0. At most (d + 1) (d + 2) / 2 weights of the solution are positive; the constraints
    hold nearly, and the caller corrects what is left.
    """
    points, criterion, _ = _whitened(points, start, criterion)
    interior, bound, _ = _central_path(points, start, criterion, BOUND_TOLERANCE)
    return _sparsified(points, interior), bound


def spread_design(
    points: Floats, start: Floats, criterion: Criterion, tolerance: float
) -> tuple[Floats, Dual]:
    """All weights where the path meets a tolerance, and the tangent that proves the bound."""
    points, criterion, root = _whitened(points, start, criterion)
    interior, _, dual = _central_path(points, start, criterion, tolerance)
    half = solve_triangular(root, dual.quadratic, lower=True, trans="T")
    quadratic = solve_triangular(root, half.T, lower=True, trans="T")
    return interior, dual._replace(
        quadratic=quadratic, linear=solve_triangular(root, dual.linear, lower=True, trans="T")
    )


def _whitened(
    points: Floats, start: Floats, criterion: Criterion
) -> tuple[Floats, Criterion, Floats]:
    """Points and criterion in coordinates in which J of `weights` is the identity, and the root.

    The problem is then equally well conditioned for every epsilon.
    """
    root = np.asarray(np.linalg.cholesky((points.T * start) @ points), dtype=np.float64)
    points = solve_triangular(root, points.T, lower=True).T
    return (
        points,
        Criterion(solve_triangular(root, criterion.loadings.T, lower=True).T, criterion.roots),
        root,
    )


def _central_path(
    points: Floats, weights: Floats, criterion: Criterion, tolerance: float
) -> tuple[Floats, float, Dual]:
    """Primal-dual path of weights a and slacks s: Newton steps on a_i s_i = mu as mu falls.

    With the multiplier nu_0 of sum a = 1 the slacks are s_i = nu r_i + nu_0 - q(r_i). At the
    optimum all are nonnegative and a_i s_i = 0: complementary slackness of the design problem.
    Return the best feasible weights, the best bound and its tangent.
    """
    n, d = points.shape
    vectorise = _symmetric(d)
    # A row of `moments` holds what a column adds to the constraints: r r^T, then r, then 1.
    squares = (points[:, :, None] * points[:, None]).reshape(n, -1) @ vectorise
    moments = np.hstack([squares, points, np.ones((n, 1))])
    target = np.append(np.zeros(d), 1.0)
    multipliers, slacks = np.zeros(d + 1), np.empty(0)
    best, lowest, best_bound = weights, np.inf, 0.0
    dual = Dual(0.0, np.zeros((d, d)), np.zeros(d), criterion.degree)
    for _ in range(MAX_ITERATIONS):
        slope = criterion.at((points.T * weights) @ points)
        scores = squares @ (slope.gradient.ravel() @ vectorise)
        primal = target - weights @ moments[:, -d - 1 :]
        highest = float((scores - points @ multipliers[:-1]).max())
        # Every iterate is a tangent and proves a bound; the best one is kept.
        tangent = Dual(slope.value, slope.gradient, multipliers[:-1], criterion.degree)
        if tangent.bound(highest) > best_bound:
            dual, best_bound = tangent, tangent.bound(highest)
        if np.abs(primal).max() < FEASIBILITY_TOLERANCE and slope.value < lowest:
            best, lowest = weights, slope.value
        if best_bound >= (1 - tolerance) * lowest:
            break
        # The first slacks are made feasible: nu_0 lies above the highest score.
        if not slacks.size:
            multipliers[-1] = 1.1 * scores.max()
            slacks = multipliers[-1] - scores
        dual_residual = moments[:, -d - 1 :] @ multipliers - scores - slacks
        try:
            second = vectorise.T @ slope.second @ vectorise
            newton = _newton_system(moments, second, weights, slacks, (dual_residual, primal))
        except np.linalg.LinAlgError:
            # Rounding makes the system singular near the end; the bound tells the quality.
            break
        length, steps = newton.centred()
        current = weights, slacks, multipliers
        weights, slacks, multipliers = (
            value + length * step for value, step in zip(current, steps, strict=True)
        )
    return best, best_bound, dual


@dataclass(frozen=True, eq=False)
class WeightsNewtonSystem:
    """Linear equations of a Newton step on weights, slacks and multipliers, factored.

    Linearise a_i s_i = mu, s = m (A', nu) - q and the constraints: eliminating the changes of a and
    s leaves a system in the moments, moments^T (a / s) moments, plus the inverse of the criterion's
    curvature in the block of J.
    """

    moments: Floats
    weights: Floats
    slacks: Floats
    residuals: tuple[Floats, Floats]
    """Of the slacks' equations (dual) and of the constraints (primal)."""
    inverse: tuple[Floats, bool]
    constraints: Floats

    def step(self, target: float) -> tuple[Floats, Floats, Floats]:
        """Changes of weights, slacks and multipliers towards a_i s_i = target."""
        dual, primal = self.residuals
        rows = len(primal)
        ratio, correction = self.weights / self.slacks, target / self.weights - self.slacks
        right = self.moments.T @ (ratio * (correction - dual))
        right[-rows:] -= primal
        solution = cho_solve(self.inverse, right)
        change = ratio * (correction - dual - self.moments @ solution)
        # Project once more onto the constraints: near the end the large matrix is too
        # ill-conditioned to keep them.
        means = self.moments[:, -rows:]
        change += ratio * (means @ (self.constraints @ (primal - change @ means)))
        return change, correction - change / ratio, solution[-rows:]

    def centred(self) -> tuple[float, tuple[Floats, Floats, Floats]]:
        """Step length and changes of a predictor-corrector step (Mehrotra).

        The predictor aims at mu = 0. The smaller the complementarity that it would leave, the
        smaller is the mu that the step itself aims at.
        """
        weights, slacks = self.weights, self.slacks
        first, second, _ = self.step(0.0)
        after = weights + reach(weights, first) * first
        left = after @ (slacks + reach(slacks, second) * second)
        mean = float(weights @ slacks)
        shrunk = min(max(min(float(left / mean), 1.0) ** 3, 1e-3), 0.5)
        changes = self.step(mean / len(weights) * shrunk)
        return min(reach(weights, changes[0]), reach(slacks, changes[1])), changes


def _newton_system(
    moments: Floats,
    second: Floats,
    weights: Floats,
    slacks: Floats,
    residuals: tuple[Floats, Floats],
) -> WeightsNewtonSystem:
    matrix = (moments.T * (weights / slacks)) @ moments
    rows = len(residuals[1])
    constraints = np.asarray(np.linalg.inv(matrix[-rows:, -rows:]), dtype=np.float64)
    matrix[:-rows, :-rows] += np.linalg.inv(second)
    factor = cho_factor(matrix)
    return WeightsNewtonSystem(moments, weights, slacks, residuals, factor, constraints)


def reach(values: Floats, change: Floats, share: float = STEP_SHARE) -> float:
    """Step length, at most 1: `share` of the length at which the first value is 0."""
    falling = change < 0
    return min(1.0, share * float((-values[falling] / change[falling]).min(initial=np.inf)))


def _symmetric(d: int) -> Floats:
    """Orthonormal basis of vectorised symmetric matrices, shape (d^2, d (d + 1) / 2)."""
    rows, columns = np.triu_indices(d)
    basis = np.zeros((d, d, len(rows)))
    each = np.arange(len(rows))
    size = np.where(rows == columns, 1.0, 0.5**0.5)
    basis[rows, columns, each] = basis[columns, rows, each] = size
    return basis.reshape(d * d, -1)


def _sparsified(points: Floats, weights: Floats) -> Floats:
    """Weights with the same J, mean and sum, and at most (d + 1) (d + 2) / 2 that are positive.

    Caratheodory's theorem, by nonnegative least squares: an active set of NNLS has linearly
    independent columns.
    """
    shares = weights * (1 + (points**2).sum(axis=1))
    used = np.flatnonzero(shares > MIN_SHARE_USED * shares.mean())
    lifted = np.column_stack([points[used], np.ones(len(used))])
    products = (lifted[:, :, None] * lifted[:, None]).reshape(len(used), -1) @ _symmetric(
        lifted.shape[1]
    )
    # Columns are scaled to one size, because those of rare secrets are very long.
    sizes = np.linalg.norm(products, axis=1)
    solution, _ = nnls(
        (products / sizes[:, None]).T,
        weights[used] @ products,
        maxiter=NNLS_STEPS_PER_COLUMN * len(used),
    )
    few = np.zeros(len(weights))
    few[used] = solution / sizes
    return few
