"""Loops over drawn scores: likelihood ratios where the likelihood is a parabola.

Near a distribution theta with information J, the log-likelihood of a tally with the score s is
about -x.J x / 2 + g.x + const, g = J theta + s, over the distributions x. Its maximum under x >= 0
and A x = b solves a linear complementarity problem, which block principal pivoting solves by a few
systems of equations, however many probabilities are 0 (Portugal, Judice and Vicente, "A comparison
of block pivoting and interior-point algorithms for linear least squares problems with nonnegative
variables", Math. Comp. 63, 1994).

The kernels are written without whole arrays: numba takes ten seconds to compile what indexing by
arrays, sums and products of vectors need, and one second for these loops.
"""

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit

# Number of exchanges of whole blocks that may fail to reduce the number of wrong signs. After them
# secrets are exchanged one at a time.
BLOCK_TRIALS = 3
# Largest number of exchanges of one secret at a time, as a multiple of the number of secrets. About
# as many are needed as the support has secrets. After the last one the value reached is taken.
MAX_EXCHANGES = 20
# Distance from an equality's right side, as a share, at which it counts as met.
SAME_VALUE = 1e-6
# Share of the mean information that is added to each secret's, so that flat directions have a
# solution. It moves no ratio by more than about its square root.
RIDGE = 1e-12
# A number of the wrong sign counts as rounding below this share of the largest number.
SIGN_TOLERANCE = 1e-9
# If the equality before leaves less than this share of an equality's norm, the rest is rounding.
SAME_EQUALITY = 1e-12


@njit()
def members(marked: NDArray[np.bool_]) -> Ints:
    """Return the places that are marked."""
    places, size = np.empty(marked.size, np.int64), 0
    for i in range(marked.size):
        if marked[i]:
            places[size] = i
            size += 1
    return places[:size]


@njit()
def largest_size(values: Floats) -> float:
    """Return the largest absolute value."""
    largest = 0.0
    for i in range(values.size):
        largest = max(largest, abs(values[i]))
    return largest


@njit()
def product_of_rows(rows: Floats, c: int, d: int) -> float:
    """Return the inner product of two rows."""
    total = 0.0
    for i in range(rows.shape[1]):
        total += rows[c, i] * rows[d, i]
    return total


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
    # Multipliers mu with (A J^-1 A^T) mu = A J^-1 g - b, found one after the other. If an equality
    # says the same as the one before on this support, it has no multiplier.
    mu = np.zeros(r)
    schur, wanted = np.empty((r, r)), np.empty(r)
    for c in range(r):
        wanted[c] = product_of_rows(right, c + 1, 0) - b[c]
        for d in range(r):
            schur[c, d] = product_of_rows(right, c + 1, d + 1)
    if r == 1:
        mu[0] = wanted[0] / schur[0, 0]
    else:
        share = schur[0, 1] / schur[0, 0]
        left = schur[1, 1] - share * schur[0, 1]
        if left > SAME_EQUALITY * schur[1, 1]:
            mu[1] = (wanted[1] - share * wanted[0]) / left
        mu[0] = (wanted[0] - schur[0, 1] * mu[1]) / schur[0, 0]
    x = np.empty(size)
    for i in range(size):
        x[i] = right[0, i]
        for c in range(r):
            x[i] -= right[c + 1, i] * mu[c]
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
    for j in range(g.size):
        gradient[j] = g[j]
        for c in range(mu.size):
            gradient[j] -= equalities[c, j] * mu[c]
    for i in range(support.size):
        row, share = support[i], x[i]
        for j in range(g.size):
            gradient[j] -= information[row, j] * share


