"""Interior point for the likelihoods of many tallies over the same reports, solved together.

At the maximum of sum_z q_z log (theta M)_z - sum_x theta_x over theta >= 0 the sum of theta is 1,
because sum_x theta_x g_x = sum_z q_z = 1 for g = M (q / (theta M)) and theta_x (1 - g_x) = 0. The
conditions theta >= 0, s = 1 - g >= 0, theta_x s_x = mu have the Newton step

    (H + diag(s / theta)) d theta = mu / theta + g - 1,    H = M diag(q / (theta M)^2) M^T,

one system of order k for each tally, and all systems are solved by one call of LAPACK.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.rounding import UNIT_ROUNDOFF, gamma

# Steps after which a tally is left to the solvers of single tallies; most take fewer than 25.
MAX_STEPS = 80
# Share of the way to the boundary that a step takes.
STEP_TO_BOUNDARY = 0.99
# Certificates below this are within the rounding of doubles.
MIN_GAP = 1e-14


def maximise_many(matrix: Floats, frequencies: Floats, tol: float) -> tuple[Floats, Floats, Ints]:
    """Return the maximisers, their gaps and the steps taken.

    Parameters
    ----------
    matrix : ndarray, shape (k, s)
        The probabilities of the reports, each column up to a factor of its own.
    frequencies : ndarray, shape (t, s)
        Frequencies of the reports in each tally; each row sums to 1.
    tol : float
        Tolerance of the gaps, in nats per report. The search aims at a hundredth of it; a gap that
        is larger than `tol` says that the tally was not solved.

    Returns
    -------
    theta, gaps, steps : ndarrays, shapes (t, k), (t,) and (t,)

    Examples
    --------
    >>> import numpy as np
    >>> matrix = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> theta, gaps, steps = maximise_many(matrix, np.array([[0.5, 0.5], [0.9, 0.1]]), 1e-9)
    >>> theta.round(6), bool((gaps <= 1e-9).all())
    (array([[0.5, 0.5],
           [1. , 0. ]]), True)
    """
    t, k = len(frequencies), len(matrix)
    # Products of the rows of the matrix, from which every H is one product of matrices.
    pairs = (matrix[:, None] * matrix).reshape(k * k, -1).T
    theta, slack = np.full((t, k), 1 / k), np.ones((t, k))
    best, gaps = theta.copy(), np.full(t, np.inf)
    steps = np.zeros(t, dtype=np.int64)
    active = np.arange(t)
    for _ in range(MAX_STEPS):
        q, x, s = frequencies[active], theta[active], slack[active]
        _keep_better(matrix, q, x, s, best, gaps, active)
        going = gaps[active] > max(tol / 100, MIN_GAP) + _rounding(matrix)
        active, q, x, s = active[going], q[going], x[going], s[going]
        if not len(active):
            break
        fitted = x @ matrix
        gradient = (q / _positive(fitted)) @ matrix.T
        hessian = ((q / _positive(fitted) ** 2) @ pairs).reshape(-1, k, k)
        # The aim is a tenth of the present complementarity, or less near the end.
        mu = 0.1 * (x * s).mean(axis=1, keepdims=True)
        diagonal = np.arange(k)
        hessian[:, diagonal, diagonal] += s / x
        right = mu / x + gradient - 1
        try:
            along = np.linalg.solve(hessian, right[..., None])[..., 0]
        except np.linalg.LinAlgError:
            break
        slack_along = mu / x - s - s / x * along
        length = np.minimum(_longest(x, along), _longest(s, slack_along))
        theta[active] = np.maximum(x + length * along, np.finfo(float).tiny)
        slack[active] = np.maximum(s + length * slack_along, np.finfo(float).tiny)
        steps[active] += 1
    return best, gaps, steps


def gaps_of_many(matrix: Floats, frequencies: Floats, theta: Floats) -> Floats:
    """Return the certificate log max_x g_x of each tally; `gap` documents it.

    Examples
    --------
    >>> import numpy as np
    >>> matrix = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> gaps_of_many(matrix, np.array([[0.5, 0.5]]), np.array([[0.5, 0.5]])).round(12)
    array([0.])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(frequencies > 0, frequencies / (theta @ matrix), 0.0)
        gaps = np.log((ratios @ matrix.T).max(axis=1))
    gaps = np.maximum(gaps + 4 * UNIT_ROUNDOFF * np.abs(gaps) + _rounding(matrix), 0.0)
    return np.where(np.isnan(gaps), np.inf, gaps)


def _rounding(matrix: Floats) -> float:
    """Bound on the rounding of a certificate: sums over the secrets, and over the reports."""
    return gamma(sum(matrix.shape) + 8)


def _keep_better(
    matrix: Floats,
    q: Floats,
    x: Floats,
    s: Floats,
    best: Floats,
    gaps: Floats,
    active: NDArray[np.int64],
) -> None:
    """Certify the points, with and without exact zeros, and keep those that are better."""
    # A secret with more slack than mass is likely to have no mass at the maximiser.
    for candidate in (x, np.where(x < s, 0.0, x)):
        mass = candidate.sum(axis=1, keepdims=True)
        point = candidate / np.where(mass > 0, mass, 1.0)
        found = np.where(mass[:, 0] > 0, gaps_of_many(matrix, q, point), np.inf)
        better = found <= gaps[active]
        best[active[better]] = point[better]
        gaps[active[better]] = found[better]


def _positive(values: Floats) -> Floats:
    return np.maximum(values, np.finfo(float).tiny)


def _longest(values: Floats, along: Floats) -> Floats:
    """Return the step of each row that stays inside, at most 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(along < 0, -values / along, np.inf).min(axis=1, keepdims=True)
    return np.minimum(1.0, STEP_TO_BOUNDARY * room)
