"""A maximiser with mass on few secrets, by constrained Newton steps.

With S_xz = M_xz / nu_z the log-likelihood around theta is, to second order, a parabola, whose
maximiser over non-negative masses solves a problem of non-negative least squares (Wang, 2007). The
algorithm for it takes in one secret after the other, so few should have mass. Once these are known,
a step is one system of equations for them alone, which takes less than half of the time. Zeros are
exact.

If there are many secrets, only some are candidates: those with mass, their neighbours, which are
similar if the secrets form a scale, and the highest peaks of g. Whether few have mass shows on the
way: the work is counted, and as soon as it exceeds a share of the work of the central path, the
path takes over. This share grows as the certificate improves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from ibukit._ground.arguments import Floats, Ints
from ibukit.solvers.dense.non_negative import maximise_parabola

# Secrets up to which all are candidates, and a step starts at no mass: scipy's routine is faster.
MAX_K_ALL_CANDIDATES = 32
# As soon as this method has spent more than a share of the path's work, the path is taken instead.
# The share grows as the certificate improves, from the first number to the sum of both at the goal.
FIRST_WORK_SHARE = 0.12
LATER_WORK_SHARE = 0.4
# Work is counted in multiplications of a large matrix product. The path takes about ten steps. Each
# has one product and one factor, passes over the matrix that take as long as PATH_PASSES columns of
# the product, and calls that take as long as PATH_CALLS multiplications.
PATH_STEPS = 10
PATH_PASSES = 160
PATH_CALLS = 1e7
# A multiplication in a small system takes as long as this number of them in a large product.
COST_OF_SMALL_SYSTEM = 10
# Candidates at equal steps for the first step.
FIRST_CANDIDATES = 20
# If the first candidates are at least this share of the secrets, they count as many.
MIN_MANY = 0.25
# At a rougher tolerance the path takes few steps. For half of a sample of random shapes, least
# squares take 1.4 times as long as the path at 1e-3. At 1e-4 they take 1.2 times as long, or .1 ms
# more, and for the whole sample together .7 times as long.
MAX_TOLERANCE = 1e-4
MAX_STEPS = 30
# EM updates before the first step, for few secrets and for many. Two updates with one g take half
# of the time and get nearly as far.
FIRST_UPDATES = 6
FIRST_UPDATES_OF_MANY = 2
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
# Mass up to which a secret counts as having none: if g is 1 outside the support, such a mass is the
# last digits of a solution.
UNSURE_MASS = 1e-9
# If g is 1 within this on a secret without mass, there may be other maximisers; which one is found
# here would depend on the order of the secrets.
CLEARLY_BELOW = 1e-6
# Every maximiser phi has sum_x phi_x g_x >= 1. So if g is at most 1 + e, and at most 1 - b on the
# secrets without mass, phi has at most the mass e / b on them. Up to this number it is negligible.
MAX_MASS_ELSEWHERE = 1e-4


class Found(NamedTuple):
    """A distribution that is certified."""

    theta: Floats
    steps: int
    is_unique: bool
    """False if there may be other maximisers, of which the order of the secrets chose this one."""


def applies(k: int, s: int, tol: float) -> bool:
    """Return False where the path is better from the start, before any matrix is made."""
    return _are_all_candidates(k, s) or tol <= MAX_TOLERANCE


def _are_all_candidates(k: int, s: int) -> bool:
    return k <= MAX_K_ALL_CANDIDATES and k <= s


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def maximise(
    matrix: Floats,
    q: Floats,
    tol: float,
    start: Floats | None = None,
    work_of_path: float | None = None,
) -> Found | None:
    """The distribution and the steps taken; None if it is not certified to `tol`.

    By default the start is made by EM updates, and the path is that of a dense matrix.
    """
    k, s = matrix.shape
    few = _are_all_candidates(k, s)
    if not applies(k, s, tol):
        return None
    theta = start
    if theta is None:
        theta = em_start(matrix, q, FIRST_UPDATES if few else FIRST_UPDATES_OF_MANY)
    candidates = _first_candidates(theta, s)
    work = 0.0
    if work_of_path is None:
        work_of_path = _work_of_path(k, s)
    nu = np.dot(theta, matrix)
    g = np.dot(matrix, q / nu)
    excess, worst = _max(g) - 1, np.inf
    highest_excess = excess
    # With few candidates the first step may well lower the likelihood.
    likelihood = float(np.dot(q, np.log(nu))) if few else -np.inf
    roots = np.sqrt(q)
    goal = min(tol, EXACT) if tol <= EXACT_BELOW else tol
    for step in range(MAX_STEPS):
        # At the goal, or certified and no longer getting better.
        if excess <= goal or (excess <= tol and excess >= worst):
            below = slack_of_zeros(theta, g)
            is_unique = are_clear(below, excess)
            ends = excess >= worst or excess <= ROUNDING or below <= excess <= EXACT
            if step > 0 and (is_unique or ends):
                return Found(theta / np.add.reduce(theta), step, is_unique)
            if ends:
                return None
        # This is faster than nu.min(), which goes through a Python wrapper.
        if not nu[nu.argmin()] > MIN_FITTED:
            return None
        # If there are few secrets, all may have mass; then no least squares are needed.
        aim = (
            _newton_aim(matrix, theta, g, roots / nu)
            if (few or step > 0) and theta[g.argmax()] > 0
            else None
        )
        if aim is None and few:
            aim = _least_squares_aim(matrix, roots / nu, roots)
        elif aim is None:
            if step > 0:
                candidates = _candidates(theta, g, s)
            work += len(candidates) ** 2 * s
            # The first step goes to few candidates, which may be worse than the start.
            highest_excess = max(highest_excess, excess)
            share = FIRST_WORK_SHARE + LATER_WORK_SHARE * _progress(highest_excess, excess, goal)
            budget = share * work_of_path - work
            if budget < 0:
                return None
            known = theta[candidates] if step > 0 else np.zeros(len(candidates))
            aim, spent = _parabola_aim(matrix, candidates, known, g, roots / nu, budget)
            work += spent
        # If there are many first candidates and all keep mass, other secrets may have some as well.
        if (
            step == 0
            and aim is not None
            and MIN_MANY * k <= len(candidates) == np.count_nonzero(aim) < k
        ):
            aim = _newton_aim(matrix, theta, g, roots / nu)
        # As many secrets as reports fit these exactly, and so do others: it is not unique.
        if aim is None or (k > s and np.count_nonzero(aim) >= s):
            return None
        point = aim / np.add.reduce(aim)
        worst = excess
        for _ in range(MAX_HALVINGS):
            fit = np.dot(point, matrix)
            # If the fit is not positive, this is infinite or NaN, and the step is halved.
            reached = float(np.dot(q, np.log(fit)))
            if reached >= likelihood - MEAN_ROUNDING:
                break
            point = (theta + point) / 2
        else:
            return Found(theta / np.add.reduce(theta), step, False) if excess <= tol else None
        theta, nu, likelihood = point, fit, reached
        g = np.dot(matrix, q / nu)
        excess = _max(g) - 1
    return None


def slack_of_zeros(theta: Floats, g: Floats) -> float:
    """The least 1 - g of the secrets without mass, or 1."""
    return 1 - float(np.maximum.reduce(g[theta <= UNSURE_MASS], initial=0.0))


def are_clear(slack: float, excess: float) -> bool:
    """Return whether every maximiser has hardly any mass on secrets with at least this slack."""
    return slack > CLEARLY_BELOW or max(excess, ROUNDING) < MAX_MASS_ELSEWHERE * slack


def _work_of_path(k: int, s: int) -> float:
    """Work of the path, in multiplications of a large matrix product."""
    order = min(k, s)
    return PATH_STEPS * (k * s * (order + PATH_PASSES) + order**3 / 3 + PATH_CALLS)


def _progress(highest: float, excess: float, goal: float) -> float:
    """Share of the way from the highest excess to the goal, in orders of magnitude; 0 to 1."""
    # An excess below the rounding tells nothing, whatever tolerance is asked for.
    end = max(goal, ROUNDING)
    if not end < excess < highest:
        return float(excess <= end)
    return math.log(highest / excess) / math.log(highest / end)


def em_start(matrix: Floats, q: Floats, updates: int) -> Floats:
    """A distribution by EM updates from uniform."""
    theta = np.full(len(matrix), 1 / len(matrix))
    g = np.dot(matrix, q / np.dot(theta, matrix))
    for _ in range(updates):
        theta *= g * g
        g = np.dot(matrix, q / np.dot(theta, matrix))
    theta *= g
    theta /= np.add.reduce(theta)
    return theta


def _first_candidates(theta: Floats, s: int) -> Ints:
    """The highest local maxima of a distribution, and secrets at equal steps."""
    k = len(theta)
    is_candidate = np.zeros(k, dtype=bool)
    is_candidate[_highest(local_maxima(theta), theta, s)] = True
    is_candidate[:: max(k // FIRST_CANDIDATES, 1)] = True
    return is_candidate.nonzero()[0]


def _highest(among: NDArray[np.bool_], values: Floats, number: int) -> Ints:
    """At most `number` of the secrets, those with the highest values."""
    at = among.nonzero()[0]
    return at if len(at) <= number else at[np.argsort(-values[at], kind="stable")[:number]]


def local_maxima(values: Floats) -> NDArray[np.bool_]:
    """True if each value is at least that of the secret before and exceeds that of the next."""
    is_peak = np.ones(len(values), dtype=bool)
    np.greater_equal(values[1:], values[:-1], out=is_peak[1:])
    is_peak[:-1] &= values[:-1] > values[1:]
    return is_peak


def _max(values: Floats) -> float:
    return float(values[values.argmax()])


def _candidates(theta: Floats, g: Floats, s: int) -> Ints:
    """Secrets with mass, their neighbours, and the highest local maxima of g, at most s.

    A maximiser needs mass on at most s secrets.
    """
    has_mass = theta > 0
    is_candidate = has_mass.copy()
    is_candidate[1:] |= has_mass[:-1]
    is_candidate[:-1] |= has_mass[1:]
    is_candidate[_highest(local_maxima(g) & (g > 1), g, s)] = True
    is_candidate[g.argmax()] = True
    return is_candidate.nonzero()[0]


def _least_squares_aim(matrix: Floats, scale: Floats, roots: Floats) -> Floats | None:
    """A multiple of the parabola's maximiser on the simplex; None if the algorithm fails."""
    k, s = matrix.shape
    system, right = np.ones((s + 1, k)), np.zeros(s + 1)
    right[-1] = 1
    np.subtract(matrix * scale, 2 * roots, out=system[:-1].T)
    try:
        solution, _ = scipy.optimize.nnls(system, right)
    # The active set of nnls may cycle.
    except RuntimeError:
        return None
    return solution if np.add.reduce(solution) > 0 else None


def _parabola_aim(
    matrix: Floats, candidates: Ints, known: Floats, g: Floats, scale: Floats, max_work: float
) -> tuple[Floats | None, float]:
    """The parabola's maximiser over the candidates, with any sum, and the work that it took.

    Without the equation for the sum its gradient is 2 g - 1 - H y, H = M diag(q / nu^2) M^T: with H
    theta = g that is g - 1 at theta. When it is scaled to the simplex, the maximiser y is still a
    direction of ascent. For t = y . g and the height at least 1/2 of theta, sum y <= 2 t - max(1,
    t^2) <= t.
    """
    root = matrix[candidates] * scale
    found = maximise_parabola(
        np.dot(root, root.T), 2 * g[candidates] - 1, known, max_work / COST_OF_SMALL_SYSTEM
    )
    work = found.work * COST_OF_SMALL_SYSTEM
    if not np.add.reduce(found.y) > 0:
        return None, work
    return _at_secrets(found.y, candidates, len(matrix)), work


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
