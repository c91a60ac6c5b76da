"""Loops over drawn scores: likelihood ratios where the likelihood is a parabola.

Near a distribution theta with information J, the log-likelihood of a tally with the score s is
about -x.J x / 2 + g.x + const, g = J theta + s, over the distributions x. Its maximum under x >= 0
and A x = b solves a linear complementarity problem, which block principal pivoting solves: a few
systems of equations, however many probabilities are 0 (Portugal, Judice and Vicente, "A comparison
of block pivoting and interior-point algorithms for linear least squares problems with nonnegative
variables", Math. Comp. 63, 1994).
"""

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit

# Exchanges of whole blocks that may fail to lower the number of wrong signs before secrets are
# exchanged one at a time.
BLOCK_TRIALS = 3
# Secrets exchanged one at a time, as a multiple of their number. It takes about as many as the
# support has; beyond it the value that was reached counts.
MAX_EXCHANGES = 20
# Distance from an equality's right side, as a share, at which it counts as met.
SAME_VALUE = 1e-6
# Share of the mean information that is added to each secret's, so that flat directions have a
# solution. It moves no ratio by more than about its square root.
RIDGE = 1e-12
# Violations of a sign below this share of the largest number are rounding.
SIGN_TOLERANCE = 1e-9
# Share of its norm below which the rest of an equality, after the one before, is rounding.
SAME_EQUALITY = 1e-12


@njit()
def solve_on_support(
    information: Floats, g: Floats, equalities: Floats, b: Floats, support: Ints
) -> tuple[Floats, Floats]:
    """Maximise the parabola under A x = b on a support; return x there and the multipliers."""
    size, r = support.size, b.size
    upper, right = np.empty((size, size)), np.empty((r + 1, size))
    for i in range(size):
        for j in range(i, size):
            upper[i, j] = information[support[i], support[j]]
        right[0, i] = g[support[i]]
        for c in range(r):
            right[c + 1, i] = equalities[c, support[i]]
    # Cholesky's factor, J = U^T U, and U^-T (g, A^T) beside it. Rows are updated whole, so that the
    # inner loops have no sum in them and run on vectors.
    for p in range(size):
        pivot = 1 / np.sqrt(max(upper[p, p], 1e-300))
        for j in range(p, size):
            upper[p, j] *= pivot
        for i in range(p + 1, size):
            share = upper[p, i]
            for j in range(i, size):
                upper[i, j] -= share * upper[p, j]
        for c in range(r + 1):
            right[c, p] *= pivot
            share = right[c, p]
            for j in range(p + 1, size):
                right[c, j] -= share * upper[p, j]
    # Multipliers mu: (A J^-1 A^T) mu = A J^-1 g - b, one after the other. An equality that says the
    # same as the one before on this support has none.
    mu = np.zeros(r)
    schur, wanted = np.empty((r, r)), np.empty(r)
    for c in range(r):
        wanted[c] = (right[c + 1] * right[0]).sum() - b[c]
        for d in range(r):
            schur[c, d] = (right[c + 1] * right[d + 1]).sum()
    if r == 1:
        mu[0] = wanted[0] / schur[0, 0]
    else:
        share = schur[0, 1] / schur[0, 0]
        left = schur[1, 1] - share * schur[0, 1]
        if left > SAME_EQUALITY * schur[1, 1]:
            mu[1] = (wanted[1] - share * wanted[0]) / left
        mu[0] = (wanted[0] - schur[0, 1] * mu[1]) / schur[0, 0]
    x = right[0].copy()
    for c in range(r):
        x -= right[c + 1] * mu[c]
    for i in range(size - 1, -1, -1):
        total = x[i]
        for m in range(i + 1, size):
            total -= upper[i, m] * x[m]
        x[i] = total / upper[i, i]
    return x, mu


@njit()
def remaining_gradient(
    information: Floats,
    g: Floats,
    equalities: Floats,
    mu: Floats,
    x: Floats,
    support: Ints,
    gradient: Floats,
) -> None:
    """Write the gradient g - A^T mu - J x of a parabola at a maximum x on a support."""
    gradient[:] = g
    for c in range(mu.size):
        gradient -= equalities[c] * mu[c]
    for i in range(support.size):
        gradient -= information[support[i]] * x[i]


@njit()
def value_at(g: Floats, b: Floats, mu: Floats, x: Floats, support: Ints) -> float:
    """Return -x.J x / 2 + g.x where the gradient is 0 on the support: x.J x = g.x - mu.b there."""
    value = (mu * b).sum() / 2
    for i in range(support.size):
        value += g[support[i]] * x[i] / 2
    return value


