"""Asymptotic variances of many tallies over the same reports, computed together."""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.fisher_information.dense import FLAT_EIGENVALUE


def variances_of_many(matrix: Floats, counts: Floats, theta: Floats) -> Floats:
    """Return the variances of the probabilities of each tally, shape (t, k).

    They are NaN for a tally whose likelihood is flat along a direction; for a single tally this
    case is treated with more care. `Estimate.standard_errors` has the formula.

    Parameters
    ----------
    matrix : ndarray, shape (k, s)
    counts : ndarray, shape (t, s)
    theta : ndarray, shape (t, k)

    Examples
    --------
    >>> import numpy as np
    >>> matrix = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> variances_of_many(matrix, np.array([[50.0, 50.0]]), np.array([[0.5, 0.5]])).round(6)
    array([[0.006944, 0.006944]])
    """
    k = len(matrix)
    if k == 1:
        return np.zeros_like(theta)
    # Under strong noise columns are little but their means, so these are subtracted first.
    centred = matrix - matrix.mean(axis=0)
    pairs = (centred[:, None] * centred).reshape(k * k, -1).T
    fitted = np.where(counts > 0, theta @ matrix, 1.0)
    information = ((counts / fitted**2) @ pairs).reshape(-1, k, k)
    # The direction that changes the sum gets the mean of the other eigenvalues.
    mean = np.trace(information, axis1=1, axis2=2) / (k - 1)
    mean = np.where(mean > 0, mean, 1.0)
    values, vectors = np.linalg.eigh(information + (mean / k)[:, None, None])
    flat = (values <= FLAT_EIGENVALUE * k * values[:, -1:]).any(axis=1)
    values[flat] = 1.0
    variances = (vectors**2 / values[:, None, :]).sum(axis=2) - 1 / (mean * k)[:, None]
    variances[flat] = np.nan
    return np.where(np.isnan(variances), np.nan, np.maximum(variances, 0.0))
