"""The system of a Newton step for the smoothest fit on a plane, without a matrix.

H = S M W M^T S + C, as in `_curvature`. C is sparse, the other term two convolutions. Conjugate gradients solve with H.
Where theta were uniform and nothing reflected at the border differed from the noise, cosine transforms U would make H
diagonal:

    P = E^-1 U^T (c Laplace + tau kernel^2) U E^-1 ,

with tau the mean of the reports' term in units of kernel^2. E is 1 but where theta falls steeply from neighbour to
neighbour, so that the diagonal of C is far above that of c Laplace. P is the preconditioner: ten to sixty iterations.

**The determinant is an estimate.** log det P is exact, and log det H - log det P = tr log B with B = R^T H R, R = E U^T
(c Laplace + tau kernel^2)^-1/2. The trace is the mean of z . log(B) z over random signs z, each by Gauss's quadrature
from Lanczos's method (Ubaru, Chen and Saad, "Fast estimation of tr(f(A)) via stochastic Lanczos quadrature", SIAM J.
Matrix Anal. Appl. 38, 2017). The signs are always the same ones, so that determinants of neighbouring penalties err
alike and their difference is far more exact than either.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft
from scipy.linalg import eigh_tridiagonal

from ibukit._validate import Floats
from ibukit.channels import PlaneChannel
from ibukit.channels.plane import FAR
from ibukit.channels.waves import fourier
from ibukit.estimators._curvature import Curvature

# up to here a dense matrix is as fast, and its determinant exact
DENSE_SECRETS = 1024
# of a residual relative to the right-hand side: of a quick step in single precision, and of a careful one
QUICK_RESIDUAL, CAREFUL_RESIDUAL = 1e-4, 1e-10
MOST_GRADIENTS = 1000
# random signs for a determinant; Lanczos's steps, ended where the last few of them change it by so few nats
PROBES, SEED = 8, 2026
MOST_LANCZOS, LANCZOS_BATCH, STILL_NATS = 200, 4, 0.01


@dataclass(frozen=True, eq=False)
class PlaneCurvature(Curvature):
    """H for one planar channel.

    `w` is q / p^2, `diagonal` and `beside` (between rows, between columns) are C's.
    """

    channel: PlaneChannel
    root: Floats
    w: Floats
    diagonal: Floats
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

    def _reports(self, x: Floats) -> Floats:
        channel = self.channel
        if self.careful:
            return channel.gram_product(self.w, x)
        y = channel.gram_single.times(self.w, x)
        if channel.columns.size:  # which it leaves out
            y += channel.columns @ (self.w[channel.kinds == FAR] * (x @ channel.columns))
        return y

    def solve(self, side: Floats) -> Floats:
        """H^-1 side by conjugate gradients."""
        return self._gradients(side, None)

    def step(self, rise: Floats, root: Floats) -> Floats:
        """The solution among the directions at right angles to root, where every iterate stays."""
        return self._gradients(rise, root)

    def _gradients(self, side: Floats, normal: Floats | None) -> Floats:
        if normal is not None:
            from_normal = self._nearly(normal)
            from_normal /= float(normal @ from_normal)

        def direction(rest: Floats) -> Floats:
            z = self._nearly(rest)
            return z if normal is None else z - from_normal * float(normal @ z)

        x, rest = np.zeros_like(side), side.copy()
        z = direction(rest)
        p, size = z.copy(), float(rest @ z)
        enough = size * (CAREFUL_RESIDUAL if self.careful else QUICK_RESIDUAL) ** 2
        for _ in range(MOST_GRADIENTS):
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
        return x

    @cached_property
    def _scaling(self) -> tuple[Floats, Floats]:
        """E, and the eigenvalues between the transforms, shape (n_rows, n_cols)."""
        rows, cols = self.channel.shape
        waves = [2 - 2 * np.cos(np.pi * np.arange(n) / n) for n in (rows, cols)]
        across, along = self.beside
        rough = -across * waves[0][:, None] - along * waves[1]
        kernel = self.channel.kernels[0][:rows, :cols]
        told = fourier.kernel_spectrum(kernel, (2 * rows, 2 * cols))[:rows, :cols] ** 2
        of_reports = self.root**2 * self.channel.adjoint_of_squares(self.w) / told.mean()
        tau = float(self.root**2 @ of_reports) / float(self.root @ self.root)
        degrees = -(across * _neighbours(rows)[:, None] + along * _neighbours(cols)).ravel()
        steep = np.maximum(self.diagonal, degrees)
        shrunk = np.sqrt(np.divide(degrees, steep, out=np.ones_like(degrees), where=steep > 0))
        spectrum = rough + tau * told
        return shrunk, np.maximum(spectrum, np.finfo(float).eps * spectrum.max())

    def _nearly(self, r: Floats) -> Floats:
        """P^-1 r."""
        shrunk, spectrum = self._scaling
        return shrunk * self._fields(self._waves(shrunk * r) / spectrum)

    def _waves(self, x: Floats) -> Floats:
        return np.asarray(fft.dctn(x.reshape(self.channel.shape), norm="ortho"))

    def _fields(self, waves: Floats) -> Floats:
        return np.asarray(fft.idctn(waves, norm="ortho", overwrite_x=True)).ravel()

    @cached_property
    def log_dets(self) -> Floats:
        """Log det H by each vector of random signs, shape (PROBES,): their mean is the estimate."""
        shrunk, spectrum = self._scaling
        fixed = float(np.log(spectrum).sum() - 2 * np.log(shrunk).sum())
        rng = np.random.default_rng(SEED)
        signs = rng.choice([-1.0, 1.0], size=(PROBES, self.channel.k))
        return np.array([fixed + self._log_between(z) for z in signs])

    def _log_between(self, z: Floats) -> float:
        """Z . log(B) z: Lanczos's tridiagonal matrix has the nodes and weights of Gauss's quadrature."""
        shrunk, spectrum = self._scaling
        half = 1 / np.sqrt(spectrum)
        mass = float(z @ z)
        v, before = z.reshape(self.channel.shape) / np.sqrt(mass), np.zeros(self.channel.shape)
        middle: list[float] = []
        beside: list[float] = []
        last = found = np.inf
        for j in range(1, min(MOST_LANCZOS, len(z)) + 1):
            image = half * self._waves(shrunk * self.times(shrunk * self._fields(half * v)))
            middle.append(float((v * image).sum()))
            image -= middle[-1] * v
            if beside:
                image -= beside[-1] * before
            length = float(np.linalg.norm(image))
            ended = length < 1e-6 * abs(middle[0])  # no more is left than rounding
            if ended or j % LANCZOS_BATCH == 0 or j == len(z):
                nodes, vectors = eigh_tridiagonal(middle, beside)
                found = mass * float(vectors[0] ** 2 @ np.log(np.maximum(nodes, np.finfo(float).tiny)))
                if ended or abs(found - last) < STILL_NATS:
                    break
                last = found
            beside.append(length)
            before, v = v, image / length
        return found


def _neighbours(n: int) -> Floats:
    """How many neighbours each position of a chain has."""
    count = np.full(n, 2.0)
    count[[0, -1]] -= 1
    return count if n > 1 else np.zeros(1)