@njit()
def maximum_by_blocks(
    information: Floats,
    g: Floats,
    equalities: Floats,
    b: Floats,
    allowed: NDArray[np.bool_],
    basic: NDArray[np.bool_],
) -> tuple[bool, float]:
    """Exchange whole blocks of secrets with wrong signs; return whether it ended, and the maximum.

    `basic` marks the support to begin with, and the best one at the end.
    """
    gradient, wrong = np.empty(g.size), np.empty(g.size, np.bool_)
    fewest, trials = g.size + 1, BLOCK_TRIALS
    tolerance = SIGN_TOLERANCE * np.abs(g).max()
    while trials > 0:
        support = np.flatnonzero(basic)
        x, mu = solve_on_support(information, g, equalities, b, support)
        remaining_gradient(information, g, equalities, mu, x, support, gradient)
        # The gradient that remains outside the support must not be positive.
        wrong[:] = allowed & ~basic & (gradient > tolerance)
        wrong[support] = x < -SIGN_TOLERANCE * np.abs(x).max()
        number = wrong.sum()
        if number == 0:
            # An equality without a solution on this support is not met by x.
            for c in range(b.size):
                miss = -b[c]
                for i in range(support.size):
                    miss += equalities[c, support[i]] * x[i]
                if abs(miss) > SAME_VALUE * max(abs(b[c]), 1.0):
                    return False, 0.0
            return True, value_at(g, b, mu, x, support)
        if number < fewest:
            fewest, trials = number, BLOCK_TRIALS
        else:
            trials -= 1
        basic ^= wrong
        if not basic.any():
            return False, 0.0
    return False, 0.0


@njit()
def maximum_by_active_sets(
    information: Floats,
    g: Floats,
    equalities: Floats,
    b: Floats,
    allowed: NDArray[np.bool_],
    x: Floats,
    basic: NDArray[np.bool_],
) -> float:
    """Return the maximum, from a distribution x that is changed, one secret at a time.

    This always ends: no step lowers the value.
    """
    gradient = np.empty(g.size)
    tolerance = SIGN_TOLERANCE * np.abs(g).max()
    basic[:] = x > 0
    value = 0.0
    for _ in range(MAX_EXCHANGES * g.size):
        support = np.flatnonzero(basic)
        y, mu = solve_on_support(information, g, equalities, b, support)
        step, leaving = 1.0, -1
        for i in range(support.size):
            if y[i] < 0 and x[support[i]] < step * (x[support[i]] - y[i]):
                step, leaving = x[support[i]] / (x[support[i]] - y[i]), i
        x[support] += step * (y - x[support])
        if leaving >= 0:
            x[support[leaving]] = 0.0
            basic[support[leaving]] = False
            continue
        value = value_at(g, b, mu, y, support)
        remaining_gradient(information, g, equalities, mu, y, support, gradient)
        gradient[~allowed | basic] = 0.0
        entering = np.argmax(gradient)
        if gradient[entering] <= tolerance:
            break
        basic[entering] = True
    return value


@njit()
def maximum(
    information: Floats,
    g: Floats,
    equalities: Floats,
    b: Floats,
    allowed: NDArray[np.bool_],
    theta: Floats,
    basic: NDArray[np.bool_],
) -> float:
    """Return the maximum of -x.J x / 2 + g.x over x >= 0 with A x = b, 0 where not allowed.

    `theta` is such an x. `basic` marks the support to begin with, and the best one at the end.
    """
    ended, value = maximum_by_blocks(information, g, equalities, b, allowed, basic)
    if ended:
        return value
    return maximum_by_active_sets(information, g, equalities, b, allowed, theta.copy(), basic)


@njit()
def ratios(information: Floats, scores: Floats, theta: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Return likelihood ratios for each row of scores, shape (draws, k).

    The first are those of w . theta, and the second those of theta among all distributions with
    this value.
    """
    draws, k = scores.shape
    of_value, of_theta = np.empty(draws), np.empty(draws)
    equalities = np.ones((2, k))
    equalities[1] = w
    b = equalities @ theta
    anywhere = np.ones(k, np.bool_)
    # The largest value is attained on a face only, where the constraint says no more than that.
    on_face = b[1] >= w.max()
    face = w == w.max() if on_face else anywhere
    constraints = 1 if on_face else 2
    centre = information @ theta
    # The best supports of the last draw are near those of the next.
    basic = theta > 0
    for i in range(draws):
        g = centre + scores[i]
        best = maximum(information, g, equalities[:1], b[:1], anywhere, theta, basic)
        constrained = (basic | (theta > 0)) & face
        with_w = maximum(
            information, g, equalities[:constraints], b[:constraints], face, theta, constrained
        )
        of_value[i] = max(2 * (best - with_w), 0.0)
        at_theta = g @ theta - theta @ centre / 2
        of_theta[i] = max(2 * (with_w - at_theta), 0.0)
    return of_value, of_theta
