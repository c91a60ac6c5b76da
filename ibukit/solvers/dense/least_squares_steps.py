"""A maximiser with mass on few secrets, by Newton's method with non-negative least squares.

With S_xz = M_xz / nu_z the log-likelihood around theta is, to second order and up to a constant,
1 - 1/2 sum_z q_z (sum_x y_x (S_xz - 2))^2 for y on the simplex. Its maximiser has the direction of
the non-negative least squares solution with one more equation, sum y = 1 (Wang, 2007). That
algorithm takes in one secret after the other, so few should have mass. Once they are known, a step
is one system of equations for them alone, in less than half of the time. Zeros are exact.

Of many secrets only some are candidates: at first a few at equal steps, then those with mass, their
neighbours and the peaks of g. So the rows must change little from one secret to the next, as those
of noise on a scale do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from scipy.optimize import nnls

from ibukit._ground.arguments import Floats, Ints

# Secrets up to which all are candidates.
MAX_K_ALL_CANDIDATES = 32
# With more secrets, or more than reports, the interior point is faster beyond these numbers of
# reports, of reports for each secret, and of local maxima of g.
MAX_REPORTS = 256
MAX_REPORTS_PER_SECRET = 3
MAX_PEAKS = 12
# Candidates at equal steps for the first step.
FIRST_CANDIDATES = 20
MAX_STEPS = 12
# EM updates before the first step.
FIRST_UPDATES = 6
MAX_HALVINGS = 10
# Rounding of a mean log-likelihood.
MEAN_ROUNDING = 1e-13
# If the tolerance is at most this, one step more is taken to max g - 1 = 1e-12, where doubles have
# few digits left.
EXACT_BELOW = 1e-6
EXACT = 1e-12
# Rounding of max g - 1.
ROUNDING = 1e-15
# A fitted probability below this ends the method.
MIN_FITTED = 1e-100
# Mass up to which a secret counts as having none: where g is 1 beyond the support, it is the last
# digits of a solution.
UNSURE_MASS = 1e-9
# If g is 1 within this on a secret without mass, there may be other maximisers; which one is found
# here would depend on the order of the secrets.
CLEARLY_BELOW = 1e-6
# Every maximiser phi has sum_x phi_x g_x >= 1. So if g is at most 1 + e, and at most 1 - b on the
# secrets without mass, phi has at most the mass e / b on them; up to this it is negligible.
MAX_MASS_ELSEWHERE = 1e-4


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def maximise(matrix: Floats, q: Floats, tol: float) -> tuple[Floats, int] | None:
    """The distribution and the steps taken; None if it is not certified to `tol`, or not unique."""
    k, s = matrix.shape
    start = _start(matrix, q, tol)
    if start is None:
        return None
    theta, candidates = start
    nu = np.dot(theta, matrix)
    g = np.dot(matrix, q / nu)
    excess, worst = _max(g) - 1, np.inf
    # With few candidates the first step may well lower the likelihood.
    likelihood = float(np.dot(q, np.log(nu))) if candidates is None else -np.inf
    roots = np.sqrt(q)
    goal = min(tol, EXACT) if tol <= EXACT_BELOW else tol
    for step in range(MAX_STEPS):
        # At the goal, or certified and no longer getting better.
        if excess <= goal or (excess <= tol and excess >= worst):
            below = 1 - float(np.maximum.reduce(g[theta <= UNSURE_MASS], initial=0.0))
            is_unique = below > CLEARLY_BELOW or max(excess, ROUNDING) < MAX_MASS_ELSEWHERE * below
            if step > 0 and is_unique:
                return theta / np.add.reduce(theta), step
            if excess >= worst or excess <= ROUNDING or below <= excess <= EXACT:
                return None
        # This is faster than nu.min(), which goes through a Python wrapper.
        if not nu[nu.argmin()] > MIN_FITTED:
            return None
        aim = (
            _newton_aim(matrix, theta, g, roots / nu)
            if step > 0 and theta[g.argmax()] > 0
            else None
        )
        if aim is None:
            aim = _least_squares_aim(
                matrix, candidates if step == 0 else _candidates(theta, g), nu, roots
            )
        # As many secrets as reports fit all of them exactly, and so do others: not unique.
        if aim is None or (k > s and np.count_nonzero(aim) >= s):
            return None
        point = aim / np.add.reduce(aim)
        worst = excess
        for _ in range(MAX_HALVINGS):
            fit = np.dot(point, matrix)
            # A fit that is not positive makes it infinite or NaN, and the step is halved.
            reached = float(np.dot(q, np.log(fit)))
            if reached >= likelihood - MEAN_ROUNDING:
                break
            point = (theta + point) / 2
        else:
            return None
        theta, nu, likelihood = point, fit, reached
        g = np.dot(matrix, q / nu)
        excess = _max(g) - 1
    return None


def _start(matrix: Floats, q: Floats, tol: float) -> tuple[Floats, Ints | None] | None:
    """A start by EM and the first candidates (None for all); None if the path is faster."""
    k, s = matrix.shape
    few = k <= MAX_K_ALL_CANDIDATES and k <= s
    # At a rough tolerance the path takes few steps as well.
    if not few and (tol > EXACT_BELOW or s > min(MAX_REPORTS, MAX_REPORTS_PER_SECRET * k)):
        return None
    theta = np.full(k, 1 / k)
    g = np.dot(matrix, q / np.dot(theta, matrix))
    if not few and _has_many_peaks(g):
        return None
    for _ in range(FIRST_UPDATES):
        # Two updates with one g take half of the time and get nearly as far.
        theta *= g * g
        g = np.dot(matrix, q / np.dot(theta, matrix))
    if not few and _has_many_peaks(g):
        return None
    theta *= g
    theta /= np.add.reduce(theta)
    if k <= MAX_K_ALL_CANDIDATES:
        return theta, None
    candidates = local_maxima(theta)
    candidates[:: k // FIRST_CANDIDATES] = True
    return theta, candidates.nonzero()[0]


def _has_many_peaks(g: Floats) -> bool:
    """True if g has so many local maxima that many secrets would gain mass."""
    return bool(np.count_nonzero(local_maxima(g)) > MAX_PEAKS)


def local_maxima(values: Floats) -> NDArray[np.bool_]:
    """True if each value is at least that of the secret before and exceeds that of the next."""
    is_peak = np.ones(len(values), dtype=bool)
    np.greater_equal(values[1:], values[:-1], out=is_peak[1:])
    is_peak[:-1] &= values[:-1] > values[1:]
    return is_peak


def _max(values: Floats) -> float:
    return float(values[values.argmax()])


def _candidates(theta: Floats, g: Floats) -> Ints:
    """Secrets with mass, their neighbours, and the local maxima of g."""
    is_candidate, has_mass = local_maxima(g), theta > 0
    is_candidate |= has_mass
    is_candidate[1:] |= has_mass[:-1]
    is_candidate[:-1] |= has_mass[1:]
    return is_candidate.nonzero()[0]


def _least_squares_aim(
    matrix: Floats, candidates: Ints | None, nu: Floats, roots: Floats
) -> Floats | None:
    """A multiple of the parabola's maximiser over the candidates; None if the algorithm fails."""
    rows = matrix if candidates is None else matrix[candidates]
    system, right = np.ones((len(nu) + 1, len(rows))), np.zeros(len(nu) + 1)
    right[-1] = 1
    np.multiply(rows / nu - 2, roots, out=system[:-1].T)
    try:
        solution, _ = nnls(system, right)
    # The active set of nnls may cycle.
    except RuntimeError:
        return None
    if not np.add.reduce(solution) > 0:
        return None
    return solution if candidates is None else _at_secrets(solution, candidates, len(matrix))


def _newton_aim(matrix: Floats, theta: Floats, g: Floats, scale: Floats) -> Floats | None:
    """The parabola's maximiser over the secrets with mass; None unless all of them keep some.

    It is a Newton step for g = 1 on the support, (M diag(q / nu^2) M^T) change = g - 1.
    """
    on = theta.nonzero()[0]
    root = matrix[on] * scale
    _, solution, failed = dposv(np.dot(root, root.T), g[on] - 1)
    solution += theta[on]
    if failed or not solution[solution.argmin()] > 0:
        return None
    return _at_secrets(solution, on, len(theta))


def _at_secrets(values: Floats, at: Ints, k: int) -> Floats:
    """The vector of length k with these values at the secrets `at`, and 0 elsewhere."""
    vector = np.zeros(k)
    vector[at] = values
    return vector
