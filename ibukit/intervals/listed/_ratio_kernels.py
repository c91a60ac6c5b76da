r"""Loops over drawn tallies: which have a likelihood ratio as large as the one observed.

Maximise sum_z q_z log nu_z, nu = theta M, over theta >= 0 with A theta = b. As in
`solvers.interior_point`, weights lam of the reports and slacks s = A^T y - M lam are kept
positive, and a step of Newton's method goes towards

    lam_z nu_z = q_z,    theta_x s_x = mu,    A theta = b.

Every theta on the way attains a fit. From log nu <= log c + nu / c - 1 with c = q / lam, and after
the best scaling of lam and y, no distribution has more than

    sum_z q_z log(q_z / lam_z) + log(b . y).

So the likelihood ratio is enclosed at every step, and mostly a few are enough to compare it.
"""

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit

# Share of the way to the boundary that a step takes.
STEP_TO_BOUNDARY = 0.99
# Steps for one tally, mostly fewer than 15. What is not decided then counts as large.
MAX_STEPS = 100
# Steps that go to one point of the central path, at the end of the way to it.
CENTRING_STEPS = 3


@njit(error_model="numpy")
def add_squares(square: Floats, columns: Floats, curvatures: Floats) -> None:
    """Add the sum of curvature times column times column to the upper triangle.

    Four columns are added at a time, since each sum is read and written once for all of them.
    """
    k, m = len(square), len(columns)
    for z in range(0, m - 3, 4):
        c0, c1, c2, c3 = columns[z], columns[z + 1], columns[z + 2], columns[z + 3]
        for i in range(k):
            f0, f1 = curvatures[z] * c0[i], curvatures[z + 1] * c1[i]
            f2, f3 = curvatures[z + 2] * c2[i], curvatures[z + 3] * c3[i]
            row = square[i]
            for x in range(i, k):
                row[x] += f0 * c0[x] + f1 * c1[x] + f2 * c2[x] + f3 * c3[x]
    for z in range(m - m % 4, m):
        column = columns[z]
        for i in range(k):
            factor, row = curvatures[z] * column[i], square[i]
            for x in range(i, k):
                row[x] += factor * column[x]


@njit(error_model="numpy")
def factorise(square: Floats) -> None:
    """Overwrite the upper triangle of a positive definite matrix by Cholesky's factor.

    Row by row from the rows above it, four at a time as in `add_squares`.
    """
    k = len(square)
    for j in range(k):
        row = square[j]
        for p in range(0, j - 3, 4):
            r0, r1, r2, r3 = square[p], square[p + 1], square[p + 2], square[p + 3]
            f0, f1, f2, f3 = r0[j], r1[j], r2[j], r3[j]
            for x in range(j, k):
                row[x] -= f0 * r0[x] + f1 * r1[x] + f2 * r2[x] + f3 * r3[x]
        for p in range(j - j % 4, j):
            other = square[p]
            factor = other[j]
            for x in range(j, k):
                row[x] -= factor * other[x]
        scale = 1 / np.sqrt(max(row[j], 1e-300))
        for x in range(j, k):
            row[x] *= scale


@njit(error_model="numpy")
def solve(upper: Floats, right: Floats) -> None:
    """Overwrite a right-hand side by the solution, given Cholesky's factor."""
    k = len(right)
    for j in range(k):
        right[j] /= upper[j, j]
        factor, row = right[j], upper[j]
        for i in range(j + 1, k):
            right[i] -= factor * row[i]
    for j in range(k - 1, -1, -1):
        total = right[j]
        for i in range(j + 1, k):
            total -= upper[j, i] * right[i]
        right[j] = total / upper[j, j]


@njit(error_model="numpy")
def longest(values: Floats, along: Floats) -> float:
    """Return the length of a step that keeps the values positive, at most 1."""
    room = 1.0
    for i in range(values.size):
        if along[i] < 0:
            room = min(room, -STEP_TO_BOUNDARY * values[i] / along[i])
    return room


@njit(error_model="numpy")
def times(columns: Floats, theta: Floats) -> Floats:
    """Return theta M for the columns of M, shape (s, k)."""
    result = np.zeros(len(columns))
    for z in range(len(columns)):
        for x in range(theta.size):
            result[z] += columns[z, x] * theta[x]
    return result


@njit(error_model="numpy")
def back(columns: Floats, weights: Floats) -> Floats:
    """Return M times weights of the reports."""
    result = np.zeros(columns.shape[1])
    for z in range(weights.size):
        weight, column = weights[z], columns[z]
        for x in range(result.size):
            result[x] += weight * column[x]
    return result


