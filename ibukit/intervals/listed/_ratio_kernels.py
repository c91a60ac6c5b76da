r"""Loops over drawn tallies: which have a likelihood ratio as large as the one observed.

Maximise sum_z q_z log nu_z, nu = theta M, over theta >= 0 with A theta = b. As in
`solvers.interior_point`, weights lam of the reports and slacks s = A^T y - M lam are kept
positive, and a step of Newton's method goes towards

    lam_z nu_z = q_z,    theta_x s_x = mu,    A theta = b.

Every theta on the way attains a fit. From log nu <= log c + nu / c - 1 with c = q / lam, and after
the best scaling of lam and y, no distribution has more than

    sum_z q_z log(q_z / lam_z) + log(b . y).

So the likelihood ratio is enclosed at every step, and mostly a few steps are enough to compare it
with the observed one.
"""

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit

# Share of the way to the boundary that a step takes.
STEP_TO_BOUNDARY = 0.99
# Largest number of steps for one tally; mostly fewer than 15 are needed. A ratio that is not
# decided by then counts as large.
MAX_STEPS = 100
# Steps that aim at the same point of the central path, at the end of the way to it.
CENTRING_STEPS = 3
# Sums along the reports may be reordered, so that they fill the vector registers.
REORDER = {"contract", "reassoc", "nsz"}


@njit(error_model="numpy", fastmath=REORDER)
def add_squares(square: Floats, rows: Floats, curvatures: Floats) -> None:
    """Add M diag(curvatures) M^T to the upper triangle, for the rows of M, shape (k, s).

    Reports are many and secrets few, so sums go along the reports: four entries at a time, since
    the weighted row is read once for all of them.
    """
    k, s = rows.shape
    weighted = np.empty(s)
    for i in range(k):
        row = rows[i]
        for z in range(s):
            weighted[z] = curvatures[z] * row[z]
        for x in range(i, k - 3, 4):
            r0, r1, r2, r3 = rows[x], rows[x + 1], rows[x + 2], rows[x + 3]
            sum0 = sum1 = sum2 = sum3 = 0.0
            for z in range(s):
                sum0 += weighted[z] * r0[z]
                sum1 += weighted[z] * r1[z]
                sum2 += weighted[z] * r2[z]
                sum3 += weighted[z] * r3[z]
            square[i, x] += sum0
            square[i, x + 1] += sum1
            square[i, x + 2] += sum2
            square[i, x + 3] += sum3
        for x in range(k - (k - i) % 4, k):
            other, total = rows[x], 0.0
            for z in range(s):
                total += weighted[z] * other[z]
            square[i, x] += total