@njit()
def value_at(g: Floats, b: Floats, mu: Floats, x: Floats, support: Ints) -> float:
    """Return -x.J x / 2 + g.x where the gradient is 0 on the support: x.J x = g.x - mu.b there."""
    value = 0.0
    for c in range(mu.size):
        value += mu[c] * b[c]
    value /= 2
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
    tolerance = SIGN_TOLERANCE * largest_size(g)
    while trials > 0:
        support = members(basic)
        x, mu = solve_on_support(information, g, equalities, b, support)
        remaining_gradient(information, g, equalities, mu, x, support, gradient)
        # The gradient that remains outside the support must not be positive.
        for j in range(g.size):
            wrong[j] = allowed[j] and not basic[j] and gradient[j] > tolerance
        least = -SIGN_TOLERANCE * largest_size(x)
        for i in range(support.size):
            wrong[support[i]] = x[i] < least
        number = 0
        for j in range(g.size):
            number += wrong[j]
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
        left = 0
        for j in range(g.size):
            basic[j] = basic[j] != wrong[j]
            left += basic[j]
        if left == 0:
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
    tolerance = SIGN_TOLERANCE * largest_size(g)
    # A secret that leaves before the others have moved would come back at once, and so on.
    came_in_vain = np.zeros(g.size, np.bool_)
    for j in range(g.size):
        basic[j] = x[j] > 0
    value = 0.0
    for _ in range(MAX_EXCHANGES * g.size):
        support = members(basic)
        y, mu = solve_on_support(information, g, equalities, b, support)
        step, leaving = 1.0, -1
        # Where the equalities determine all masses, the rounding of 0 is not a reason to leave.
        rounding = SIGN_TOLERANCE * largest_size(y)
        for i in range(support.size):
            if y[i] < -rounding and x[support[i]] < step * (x[support[i]] - y[i]):
                step, leaving = x[support[i]] / (x[support[i]] - y[i]), i
        for i in range(support.size):
            change = step * (y[i] - x[support[i]])
            x[support[i]] += change
            if abs(change) > rounding:
                came_in_vain[:] = False
        if leaving >= 0:
            came_in_vain[support[leaving]] = step == 0
            x[support[leaving]] = 0.0
            basic[support[leaving]] = False
            continue
        value = value_at(g, b, mu, y, support)
        remaining_gradient(information, g, equalities, mu, y, support, gradient)
        entering, steepest = -1, tolerance
        for j in range(g.size):
            may_enter = allowed[j] and not basic[j] and not came_in_vain[j]
            if may_enter and gradient[j] > steepest:
                entering, steepest = j, gradient[j]
        if entering < 0:
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
def maxima(
    information: Floats,
    scores: Floats,
    centre: Floats,
    equalities: Floats,
    b: Floats,
    constraints: int,
    face: NDArray[np.bool_],
    theta: Floats,
) -> tuple[Floats, Floats]:
    """Return, for each row of scores, the maximum anywhere and that under the constraints.

    The first row of `equalities` holds for both: x sums to 1.
    """
    draws, k = scores.shape
    best, with_w, g = np.empty(draws), np.empty(draws), np.empty(k)
    anywhere, basic, constrained = np.ones(k, np.bool_), theta > 0, theta > 0
    for i in range(draws):
        for j in range(k):
            g[j] = centre[j] + scores[i, j]
        # The best supports of the last draw are near those of the next.
        best[i] = maximum(information, g, equalities[:1], b[:1], anywhere, theta, basic)
        for j in range(k):
            constrained[j] = (basic[j] or theta[j] > 0) and face[j]
        with_w[i] = maximum(
            information, g, equalities[:constraints], b[:constraints], face, theta, constrained
        )
    return best, with_w


def ratios(information: Floats, scores: Floats, theta: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Return likelihood ratios for each row of scores, shape (draws, k).

    The first are those of w . theta, and the second those of theta among all distributions with
    this value.
    """
    equalities = np.stack([np.ones(len(w)), w])
    b = equalities @ theta
    # The largest value is attained on a face only, and the constraint says no more than the face.
    on_face = b[1] >= w.max()
    face = w == w.max() if on_face else np.ones(len(w), dtype=bool)
    centre = information @ theta
    best, with_w = maxima(
        information, scores, centre, equalities, b, 1 if on_face else 2, face, theta
    )
    at_theta = (centre + scores) @ theta - theta @ centre / 2
    return np.maximum(2 * (best - with_w), 0.0), np.maximum(2 * (with_w - at_theta), 0.0)
