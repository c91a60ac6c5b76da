"""Good's roughness of a distribution on a line or a grid, and the best fit for its weight, by Newton's method.

Everything is written in u = log(k theta) and in ratios of neighbours: where no report wants any
mass the best fit decays from neighbour to neighbour by a constant factor, on a long line below what
a double holds; and near the uniform distribution, where u is near 0, a heavy penalty asks for all
its digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit.channels import Channel, PlaneChannel, facts
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.grid import Grid
from ibukit.errors import AlphabetMismatch
from ibukit.estimators._curvature import Curvature, dense_curvature, line_curvature
from ibukit.estimators._plane_curvature import DENSE_SECRETS, PlaneCurvature
from ibukit.tally.tally import Tally

# the largest change in one step, as a logarithm, of a square root: beyond it the quadratic model
# means little
MAX_LOG_CHANGE = 2.0
# Newton's method needs four or five steps from a neighbouring weight. With little weight, where the
# fit becomes a comb, a first try limits the change of neighbours' ratios, a second, from the start
# again, that of each probability
QUICK_STEPS, MAX_STEPS = 25, 300
# steps without progress after which an excess that rounding alone can make is not going to fall
IDLE_STEPS = 3


@dataclass(frozen=True, eq=False)
class Roughness:
    """R(theta) = sum over neighbours x, y of (sqrt theta_x - sqrt theta_y)^2 / d(x, y)^2.

    Convex, because the geometric mean of theta_x and theta_y is concave, and R(c theta) = c
    R(theta).
    """

    one: NDArray[np.int64]
    other: NDArray[np.int64]
    weight: Floats
    k: int
    slowest: float
    """The least eigenvalue above 0 of the matrix with R(theta) = sqrt theta . matrix . sqrt theta."""
    is_chain: bool = False
    """Whether the neighbours are x and x + 1."""
    between: tuple[float, float] = (1.0, 1.0)
    """On a grid the weights between rows and between columns."""

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
        matrix = np.diag(self.diagonal(u))
        matrix[self.one, self.other] = matrix[self.other, self.one] = -self.weight
        return matrix

    def diagonal(self, u: Floats) -> Floats:
        """The diagonal of `curvature`; beside it are the weights, negative."""
        return self.degrees + self.pulls(u)

    def log_ratios(self, u: Floats) -> Floats:
        """log(sqrt theta_y / sqrt theta_x) for all neighbours."""
        # a ratio of e^700 means that one of the two is nothing beside the other
        return np.clip((u[self.other] - u[self.one]) / 2, -700, 700)

    @property
    def degrees(self) -> Floats:
        """sum_y 1 / d(x, y)^2 over the neighbours y of each x."""
        return self._gather(self.weight, self.weight)

    def _gather(self, at_one: Floats, at_other: Floats) -> Floats:
        ends, values = np.concatenate([self.one, self.other]), np.concatenate([at_one, at_other])
        return np.bincount(ends, weights=values, minlength=self.k).astype(np.float64)


def roughness_on(alphabet: Alphabet) -> Roughness:
    """The roughness for the neighbours of a line or a grid."""
    k = len(alphabet)
    if isinstance(alphabet, Line):
        return Roughness(
            np.arange(k - 1), np.arange(1, k), np.ones(k - 1), k, _slowest(k), is_chain=True
        )
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
    one, other, weight = zip(
        *((a.ravel(), b.ravel(), np.full(a.size, side**-2)) for a, b, side in pairs), strict=True
    )
    # the matrix is a Kronecker sum of two chains'
    slowest = min(_slowest(alphabet.n_rows) / height**2, _slowest(alphabet.n_cols) / width**2)
    between = height**-2, width**-2
    return Roughness(
        np.concatenate(one),
        np.concatenate(other),
        np.concatenate(weight),
        k,
        slowest,
        between=between,
    )


def _slowest(k: int) -> float:
    """The least eigenvalue above 0 for a chain of k with weights 1; inf where there is none."""
    return 4 * math.sin(math.pi / (2 * k)) ** 2 if k > 1 else math.inf


@dataclass(frozen=True, eq=False)
class Fit:
    """Where the search for the best fit ended.

    `excess` is the certificate, nats per report: no distribution has a penalised mean
    log-likelihood above this one's by more. `curvature` is -1/4 its second derivatives along sqrt
    theta, to solve with.
    """

    u: Floats
    excess: float
    n_iter: int
    curvature: Curvature | None

    @property
    def theta(self) -> Floats:
        """The distribution."""
        return _normal(self.u)


def fit(
    tally: Tally,
    roughness: Roughness,
    weight: float,
    u: Floats,
    tol: float,
    determined: bool = False,
) -> Fit:
    """Maximise F = sum_z q_z log(theta M)_z - weight R(theta) from a given start until the excess is at most tol.

    With gamma the gradient of F, which is concave, F(phi) - F(theta) <= phi . gamma - theta .
    gamma, at most max gamma - theta . gamma. A step is Newton's for v = d theta / sqrt theta;
    `determined` if by a curvature that has a determinant.
    """
    quick = _newton(
        tally, roughness, weight, u, tol, QUICK_STEPS, careful=False, determined=determined
    )
    if quick.excess <= max(tol, _rounding(roughness, weight, quick.u)):
        return quick
    return _newton(tally, roughness, weight, u, tol, MAX_STEPS, careful=True, determined=determined)


def _newton(
    tally: Tally,
    roughness: Roughness,
    weight: float,
    u: Floats,
    tol: float,
    most: int,
    careful: bool,
    determined: bool,
) -> Fit:
    operator, q = tally.operator, tally.frequencies
    best = Fit(u, math.inf, 0, None)
    step = improved = 0
    while True:
        theta = _normal(u)
        p = operator.forward(theta)
        g = operator.adjoint(q / p)
        slope = g + weight * roughness.pulls(u)
        mean = float(theta @ g) - weight * roughness(
            u
        )  # R is its own slope along theta: R(c theta) = c R(theta)
        excess = max(0.0, float(slope.max()) - mean)
        root = np.sqrt(theta)
        factor = _curvature(operator, q / p**2, root, roughness, weight, u, careful, determined)
        if excess < best.excess:
            best, improved = Fit(u, excess, step, factor), step
        if excess <= tol or step == most or factor is None:
            break
        if step - improved >= IDLE_STEPS and best.excess <= _rounding(roughness, weight, u):
            break
        rise = root * (slope - mean)
        v = factor.step(rise, root)  # the sum of theta stays 1
        move = v * np.exp(np.minimum(-_log_root(u), 700))
        change = float(np.abs(move / 2 if careful else roughness.log_ratios(move)).max(initial=0))
        moved = _climb(tally, roughness, weight, u, move, change, float(rise @ v))
        if moved is None:
            break
        u, step = moved, step + 1
    return replace(best, n_iter=step)


def _rounding(roughness: Roughness, weight: float, u: Floats) -> float:
    """What the last digits of u make of the slope: under a heavy penalty on a long line more than is asked for."""
    return float(
        weight
        * roughness.degrees.max(initial=0.0)
        * np.abs(u).max(initial=0.0)
        * np.finfo(float).eps
    )


def structure(roughness: Roughness, channel: Channel) -> Channel | None:
    """The channel if a step takes no matrix of shape (k, k)."""
    if roughness.is_chain:
        return facts.as_line(channel)
    plane = facts.as_planar(channel)
    return plane if plane is not None and plane.k > DENSE_SECRETS else None


def _curvature(
    operator: Channel,
    w: Floats,
    root: Floats,
    roughness: Roughness,
    weight: float,
    u: Floats,
    careful: bool,
    determined: bool,
) -> Curvature | None:
    c, known = weight / 2, structure(roughness, operator)
    if known is not None and (line := facts.as_line(known)) is not None:
        return line_curvature(line, root, w, c * roughness.diagonal(u), -c * roughness.weight)
    if known is not None and not determined and (plane := facts.as_planar(known)) is not None:
        return _without_matrix(plane, w, root, roughness, weight, u, careful)
    return dense_curvature(
        root[:, None] * operator.gram(w) * root + weight / 2 * roughness.curvature(u)
    )


def _without_matrix(
    plane: PlaneChannel,
    w: Floats,
    root: Floats,
    roughness: Roughness,
    weight: float,
    u: Floats,
    careful: bool,
) -> PlaneCurvature:
    c, (across, along) = weight / 2, roughness.between
    diagonal, degrees = c * roughness.diagonal(u), c * roughness.degrees
    return PlaneCurvature(plane, root, w, diagonal, degrees, (-c * across, -c * along), careful)


def plane_curvature(tally: Tally, roughness: Roughness, weight: float, u: Floats) -> PlaneCurvature:
    """The curvature at any u, for reports of one planar channel."""
    plane, theta = facts.as_planar(tally.operator), _normal(u)
    assert plane is not None
    w = tally.frequencies / plane.forward(theta) ** 2
    return _without_matrix(plane, w, np.sqrt(theta), roughness, weight, u, careful=False)


def _climb(
    tally: Tally,
    roughness: Roughness,
    weight: float,
    u: Floats,
    move: Floats,
    change: float,
    promise: float,
) -> Floats | None:
    """As far along `move` as the penalised likelihood rises; None where it does not."""
    here = _value(tally, roughness, weight, u)
    slack = 1e-14 * (
        1 + abs(here)
    )  # near the top F no longer feels a step that the gradient still does
    length = min(1.0, MAX_LOG_CHANGE / max(change, 1e-300))
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
