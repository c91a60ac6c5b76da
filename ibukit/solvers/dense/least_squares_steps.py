"""Newton's method with non-negative least squares, for a maximiser with mass on few secrets.

With S_xz = M_xz / nu_z the log-likelihood around theta is 1 - 1/2 sum_z q_z (sum_x y_x (S_xz -
2))^2 to second order, for y on the simplex. Its maximiser there is the direction of the
non-negative least squares solution with one more equation, sum y = 1 (Wang, 2007). That solution
takes in one secret after the other, so few should have mass. Once they are known, a step is one
system of equations for them alone, in less than half of the time.

Of many secrets only some are looked at: at first a few at equal steps, then those with mass, their
neighbours and the peaks of g. So the rows must change little from one secret to the next, as those
of noise on a scale do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from scipy.optimize import nnls

from ibukit._ground.arguments import Floats, Ints

# secrets up to which all are looked at
FEW_SECRETS = 32
# of more secrets, or of more than there are reports: the reports, also for each secret, and the
# hills of g beyond which the interior point is the faster one, and at how many secrets they are
# looked at first
MAX_REPORTS = 256
MAX_REPORTS_A_SECRET = 3
MAX_HILLS = 12
FIRST_LOOKED_AT = 20
SQUARES_STEPS = 12
FIRST_UPDATES = 6
HALVINGS = 10
# of a mean log-likelihood
MEAN_ROUNDING = 1e-13
# a tolerance from which one step more is taken, for as many digits as there are, and max g - 1 that
# shows them
EXACT_BELOW = 1e-6
EXACT = 1e-12
# of max g - 1
ROUNDING = 1e-15
MIN_SEEN = 1e-100
# mass up to which a secret counts among those without: where g is 1 beyond the support it comes of
# the last digits
UNSURE_MASS = 1e-9
# where a secret without mass is so close to having some, there may be other maximisers, and which
# one is found here would depend on nothing but the order of the secrets
CLEARLY_BELOW = 1e-6
# Any maximiser phi has sum_x phi_x g_x >= 1. So where g is at most 1 + e, and 1 - b on the secrets
# without mass, phi has at most e / b of its mass on them: at most this share is as good as none
ELSEWHERE = 1e-4


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def maximise(matrix: Floats, q: Floats, tol: float) -> tuple[Floats, int] | None:
    """Return the distribution and the steps; None if it is not certified to `tol` or not unique."""
    k, s = matrix.shape
    start = _start(matrix, q, tol)
    if start is None:
        return None
    theta, looked_at = start
    nu = np.dot(theta, matrix)
    g = np.dot(matrix, q / nu)
    excess, worst = _most(g) - 1, np.inf
    # where few are looked at, the first step may well lead down
    likelihood = float(np.dot(q, np.log(nu))) if looked_at is None else -np.inf
    roots = np.sqrt(q)
    goal = min(tol, EXACT) if tol <= EXACT_BELOW else tol
    for step in range(SQUARES_STEPS):
        if excess <= goal or (excess <= tol and excess >= worst):
            below = 1 - float(np.maximum.reduce(g[theta <= UNSURE_MASS], initial=0.0))
            if step > 0 and (below > CLEARLY_BELOW or max(excess, ROUNDING) < ELSEWHERE * below):
                return theta / np.add.reduce(theta), step
            if excess >= worst or excess <= ROUNDING or below <= excess <= EXACT:
                return None
        # in less time than by `min`, which asks in Python what it is asked
        if not nu[nu.argmin()] > MIN_SEEN:
            return None
        aim = (
            _of_those_with_mass(matrix, theta, g, roots / nu)
            if step > 0 and theta[g.argmax()] > 0
            else None
        )
        if aim is None:
            aim = _non_negative(matrix, looked_at if step == 0 else _near_mass(theta, g), nu, roots)
        if aim is None or (
            k > s and np.count_nonzero(aim) >= s
        ):  # so many fit all reports, and so can others
            return None
        there = aim / np.add.reduce(aim)
        worst = excess
        for _ in range(HALVINGS):
            fit = np.dot(there, matrix)
            reached = float(
                np.dot(q, np.log(fit))
            )  # what is not positive makes it infinite or no number
            if reached >= likelihood - MEAN_ROUNDING:
                break
            there = (theta + there) / 2
        else:
            return None
        theta, nu, likelihood = there, fit, reached
        g = np.dot(matrix, q / nu)
        excess = _most(g) - 1
    return None


def _start(matrix: Floats, q: Floats, tol: float) -> tuple[Floats, Ints | None] | None:
    """Return a start and the secrets to try first (None: all); None if another solver is faster."""
    k, s = matrix.shape
    few = k <= FEW_SECRETS and k <= s
    # where little is asked, the path takes few steps as well
    if not few and (tol > EXACT_BELOW or s > min(MAX_REPORTS, MAX_REPORTS_A_SECRET * k)):
        return None
    theta = np.full(k, 1 / k)
    g = np.dot(matrix, q / np.dot(theta, matrix))
    if not few and _is_rough(g):
        return None
    for _ in range(FIRST_UPDATES):
        theta *= g * g  # twice with one g, which takes half of the time and gets nearly as far
        g = np.dot(matrix, q / np.dot(theta, matrix))
    if not few and _is_rough(g):
        return None
    theta *= g
    theta /= np.add.reduce(theta)
    if k <= FEW_SECRETS:
        return theta, None
    looked_at = local_maxima(theta)
    looked_at[:: k // FIRST_LOOKED_AT] = True
    return theta, looked_at.nonzero()[0]


def _is_rough(g: Floats) -> bool:
    """True if secrets in many places are about to gain mass."""
    return bool(np.count_nonzero(local_maxima(g)) > MAX_HILLS)


def local_maxima(values: Floats) -> NDArray[np.bool_]:
    """Mark the peaks of g: at least as large as the entry before and larger than the next."""
    found = np.ones(len(values), dtype=bool)
    np.greater_equal(values[1:], values[:-1], out=found[1:])
    found[:-1] &= values[:-1] > values[1:]
    return found


def _most(values: Floats) -> float:
    return float(values[values.argmax()])


def _near_mass(theta: Floats, g: Floats) -> Ints:
    """Secrets with mass, their neighbours, and where g has a peak."""
    found, mass = local_maxima(g), theta > 0
    found |= mass
    found[1:] |= mass[:-1]
    found[:-1] |= mass[1:]
    return found.nonzero()[0]


def _non_negative(
    matrix: Floats, looked_at: Ints | None, nu: Floats, roots: Floats
) -> Floats | None:
    """Return a multiple of the parabola's maximiser over these secrets; None if there is none."""
    rows = matrix if looked_at is None else matrix[looked_at]
    system, right = np.ones((len(nu) + 1, len(rows))), np.zeros(len(nu) + 1)
    right[-1] = 1
    np.multiply(rows / nu - 2, roots, out=system[:-1].T)
    try:
        found, _ = nnls(system, right)
    except RuntimeError:  # it goes round in circles
        return None
    if not np.add.reduce(found) > 0:
        return None
    return np.asarray(found) if looked_at is None else _placed(found, looked_at, len(matrix))


def _of_those_with_mass(matrix: Floats, theta: Floats, g: Floats, scale: Floats) -> Floats | None:
    """The same over the secrets with mass, where all of them keep some; None otherwise."""
    on = theta.nonzero()[0]
    half = matrix[on] * scale
    _, found, failed = dposv(np.dot(half, half.T), g[on] - 1)
    found += theta[on]
    if failed or not found[found.argmin()] > 0:
        return None
    return _placed(found, on, len(theta))


def _placed(values: Floats, at: Ints, k: int) -> Floats:
    whole = np.zeros(k)
    whole[at] = values
    return whole
