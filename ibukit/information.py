"""How much a tally says about each secret's probability: the observed Fisher information and what follows from it."""

from __future__ import annotations

import numpy as np

from ibukit._validate import Floats
from ibukit.errors import NotInvertible
from ibukit.tally import Tally


def observed_information(tally: Tally, theta: Floats) -> Floats:
    """J_xy = sum_z counts_z M_xz M_yz / (theta M)_z^2, the curvature of -L at theta, shape (k, k)."""
    columns = tally.matrix()
    scaled = columns * (np.sqrt(tally.counts) / (theta @ columns))
    return np.asarray(scaled @ scaled.T)


def covariance(tally: Tally, theta: Floats) -> Floats:
    """The inverse of the information on the directions that keep the sum, Z (Z^T J Z)^-1 Z^T, shape (k, k).

    Z is an orthonormal basis of {w : sum w = 0}. Raises `NotInvertible` where some direction is not determined.
    """
    k = tally.k
    # the first column of the full QR of the ones vector is its direction, the others are Z
    basis = np.linalg.qr(np.ones((k, 1)), mode="complete")[0][:, 1:]
    values, vectors = np.linalg.eigh(basis.T @ observed_information(tally, theta) @ basis)
    floor = k * np.finfo(float).eps * max(values.max(initial=0.0), 0.0)
    if values.size and values.min() <= floor:
        raise NotInvertible(
            f"the reports seen do not determine the distribution in {int((values <= floor).sum())} of {k - 1} "
            "directions, so standard errors are not defined; collect more reports or merge secrets"
        )
    half = basis @ (vectors / np.sqrt(values))
    return np.asarray(half @ half.T)
