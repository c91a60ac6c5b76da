"""Delta method for efficiency below 1: information among seen secrets, mapped to all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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

# Relative error of a rounded number.
ROUNDING = float(np.finfo(float).eps)


def covariance_of_all(tally: Tally, theta: Floats) -> Floats:
    """Covariances of theta if reports get lost, shape (k, k); inf for undetermined secrets.

    The covariances of the distribution among the secrets seen are mapped to all secrets to first
    order.
    """
    return delta_method_covariance(*_information_and_derivatives(tally, theta))


def variances_of_sums_of_all(tally: Tally, theta: Floats, weights: Floats) -> Floats:
    """Variances of W . theta for each row of weights if reports get lost; inf if undetermined."""
    information, derivatives = _information_and_derivatives(tally, theta)
    return delta_method_variances(information, derivatives, weights)


def _information_and_derivatives(tally: Tally, theta: Floats) -> tuple[Floats, Floats]:
    refuse_if_too_large(tally.k, "covariances")
    efficiency = np.ones(tally.k) if tally.efficiency is None else tally.efficiency
    basis = contrasts(tally.k)
    # Theta is estimated among the secrets seen and divided by the efficiencies: the delta method
    # maps the covariance by the derivative of that map.
    seen = observed_information(tally.among_seen, to_seen(theta, efficiency))
    return basis.T @ seen @ basis, jacobian_of_all(theta, efficiency) @ basis


def delta_method_covariance(information: Floats, derivatives: Floats) -> Floats:
    """Covariances D J^-1 D^T of functions with derivatives D; inf if they move where J is flat."""
    half, undetermined = _halves(information, derivatives, np.eye(len(derivatives)))
    covariance = half @ half.T
    covariance[undetermined] = covariance[:, undetermined] = np.inf
    return covariance


def delta_method_variances(information: Floats, derivatives: Floats, weights: Floats) -> Floats:
    """Variances w D J^-1 D^T w of sums of such functions, one for each row w of weights.

    A sum can be determined although its terms are not.
    """
    half, undetermined = _halves(information, derivatives, weights)
    return np.where(undetermined, np.inf, (half**2).sum(axis=1))


def _halves(
    information: Floats, derivatives: Floats, weights: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return H with W D J^-1 D^T W^T = H H^T, and which rows move where J is flat."""
    # Parameters are scaled to units of their own precision. Otherwise, if efficiencies differ by
    # many orders of magnitude, a precise parameter could look flat beside another one.
    diagonal = np.diag(information)
    units = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    # Eigenvectors whose eigenvalue is rounding are flat: a function that moves along one of them is
    # undetermined.
    values, vectors = np.linalg.eigh(information * np.outer(units, units))
    along = (derivatives * units) @ vectors
    moved = weights @ along
    # If the terms of a sum cancel, their rounding errors are left: such a sum counts as 0.
    moved[np.abs(moved) <= ROUNDING * len(values) * (np.abs(weights) @ np.abs(along))] = 0.0
    flat = values <= FLAT_EIGENVALUE * len(values) * max(values.max(initial=0.0), 0.0)
    undetermined = (moved[:, flat] ** 2).sum(axis=1) > FLAT_SHARE * (moved**2).sum(axis=1)
    # The covariance uses only the directions that have information.
    return moved[:, ~flat] / np.sqrt(values[~flat]), undetermined
