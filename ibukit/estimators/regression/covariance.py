"""Covariances of coefficients: the inverse of the observed information, or a sandwich of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from ibukit._ground.arguments import Floats

# Eigenvalue of the information per report, in units of the orthonormal design, up to which nothing
# is known along its direction. On a ridge the eigenvalue is as small as the gradient, which ends at
# 1e-13; a million reports leave an error of 300 at this limit.
FLAT_EIGENVALUE = 1e-11
# A value is undetermined if at least this share of its gradient's squared length is along these.
FLAT_SHARE = 1e-10


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariance of coefficients, from which others are computed by the delta method.

    Parameters
    ----------
    matrix : ndarray, shape (p, p)
        The covariance on the directions about which the reports say something.
    flat : ndarray, shape (p, f)
        The other directions, orthonormal columns.
    eigenvalues : ndarray, shape (p,)
        Eigenvalues of the observed information per report, in rising order.
    """

    matrix: Floats
    flat: Floats
    eigenvalues: Floats

    @classmethod
    def at(cls, observed: Floats, total: float, scores: Floats | None = None) -> Covariance:
        """Return the covariance for an information of `total` reports, or the sandwich by `scores`.

        `scores` is the covariance of the gradient, shape (p, p).
        """
        values, vectors = eigh(observed / total)
        flat = values <= FLAT_EIGENVALUE
        known = vectors[:, ~flat]
        inverse = (known / (values[~flat] * total)) @ known.T
        matrix = inverse if scores is None else inverse @ scores @ inverse
        return cls(matrix, vectors[:, flat], values)

    def standard_errors(self, gradients: Floats) -> Floats:
        """Return errors of functions by their gradients, (..., p) in, (...) out; inf if flat."""
        variances = np.einsum("...a,ab,...b->...", gradients, self.matrix, gradients)
        lost = ((gradients @ self.flat) ** 2).sum(axis=-1)
        undetermined = lost > FLAT_SHARE * (gradients**2).sum(axis=-1)
        return np.where(undetermined, np.inf, np.sqrt(np.maximum(variances, 0.0)))

    def of(self, gradients: Floats) -> Floats:
        """Return the covariances of functions, (r, p) in, (r, r) out; inf where one is flat."""
        found: Floats = gradients @ self.matrix @ gradients.T
        undetermined = np.isinf(self.standard_errors(gradients))
        found[undetermined] = found[:, undetermined] = np.inf
        return found
