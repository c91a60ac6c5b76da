"""Loops over drawn scores: likelihood ratios where the likelihood is a parabola.

Near a distribution theta with information J, the log-likelihood of a tally with the score s is
about -x.J x / 2 + g.x + const, g = J theta + s, over the distributions x. Its maximum under x >= 0
and A x = b solves a linear complementarity problem, which block principal pivoting solves: a few
systems of equations, however many probabilities are 0 (Portugal, Judice and Vicente, "A comparison
of block pivoting and interior-point algorithms for linear least squares problems with nonnegative
variables", Math. Comp. 63, 1994).
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints

# Exchanges of whole blocks that may fail to lower the number of violated signs before indices are
# exchanged one at a time, which always ends.
BLOCK_TRIALS = 3
# Share of the mean information that is added to each secret's, so that flat directions have a
# solution. It moves no ratio by more than about its square root.
RIDGE = 1e-12
# Violations of a sign below this share of the largest number are rounding.
SIGN_TOLERANCE = 1e-9


@njit(cache=True)
def solve_on_support(
    information: Floats, g: Floats, equalities: Floats, b: Floats, support: Ints
) -> tuple[Floats, Floats]:
    """Maximise the parabola under A x = b on a support; return x there and the multipliers."""
    size, r = support.size, b.size
    factor, right = np.empty((size, size)), np.empty((size, r + 1))
    # Cholesky's factor of J on the support, and L^-1 (g, A^T) beside it.
    for i in range(size):
        for j in range(i + 1):
            total = information[support[i], support[j]]
            for m in range(j):
                total -= factor[i, m] * factor[j, m]
            factor[i, j] = np.sqrt(max(total, 1e-300)) if i == j else total / factor[j, j]
        for c in range(r + 1):
            total = g[support[i]] if c == 0 else equalities[c - 1, support[i]]
            for m in range(i):
                total -= factor[i, m] * right[m, c]
            right[i, c] = total / factor[i, i]
    # Multipliers mu: (A J^-1 A^T) mu = A J^-1 g - b. Equal rows on the support are solved, too.
    schur, mu = np.zeros((r, r)), np.zeros(r)
    for c in range(r):
        mu[c] = -b[c]
        for i in range(size):
            mu[c] += right[i, c + 1] * right[i, 0]
            for d in range(r):
                schur[c, d] += right[i, c + 1] * right[i, d + 1]
    for c in range(r):
        schur[c, c] *= 1 + RIDGE
    mu[:] = np.linalg.solve(schur, mu)
    x = np.empty(size)
    for i in range(size - 1, -1, -1):
        total = right[i, 0]
        for c in range(r):
            total -= right[i, c + 1] * mu[c]
        for m in range(i + 1, size):
            total -= factor[m, i] * x[m]
        x[i] = total / factor[i, i]
    return x, mu


@njit(cache=True)
def maximum(
    information: Floats,
    g: Floats,
    equalities: Floats,
    b: Floats,
    allowed: NDArray[np.bool_],
    basic: NDArray[np.bool_],
) -> float:
    """Return the maximum of -x.J x / 2 + g.x over x >= 0 with A x = b, 0 where not allowed.

    `basic` marks the support to begin with, and the best one at the end.
    """
    k = g.size
    x, gradient = np.zeros(k), np.zeros(k)
    least, trials = int(k) + 1, BLOCK_TRIALS
    for _ in range(20 * k + 100):
        support = np.flatnonzero(basic)
        on_support, mu = solve_on_support(information, g, equalities, b, support)
        x[:] = 0.0
        x[support] = on_support
        # The gradient that remains outside the support, which must not be positive.
        largest_x, largest_g = 0.0, 0.0
        for j in range(k):
            gradient[j] = 0.0
            largest_x, largest_g = max(largest_x, abs(x[j])), max(largest_g, abs(g[j]))
            if allowed[j] and not basic[j]:
                total = g[j]
                for c in range(b.size):
                    total -= equalities[c, j] * mu[c]
                for i in support:
                    total -= information[j, i] * x[i]
                gradient[j] = total
        wrong, last = 0, -1
        for j in range(k):
            if (basic[j] and x[j] < -SIGN_TOLERANCE * largest_x) or (
                not basic[j] and gradient[j] > SIGN_TOLERANCE * largest_g
            ):
                wrong, last = wrong + 1, j
        if wrong == 0:
            break
        if wrong < least:
            least, trials = wrong, BLOCK_TRIALS
        else:
            trials -= 1
        for j in range(k):
            is_wrong = (basic[j] and x[j] < -SIGN_TOLERANCE * largest_x) or (
                not basic[j] and gradient[j] > SIGN_TOLERANCE * largest_g
            )
            # Murty's rule exchanges the last index alone.
            if is_wrong and (trials >= 0 or j == last):
                basic[j] = not basic[j]
        if not basic.any():
            basic[last] = True
    value = 0.0
    for row in range(k):
        for j in range(k):
            value -= x[row] * information[row, j] * x[j] / 2
        value += g[row] * x[row]
    return value


@njit(cache=True)
def ratios(information: Floats, scores: Floats, theta: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Likelihood ratios of w . theta for each row of scores, with and without x >= 0.

    Scores have shape (draws, k).
    """
    draws, k = scores.shape
    inside, free = np.empty(draws), np.empty(draws)
    equalities = np.ones((2, k))
    equalities[1] = w
    b = equalities @ theta
    everything, anywhere = np.arange(k), np.ones(k, np.bool_)
    # The largest value is attained on a face only, where the constraint says no more than that.
    on_face = b[1] >= w.max()
    face = w == w.max() if on_face else anywhere
    constraints = 1 if on_face else 2
    centre = information @ theta
    # The best supports of the last draw are near those of the next.
    basic, constrained = theta > 0, theta > 0
    for i in range(draws):
        g = centre + scores[i]
        best = maximum(information, g, equalities[:1], b[:1], anywhere, basic)
        with_w = maximum(
            information, g, equalities[:constraints], b[:constraints], face, constrained
        )
        inside[i] = max(2 * (best - with_w), 0.0)
        # Without signs the ratio is the multiplier's: mu times the miss of w . x.
        x, _ = solve_on_support(information, g, equalities[:1], b[:1], everything)
        _, mu = solve_on_support(information, g, equalities, b, everything)
        free[i] = mu[1] * (equalities[1] @ x - b[1])
    return inside, free
