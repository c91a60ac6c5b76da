"""An approximate inverse of D + M diag(w) M^T for a planar channel: a differential operator on overlapping strips.

With h the diagonal of M diag(w) M^T, the second term is about h^1/2 C h^1/2, where C holds the correlations of the
kernel's columns. For exponential kernels, whose spectrum falls as (e^2 + |omega|^2)^(-3/2), C is near the inverse of
the differential operator P = c (e^2 - Laplace)^3, a sparse matrix. Then, with Q = (P + h / D)^-1,

    (D + h^1/2 P^-1 h^1/2)^-1 = h^-1/2 (h / D - (h / D) Q (h / D)) h^-1/2,

which takes one banded Cholesky factor. Correlations end after some 3 / e cells, so the grid is cut into strips that
overlap by so much; each is solved by itself, and windows whose squares sum to 1 put the solutions together (a symmetric
additive Schwarz method). The cost is that of a band as wide as a strip, and the iterations are as few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.lapack import dpbtrf, dpbtrs, spbtrf, spbtrs

from ibukit._validate import Floats
from ibukit.channels.plane import PlaneChannel

# from this e on the eigenvalues of P range over less than a single-precision number can tell apart
SINGLE_FROM = 0.15
# beyond this h / D a cell is free to all purposes; in single precision factors would decay into denormal numbers
MOST_FREE_SINGLE = 1e4
MOST_FREE = 1e7
MOST_DECAY = 6.0
STRIP_RIDGES = (0.0, 1e-6, 1e-4, 1e-2)


@dataclass(frozen=True)
class Strip:
    """Rows start..stop of the grid, their window, P on them, and P in LAPACK's lower banded form."""

    start: int
    stop: int
    window: Floats
    operator: Any
    banded: NDArray[Any]


class Preconditioner:
    """For one channel; `factor` for each new diagonal, then `solve`."""

    def __init__(self, channel: PlaneChannel):
        # strips run along the longer axis, and cells are numbered across them
        self._turned = channel.shape[0] > channel.shape[1]
        kernel = channel.kernels[0].T if self._turned else channel.kernels[0]
        self._shape = channel.shape[::-1] if self._turned else channel.shape
        order, self._e2, stiffness = _fit(kernel)
        self._scale = _mean_inverse_power(self._e2, stiffness, order, self._shape)
        self._order, self._stiffness = order, stiffness
        self._single = math.sqrt(self._e2) >= SINGLE_FROM
        self._strips = self._cut()

    def _cut(self) -> list[Strip]:
        size = self._shape[0]
        # half of an overlap: correlations across the strips fall by e^-1.6 over it, so by e^-3.2 over all of it
        half = math.ceil(1.6 * math.sqrt(self._stiffness[0] / self._e2))
        n_strips = max(1, round(size / (4 * half)))
        edges = np.linspace(0, size, n_strips + 1).round().astype(int)
        made: dict[int, tuple[Any, NDArray[Any]]] = {}
        strips = []
        for i in range(n_strips):
            start, stop = max(0, edges[i] - half), min(size, edges[i + 1] + half)
            rows = np.arange(start, stop) + 0.5
            rise, fall = (np.clip((rows - edges[j] + half) / (2 * half), 0, 1) * np.pi / 2 for j in (i, i + 1))
            window = np.ones(len(rows))
            if i > 0:
                window *= np.sin(rise)
            if i < n_strips - 1:
                window *= np.cos(fall)
            if stop - start not in made:
                made[stop - start] = self._operator(stop - start)
            strips.append(Strip(int(start), int(stop), window[:, None], *made[stop - start]))
        return strips

    def _operator(self, width: int) -> tuple[Any, NDArray[Any]]:
        """P on a strip, with free ends, as a sparse and as a banded matrix."""
        length = self._shape[1]
        across, along = self._stiffness
        laplace = sp.kron(sp.eye(length), across * _second_differences(width))
        laplace = laplace + sp.kron(along * _second_differences(length), sp.eye(width))
        root = sp.csr_matrix(laplace + self._e2 * sp.eye(width * length))
        power = root
        for _ in range(self._order - 1):
            power = power @ root
        power = (self._scale * power).tocsr()
        lower = sp.tril(power).tocoo()
        banded = np.zeros(
            (int((lower.row - lower.col).max()) + 1, width * length),
            order="F",
            dtype=np.float32 if self._single else np.float64,
        )
        banded[lower.row - lower.col, lower.col] = lower.data
        return power, banded

    def factor(self, diagonal: Floats, normal_diagonal: Floats) -> bool:
        """Take D and h; False if no Cholesky factor exists even with a ridge."""
        self._root = 1 / np.sqrt(normal_diagonal)
        free = self._turn(np.minimum(normal_diagonal / diagonal, MOST_FREE_SINGLE if self._single else MOST_FREE))
        decompose = spbtrf if self._single else dpbtrf
        self._factors: list[tuple[NDArray[Any], Floats]] = []
        for strip in self._strips:
            freedom = free[strip.start : strip.stop].T.ravel()
            for ridge in STRIP_RIDGES:
                banded = strip.banded.copy(order="F")
                banded[0] = banded[0] * (1 + ridge) + freedom
                lower, info = decompose(banded, lower=1, overwrite_ab=1)
                if info == 0:
                    break
            else:
                return False
            self._factors.append((lower, freedom))
        return True

    def solve(self, rhs: Floats) -> Floats:
        """The approximate inverse times a vector; symmetric and positive definite."""
        scaled = self._turn(rhs * self._root)
        x = np.zeros(self._shape)
        back_substitute = spbtrs if self._single else dpbtrs
        for strip, (lower, freedom) in zip(self._strips, self._factors, strict=True):
            local = (strip.window * scaled[strip.start : strip.stop]).T.ravel()
            u = back_substitute(lower, freedom * local, lower=1)[0]
            # the difference cancels where a cell is free, the product with P where it is not
            solved = np.where(freedom < 1, (local - u) * freedom, strip.operator @ u)
            x[strip.start : strip.stop] += strip.window * solved.reshape(self._shape[1], -1).T
        return (x.T if self._turned else x).ravel() * self._root

    def _turn(self, flat: Floats) -> Floats:
        return flat.reshape(self._shape[::-1]).T if self._turned else flat.reshape(self._shape)


