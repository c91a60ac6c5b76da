"""The system of a Newton step of penalised likelihood on a plane, solved without a matrix.

H = S M W M^T S + C, as in `_curvature`. C is sparse, and a product with the other term takes two
convolutions, so H is solved by preconditioned conjugate gradients. Where theta is nearly constant,
cosine transforms U nearly diagonalise H: C is c Laplace + v with a potential v, and S M W M^T S is
tau times the square of the kernel K. Elsewhere tau falls from the peaks to the valleys of theta by
powers of ten. So the cells are sorted by tau into levels j with windows chi_j whose squares sum to
1, and the preconditioner is

    H^-1 ~ sum_j chi_j E_j U^T (c Laplace + v_j + tau_j K^2)^-1 U E_j chi_j .

E_j is 1 except in cells from which theta rises steeply, where it compensates for the part of the
diagonal of C above v_j. Ten to eighty iterations are enough unless the penalty is so small that the
fit becomes a comb.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ibukit._ground.arguments import Floats
from ibukit._ground.single_precision import agrees, probe
from ibukit._ground.typing import override
from ibukit.channels import PlaneChannel
from ibukit.channels.fourier import padded_transforms
from ibukit.estimators._curvature import Curvature

# Arrays of single or double precision.
Reals = NDArray[Any]
# Number of cells up to which a dense matrix is as fast.
DENSE_SECRETS = 700
# Residuals, relative to the right-hand side: of a quick solution in single precision, and of a
# careful solution.
QUICK_RESIDUAL, CAREFUL_RESIDUAL = 1e-4, 1e-10
# Iterations of conjugate gradients; beyond it the direction found so far is taken.
MAX_CONJUGATE = 1000
# Factor by which tau falls from level to level, and share of c below which the reports are
# negligible in the preconditioner.
LEVEL_FACTOR, NEGLIGIBLE_SHARE = 20.0, 0.03
# Cells on a side up to which a product with the matrix of a cosine transform takes less time than
# the call of a fast one.
MAX_SIDE_OF_MATRICES = 64


@dataclass(frozen=True, eq=False)
class PlaneCurvature(Curvature):
    """H for one planar channel.

    `w` is q / p^2, `diagonal` and `beside` (between rows, between columns) are C's, and `degrees`
    is the diagonal that C has where theta is uniform.
    """

    channel: PlaneChannel
    root: Floats
    w: Floats
    diagonal: Floats
    degrees: Floats
    beside: tuple[float, float]
    careful: bool = False

    def times(self, x: Floats) -> Floats:
        """Return H x; unless careful, the reports' part has the error of single precision."""
        y = self.diagonal * x
        field, out = x.reshape(self.channel.shape), y.reshape(self.channel.shape)
        across, along = self.beside
        out[:-1] += across * field[1:]
        out[1:] += across * field[:-1]
        out[:, :-1] += along * field[:, 1:]
        out[:, 1:] += along * field[:, :-1]
        y += self.root * self._reports(self.root * x)
        return y

    @cached_property
    def _single(self) -> Callable[[Floats], Floats]:
        return self.channel.gram_single.of(self.w)

    def _reports(self, x: Floats) -> Floats:
        return self.channel.gram_product(self.w, x) if self.careful else self._single(x)

    @override
    def solve(self, side: Floats) -> Floats:
        return self._conjugate_gradients(side, None)

    @override
    def step(self, rise: Floats, root: Floats) -> Floats:
        return self._conjugate_gradients(rise, root)

    def _conjugate_gradients(self, side: Floats, normal: Floats | None) -> Floats:
        if normal is not None:
            from_normal = self._precondition(normal)
            from_normal /= float(normal @ from_normal)

        def direction(rest: Floats) -> Floats:
            if normal is None:
                return self._precondition(rest)
            # The residual's component along the normal is removed: its rounding error would grow.
            rest -= normal * float(from_normal @ rest)
            z = self._precondition(rest)
            return z - from_normal * float(normal @ z)

        x, rest = np.zeros_like(side), side.copy()
        z = direction(rest)
        p, size = z.copy(), float(rest @ z)
        enough = size * (CAREFUL_RESIDUAL if self.careful else QUICK_RESIDUAL) ** 2
        for _ in range(MAX_CONJUGATE):
            if not size > enough:
                break
            image = self.times(p)
            curvature = float(p @ image)
            if not (curvature > 0 and np.isfinite(curvature)):
                # Rounding has spoiled the iteration; x is still a direction of ascent.
                break
            x += size / curvature * p
            rest -= size / curvature * image
            z = direction(rest)
            before, size = size, float(rest @ z)
            p *= size / before
            p += z
        return x if normal is None else x - from_normal * float(normal @ x)

    @cached_property
    def _laplace(self) -> Floats:
        """The eigenvalues of C where theta is uniform, shape (n_rows, n_cols)."""
        across, along = (-weight for weight in self.beside)
        waves = [2 - 2 * np.cos(np.pi * np.arange(n) / n) for n in self.channel.shape]
        return across * waves[0][:, None] + along * waves[1]

    @cached_property
    def _reports_term(self) -> tuple[Floats, Floats]:
        """K^2 in the cosine basis, and tau of each cell, from the diagonal of the reports' term."""
        rows, cols = self.channel.shape
        kernel = self.channel.kernels[0][:rows, :cols]
        squares = padded_transforms.kernel_spectrum(kernel, (2 * rows, 2 * cols))[:rows, :cols] ** 2
        return squares, self.root**2 * self.channel.adjoint_of_squares(self.w) / squares.mean()

    @cached_property
    def _levels(self) -> list[tuple[Reals, Reals]]:
        """chi_j E_j and the inverse eigenvalues of each level, both of shape (n_rows, n_cols)."""
        rough, (squares, tau) = self._laplace, self._reports_term
        is_single = not self.careful and _single_cosines_agree(self.channel.shape)
        precision = np.float32 if is_single else np.float64
        top = max(float(tau.max()), np.finfo(float).tiny) / math.sqrt(LEVEL_FACTOR)
        least = max(-NEGLIGIBLE_SHARE * max(self.beside) / float(squares.max()), 1e-12 * top)
        last = max(0, math.ceil(math.log(top / least) / math.log(LEVEL_FACTOR)))
        # A difference of logarithms: the quotient may be beyond the largest double.
        nats_below = math.log(top) - np.log(np.maximum(tau, np.finfo(float).tiny))
        place = np.clip(nats_below / math.log(LEVEL_FACTOR), 0, last)
        levels = []
        for j in range(last + 1):
            window = np.cos(np.clip(np.abs(place - j), 0, 1) * np.pi / 2)
            inside = window > math.sqrt(0.5)
            if not inside.any():
                continue
            here = top / LEVEL_FACTOR**j if j < last else float(np.average(tau, weights=window**2))
            potential = max(0.0, float(np.median((self.diagonal - self.degrees)[inside])))
            expected = self.degrees + potential
            steep = np.sqrt(expected / np.maximum(self.diagonal, expected))
            inverse = 1 / _positive(rough + here * squares + potential)
            levels.append(
                ((window * steep).reshape(rough.shape).astype(precision), inverse.astype(precision))
            )
        return levels

    def _precondition(self, r: Floats) -> Floats:
        """Apply the preconditioner, in single precision unless careful or that is faulty here."""
        # Scaled to stay within the range of single precision.
        unit = float(np.abs(r).max(initial=0.0)) or 1.0
        field = (r / unit).reshape(self.channel.shape)
        if max(self.channel.shape) <= MAX_SIDE_OF_MATRICES:
            windows, inverses, (rows, cols) = self._stacked_levels
            waves = rows @ (windows * field.astype(windows.dtype)) @ cols.T
            waves *= inverses
            total = np.einsum("lij,lij->ij", windows, rows.T @ waves @ cols, dtype=np.float64)
            return unit * total.ravel()
        total = np.zeros(self.channel.shape)
        for window, inverse in self._levels:
            waves = fft.dctn(window * field.astype(window.dtype), norm="ortho")
            waves *= inverse
            total += window * fft.idctn(waves, norm="ortho", overwrite_x=True)
        return unit * total.ravel()

    @cached_property
    def _stacked_levels(self) -> tuple[Reals, Reals, tuple[Reals, Reals]]:
        """The windows, the inverse eigenvalues, and the matrices of both cosine transforms."""
        windows, inverses = (np.array(each) for each in zip(*self._levels, strict=True))
        rows, cols = (
            fft.dct(np.eye(n, dtype=windows.dtype), axis=0, norm="ortho")
            for n in self.channel.shape
        )
        return windows, inverses, (rows, cols)


@lru_cache(maxsize=64)
def _single_cosines_agree(shape: tuple[int, int]) -> bool:
    """True if cosine transforms of this shape in single precision fit those in double precision."""
    field = probe(math.prod(shape)).reshape(shape)
    single = field.astype(np.float32)
    return all(
        agrees(transform(single, norm="ortho"), transform(field, norm="ortho"))
        for transform in (fft.dctn, fft.idctn)
    )


def _positive(eigenvalues: Floats) -> Floats:
    """Raise eigenvalues to at least their rounding error."""
    return np.maximum(eigenvalues, np.finfo(float).eps * float(eigenvalues.max()))
