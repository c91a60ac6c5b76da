"""Good's roughness on a line or a grid, and the best penalised fit by Newton's method.

Everything is written in u = log(k theta) and in ratios of neighbours, for two reasons. Where no
report calls for mass, the best fit decays from neighbour to neighbour by a constant factor, on a
long line below the smallest double. And near the uniform distribution, where u is near 0, a heavy
penalty needs all its digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit.channels import Channel, PlaneChannel, facts, mirror
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.efficiency import relative
from ibukit.domain.grid import Grid
from ibukit.errors import AlphabetMismatch
from ibukit.estimators._curvature import (
    Curvature,
    DenseCurvature,
    dense_curvature,
    line_curvature,
    saddle_free_curvature,
)
from ibukit.estimators._line_search import (
    MAX_LOG_CHANGE,
    line_search,
    log_mean_exp,
    log_root,
    penalised_mean,
    softmax,
)
from ibukit.estimators._plane_curvature import DENSE_SECRETS, PlaneCurvature
from ibukit.tally.tally import Tally

# A dense factor is used once more if a step has reduced the excess to at most the first share of
# what it was, unless the excess is at most the second number.
REUSE_BELOW, REUSE_ABOVE = 0.1, 1e-6
# Error of the evidence, in nats of all reports, up to which the factor is used to the end.
MAX_EVIDENCE_ERROR = 1e-3
# Steps without progress after which an excess that rounding can explain is accepted as final.
MAX_IDLE_STEPS = 3


class Attempt(NamedTuple):
    """One attempt of Newton's method.

    Four or five steps are enough from a neighbouring penalty. With a small penalty, where the fit
    becomes a comb, a quick attempt limits the change of neighbours' ratios in a step; a careful
    attempt, from the start again, limits the change of each probability. A damped attempt limits no
    step as a whole, but takes only the logarithm of each large change.
    """

    max_steps: int
    is_careful: bool
    is_damped: bool = False


QUICK, CAREFUL = Attempt(25, is_careful=False), Attempt(300, is_careful=True)
DAMPED = Attempt(300, is_careful=True, is_damped=True)


@dataclass(frozen=True, eq=False)
class Roughness:
    """R(theta) = sum over neighbours x, y of (sqrt theta_x - sqrt theta_y)^2 / d(x, y)^2.

    It is convex, because the geometric mean of theta_x and theta_y is concave, and R(c theta) = c
    R(theta). `one`, `other` and `weight` list the pairs of neighbours and their 1 / d^2.
    """

    one: NDArray[np.int64]
    other: NDArray[np.int64]
    weight: Floats
    k: int
    least_eigenvalue: float
    """The least eigenvalue above 0 of the matrix A with R = sqrt theta . A . sqrt theta."""
    is_chain: bool = False
    """True if the neighbours are x and x + 1."""
    between: tuple[float, float] = (1.0, 1.0)
    """On a grid the weights between rows and between columns."""

    def __call__(self, u: Floats) -> float:
        """Return the roughness of theta = exp(u) / sum_x exp(u_x)."""
        # (sqrt theta_x - sqrt theta_y)^2 = theta_max (1 - sqrt(theta_min / theta_max))^2, where
        # expm1 of the log ratio keeps the digits of nearly equal neighbours.
        larger = softmax(u)[np.where(u[self.one] > u[self.other], self.one, self.other)]
        return float(self.weight @ (larger * np.expm1(-np.abs(self.log_ratios(u))) ** 2))

    def minus_gradient(self, u: Floats) -> Floats:
        """Return -dR/dtheta_x = sum_y (sqrt(theta_y / theta_x) - 1) / d(x, y)^2, y next to x."""
        # The derivative of (sqrt theta_x - sqrt theta_y)^2 is 1 - sqrt(theta_y / theta_x).
        half = self.log_ratios(u)
        return self._gather(self.weight * np.expm1(half), self.weight * np.expm1(-half))

    def curvature(self, u: Floats) -> Floats:
        """Return twice the Hessian of R, scaled by sqrt theta on both sides, shape (k, k)."""
        matrix = np.zeros((self.k, self.k))
        self.add_curvature(matrix, 1.0, u)
        return matrix

    def add_curvature(self, total: Floats, c: float, u: Floats) -> None:
        """Add c times `curvature` to a matrix."""
        # d^2 R / dtheta_x dtheta_y = -1 / (2 d^2 sqrt(theta_x theta_y)): scaled, a constant.
        total.flat[:: self.k + 1] += c * self.diagonal(u)
        total[self.one, self.other] -= c * self.weight
        total[self.other, self.one] -= c * self.weight

    def diagonal(self, u: Floats) -> Floats:
        """Return the diagonal of `curvature`; its other entries are minus the weights."""
        return self.degrees + self.minus_gradient(u)

    def log_ratios(self, u: Floats) -> Floats:
        """Return log(sqrt theta_y / sqrt theta_x) for all pairs of neighbours."""
        # At a ratio of e^700 one of the two is negligible, and beyond it exp overflows.
        return np.clip((u[self.other] - u[self.one]) / 2, -700, 700)

    @property
    def degrees(self) -> Floats:
        """sum_y 1 / d(x, y)^2 over the neighbours y of each x."""
        return self._gather(self.weight, self.weight)

    def _gather(self, at_one: Floats, at_other: Floats) -> Floats:
        """Add up, for each element, the numbers of the pairs in which it is, shape (k,)."""
        ends, values = np.concatenate([self.one, self.other]), np.concatenate([at_one, at_other])
        return np.bincount(ends, weights=values, minlength=self.k).astype(np.float64)


def roughness_on(alphabet: Alphabet) -> Roughness:
    """Return the roughness for the neighbours of a line or a grid."""
    k = len(alphabet)
    step = 1.0 if isinstance(alphabet, Line) else _width_of_bins(alphabet)
    if step is not None:
        return Roughness(
            np.arange(k - 1),
            np.arange(1, k),
            np.full(k - 1, step**-2),
            k,
            _least_eigenvalue_of_chain(k) / step**2,
            is_chain=True,
        )
    if not isinstance(alphabet, Grid):
        raise AlphabetMismatch(
            "tally must be over a Line or a Grid, or bins of equal width, whose values have "
            f"neighbours, got {alphabet!r}; for labels without an order use mle(tally) or "
            "ibu(tally)"
        )
    # Pairs of cells that share a horizontal side are `height` apart, the others `width`.
    cells = np.arange(k).reshape(alphabet.n_rows, alphabet.n_cols)
    height, width = alphabet.cell_shape
    pairs: tuple[tuple[NDArray[Any], NDArray[Any], float], ...] = (
        (cells[:-1], cells[1:], height),
        (cells[:, :-1], cells[:, 1:], width),
    )
    one, other, weight = zip(
        *((a.ravel(), b.ravel(), np.full(a.size, side**-2)) for a, b, side in pairs), strict=True
    )
    # The matrix is a Kronecker sum of two chains', so its eigenvalues are sums of theirs.
    least_eigenvalue = min(
        _least_eigenvalue_of_chain(alphabet.n_rows) / height**2,
        _least_eigenvalue_of_chain(alphabet.n_cols) / width**2,
    )
    between = height**-2, width**-2
    return Roughness(
        np.concatenate(one),
        np.concatenate(other),
        np.concatenate(weight),
        k,
        least_eigenvalue,
        between=between,
    )


def _width_of_bins(alphabet: Alphabet) -> float | None:
    """The width of bins of equal width in order, or None; AlphabetMismatch for other bins."""
    if alphabet.bins is None:
        return None
    width = alphabet.bins.common_width()
    if width is None:
        raise AlphabetMismatch(
            f"tally must be over bins of equal width that follow one another, got {alphabet!r}: "
            "probabilities of wide and narrow bins are not a smooth curve; cut finer bins of equal "
            "width and add up the estimate, or use mle(tally) or ibu(tally)"
        )
    return width


def _least_eigenvalue_of_chain(k: int) -> float:
    """Return the least eigenvalue above 0 of a chain of k with weights 1; inf if k is 1."""
    return 4 * math.sin(math.pi / (2 * k)) ** 2 if k > 1 else math.inf


@dataclass(frozen=True, eq=False)
class Fit:
    """The best penalised fit that was found.

    `excess` is the certificate, in nats per report: no distribution has a penalised mean
    log-likelihood that exceeds this one's by more. If reports get lost, this holds for the
    distributions of which the same share is seen.
    """

    u: Floats
    excess: float
    n_iter: int
    weight: float = math.inf
    """The weight of the roughness: the penalty over the number of reports."""
    roughness: Roughness | None = None
    factorise: Callable[[], Curvature | None] = lambda: None

    @cached_property
    def curvature(self) -> Curvature | None:
        """-1/4 the second derivatives along sqrt theta, to solve with; None if it is singular."""
        return self.factorise()

    @cached_property
    def trend(self) -> Floats | None:
        """The derivative of u in the logarithm of the weight; None if it is not known."""
        curvature, roughness, u = self.curvature, self.roughness, self.u
        if curvature is None or roughness is None:
            return None
        # Newton's step for the change of the gradient.
        root = np.sqrt(self.theta)
        rise = root * self.weight * (roughness.minus_gradient(u) + roughness(u))
        move = curvature.step(rise, root) * np.exp(np.minimum(-log_root(u), 700))
        return move if np.isfinite(move).all() else None

    @property
    def theta(self) -> Floats:
        """The distribution."""
        return softmax(self.u)


def fit(
    tally: Tally,
    roughness: Roughness,
    weight: float,
    u: Floats,
    tol: float,
    determined: bool = False,
) -> Fit:
    """Maximise F = sum_z q_z log(theta M)_z - weight R(theta) until the excess is at most tol.

    `u` is the start. F is concave, so with its gradient gamma, F(phi) - F(theta) <= phi . gamma -
    theta . gamma <= max gamma - theta . gamma: the excess. Newton's step is for v = d theta / sqrt
    theta. With `determined` the returned curvature has a determinant, which costs more.

    If reports get lost, F has the term - log(theta . e) of the share that is seen, which is not
    concave: the excess bounds F among the distributions with this share, and where it vanishes F is
    stationary among all.
    """
    # The quick attempt mostly ends within the tolerance, or within what rounding allows.
    quick = _newton(tally, roughness, weight, u, tol, QUICK, determined)
    if quick.excess <= max(tol, _rounding_error(roughness, weight, quick.u)):
        return quick
    careful = _newton(tally, roughness, weight, u, tol, CAREFUL, determined)
    if careful.excess <= max(tol, _rounding_error(roughness, weight, careful.u)):
        return careful
    # Where secrets have probabilities below e^-100, as between two peaks, changes of 10^13 are
    # asked for by those that have to rise, and by the rounding errors of the others. A step short
    # enough for the largest of these changes would be no step at all.
    damped = _newton(tally, roughness, weight, u, tol, DAMPED, determined)
    return min(careful, damped, key=lambda each: each.excess)


def _newton(
    tally: Tally,
    roughness: Roughness,
    weight: float,
    u: Floats,
    tol: float,
    attempt: Attempt,
    determined: bool,
) -> Fit:
    q = tally.frequencies
    best = Fit(u, math.inf, 0)
    factor, last_excess = None, 0.0
    reuse_above = 0 if determined and tol * tally.n <= MAX_EVIDENCE_ERROR else REUSE_ABOVE
    step = improved = 0
    while True:
        theta = softmax(u)
        p, g = _ratios(tally, theta)
        # The gradient gamma of F.
        slope = g + weight * roughness.minus_gradient(u)
        # theta . slope, because R(c theta) = c R(theta) makes theta . dR/dtheta = R (Euler).
        mean = float(theta @ g) - weight * roughness(u)
        excess = max(0.0, float(slope.max()) - mean)
        # With v = d theta / sqrt theta all variables have the same scale, and the constraint sum d
        # theta = 0 reads sqrt theta . v = 0.
        root = np.sqrt(theta)
        careful = attempt.is_careful
        here = Fit(
            u,
            excess,
            step,
            weight,
            roughness,
            partial(_curvature, tally, q / p**2, root, roughness, weight, u, careful, determined),
        )
        if excess < best.excess:
            best, improved = here, step
        if excess <= tol or step == attempt.max_steps:
            break
        # A dense factor is used again as long as it gains a digit a step, because a new one takes
        # ten times as long as the rest of a step. The last step is Newton's own, whose error is the
        # square of the error before.
        has_gained = reuse_above < excess <= REUSE_BELOW * last_excess
        if not (has_gained and isinstance(factor, DenseCurvature)):
            factor = here.curvature
        last_excess = excess
        if factor is None:
            break
        # Near the maximum rounding may stop the excess from falling to the tolerance.
        if step - improved >= MAX_IDLE_STEPS and best.excess <= _rounding_error(
            roughness, weight, u
        ):
            break
        rise = root * (slope - mean)
        # The step is orthogonal to sqrt theta, so that the sum of theta stays 1; `move` is in u.
        v = factor.step(rise, root)
        move = v * np.exp(np.minimum(-log_root(u), 700))
        # A careful attempt limits the change of each probability, a quick one that of neighbours'
        # ratios, which lets whole regions without reports fall together.
        changes = np.abs(move / 2 if careful else roughness.log_ratios(move))
        change = None if attempt.is_damped else float(changes.max(initial=0))
        moved = line_search(tally, roughness, weight, u, move, change, float(rise @ v))
        if moved is None:
            break
        u, step = moved, step + 1
    return replace(best, n_iter=step, factorise=lambda: best.curvature)


def nearest_fit(fits: Sequence[Fit], weight: float) -> Fit:
    """Return the best fit whose weight of the roughness is nearest, by its logarithm."""
    return min(fits, key=lambda each: abs(math.log(each.weight / weight)))


def start_near(tally: Tally, roughness: Roughness, optimum: Fit, weight: float) -> Floats:
    """Return a start for a weight other than that of a best fit: the likeliest of three.

    They are the best fit itself and two continuations of it: by its derivative in the logarithm of
    the weight, and by that in the inverse of the weight, in which the fit is linear as long as it
    is nearly uniform.
    """
    along = optimum.trend
    if along is None:
        return optimum.u
    ratio = optimum.weight / weight
    starts = [optimum.u]
    for length in (-math.log(ratio), 1 - ratio):
        start = optimum.u + np.clip(length * along, -MAX_LOG_CHANGE, MAX_LOG_CHANGE)
        starts.append(start - log_mean_exp(start))
    return max(starts, key=lambda u: penalised_mean(tally, roughness, weight, u))


def _rounding_error(roughness: Roughness, weight: float, u: Floats) -> float:
    """Bound the error of the excess that comes from rounding u.

    Under a heavy penalty on a long line it can be more than the tolerance.
    """
    degree, size = roughness.degrees.max(initial=0.0), np.abs(u).max(initial=0.0)
    return float(weight * degree * size * np.finfo(float).eps)


def structure(roughness: Roughness, channel: Channel) -> Channel | None:
    """Return the channel if a step takes no matrix of shape (k, k), else None."""
    if roughness.is_chain:
        return facts.as_line(channel)
    plane = facts.as_planar(channel)
    return plane if plane is not None and plane.k > DENSE_SECRETS else None


def _ratios(tally: Tally, theta: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities p of the reports seen, and the gradient of log-likelihood over n.

    The gradient is given up to a constant that makes theta . g = 1.
    """
    efficiency = None if tally.efficiency is None else relative(tally.efficiency)
    if efficiency is None:
        p = tally.operator.forward(theta)
        return p, tally.operator.adjoint(tally.frequencies / p)
    # p is the probability of being seen and being this report: the mean of its logarithm, less
    # the logarithm of the share seen, is the mean log-likelihood.
    p = tally.operator.forward(theta * efficiency)
    g = efficiency * tally.operator.adjoint(tally.frequencies / p)
    return p, g - efficiency / (theta @ efficiency) + 1


