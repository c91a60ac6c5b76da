"""An approximate inverse of D + M diag(w) M^T for a planar channel, by a differential operator.

With h the diagonal of M diag(w) M^T, the second term is about h^1/2 C h^1/2, where C holds the
correlations of the kernel's columns. The spectrum of an exponential kernel falls as
(e^2 + |omega|^2)^(-3/2), so C is close to the inverse of the differential operator
P = c (e^2 - Laplace)^3, a sparse matrix. Vectors with such correlations are smooth. If e is small,
values at every second, third, ... cell determine the others by cubic interpolation A, but for a
share delta of their variance. So C = A P^-1 A^T + delta with a P on few nodes, and by the Woodbury
identity, with F = h / (D + delta h),

    (D + h^1/2 C h^1/2)^-1 = h^-1/2 (F - F A Q A^T F) h^-1/2,    Q = (P + A^T F A)^-1,

which takes one banded Cholesky factor. The grid is cut into strips that overlap. Each is solved
alone, and windows whose squares sum to 1 put the solutions together (a symmetric additive Schwarz
method). As A Q A^T is less than 1 / F on each strip, the whole is positive definite. The width of
the strips and the distance of the nodes are proportional to 1 / e. So the memory is a few numbers
for each cell, and the iterations are few, however far the kernel reaches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.lapack import dpbtrf, dpbtrs, spbtrf, spbtrs

from ibukit._ground.arguments import Floats
from ibukit._ground.single_precision import agrees, probe
from ibukit.channels.plane import PlaneChannel

Singles = NDArray[np.float32]
# Diagonals of a symmetric matrix: the distance below the main one, and entries from column 0 on.
Diagonals = list[tuple[int, Singles]]
# Nats from cell to cell beyond which a kernel counts as a point.
MAX_DECAY = 6.0
# Largest distance of nodes in units of 1 / e. Where the kernel decays faster, every cell is a node.
MAX_NODE_DISTANCE = 0.45
# Half the length of an overlap, and the length of a strip without overlaps, in units of 1 / e.
HALF_OVERLAP, CORE = 2.4, 8.0
# Smallest delta, the share of variance beyond the nodes: single precision cannot resolve less.
MIN_DELTA = 1e-4
STRIP_RIDGES = (0.0, 1e-6, 1e-4, 1e-2)


@dataclass(frozen=True)
class Nodes:
    """Cubic interpolation at n cells from nodes `step` cells apart; with step 1, the cells."""

    n: int
    step: int

    @cached_property
    def matrix(self) -> Any:
        """A, shape (n, nodes): rows sum to 1, with at most four entries."""
        if self.step == 1:
            return sp.csr_matrix(sp.eye(self.n, dtype=np.float32))
        cells = np.arange(self.n)
        # Lagrange polynomials through the nodes -1, 0, 1, 2, at t between 0 and 1. Node 1 is at
        # cell 0.
        left, t = cells // self.step, cells % self.step / self.step
        weights = (
            -t * (t - 1) * (t - 2) / 6,
            (t + 1) * (t - 1) * (t - 2) / 2,
            -(t + 1) * t * (t - 2) / 2,
            (t + 1) * t * (t - 1) / 6,
        )
        columns = left[:, None] + np.arange(4)
        shape = (self.n, int(left[-1]) + 4)
        rows = np.repeat(cells, 4)
        matrix = sp.csr_matrix(
            (np.column_stack(weights).ravel(), (rows, columns.ravel())), shape=shape
        )
        matrix.eliminate_zeros()
        return matrix.astype(np.float32)

    @cached_property
    def transposed(self) -> Any:
        """A^T."""
        return self.matrix.T.tocsr()

    @cached_property
    def products(self) -> tuple[tuple[int, Any], ...]:
        """For each distance of two nodes the products of their weights at each cell, (nodes, n)."""
        reach = 0 if self.step == 1 else 3
        size = self.matrix.shape[1]
        return tuple(
            (
                apart,
                self.matrix.multiply(
                    self.matrix @ sp.eye(size, k=-apart, dtype=np.float32)
                ).T.tocsr(),
            )
            for apart in range(-reach, reach + 1)
        )


@dataclass(frozen=True)
class Strip:
    """Rows start..stop of the grid, their window, the nodes across, and lower diagonals of P."""

    start: int
    stop: int
    window: Floats
    nodes: Nodes
    operator: Diagonals


class Preconditioner:
    """The preconditioner of a channel: call `factor` for each new diagonal, then `solve`."""

    def __init__(self, channel: PlaneChannel):
        # Strips run along the longer axis. Nodes are numbered across them, which keeps the band of
        # the matrices narrow.
        self._is_transposed = channel.shape[0] > channel.shape[1]
        kernel = channel.kernels[0].T if self._is_transposed else channel.kernels[0]
        self._shape = channel.shape[::-1] if self._is_transposed else channel.shape
        # The spectrum of an exponential kernel on a line falls as (e^2 + omega^2)^-1.
        self._order = 2 if 1 in kernel.shape else 3
        decay = [_decay(kernel[:, 0]), _decay(kernel[0])]
        self._steps = [
            max(1, math.floor(MAX_NODE_DISTANCE / _e_of_decay(d))) if n > 1 else 1
            for d, n in zip(decay, self._shape, strict=True)
        ]
        self._e_across = _e_of_decay(decay[0])
        # Along a line the kernel exp(-d |i|) is, up to a factor, exactly the inverse of e^2 minus
        # the second difference, with e^2 = 4 sinh(d / 2)^2. The e of the axis along which the
        # kernel falls more slowly is used; along the other axis the differences have a smaller
        # coefficient.
        roots = [_e_of_decay(step * d) for step, d in zip(self._steps, decay, strict=True)]
        self._e2 = min(roots) ** 2
        self._stiffness = (self._e2 / roots[0] ** 2, self._e2 / roots[1] ** 2)
        # The share of the kernel's spectrum beyond the highest frequency of the nodes, pi / step.
        beyond = (
            sum(
                (_e_of_decay(d) * step / math.pi) ** 2
                for step, d in zip(self._steps, decay, strict=True)
            )
            / 2
        )
        self._delta = (
            max(MIN_DELTA, (beyond / (1 + beyond)) ** 2) if max(self._steps) > 1 else MIN_DELTA
        )
        self._along = Nodes(self._shape[1], self._steps[1])
        sizes = [
            Nodes(n, step).matrix.shape[1] for n, step in zip(self._shape, self._steps, strict=True)
        ]
        self._scale = _mean_inverse_power(
            self._e2, self._stiffness, self._order, (sizes[0], sizes[1])
        )
        self._strips = self._cut()

    def _cut(self) -> list[Strip]:
        """Strips with windows that rise as sin and fall as cos in the overlaps."""
        size = self._shape[0]
        half = math.ceil(HALF_OVERLAP / self._e_across)
        n_strips = max(1, round(size / (CORE / HALF_OVERLAP * half)))
        edges = np.linspace(0, size, n_strips + 1).round().astype(int)
        operators_by_width: dict[int, tuple[Nodes, Diagonals]] = {}
        strips = []
        for i in range(n_strips):
            start, stop = max(0, edges[i] - half), min(size, edges[i + 1] + half)
            rows = np.arange(start, stop) + 0.5
            rise, fall = (
                np.clip((rows - edges[j] + half) / (2 * half), 0, 1) * np.pi / 2 for j in (i, i + 1)
            )
            window = np.ones(len(rows))
            if i > 0:
                window *= np.sin(rise)
            if i < n_strips - 1:
                window *= np.cos(fall)
            if stop - start not in operators_by_width:
                nodes = Nodes(int(stop - start), self._steps[0])
                operators_by_width[stop - start] = nodes, self._operator(nodes.matrix.shape[1])
            strips.append(
                Strip(int(start), int(stop), window[:, None], *operators_by_width[stop - start])
            )
        return strips

    def _operator(self, width: int) -> Diagonals:
        """Lower diagonals of P on a strip, with free ends."""
        length = self._along.matrix.shape[1]
        across, along = self._stiffness
        laplace = sp.kron(sp.eye(length), across * _second_differences(width))
        laplace = laplace + sp.kron(along * _second_differences(length), sp.eye(width))
        root = sp.csr_matrix(laplace + self._e2 * sp.eye(width * length))
        power = root
        for _ in range(self._order - 1):
            power = power @ root
        whole = sp.dia_array(self._scale * power)
        return [
            (-int(offset), values[: width * length + offset].astype(np.float32))
            for offset, values in zip(whole.offsets, whole.data, strict=True)
            if offset <= 0
        ]

    def factor(self, diagonal: Floats, normal_diagonal: Floats) -> bool:
        """Factorise Q^-1 = P + A^T F A for new D and h; False if no ridge makes it definite."""
        self._root = 1 / np.sqrt(normal_diagonal)
        self._f = (1 / (diagonal / normal_diagonal + self._delta)).astype(np.float32)
        f = self._as_strips(self._f)
        self._factors: list[NDArray[Any]] = []
        for strip in self._strips:
            added = list(self._node_diagonals(strip, f[strip.start : strip.stop]))
            diagonals = strip.operator + added
            # Where the library's routines in single precision are wrong, double precision serves.
            lower = _cholesky(diagonals, np.float32)
            if lower is None:
                lower = _cholesky(diagonals, np.float64)
            if lower is None:
                return False
            self._factors.append(lower)
        return True

    def _node_diagonals(self, strip: Strip, f: Singles) -> Iterator[tuple[int, Singles]]:
        """Diagonals of A^T F A on a strip, at and below the main one.

        A is a product of interpolations along both axes, so each diagonal is a product of two.
        """
        width = strip.nodes.matrix.shape[1]
        for across, left in strip.nodes.products:
            part = np.ascontiguousarray((left @ f).T)
            for along, right in self._along.products:
                if along * width + across >= 0:
                    offset, values = along * width + across, (right @ part).ravel()
                    yield offset, values[: len(values) - offset]

    def solve(self, rhs: Floats) -> Floats:
        """The approximate inverse times a vector; symmetric and positive definite."""
        # h^-1/2 (F - F A Q A^T F) h^-1/2 rhs, from right to left.
        scaled = rhs * self._root * self._f
        # In these units nothing leaves the range of single precision.
        unit = float(np.abs(scaled).max(initial=0.0)) or 1.0
        strips_of_rhs = self._as_strips((scaled / unit).astype(np.float32))
        x = np.zeros(self._shape, dtype=np.float32)
        for strip, lower in zip(self._strips, self._factors, strict=True):
            local = strip.nodes.transposed @ (
                strip.window * strips_of_rhs[strip.start : strip.stop]
            ).astype(np.float32)
            u = _solve(lower, (self._along.transposed @ local.T).ravel())
            spread = strip.nodes.matrix @ (self._along.matrix @ u.reshape(-1, local.shape[0])).T
            x[strip.start : strip.stop] += strip.window * spread
        flat = (x.T if self._is_transposed else x).ravel()
        return (scaled - self._f * (unit * flat.astype(np.float64))) * self._root

    def _as_strips(self, flat: NDArray[Any]) -> NDArray[Any]:
        return (
            flat.reshape(self._shape[::-1]).T if self._is_transposed else flat.reshape(self._shape)
        )


def _cholesky(diagonals: Diagonals, precision: Any) -> NDArray[Any] | None:
    """Banded factor of a symmetric matrix, with the least ridge that makes it definite.

    None if no ridge does, or if the factor is in single precision and does not solve a system.
    """
    size = len(diagonals[0][1]) + diagonals[0][0]
    reach = max(offset for offset, _ in diagonals)
    factorise = spbtrf if precision == np.float32 else dpbtrf
    for ridge in STRIP_RIDGES:
        banded = np.zeros((reach + 1, size), order="F", dtype=precision)
        for offset, values in diagonals:
            banded[offset, : len(values)] += values
        banded[0] *= 1 + ridge
        lower, info = factorise(banded, lower=1, overwrite_ab=1)
        if info == 0:
            is_right = precision == np.float64 or _solves(lower, diagonals, ridge)
            return lower if is_right else None
    return None


def _solves(lower: Singles, diagonals: Diagonals, ridge: float) -> bool:
    """True if a factor in single precision solves a system with the error of that precision."""
    side = probe(lower.shape[1])
    with np.errstate(all="ignore"):
        x = np.asarray(_solve(lower, side.astype(np.float32)), dtype=np.float64)
        # The residual of an exact factor is small beside |A| |x|, however ill-conditioned A is.
        size = side + _times(((offset, np.abs(values)) for offset, values in diagonals), np.abs(x))
        image = _times(diagonals, x) + ridge * sum(
            values * x for offset, values in diagonals if offset == 0
        )
        return agrees(image, side, float(size.max()))


def _times(diagonals: Iterable[tuple[int, Singles]], x: Floats) -> Floats:
    """Product of a symmetric matrix, given by its lower diagonals, with a vector."""
    image = np.zeros_like(x)
    for offset, values in diagonals:
        image[offset:] += values * x[: len(values)]
        if offset > 0:
            image[: len(values)] += values * x[offset:]
    return image


def _solve(lower: NDArray[Any], side: NDArray[Any]) -> NDArray[Any]:
    """Solution of L L^T x = side, which is overwritten if it has the precision of the factor."""
    solve = spbtrs if lower.dtype == np.float32 else dpbtrs
    return solve(lower, side, lower=1, overwrite_b=1)[0]


def _e_of_decay(decay: float) -> float:
    """The e of a kernel that falls by `decay` nats from cell to cell: 2 sinh(decay / 2)."""
    return 2 * math.sinh(min(decay, MAX_DECAY) / 2)


def _decay(kernel: Floats) -> float:
    """Nats by which a kernel falls from cell to cell, off its peak, which may be rounded."""
    first = 1 if len(kernel) > 2 and kernel[2] > 0 else 0
    if len(kernel) < first + 2 or not kernel[first + 1] > 0:
        return MAX_DECAY
    return float(np.log(kernel[first] / kernel[first + 1]))


def _mean_inverse_power(
    e2: float, stiffness: tuple[float, float], order: int, shape: tuple[int, int]
) -> float:
    """Mean eigenvalue of (e^2 - Laplace)^-order, which is its mean diagonal entry."""
    # Second differences with free ends have the eigenvalues 2 - 2 cos(pi j / n).
    eigenvalues = [
        factor * (2 - 2 * np.cos(np.pi * np.arange(n) / n))
        for factor, n in zip(stiffness, shape, strict=True)
    ]
    return float(((e2 + eigenvalues[0][:, None] + eigenvalues[1]) ** -order).mean())


def _second_differences(n: int) -> Any:
    """The matrix of minus the second difference, with free ends."""
    if n == 1:
        return sp.csr_matrix((1, 1))
    return sp.diags(
        [np.r_[1.0, np.full(n - 2, 2.0), 1.0], -np.ones(n - 1), -np.ones(n - 1)], [0, 1, -1]
    )
