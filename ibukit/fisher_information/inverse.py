"""Inverse of the observed information: by a closed form if there is one, else from the matrix."""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.errors import WeightsRefused
from ibukit.fisher_information import dense
from ibukit.fisher_information.diagonal import DiagonalInformation, pooled_randomized_response
from ibukit.fisher_information.line import LineInformation, line_information
from ibukit.fisher_information.lossy import covariance_of_all, variances_of_sums_of_all
from ibukit.fisher_information.measured_matrix import (
    covariance_with_trials,
    variances_with_trials,
)
from ibukit.fisher_information.plane import plane_variances_of_sums
from ibukit.fisher_information.plane_cells import plane_cell_variances
from ibukit.fisher_information.sandwich import design_covariance, design_variances
from ibukit.tally.tally import Tally
from ibukit.tally.trials import has_trials


def _has_trials(tally: Tally) -> bool:
    """Return whether a matrix was measured; WeightsRefused if the reports also have weights."""
    if not has_trials(tally):
        return False
    if tally.weighted:
        raise WeightsRefused(
            "tally must hold whole counts where its matrix was measured, got weights: errors of "
            "the survey and of the trials are not known together. Report the estimate without "
            "errors: with the mechanism's matrix() in a MatrixMechanism the matrix is taken as "
            "known, and they are too small"
        )
    return True


def asymptotic_variances(tally: Tally, theta: Floats) -> Floats:
    """Asymptotic variances: diagonal of the inverse information Z (Z^T J Z)^-1 Z^T, shape (k,).

    Z is an orthonormal basis of {w : sum w = 0}. The variance is inf for a secret whose probability
    moves along a direction in which the likelihood of the reports seen is flat: they do not
    determine it. This takes O(k) time and memory if every mechanism is k-RR, or if the only
    mechanism adds geometric noise on a line; otherwise it takes a matrix of shape (k, k). If that
    matrix is too large, the variances on a plane all of whose reports were seen are found without
    it, to within a hundredth.
    """
    if _has_trials(tally):
        return variances_with_trials(tally, theta, np.eye(tally.k))
    if tally.weighted and tally.survey is not None:
        return design_variances(tally, theta, None)
    if tally.efficiency is not None:
        return np.diag(covariance_of_all(tally, theta)).copy()
    known = _closed_form(tally, theta)
    if known is not None:
        return known.variances()
    with one_thread():
        # The matrix is exact, so it comes first; solves are for planes that are too large for it.
        large = tally.k > dense.MAX_SECRETS_INVERTED
        solved = plane_cell_variances(tally, theta) if large else None
        return np.diag(dense.lower_covariance(tally, theta)).copy() if solved is None else solved


def asymptotic_covariance(tally: Tally, theta: Floats) -> Floats:
    """Asymptotic covariance Z (Z^T J Z)^-1 Z^T, shape (k, k).

    Rows and columns of undetermined secrets are inf.
    """
    dense.refuse_if_too_large(
        tally.k, "covariance", "; standard_errors() needs less under k-RR and on a line"
    )
    if _has_trials(tally):
        return covariance_with_trials(tally, theta)
    if tally.weighted and tally.survey is not None:
        return design_covariance(tally, theta)
    if tally.efficiency is not None:
        return covariance_of_all(tally, theta)
    known = _closed_form(tally, theta)
    if known is not None:
        return known.covariance()
    with one_thread():
        lower = np.tril(dense.lower_covariance(tally, theta))
    return lower + np.tril(lower, -1).T


def asymptotic_variances_of_sums(tally: Tally, theta: Floats, weights: Floats) -> Floats:
    """Variances of W . theta for each row of weights, shape (r,); inf if undetermined.

    This takes O(k) under k-RR and on a line. On a large plane all of whose reports were seen it
    takes solves without a matrix, each with a bound from above and one from below that agree to
    1e-6. Otherwise it takes a matrix of shape (k, k).
    """
    if _has_trials(tally):
        return variances_with_trials(tally, theta, weights)
    if tally.weighted and tally.survey is not None:
        return design_variances(tally, theta, weights)
    if tally.efficiency is not None:
        return variances_of_sums_of_all(tally, theta, weights)
    known = _closed_form(tally, theta)
    found = None if known is None else known.variances_of_sums(weights)
    if found is not None:
        return found
    with one_thread():
        # On a plane a few solves replace the k x k matrix; elsewhere, or if they fail, the matrix
        # is made.
        solved = plane_variances_of_sums(tally, theta, weights)
        return dense.variances_of_sums(tally, theta, weights) if solved is None else solved


def _closed_form(tally: Tally, theta: Floats) -> DiagonalInformation | LineInformation | None:
    return pooled_randomized_response(tally, theta) or line_information(tally, theta)
