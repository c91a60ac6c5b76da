"""Variances of sums over a plane of cells by linear solves without a matrix.

Every report must have been seen.

An unbiased estimate of w . theta has weights y on the reports with M y = w + beta 1, and the best
such estimate has the variance

    V = min over beta of sum_z a_z (y_z - beta u_z)^2,
    M y = w,  M u = 1,  a_z = (theta M)_z^2 / counts_z

(Gauss and Markov), an upper bound whatever else is true. From below, V >= (w . v)^2 / (v J v) for
every direction v that keeps the sum; the best direction has M^T v = a (y - beta u). Both systems
are solved, and V counts if the two bounds meet. Noise on a plane is a convolution except at the
border, and a convolution that is reflected there is a product after cosine transforms: with the
inverse of that product as preconditioner, generalised minimal residuals take ten to fifty steps.
Where the noise spreads over most of the grid this is no longer so, and the caller has to use the
matrix.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import fft
from scipy.sparse.linalg import LinearOperator, gmres

from ibukit._ground.arguments import Floats
from ibukit.channels import facts
from ibukit.channels.fourier import padded_transforms
from ibukit.channels.plane import PlaneChannel
from ibukit.fisher_information.dense import root_weights
from ibukit.tally.tally import Tally

# Relative residual of a linear system.
RESIDUAL_TOLERANCE, BOUNDS_TOLERANCE = 1e-11, 1e-6
RESIDUAL_STEPS = 80
# Relative size below which an eigenvalue of the reflected convolution is rounding.
MIN_EIGENVALUE = 1e-13


def plane_variances_of_sums(tally: Tally, theta: Floats, weights: Floats) -> Floats | None:
    """Variances for each row of weights, shape (r,), or None.

    The answer is None off a plane, if not all its reports were seen, or if the bounds do not meet.
    """
    channel = facts.as_plane(tally.operator)
    if channel is None:
        return None
    a = 1 / root_weights(tally.counts, channel.forward(theta)) ** 2
    solve = PlaneSystemSolver(channel)
    u = solve.reports(np.ones(channel.k))
    found = np.zeros(len(weights))
    for i, row in enumerate(weights):
        # A constant changes nothing and would cost digits.
        centred = row - row.mean()
        if not centred.any():
            continue
        y = solve.reports(centred)
        if u is None or y is None:
            return None
        # The best beta is the weighted regression of y on u.
        y = y - float(a * y @ u) / float(a * u @ u) * u
        above = float(a * y @ y)
        # The dual direction of the second bound; both bounds are equal for exact solutions.
        v = solve.secrets(a * y)
        if v is None:
            return None
        v -= v.mean()
        below = float(centred @ v) ** 2 / float((channel.convolve(v) ** 2 / a).sum())
        if not abs(above - below) <= BOUNDS_TOLERANCE * above:
            return None
        found[i] = above
    return found


class PlaneSystemSolver:
    """Solver of systems with the k x k matrix of a plane all of whose reports were seen."""

    def __init__(self, channel: PlaneChannel, residual: float = RESIDUAL_TOLERANCE):
        self._channel, self._residual = channel, residual
        rows, cols = channel.shape
        # Eigenvalues of the convolution that is reflected at the border, under cosine transforms.
        waves = padded_transforms.kernel_spectrum(
            channel.kernels[0][:rows, :cols], (2 * rows, 2 * cols)
        )[:rows, :cols]
        self._eigenvalues = np.maximum(waves, MIN_EIGENVALUE * waves.max())

    def reports(self, w: Floats) -> Floats | None:
        """Solution y of M y = w; None if the residual stays too large."""
        return self._solve(
            self._channel.adjoint, lambda r: self._reflected(r / self._channel.factor), w
        )

    def secrets(self, w: Floats) -> Floats | None:
        """Solution v of M^T v = w; None if the residual stays too large."""
        return self._solve(
            self._channel.convolve, lambda r: self._reflected(r) / self._channel.factor, w
        )

    def _reflected(self, r: Floats) -> Floats:
        """Preconditioner: inverse of the convolution with noise reflected at the border."""
        waves = fft.dctn(r.reshape(self._channel.shape)) / self._eigenvalues
        return np.asarray(fft.idctn(waves, overwrite_x=True)).ravel()

    def _solve(
        self,
        times: Callable[[Floats], Floats],
        nearly_inverse: Callable[[Floats], Floats],
        w: Floats,
    ) -> Floats | None:
        # Right preconditioning: solve times(inverse(x)) = w for x, whose residual is the true one.
        operator = LinearOperator(
            (len(w), len(w)), matvec=lambda x: times(nearly_inverse(x)), dtype=np.float64
        )
        x, _ = gmres(operator, w, rtol=self._residual, restart=RESIDUAL_STEPS, maxiter=2)
        found = nearly_inverse(x)
        rest = float(np.abs(times(found) - w).max())
        return found if rest <= 100 * self._residual * float(np.abs(w).max()) else None