@njit(error_model="numpy")
def factorise(square: Floats) -> None:
    """Overwrite the upper triangle of a positive definite matrix by Cholesky's factor.

    Each row is computed from the rows above it, four at a time as in `add_squares`.
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


@njit(error_model="numpy", fastmath=REORDER)
def times(theta: Floats, rows: Floats) -> Floats:
    """Return theta M for the rows of M, shape (k, s), four at a time as in `add_squares`."""
    k, s = rows.shape
    result = np.zeros(s)
    for x in range(0, k - 3, 4):
        r0, r1, r2, r3 = rows[x], rows[x + 1], rows[x + 2], rows[x + 3]
        for z in range(s):
            result[z] += (
                theta[x] * r0[z]
                + theta[x + 1] * r1[z]
                + theta[x + 2] * r2[z]
                + theta[x + 3] * r3[z]
            )
    for x in range(k - k % 4, k):
        row, mass = rows[x], theta[x]
        for z in range(s):
            result[z] += mass * row[z]
    return result


@njit(error_model="numpy", fastmath=REORDER)
def back(rows: Floats, weights: Floats) -> Floats:
    """Return M times weights of the reports."""
    result = np.empty(len(rows))
    for x in range(len(rows)):
        row, total = rows[x], 0.0
        for z in range(weights.size):
            total += weights[z] * row[z]
        result[x] = total
    return result


@njit(error_model="numpy")
def taken(rows: Floats, reports: Ints) -> Floats:
    """Return the entries of some reports."""
    result = np.empty((len(rows), reports.size))
    for x in range(len(rows)):
        for z in range(reports.size):
            result[x, z] = rows[x, reports[z]]
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
    change = solve_few(square, b - back(equalities, theta))
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
    rows: Floats,
    q: Floats,
    equalities: Floats,
    b: Floats,
    theta: Floats,
    slack: Floats,
    weights: Floats,
    y: Floats,
    fitted: Floats,
    target: float,
) -> Floats:
    """Take a step towards the maximum, or if `target` > 0 towards theta_x s_x = target.

    `fitted` is theta M; the one of the next point is returned.
    """
    k, r = theta.size, y.size
    square, mean = np.zeros((k, k)), 0.0
    add_squares(square, rows, weights / fitted)
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
        along = residual_c / theta + back(rows, residual_q / fitted)
        solve(square, along)
        mu = solve_few(schur, back(equalities, along))
        slack_along = np.zeros(k)
        for c in range(r):
            along -= mu[c] * by_equality[c]
            slack_along += mu[c] * equalities[c]
        fitted_along = times(along, rows)
        weights_along = (residual_q - weights * fitted_along) / fitted
        slack_along -= back(rows, weights_along)
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
    return times(theta, rows)


@njit(error_model="numpy")
def bounds(q: Floats, b: Floats, fitted: Floats, weights: Floats, y: Floats) -> tuple[float, float]:
    """Return the fit of theta, given theta M, and a fit that no distribution exceeds."""
    attained, highest = 0.0, np.log((b * y).sum())
    for z in range(q.size):
        attained += q[z] * np.log(fitted[z])
        highest += q[z] * np.log(q[z] / weights[z])
    return attained, highest


@njit(error_model="numpy")
def maximum(
    rows: Floats, q: Floats, equalities: Floats, theta: Floats, tolerance: float, centre: float
) -> tuple[Floats, Floats, Floats, float, float]:
    """Go from a positive theta to the maximum with the same A theta, all q above 0.

    The way ends when the bounds meet within `tolerance`, or, if `centre` > 0, at the point of the
    central path with theta_x s_x = centre. Return slacks, weights and y there, and the best bounds.
    `theta` is overwritten by that point, or by the best one on the way to the maximum.
    """
    b, fitted = back(equalities, theta), times(theta, rows)
    weights, y = q / fitted, np.zeros(b.size)
    gradient, slopes = back(rows, weights), np.zeros(theta.size)
    if b.size == 2:
        slopes = equalities[1] - b[1]
        y[1] = -least_slope(gradient, slopes)
    # A tenth more than the least bound that these weights prove.
    y[0] = 1.1 * (gradient - y[1:].sum() * slopes).max() - (b[1:] * y[1:]).sum()
    slack = times(y, equalities) - gradient
    scale = 1 / (b * y).sum()
    slack, weights, y = slack * scale, weights * scale, y * scale
    point, best, least = theta.copy(), -np.inf, np.inf
    for _ in range(MAX_STEPS):
        if (point * slack).mean() <= centre:
            break
        fitted = advance(rows, q, equalities, b, point, slack, weights, y, fitted, 0.0)
        attained, highest = bounds(q, b, fitted, weights, y)
        least = min(least, highest)
        if attained > best:
            best = attained
            theta[:] = point
        if not least - best > tolerance or not np.isfinite(highest):
            break
    if centre > 0:
        for _ in range(CENTRING_STEPS):
            fitted = advance(rows, q, equalities, b, point, slack, weights, y, fitted, centre)
        theta[:] = point
    return slack, weights, y, best, least


@njit(error_model="numpy")
def reach(
    counts: Ints,
    rows: Floats,
    whole: Floats,
    start: tuple[Floats, Floats, Floats, Floats],
    rows_of_v: Floats,
    equalities: Floats,
    start_of_v: tuple[Floats, Floats, Floats, Floats],
    observed: float,
    tolerance: float,
) -> NDArray[np.bool_]:
    """Mark the tallies, rows of counts, whose ratio is not proved to be below `observed`.

    The search for the largest fit of all distributions begins at `start` (theta, s, lam, y), and
    the search for the largest fit with the value v at `start_of_v`. They end when the ratio is
    known within `tolerance`, if the comparison is not decided before.
    """
    result = np.ones(len(counts), np.bool_)
    b, b_of_v = back(whole, start[0]), back(equalities, start_of_v[0])
    fitted_at_start, fitted_v_at_start = times(start[0], rows), times(start_of_v[0], rows_of_v)
    # For every tally all bounds of the starts are sums of these logarithms.
    logs, logs_v = np.log(fitted_at_start), np.log(fitted_v_at_start)
    of_weights, of_weights_v = np.log(start[2]), np.log(start_of_v[2])
    total, total_v = np.log((b * start[3]).sum()), np.log((b_of_v * start_of_v[3]).sum())
    for i in range(len(counts)):
        seen, n = np.flatnonzero(counts[i]), counts[i].sum()
        q = counts[i][seen] / n
        low, high, low_v, high_v = 0.0, total, 0.0, total_v
        for z in range(q.size):
            share, report = q[z], seen[z]
            log = np.log(share)
            low += share * logs[report]
            high += share * (log - of_weights[report])
            low_v += share * logs_v[report]
            high_v += share * (log - of_weights_v[report])
        free, fixed = taken(rows, seen), taken(rows_of_v, seen)
        # Reports that were not seen drop out of the sums M lam, and the slacks grow by their terms.
        theta, slack, weights, y = start[0].copy(), start[1].copy(), start[2][seen], start[3].copy()
        slack += back(rows, np.where(counts[i] == 0, start[2], 0.0))
        theta_v, slack_v = start_of_v[0].copy(), start_of_v[1].copy()
        weights_v, y_v = start_of_v[2][seen], start_of_v[3].copy()
        slack_v += back(rows_of_v, np.where(counts[i] == 0, start_of_v[2], 0.0))
        fitted, fitted_v = fitted_at_start[seen], fitted_v_at_start[seen]
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
                fitted = advance(free, q, whole, b, theta, slack, weights, y, fitted, 0.0)
                low, high = bounds(q, b, fitted, weights, y)
            else:
                fitted_v = advance(
                    fixed, q, equalities, b_of_v, theta_v, slack_v, weights_v, y_v, fitted_v, 0.0
                )
                low_v, high_v = bounds(q, b_of_v, fitted_v, weights_v, y_v)
    return result
