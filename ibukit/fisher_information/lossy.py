"""The information where reports get lost: among those seen first, and then carried over to all."""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.domain.efficiency import jacobian_of_all, to_seen
from ibukit.fisher_information.dense import (
    FLAT_SHARE,
    FLAT_VALUE,
    contrasts,
    observed_information,
    refuse_if_too_large,
)
from ibukit.tally.tally import Tally


def covariance_of_all(tally: Tally, theta: Floats) -> Floats:
    """Covariances of theta where reports get lost, shape (k, k); inf for what is not determined.

    Those of the distribution among those seen, carried over to all secrets to first order.
    """
    refuse_if_too_large(tally.k, "covariances")
    efficiency = np.ones(tally.k) if tally.efficiency is None else tally.efficiency
    basis = contrasts(tally.k)
    seen = observed_information(tally.among_seen, to_seen(theta, efficiency))
    return carried_over(basis.T @ seen @ basis, jacobian_of_all(theta, efficiency) @ basis)


def carried_over(information: Floats, derivatives: Floats) -> Floats:
    """Covariances of functions whose derivatives are the rows, D J^-1 D^T; inf for those that move where J is flat."""
    values, vectors = np.linalg.eigh(information)
    moved = derivatives @ vectors
    flat = values <= FLAT_VALUE * len(values) * max(values.max(initial=0.0), 0.0)
    undetermined = (moved[:, flat] ** 2).sum(axis=1) > FLAT_SHARE * (moved**2).sum(axis=1)
    half = moved[:, ~flat] / np.sqrt(values[~flat])
    covariance = half @ half.T
    covariance[undetermined] = covariance[:, undetermined] = np.inf
    return np.asarray(covariance)


def of_sums(covariance: Floats, weights: Floats) -> Floats:
    """W V w for each row w; inf where w has a weight on what is not determined."""
    open_ones = np.isinf(np.diag(covariance))
    found = np.einsum(
        "rx,xy,ry->r",
        weights,
        np.where(np.isinf(covariance), 0.0, covariance),
        weights,
        optimize=True,
    )
    return np.where((weights[:, open_ones] != 0).any(axis=1), np.inf, np.maximum(found, 0.0))
