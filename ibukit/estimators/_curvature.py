"""Matrix of a Newton step of penalised likelihood, with its determinant: dense or of a line.

H = S M W M^T S + C with S = diag(sqrt theta), W = diag(q / p^2), and C the roughness's, a multiple
of `Roughness.curvature`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgbtrf, dgbtrs, dpotrf, dpotrs

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.channels import LineChannel

# Bandwidth of the line's system on either side: three unknowns a position, each coupled to the same
# unknown at the neighbouring positions.
BAND = 3
# Ridges to try in turn, relative to each diagonal entry, if rounding makes the matrix indefinite.
RIDGES = (0.0, 1e-15, 1e-12, 1e-9)


class Curvature(ABC):
    """-1/4 the Hessian along sqrt theta, factorised."""

    @abstractmethod
    def solve(self, side: Floats) -> Floats:
        """Return H^-1 side, shape (k,)."""

    def step(self, rise: Floats, root: Floats) -> Floats:
        """Return Newton's step for a gradient `rise`, in directions orthogonal to `root`."""
        # Newton's step with the multiplier of root . v = 0 eliminated.
        v, out = self.solve(rise), self.solve(root)
        v -= out * (root @ v) / (root @ out)
        return v


class Determined(Curvature):
    """A curvature whose determinant is known."""

    @property
    @abstractmethod
    def log_det(self) -> float:
        """Log det H."""


@dataclass(frozen=True, eq=False)
class DenseCurvature(Determined):
    """Cholesky's factor, the lower triangle of a matrix of shape (k, k) in Fortran order."""

    factor: Floats

    @override
    def solve(self, side: Floats) -> Floats:
        return np.asarray(dpotrs(self.factor, side, lower=1)[0])

    @override
    def step(self, rise: Floats, root: Floats) -> Floats:
        # Both sides at once: one pass over the factor.
        v, out = self.solve(np.asfortranarray([rise, root]).T).T
        return v - out * (root @ v) / (root @ out)

    @property
    @override
    def log_det(self) -> float:
        return 2 * float(np.log(np.diag(self.factor)).sum())


@dataclass(frozen=True, eq=False)
class LineCurvature(Determined):
    """For geometric noise on a line, whose kernel K has a tridiagonal inverse.

    H v = r is a system of three unknowns a position: with T = (1 - a^2) K^-1, y = -K S v and (1 -
    a^2) z = K W K S v,

        C v + (1 - a^2) S z = r ,    (1 - a^2) S v + T y = 0 ,    W y + T z = 0 ,

    where C is the roughness's. In this order its band is three wide on either side. The determinant
    of the whole system is, but for its sign, det(T)^2 det H, and det T = 1 - a^2.
    """

    bands: Floats
    pivots: NDArray[np.int32]
    loss: float

    @override
    def solve(self, side: Floats) -> Floats:
        # The unknowns v, y and z of a position stand side by side, so v is every third number.
        whole = np.zeros(3 * len(side))
        whole[::3] = side
        return dgbtrs(self.bands, BAND, BAND, whole, self.pivots)[0][::3]

    @property
    @override
    def log_det(self) -> float:
        return float(np.log(np.abs(self.bands[2 * BAND])).sum()) - 2 * math.log(self.loss)


def line_curvature(
    line: LineChannel, root: Floats, w: Floats, diagonal: Floats, beside: Floats
) -> Curvature | None:
    """Factorise H of a line; None if it is singular.

    `w` is q / p^2 over the reports; `diagonal` and `beside` are the entries of C on the diagonal
    and next to it.
    """
    # The kernel is a^|x - y|, whose inverse times 1 - a^2 is T: tridiagonal with -a beside the
    # diagonal, on which 1 + a^2 stands except for 1 at the two ends.
    k, a = line.k, line.decay
    loss = (1 - a) * (1 + a)
    # LAPACK's band storage: entry (i, j) in row 2 BAND + i - j, with BAND rows of fill-in above.
    bands = np.zeros((3 * BAND + 1, 3 * k))
    middle = np.full(k, 1 + a * a)
    middle[[0, -1]] = 1.0 if k > 1 else loss

    def put(row: int, column: int, values: Floats | float) -> None:
        """Set entries (3 i + row, 3 i + column) for all positions i at which both are inside."""
        first = max(0, -(column // 3)) if column < 0 else 0
        last = k - (column // 3 if column >= 3 else 0)
        at = 3 * np.arange(first, last) + column
        bands[2 * BAND + row - column, at] = values

    # First equation: C v + (1 - a^2) S z. Second: (1 - a^2) S v + T y. Third: W y + T z.
    put(0, 0, diagonal)
    put(0, 3, beside)
    put(0, -3, beside)
    put(0, 2, loss * root)
    put(1, 0, loss * root)
    put(1, 1, middle)
    put(2, 2, middle)
    for row in (1, 2):
        put(row, row + 3, -a)
        put(row, row - 3, -a)
    put(2, 1, np.bincount(line.positions, w * line.scale**2, k).astype(np.float64))
    factors, pivots, info = dgbtrf(bands, BAND, BAND, overwrite_ab=True)
    return (
        LineCurvature(factors, pivots, loss) if info == 0 and np.isfinite(factors).all() else None
    )


def dense_curvature(matrix: Floats) -> Curvature | None:
    """Return H by its Cholesky factor; None if no ridge makes it positive definite.

    Only the lower triangle of `matrix` is read.
    """
    for ridge in RIDGES:
        ridged = np.array(matrix, order="F")
        ridged.flat[:: len(ridged) + 1] *= 1 + ridge
        factor, failed = dpotrf(ridged, lower=1, clean=0, overwrite_a=1)
        # Infinite and missing entries have factors as well.
        if not failed and np.isfinite(factor.diagonal()).all():
            return DenseCurvature(factor)
    return None


def saddle_free_curvature(matrix: Floats) -> Curvature | None:
    """Return an indefinite H with the absolute values of its eigenvalues: its steps still rise."""
    values, vectors = np.linalg.eigh(matrix)
    return dense_curvature((vectors * np.abs(values)) @ vectors.T)
