"""Good's roughness of a distribution on a line or a grid, and the best fit for its weight, by Newton's method.

Everything is written in u = log(k theta) and in ratios of neighbours: where no report wants any mass the best fit
decays from neighbour to neighbour by a constant factor, on a long line below what a double holds; and near the uniform
distribution, where u is near 0, a heavy penalty asks for all its digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ibukit._validate import Floats
from ibukit.alphabet import Alphabet, Line
from ibukit.errors import AlphabetMismatch
from ibukit.grid import Grid
from ibukit.tally import Tally

# the largest change in one step, as a logarithm, of a square root: beyond it the quadratic model means little
LARGEST_LOG_CHANGE = 2.0
# Newton's method needs four or five steps from a neighbouring weight. With little weight, where the fit becomes a comb,
# a first try limits the change of neighbours' ratios, a second, from the start again, that of each probability
QUICK_STEPS, MOST_STEPS = 25, 300


@dataclass(frozen=True, eq=False)
class Roughness:
    """R(theta) = sum over neighbours x, y of (sqrt theta_x - sqrt theta_y)^2 / d(x, y)^2.

    Convex, because the geometric mean of theta_x and theta_y is concave, and R(c theta) = c R(theta).
    """

    one: NDArray[np.int64]
    other: NDArray[np.int64]
    weight: Floats
    k: int

    def __call__(self, u: Floats) -> float:
        """The roughness of theta = exp(u) / sum_x exp(u_x)."""
        larger = _normal(u)[np.where(u[self.one] > u[self.other], self.one, self.other)]
        return float(self.weight @ (larger * np.expm1(-np.abs(self.log_ratios(u))) ** 2))

    def pulls(self, u: Floats) -> Floats:
        """-dR/dtheta_x = sum_y (sqrt(theta_y / theta_x) - 1) / d(x, y)^2 over the neighbours y of each x."""
        half = self.log_ratios(u)
        return self._gather(self.weight * np.expm1(half), self.weight * np.expm1(-half))

    def curvature(self, u: Floats) -> Floats:
        """Twice the second derivatives of R, times sqrt theta from either side, shape (k, k)."""
        return self._matrix(self.degrees + self.pulls(u))

    def log_ratios(self, u: Floats) -> Floats:
        """log(sqrt theta_y / sqrt theta_x) for all neighbours."""
        # a ratio of e^700 means that one of the two is nothing beside the other
        return np.clip((u[self.other] - u[self.one]) / 2, -700, 700)

    @property
    def degrees(self) -> Floats:
        """sum_y 1 / d(x, y)^2 over the neighbours y of each x."""
        return self._gather(self.weight, self.weight)

    def laplacian(self) -> Floats:
        """The matrix with R(theta) = sqrt theta . matrix . sqrt theta, shape (k, k)."""
        return self._matrix(self.degrees)

    def _matrix(self, diagonal: Floats) -> Floats:
        matrix = np.diag(diagonal)
        matrix[self.one, self.other] = matrix[self.other, self.one] = -self.weight
        return matrix

    def _gather(self, at_one: Floats, at_other: Floats) -> Floats:
        ends, values = np.concatenate([self.one, self.other]), np.concatenate([at_one, at_other])
        return np.bincount(ends, weights=values, minlength=self.k).astype(np.float64)


def roughness_on(alphabet: Alphabet) -> Roughness:
    """The roughness for the neighbours of a line or a grid."""
    k = len(alphabet)
    if isinstance(alphabet, Line):
        return Roughness(np.arange(k - 1), np.arange(1, k), np.ones(k - 1), k)
    if not isinstance(alphabet, Grid):
        raise AlphabetMismatch(
            f"tally must be over a Line or a Grid, whose values have neighbours, got {alphabet!r}; "
            "for labels without an order use mle(tally) or ibu(tally)"
        )
    cells = np.arange(k).reshape(alphabet.n_rows, alphabet.n_cols)
    height, width = alphabet.cell_shape
    pairs: tuple[tuple[NDArray[Any], NDArray[Any], float], ...] = (
        (cells[:-1], cells[1:], height),
        (cells[:, :-1], cells[:, 1:], width),
    )
    one, other, weight = zip(*((a.ravel(), b.ravel(), np.full(a.size, side**-2)) for a, b, side in pairs), strict=True)
    return Roughness(np.concatenate(one), np.concatenate(other), np.concatenate(weight), k)


@dataclass(frozen=True, eq=False)
class Fit:
    """Where the search for the best fit ended.

    `excess` is the certificate, nats per report: no distribution has a penalised mean log-likelihood above this one's
    by more. `curvature` is the Cholesky factor of -1/4 its second derivatives along sqrt theta.
    """

    u: Floats
    excess: float
    n_iter: int
    curvature: Floats | None

    @property
    def theta(self) -> Floats:
        """The distribution."""
        return _normal(self.u)


def fit(tally: Tally, roughness: Roughness, weight: float, u: Floats, tol: float) -> Fit:
    """Maximise F = sum_z q_z log(theta M)_z - weight R(theta) from a given start until the excess is at most tol.

    With gamma the gradient of F, which is concave, F(phi) - F(theta) <= phi . gamma - theta . gamma, at most
    max gamma - theta . gamma. A step is Newton's for v = d theta / sqrt theta.
    """
    quick = _newton(tally, roughness, weight, u, tol, QUICK_STEPS, careful=False)
    if quick.excess <= tol:
        return quick
    return _newton(tally, roughness, weight, u, tol, MOST_STEPS, careful=True)


def _newton(tally: Tally, roughness: Roughness, weight: float, u: Floats, tol: float, most: int, careful: bool) -> Fit:
    operator, q = tally.operator, tally.frequencies
    best = Fit(u, math.inf, 0, None)
    step = 0
    while True:
        theta = _normal(u)
        p = operator.forward(theta)
        g = operator.adjoint(q / p)
        slope = g + weight * roughness.pulls(u)
        mean = float(theta @ g) - weight * roughness(u)  # R is its own slope along theta: R(c theta) = c R(theta)
        excess = max(0.0, float(slope.max()) - mean)
        root = np.sqrt(theta)
        factor = _factor(root[:, None] * operator.gram(q / p**2) * root + weight / 2 * roughness.curvature(u))
        if excess < best.excess:
            best = Fit(u, excess, step, factor)
        if excess <= tol or step == most or factor is None:
            break
        rise = root * (slope - mean)
        v, out = (cho_solve((factor, True), side) for side in (rise, root))
        v -= out * (root @ v) / (root @ out)  # the sum of theta stays 1
        move = v * np.exp(np.minimum(-_log_root(u), 700))
        change = float(np.abs(move / 2 if careful else roughness.log_ratios(move)).max(initial=0))
        moved = _climb(tally, roughness, weight, u, move, change, float(rise @ v))
        if moved is None:
            break
        u, step = moved, step + 1
    return replace(best, n_iter=step)


def _climb(
    tally: Tally, roughness: Roughness, weight: float, u: Floats, move: Floats, change: float, promise: float
) -> Floats | None:
    """As far along `move` as the penalised likelihood rises; None where it does not."""
    here = _value(tally, roughness, weight, u)
    slack = 1e-14 * (1 + abs(here))  # near the top F no longer feels a step that the gradient still does
    length = min(1.0, LARGEST_LOG_CHANGE / max(change, 1e-300))
    while length > 1e-12:
        there = u + length * move
        there -= _log_mean_exp(there)
        if _value(tally, roughness, weight, there) >= here + 1e-4 * length * promise - slack:
            return np.asarray(there)
        length /= 2
    return None


def _value(tally: Tally, roughness: Roughness, weight: float, u: Floats) -> float:
    p = tally.operator.forward(_normal(u))
    if not p.min() > 0:
        return -math.inf
    return float(tally.frequencies @ np.log(p)) - weight * roughness(u)


def _normal(u: Floats) -> Floats:
    theta = np.exp(u - u.max())
    return np.asarray(theta / theta.sum())


def _log_root(u: Floats) -> Floats:
    return np.asarray((u - _log_mean_exp(u) - math.log(len(u))) / 2)


def _log_mean_exp(u: Floats) -> float:
    # log1p and expm1 keep the digits of what is nearly uniform
    top = float(u.max())
    return top + math.log1p(float(np.expm1(u - top).mean()))


def _factor(matrix: Floats) -> Floats | None:
    # it is positive definite; a tiny ridge, relative to each entry, where rounding says otherwise
    for ridge in (0.0, 1e-15, 1e-12, 1e-9):
        try:
            return np.tril(cho_factor(matrix + np.diag(ridge * np.diag(matrix)), lower=True)[0])
        except (LinAlgError, ValueError):
            continue
    return None