def _fit(kernel: Floats) -> tuple[int, float, tuple[float, float]]:
    """Order, e^2 and stiffness along each axis for (e^2 - Laplace)^-order to be like the kernel's correlations.

    Along a line a kernel exp(-d |i|) is exactly the inverse of 4 sinh(d / 2)^2 minus the second difference, up to a
    factor. That e is used for the axis along which the kernel falls more slowly; the other is less stiff.
    """
    order = 2 if 1 in kernel.shape else 3  # the spectrum of a line's kernel falls as (e^2 + omega^2)^-1
    decay = [_decay(axis) for axis in (kernel[:, 0], kernel[0])]
    roots = [2 * math.sinh(min(d, MOST_DECAY) / 2) for d in decay]
    return order, min(roots) ** 2, ((min(roots) / roots[0]) ** 2, (min(roots) / roots[1]) ** 2)


def _decay(kernel: Floats) -> float:
    """Nats by which a kernel falls from cell to cell; between neighbours if it can be, as the peak may be rounded."""
    first = 1 if len(kernel) > 2 and kernel[2] > 0 else 0
    if len(kernel) < first + 2 or not kernel[first + 1] > 0:
        return MOST_DECAY
    return float(np.log(kernel[first] / kernel[first + 1]))


def _mean_inverse_power(e2: float, stiffness: tuple[float, float], order: int, shape: tuple[int, ...]) -> float:
    """Mean eigenvalue of (e^2 - Laplace)^-order, that is, its diagonal."""
    waves = [factor * (2 - 2 * np.cos(np.pi * np.arange(n) / n)) for factor, n in zip(stiffness, shape, strict=True)]
    return float(((e2 + waves[0][:, None] + waves[1]) ** -order).mean())


def _second_differences(n: int) -> Any:
    """Minus the second difference, with free ends."""
    if n == 1:
        return sp.csr_matrix((1, 1))
    return sp.diags([np.r_[1.0, np.full(n - 2, 2.0), 1.0], -np.ones(n - 1), -np.ones(n - 1)], [0, 1, -1])