@njit(error_model="numpy")
def solve_few(square: Floats, right: Floats) -> Floats:
    """Solve one or two equations."""
    if right.size == 1:
        return right / square[0, 0]
    determinant = square[0, 0] * square[1, 1] - square[0, 1] * square[1, 0]
    return (
        np.array(
            [
                square[1, 1] * right[0] - square[0, 1] * right[1],
                square[0, 0] * right[1] - square[1, 0] * right[0],
            ]
        )
        / determinant
    )


@njit(error_model="numpy")
def keep_equalities(equalities: Floats, b: Floats, theta: Floats) -> None:
    """Mend what rounding has changed in A theta = b, by changes in proportion to theta."""
    r = b.size
    square = np.zeros((r, r))
    for c in range(r):
        for d in range(r):
            for x in range(theta.size):
                square[c, d] += equalities[c, x] * theta[x] * equalities[d, x]
    change = solve_few(square, b - times(equalities, theta))
    for c in range(r):
        for x in range(theta.size):
            theta[x] *= 1 + change[c] * equalities[c, x]


@njit(error_model="numpy")
def least_slope(heights: Floats, slopes: Floats) -> float:
    """Return the t at which max_x (heights_x + t slopes_x) is least."""
    low, high, bracketed = -1.0, 1.0, 0
    for _ in range(100):
        middle = high if bracketed == 0 else low if bracketed == 1 else (low + high) / 2
        rises = slopes[np.argmax(heights + middle * slopes)] >= 0
        if bracketed == 0:
            high, bracketed = (high, 1) if rises else (2 * high, 0)
        elif bracketed == 1:
            low, bracketed = (low, 2) if not rises else (2 * low, 1)
        elif rises:
            high = middle
        else:
            low = middle
    return high


@njit(error_model="numpy")
def advance(
    columns: Floats,
    q: Floats,
    equalities: Floats,
    b: Floats,
    theta: Floats,
    slack: Floats,
    weights: Floats,
    y: Floats,
    target: float,
) -> None:
    """Take a step towards the maximum, or if `target` > 0 towards theta_x s_x = target."""
    k, r = theta.size, y.size
    fitted = times(columns, theta)
    square, mean = np.zeros((k, k)), 0.0
    add_squares(square, columns, weights / fitted)
    for x in range(k):
        square[x, x] += slack[x] / theta[x]
        mean += theta[x] * slack[x] / k
    factorise(square)
    # The change of y keeps A theta: (A K^-1 A^T) dy = A K^-1 right.
    by_equality, schur = equalities.copy(), np.zeros((r, r))
    for c in range(r):
        solve(square, by_equality[c])
    for c in range(r):
        for d in range(r):
            for x in range(k):
                schur[c, d] += equalities[c, x] * by_equality[d, x]
    residual_q, residual_c = q - weights * fitted, max(target, 0.0) - theta * slack
    for corrector in range(2):
        along = residual_c / theta + back(columns, residual_q / fitted)
        solve(square, along)
        mu = solve_few(schur, times(equalities, along))
        slack_along = np.zeros(k)
        for c in range(r):
            along -= mu[c] * by_equality[c]
            slack_along += mu[c] * equalities[c]
        fitted_along = times(columns, along)
        weights_along = (residual_q - weights * fitted_along) / fitted
        slack_along -= back(columns, weights_along)
        primal = longest(theta, along)
        dual = min(longest(slack, slack_along), longest(weights, weights_along))
        if corrector or target > 0:
            break
        # Mehrotra's rule: mu falls by the cube of the share that the predictor would leave.
        left = 0.0
        for x in range(k):
            left += (theta[x] + primal * along[x]) * (slack[x] + dual * slack_along[x]) / k
        centring = min(max(left / mean, 0.0), 1.0) ** 3
        residual_c += centring * mean - along * slack_along
        residual_q -= weights_along * fitted_along
    theta += primal * along
    slack += dual * slack_along
    weights += dual * weights_along
    y += dual * mu
    keep_equalities(equalities, b, theta)


@njit(error_model="numpy")
def bounds(
    columns: Floats, q: Floats, b: Floats, theta: Floats, weights: Floats, y: Floats
) -> tuple[float, float]:
    """Return the fit that theta attains, and one that no distribution exceeds."""
    fitted, total = times(columns, theta), 0.0
    for c in range(b.size):
        total += b[c] * y[c]
    attained, highest = 0.0, np.log(total)
    for z in range(q.size):
        attained += q[z] * np.log(fitted[z])
        highest += q[z] * np.log(q[z] / weights[z])
    return attained, highest


