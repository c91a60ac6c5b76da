"""The system of a Newton step for the smoothest fit on a plane, without a matrix.

H = S M W M^T S + C, as in `_curvature`. C is sparse, the other term two convolutions. Conjugate
gradients solve with H. Where theta is even, cosine transforms U all but make it diagonal: C is c
Laplace + v with a potential v, and S M W M^T S is tau times the square of the kernel K. Where theta
is not, tau goes from the peaks to the valleys by powers of ten, so the cells are sorted by it into
levels j with windows chi_j whose squares sum to 1, and

    H^-1 is near sum_j chi_j E_j U^T (c Laplace + v_j + tau_j K^2)^-1 U E_j chi_j .

E_j is 1 but in cells from which theta rises steeply, where it makes up for what the diagonal of C
has above v_j. Some ten to eighty iterations are enough unless the penalty is so weak that the fit
becomes a comb.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.channels import PlaneChannel
from ibukit.channels.fourier import padded_transforms
from ibukit.channels.plane import FAR
from ibukit.estimators._curvature import Curvature

Reals = NDArray[Any]  # of single or double precision
# up to here a dense matrix is as fast
DENSE_SECRETS = 1024
# of a residual relative to the right-hand side: of a quick step in single precision, and of a
# careful one
QUICK_RESIDUAL, CAREFUL_RESIDUAL = 1e-4, 1e-10
MAX_CONJUGATE = 1000
# by how much tau falls from level to level, and below which share of c the reports no longer count
LEVEL, FAINT = 20.0, 0.03


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
        """H x; unless careful with an error of single precision in the reports' part."""
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
        channel = self.channel
        if self.careful:
            return channel.gram_product(self.w, x)
        y = self._single(x)
        if channel.columns.size:  # which it leaves out
            y += channel.columns @ (self.w[channel.kinds == FAR] * (x @ channel.columns))
        return y

    @override
    def solve(self, side: Floats) -> Floats:
        return self._gradients(side, None)

    @override
    def step(self, rise: Floats, root: Floats) -> Floats:
        return self._gradients(rise, root)

    def _gradients(self, side: Floats, normal: Floats | None) -> Floats:
        if normal is not None:
            from_normal = self._nearly(normal)
            from_normal /= float(normal @ from_normal)

        def direction(rest: Floats) -> Floats:
            if normal is None:
                return self._nearly(rest)
            # off the multiple of the normal that the residual carries: what rounding makes of it
            # would grow
            rest -= normal * float(from_normal @ rest)
            z = self._nearly(rest)
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
                break  # rounding has the word: what was found is still a direction of ascent
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
    def _told(self) -> tuple[Floats, Floats]:
        """K^2 in the waves, and the diagonal of the reports' term in its units: tau of each cell."""
        rows, cols = self.channel.shape
        kernel = self.channel.kernels[0][:rows, :cols]
        squares = padded_transforms.kernel_spectrum(kernel, (2 * rows, 2 * cols))[:rows, :cols] ** 2
        return squares, self.root**2 * self.channel.adjoint_of_squares(self.w) / squares.mean()

    @cached_property
    def _levels(self) -> list[tuple[Reals, Reals]]:
        """For each level chi_j E_j, and the inverse eigenvalues, both of shape (n_rows, n_cols)."""
        rough, (squares, tau) = self._laplace, self._told
        precision = np.float64 if self.careful else np.float32
        top = max(float(tau.max()), np.finfo(float).tiny) / math.sqrt(LEVEL)
        least = max(-FAINT * max(self.beside) / float(squares.max()), 1e-12 * top)
        last = max(0, math.ceil(math.log(top / least) / math.log(LEVEL)))
        place = np.clip(
            np.log(top / np.maximum(tau, np.finfo(float).tiny)) / math.log(LEVEL), 0, last
        )
        levels = []
        for j in range(last + 1):
            window = np.cos(np.clip(np.abs(place - j), 0, 1) * np.pi / 2)
            inside = window > math.sqrt(0.5)
            if not inside.any():
                continue
            here = top / LEVEL**j if j < last else float(np.average(tau, weights=window**2))
            potential = max(0.0, float(np.median((self.diagonal - self.degrees)[inside])))
            expected = self.degrees + potential
            steep = np.sqrt(expected / np.maximum(self.diagonal, expected))
            inverse = 1 / _positive(rough + here * squares + potential)
            levels.append(
                ((window * steep).reshape(rough.shape).astype(precision), inverse.astype(precision))
            )
        return levels

    def _nearly(self, r: Floats) -> Floats:
        """The preconditioner, in single precision unless careful."""
        unit = (
            float(np.abs(r).max(initial=0.0)) or 1.0
        )  # so that nothing leaves the range of single precision
        field = (r / unit).reshape(self.channel.shape)
        total = np.zeros(self.channel.shape)
        for window, inverse in self._levels:
            waves = fft.dctn(window * field.astype(window.dtype), norm="ortho")
            waves *= inverse
            total += window * fft.idctn(waves, norm="ortho", overwrite_x=True)
        return unit * total.ravel()


def _positive(eigenvalues: Floats) -> Floats:
    return np.maximum(eigenvalues, np.finfo(float).eps * float(eigenvalues.max()))