def _curvature(
    tally: Tally,
    w: Floats,
    root: Floats,
    roughness: Roughness,
    weight: float,
    u: Floats,
    careful: bool,
    determined: bool,
) -> Curvature | None:
    """Return the curvature at u in the cheapest form, with w = q / p^2 over the reports.

    If `careful`, the curvature of a plane is solved in double precision.
    """
    operator, c = tally.operator, weight / 2
    known = structure(roughness, operator)
    # A chain with geometric noise is solved in O(k), a large plane by conjugate gradients, anything
    # else by a dense Cholesky factor.
    if known is not None and (line := facts.as_line(known)) is not None:
        return line_curvature(line, root, w, c * roughness.diagonal(u), -c * roughness.weight)
    if known is not None and not determined and (plane := facts.as_planar(known)) is not None:
        return _plane_curvature(plane, w, root, roughness, weight, u, careful)
    seen = root if tally.efficiency is None else root * relative(tally.efficiency)
    # Fortran order is that of LAPACK, and one triangle of the reports' term is enough for it.
    matrix = np.zeros((tally.k, tally.k), order="F")
    operator.add_gram(matrix, w)
    matrix *= seen
    matrix *= seen[:, None]
    roughness.add_curvature(matrix, c, u)
    if tally.efficiency is None:
        return dense_curvature(matrix)
    mirror(matrix)
    # The term of the share that is seen takes curvature away; root root^T gives it back along sqrt
    # theta, a direction that no step takes.
    of_share = seen / (root @ seen)
    exact = matrix - np.outer(of_share, of_share) + np.outer(root, root)
    return dense_curvature(exact) or saddle_free_curvature(exact)


def _plane_curvature(
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
    """Return the curvature at any u, for reports of one planar channel."""
    plane, theta = facts.as_planar(tally.operator), softmax(u)
    assert plane is not None
    w = tally.frequencies / plane.forward(theta) ** 2
    return _plane_curvature(plane, w, np.sqrt(theta), roughness, weight, u, careful=False)