@njit(error_model="numpy")
def maximum(
    columns: Floats, q: Floats, equalities: Floats, theta: Floats, tolerance: float, centre: float
) -> tuple[Floats, Floats, Floats, float, float]:
    """Go from a positive theta to the maximum with the same A theta, all q above 0.

    The way ends when the bounds meet within `tolerance`, or, if `centre` > 0, at the point of the
    central path with theta_x s_x = centre. Return slacks, weights and y there, and the best bounds.
    `theta` is overwritten by that point, or by the best one on the way to the maximum.
    """
    b = times(equalities, theta)
    weights, y = q / times(columns, theta), np.zeros(b.size)
    gradient, slopes = back(columns, weights), np.zeros(theta.size)
    if b.size == 2:
        slopes = equalities[1] - b[1]
        y[1] = -least_slope(gradient, slopes)
    # The least bound that these weights prove, and a tenth more.
    y[0] = 1.1 * (gradient - y[1:].sum() * slopes).max() - (b[1:] * y[1:]).sum()
    slack = back(equalities, y) - gradient
    scale = 1 / (b * y).sum()
    slack, weights, y = slack * scale, weights * scale, y * scale
    point, best, least = theta.copy(), -np.inf, np.inf
    for _ in range(MAX_STEPS):
        if (point * slack).mean() <= centre:
            break
        advance(columns, q, equalities, b, point, slack, weights, y, 0.0)
        attained, highest = bounds(columns, q, b, point, weights, y)
        least = min(least, highest)
        if attained > best:
            best = attained
            theta[:] = point
        if not least - best > tolerance or not np.isfinite(highest):
            break
    if centre > 0:
        for _ in range(CENTRING_STEPS):
            advance(columns, q, equalities, b, point, slack, weights, y, centre)
        theta[:] = point
    return slack, weights, y, best, least


@njit(error_model="numpy")
def reach(
    counts: Ints,
    columns: Floats,
    whole: Floats,
    start: tuple[Floats, Floats, Floats, Floats],
    columns_of_v: Floats,
    equalities: Floats,
    start_of_v: tuple[Floats, Floats, Floats, Floats],
    observed: float,
    tolerance: float,
) -> NDArray[np.bool_]:
    """Mark the tallies, rows of counts, whose ratio is not proved to be below `observed`.

    The search for the largest fit of all distributions begins at `start` (theta, s, lam, y), that
    for the largest with the value v at `start_of_v`. It ends where the ratio is known within
    `tolerance`, if it is not decided before.
    """
    result = np.ones(len(counts), np.bool_)
    b, b_of_v = times(whole, start[0]), times(equalities, start_of_v[0])
    for i in range(len(counts)):
        seen = np.flatnonzero(counts[i])
        unseen = np.flatnonzero(counts[i] == 0)
        n = counts[i].sum()
        q = counts[i][seen] / n
        free, fixed = columns[seen], columns_of_v[seen]
        # Reports that were not seen leave the sums M lam, and the slacks grow by their part.
        theta, slack, weights, y = start[0].copy(), start[1].copy(), start[2][seen], start[3].copy()
        slack += back(columns[unseen], start[2][unseen])
        theta_v, slack_v = start_of_v[0].copy(), start_of_v[1].copy()
        weights_v, y_v = start_of_v[2][seen], start_of_v[3].copy()
        slack_v += back(columns_of_v[unseen], start_of_v[2][unseen])
        low, high = bounds(free, q, b, theta, weights, y)
        low_v, high_v = bounds(fixed, q, b_of_v, theta_v, weights_v, y_v)
        for _ in range(2 * MAX_STEPS):
            if 2 * n * (low - high_v) >= observed:
                break
            if 2 * n * (high - low_v) < observed:
                result[i] = False
                break
            if 2 * n * (high - low + high_v - low_v) <= tolerance:
                break
            # The wider of both bounds is improved.
            if high - low >= high_v - low_v:
                advance(free, q, whole, b, theta, slack, weights, y, 0.0)
                low, high = bounds(free, q, b, theta, weights, y)
            else:
                advance(fixed, q, equalities, b_of_v, theta_v, slack_v, weights_v, y_v, 0.0)
                low_v, high_v = bounds(fixed, q, b_of_v, theta_v, weights_v, y_v)
    return result
