"""Delta method for efficiency below 1: information among seen secrets, mapped to all."""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.domain.efficiency import jacobian_of_all, to_seen
from ibukit.fisher_information.dense import (
    FLAT_EIGENVALUE,
    FLAT_SHARE,
    contrasts,
    observed_information,
    refuse_if_too_large,
)
from ibukit.tally.tally import Tally


def covariance_of_all(tally: Tally, theta: Floats) -> Floats:
    """Covariances of theta if reports get lost, shape (k, k); inf for undetermined secrets.

    The covariances of the distribution among the secrets seen are mapped to all secrets to first
    order.
    """
    refuse_if_too_large(tally.k, "covariances")
    efficiency = np.ones(tally.k) if tally.efficiency is None else tally.efficiency
    basis = contrasts(tally.k)
    # Theta is estimated among the secrets seen and divided by the efficiencies: the delta method
    # maps the covariance by the derivative of that map.
    seen = observed_information(tally.among_seen, to_seen(theta, efficiency))
    return delta_method_covariance(
        basis.T @ seen @ basis, jacobian_of_all(theta, efficiency) @ basis
    )


def delta_method_covariance(information: Floats, derivatives: Floats) -> Floats:
    """Covariances D J^-1 D^T of functions with derivatives D; inf if they move where J is flat."""
    # Eigenvectors with rounding for an eigenvalue are flat: a function that moves along one of them
    # is undetermined.
    values, vectors = np.linalg.eigh(information)
    moved = derivatives @ vectors
    flat = values <= FLAT_EIGENVALUE * len(values) * max(values.max(initial=0.0), 0.0)
    undetermined = (moved[:, flat] ** 2).sum(axis=1) > FLAT_SHARE * (moved**2).sum(axis=1)
    # Covariance by the directions with information.
    half = moved[:, ~flat] / np.sqrt(values[~flat])
    covariance = half @ half.T
    covariance[undetermined] = covariance[:, undetermined] = np.inf
    return covariance


def variances_of_sums(covariance: Floats, weights: Floats) -> Floats:
    """Variances W V w for each row w; inf if w has a weight on an undetermined secret."""
    open_ones = np.isinf(np.diag(covariance))
    found = np.einsum(
        "rx,xy,ry->r",
        weights,
        np.where(np.isinf(covariance), 0.0, covariance),
        weights,
        optimize=True,
    )
    return np.where((weights[:, open_ones] != 0).any(axis=1), np.inf, np.maximum(found, 0.0))
