r"""The part of the covariance that comes from a matrix measured in trials.

The estimate solves the score equations on the directions that keep the sum, so that to first order
it moves by :math:`d\theta=-V\,\sum_z n\,\frac{M_z}{p_z}\,(\theta\,dM)_z` with V the covariance for
a known matrix and :math:`p=\theta M`. Row y of the matrix is the share of reports among :math:`T_y`
trials, with the covariance :math:`(\mathrm{diag}(M_y)-M_y^\top M_y)/T_y`, and rows are independent
of each other and of the reports.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.fisher_information import dense
from ibukit.tally.tally import Tally
from ibukit.tally.trials import trials_of


def covariance_with_trials(tally: Tally, theta: Floats) -> Floats:
    """Return the covariance of reports and trials, shape (k, k), inf where undetermined.

    Examples
    --------
    Rogan and Gladen's formula for a test of prevalence .25:

    >>> import numpy as np, ibukit as ik
    >>> test = ik.MatrixMechanism.from_trials([[72, 8], [6, 114]])
    >>> tally, (a, b) = test.tally_counts([525, 1475]), test.matrix()[:, 0]
    >>> covariance = covariance_with_trials(tally, np.array([0.25, 0.75]))
    >>> of_reports, of_a, of_b = 0.2625 * 0.7375 / 2000, a * (1 - a) / 80, b * (1 - b) / 120
    >>> expected = (of_reports + 0.25**2 * of_a + 0.75**2 * of_b) / (a - b) ** 2
    >>> round(float(covariance[0, 0] / expected), 9)
    1.0
    """
    with one_thread():
        lower = np.tril(dense.lower_covariance(tally, theta))
        found = lower + np.tril(lower, -1).T
        for derivatives, matrix, scale in _measured(tally, theta, np.eye(tally.k)):
            means = derivatives @ matrix.T
            squares = (derivatives * (scale @ matrix)) @ derivatives.T
            found += squares - (means * scale) @ means.T
    return found


def variances_with_trials(tally: Tally, theta: Floats, weights: Floats) -> Floats:
    """Return the variances of W . theta for each row of weights; inf where undetermined."""
    with one_thread():
        found = dense.variances_of_sums(tally, theta, weights)
        for derivatives, matrix, scale in _measured(tally, theta, weights):
            squares = derivatives**2 @ (scale @ matrix)
            # The difference is a sum of variances, which rounding may take below 0.
            found = found + np.maximum(squares - (derivatives @ matrix.T) ** 2 @ scale, 0.0)
    return found


def _measured(tally: Tally, theta: Floats, weights: Floats) -> list[tuple[Floats, Floats, Floats]]:
    """Return the derivatives by theta M, the matrix, and theta_y^2 / T_y of each measured part.

    Parts whose matrix is known are left out.
    """
    if tally.k == 1:
        return []
    moves = weights @ dense.pseudo_inverse(tally, theta)
    found = []
    for part in tally.parts:
        mechanism: Any = part.mechanism
        trials = trials_of(mechanism)
        if trials is None:
            continue
        matrix = mechanism.matrix()
        p = theta @ matrix
        # Reports without a probability do not move with the matrix rows that make none of them.
        columns = part.n * np.divide(matrix, p, out=np.zeros_like(matrix), where=p > 0)
        found.append((moves @ columns, matrix, theta**2 / trials.sum(axis=1)))
    return found
