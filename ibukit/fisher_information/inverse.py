"""The inverse of the observed information: by a closed form where there is one, else from the matrix."""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.fisher_information import dense
from ibukit.fisher_information.diagonal import Diagonal, pooled_responses
from ibukit.fisher_information.line import LineInformation, on_a_line
from ibukit.fisher_information.lossy import covariance_of_all, of_sums
from ibukit.fisher_information.plane import sums_on_a_plane
from ibukit.fisher_information.plane_cells import variances_on_a_plane
from ibukit.tally.tally import Tally


def asymptotic_variances(tally: Tally, theta: Floats) -> Floats:
    """Diagonal of the inverse information on the directions that keep the sum, Z (Z^T J Z)^-1 Z^T, shape (k,).

    Z is an orthonormal basis of {w : sum w = 0}. inf for a secret whose probability moves along a
    direction in which the likelihood of the reports seen is flat: they do not determine it. In O(k)
    time and memory where every mechanism is k-RR, or where one adds geometric noise on a line; else
    from a matrix of shape (k, k), and where that is too large, on a plane all of whose reports were
    seen, by solves without it, within a hundredth.
    """
    if tally.efficiency is not None:
        return np.diag(covariance_of_all(tally, theta)).copy()
    known = _closed_form(tally, theta)
    if known is not None:
        return known.variances()
    with one_thread():
        large = tally.k > dense.MAX_SECRETS_INVERTED
        solved = variances_on_a_plane(tally, theta) if large else None
        return np.diag(dense.lower_covariance(tally, theta)).copy() if solved is None else solved


def asymptotic_covariance(tally: Tally, theta: Floats) -> Floats:
    """All of Z (Z^T J Z)^-1 Z^T, shape (k, k); inf in the rows and columns of secrets that are not determined."""
    dense.refuse_if_too_large(
        tally.k, "covariance", "; standard_errors() needs less under k-RR and on a line"
    )
    if tally.efficiency is not None:
        return covariance_of_all(tally, theta)
    known = _closed_form(tally, theta)
    if known is not None:
        return known.covariance()
    with one_thread():
        lower = np.tril(dense.lower_covariance(tally, theta))
    return np.asarray(lower + np.tril(lower, -1).T)


def asymptotic_variances_of_sums(tally: Tally, theta: Floats, weights: Floats) -> Floats:
    """Variances of W . theta for each row of weights, shape (r,); inf where the reports do not determine the sum.

    In O(k) under k-RR and on a line; by solves without a matrix on a large plane all of whose
    reports were seen, each with a bound from above and one from below that agree to 1e-6; else from
    a matrix of shape (k, k).
    """
    if tally.efficiency is not None:
        return of_sums(covariance_of_all(tally, theta), weights)
    known = _closed_form(tally, theta)
    found = None if known is None else known.of_sums(weights)
    if found is not None:
        return found
    with one_thread():
        solved = sums_on_a_plane(tally, theta, weights)
        return dense.variances_of_sums(tally, theta, weights) if solved is None else solved


def _closed_form(tally: Tally, theta: Floats) -> Diagonal | LineInformation | None:
    return pooled_responses(tally, theta) or on_a_line(tally, theta)
