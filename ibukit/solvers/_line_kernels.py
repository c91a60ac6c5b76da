"""The interior point on a line: every pass over the positions is one short recursion.

Notation as in `interior_point`: theta, the fit nu = theta K, the weights lam, the slacks s = 1 - K
lam, and lam nu = q, theta s = mu. Only positions with reports take part. Between neighbours at
distance d the kernel K falls by the factor a = e^(-eps d), `ratio`; `loss` = 1 - a^2 is kept beside
it because it cannot be computed from an a that is nearly 1. The last ratio is 0 and the last loss
is 1, because there is no position beyond.

K^-1 is tridiagonal, so with y = K d_theta and v = -d_s a Newton step is the solution of the 2 x 2
block system

    lam / nu  y  +  K^-1 v      = f = r_q / nu
    K^-1 y       -  theta / s v = h = r_c / s

which is eliminated from the first position to the last (`factor`, `solve`). K^-1 has entries of the
size of 1 / loss; but once the system is multiplied by loss, all that `factor` adds up is positive
and bounded, for a from 0 to nearly 1. To eliminate d_theta alone would leave a band of five
diagonals, whose pivots cancel long before the goal.

Positions may have costs c, 1 unless said otherwise: then the simplex is {theta >= 0 : c . theta =
1}, s = c - K lam, and g = K (q / nu) / c is at most 1 at the solution. SHARE is 1 / c.

The functions are twins of those in `interior_point`, because each pass is a recursion from position
to position, which only a compiled loop can do. `start` corresponds to `em_start` and the first
iterate there, `advance` to the predictor and corrector, `fastest_decrease` and `step_length` to the
step lengths, and `climb` to one of the tries; `cross_over` keeps to the protocol of the models
there. Two things differ. A step goes 0.9 to 0.999 of the way to the boundary, depending on what the
predictor left unfinished and not on mu; and a try goes on for STEPS_BEYOND_GOAL steps beyond the
goal.

There is no fastmath: with fused multiply-adds a session that compiles gets other last digits than
one that reads the cache, or than one that runs these loops as plain Python, as `line` does with the
first small problems. There are no operations on whole arrays, because each takes long to compile.
"""

import math

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit

# The rows of the work array, each with a number for each position. The first five are input, BEST
# is the output, W to PIVOT are the factors of `factor`, and SECOND_* the second-order terms.
Q, RATIO, LOSS, COST, SHARE, THETA, LAM, S, NU, G = range(10)
W, U, TAU, PIVOT, Y, V, D_THETA, SECOND_Q, SECOND_C, BEST = range(10, 20)
ROWS = 20

# No theta, lam or s becomes smaller than this.
MIN_LINE_COORDINATE = 1e-100
# The ratio theta / s of a position in the support, where the slack s is to vanish.
RATIO_ON_SUPPORT = 1e60
MAX_NEWTON_STEPS = 12
# Number of steps that go on beyond the goal, because the zeros are easier to tell there.
STEPS_BEYOND_GOAL = 3


@njit(error_model="numpy")
def lay_out(positions: Ints, log_decay: float, ratio: Floats, loss: Floats) -> None:
    """Fill a = e^(-eps d) and 1 - a^2 between each position and the next."""
    last = positions.size - 1
    distance, fall, lost = 0, 1.0, 0.0
    for i in range(last):
        # Mostly the distance is the same as before.
        if positions[i + 1] - positions[i] != distance:
            distance = positions[i + 1] - positions[i]
            fall = math.exp(distance * log_decay)
            lost = -math.expm1(2.0 * distance * log_decay)
        ratio[i], loss[i] = fall, lost
    ratio[last], loss[last] = 0.0, 1.0


@njit(error_model="numpy")
def fit(work: Floats, theta: Floats) -> float:
    """Fill nu = theta K and g = K (q / nu) / c; return the largest g, inf if some nu is 0.

    Each product with K is a sweep from the left and one from the right. The second sweep of nu and
    the first of g run in the same direction and share a loop.
    """
    q, ratio, share, nu, g = work[Q], work[RATIO], work[SHARE], work[NU], work[G]
    k = q.size
    right = 0.0
    for i in range(k):
        flow = theta[i] + right
        nu[i] = flow
        right = ratio[i] * flow
    flow = 0.0
    weights = 0.0
    for i in range(k - 1, -1, -1):
        left = ratio[i] * flow
        flow = theta[i] + left
        nu[i] += left
        if not nu[i] > 0.0:
            return np.inf
        g[i] = ratio[i] * weights
        weights = q[i] / nu[i] + g[i]
    right = 0.0
    largest = 0.0
    for i in range(k):
        weights = q[i] / nu[i] + right
        right = ratio[i] * weights
        g[i] = (g[i] + weights) * share[i]
        largest = max(largest, g[i])
    return largest


@njit(error_model="numpy")
def factor(work: Floats, theta: Floats, s: Floats, lam: Floats) -> None:
    """Eliminate position after position from the block system of the module docstring.

    Each block that is left has the form [[w, t], [t, -u]] with t = tau + a^2 / loss; w and u grow
    by what earlier positions pass on. The pivot is the reciprocal of loss^2 (w u + t^2). Nothing is
    subtracted. tau begins at 1 and stays above, so at most the share a^2 of w and u is passed on.
    """
    ratio, loss, nu = work[RATIO], work[LOSS], work[NU]
    w, u, tau, pivot = work[W], work[U], work[TAU], work[PIVOT]
    passed_w, passed_u, passed_tau = 0.0, 0.0, 1.0
    for i in range(ratio.size):
        here_w = lam[i] / nu[i] + passed_w
        here_u = theta[i] / s[i] + passed_u
        square = ratio[i] * ratio[i]
        t = loss[i] * passed_tau + square
        both = loss[i] * here_w * here_u
        inverse = 1.0 / (loss[i] * both + t * t)
        w[i], u[i], tau[i], pivot[i] = here_w, here_u, passed_tau, inverse
        passed_w = square * here_w * inverse
        passed_u = square * here_u * inverse
        passed_tau = (both + t * passed_tau) * inverse


@njit(error_model="numpy")
def solve(work: Floats) -> None:
    """Replace the right-hand sides (f, h), in the rows Y and V, by the solution (y, v).

    Forward elimination with the blocks of `factor`, then back-substitution.
    """
    ratio, loss, w, u, tau, pivot = (
        work[RATIO],
        work[LOSS],
        work[W],
        work[U],
        work[TAU],
        work[PIVOT],
    )
    y, v = work[Y], work[V]
    k = ratio.size
    passed_f, passed_h = 0.0, 0.0
    for i in range(k):
        f = y[i] + passed_f
        h = v[i] + passed_h
        y[i], v[i] = f, h
        scale = ratio[i] * pivot[i]
        by_t = scale * (loss[i] * tau[i] + ratio[i] * ratio[i])
        passed_f = by_t * f - scale * loss[i] * w[i] * h
        passed_h = by_t * h + scale * loss[i] * u[i] * f
    next_y, next_v = 0.0, 0.0
    for i in range(k - 1, -1, -1):
        by_t = pivot[i] * (loss[i] * tau[i] + ratio[i] * ratio[i])
        by_u = pivot[i] * loss[i] * u[i]
        by_w = pivot[i] * loss[i] * w[i]
        here_y = by_t * loss[i] * v[i] + by_u * loss[i] * y[i]
        here_v = by_t * loss[i] * y[i] - by_w * loss[i] * v[i]
        here_y += by_t * ratio[i] * next_y + by_u * ratio[i] * next_v
        next_v = here_v + (by_t * ratio[i] * next_v - by_w * ratio[i] * next_y)
        next_y = here_y
        y[i], v[i] = next_y, next_v


@njit(error_model="numpy")
def unsweep(ratio: Floats, loss: Floats, y: Floats, out: Floats) -> None:
    """Write K^-1 y, the inverse of a sweep, into `out`: K^-1 is tridiagonal."""
    from_left = 0.0
    last = y.size - 1
    for i in range(last):
        slope = ratio[i] / loss[i]
        out[i] = y[i] + from_left + slope * (ratio[i] * y[i] - y[i + 1])
        from_left = slope * (ratio[i] * y[i + 1] - y[i])
    out[last] = y[last] + from_left


@njit(error_model="numpy")
def direction(work: Floats, target: float) -> None:
    """Compute the Newton direction y, v and d_theta.

    It leads towards lam nu = q - second_q and theta s = target - second_c.
    """
    q, theta, lam, s, nu = work[Q], work[THETA], work[LAM], work[S], work[NU]
    second_q, second_c, y, v, d_theta = (
        work[SECOND_Q],
        work[SECOND_C],
        work[Y],
        work[V],
        work[D_THETA],
    )
    for i in range(q.size):
        y[i] = (q[i] - second_q[i]) / nu[i] - lam[i]
        v[i] = (target - second_c[i]) / s[i] - theta[i]
    solve(work)
    unsweep(work[RATIO], work[LOSS], y, d_theta)
    for i in range(q.size):
        # K^-1 y subtracts neighbours, which loses the digits of a small change; the linearised
        # equation theta s = target keeps them.
        exact = (target - second_c[i] + theta[i] * v[i]) / s[i] - theta[i]
        d_theta[i] = exact if s[i] > theta[i] else d_theta[i]


@njit(error_model="numpy")
def fastest_decrease(work: Floats) -> tuple[float, float]:
    """The largest -change / value of theta, and of lam and s together."""
    q, theta, lam, s, nu = work[Q], work[THETA], work[LAM], work[S], work[NU]
    second_q, y, v, d_theta = work[SECOND_Q], work[Y], work[V], work[D_THETA]
    primal, dual = 0.0, 0.0
    for i in range(q.size):
        d_lam = (q[i] - second_q[i] - lam[i] * y[i]) / nu[i] - lam[i]
        # A division is needed only where it gives a new maximum.
        if -d_theta[i] > primal * theta[i]:
            primal = -d_theta[i] / theta[i]
        if v[i] > dual * s[i]:
            dual = v[i] / s[i]
        if -d_lam > dual * lam[i]:
            dual = -d_lam / lam[i]
    return primal, dual


@njit(error_model="numpy")
def step_length(fastest: float, share: float) -> float:
    """Length of a step: 1, or `share` of the way to the boundary."""
    return 1.0 if fastest <= share else share / fastest


@njit(error_model="numpy")
def cost_of(work: Floats, theta: Floats) -> float:
    """Cost c . theta."""
    cost, total = work[COST], 0.0
    for i in range(theta.size):
        total += cost[i] * theta[i]
    return total


@njit(error_model="numpy")
def keep(work: Floats, theta: Floats, largest: float, best: float) -> float:
    """Write theta, on the simplex, to BEST if its max g - 1 is below `best`; return the smaller.

    Theta / (c . theta) is on the simplex, and g there is larger by the factor c . theta.
    """
    total = cost_of(work, theta)
    excess = largest * total - 1.0
    if not excess < best:
        return best
    for i in range(theta.size):
        work[BEST, i] = theta[i] / total
    return excess


@njit(error_model="numpy")
def start(work: Floats, em_steps: int, uniform_share: float, goal: float) -> float:
    """Set theta, lam and s by a few EM steps, mixed with uniform; return the smallest excess."""
    q, theta, g = work[Q], work[THETA], work[G]
    k = q.size
    for i in range(k):
        theta[i] = 1.0 / k
    largest = fit(work, theta)
    best = keep(work, theta, largest, np.inf)
    for _ in range(em_steps):
        if best <= goal:
            return best
        for i in range(k):
            theta[i] *= g[i]
        largest = fit(work, theta)
        best = keep(work, theta, largest, best)
    if best <= goal:
        return best
    for i in range(k):
        theta[i] = (1.0 - uniform_share) * theta[i] + uniform_share / k
    largest = 1.1 * fit(work, theta)
    for i in range(k):
        work[LAM, i] = q[i] / work[NU, i] / largest
        work[S, i] = work[COST, i] * (1.0 - g[i] / largest)
    return best


@njit(error_model="numpy")
def advance(work: Floats, careful: bool) -> float:
    """Take one predictor-corrector step; return the largest g after it."""
    theta, lam, s, d_theta, y, v = work[THETA], work[LAM], work[S], work[D_THETA], work[Y], work[V]
    q, nu, second_q, second_c = work[Q], work[NU], work[SECOND_Q], work[SECOND_C]
    k = q.size
    factor(work, theta, s, lam)
    for i in range(k):
        second_q[i] = second_c[i] = 0.0
    direction(work, 0.0)
    primal, dual = fastest_decrease(work)
    primal, dual = step_length(primal, 1.0), step_length(dual, 1.0)
    now, then = 0.0, 0.0
    for i in range(k):
        now += theta[i] * s[i]
        then += (theta[i] + primal * d_theta[i]) * (s[i] - dual * v[i])
        second_q[i] = ((q[i] - lam[i] * y[i]) / nu[i] - lam[i]) * y[i]
        second_c[i] = -d_theta[i] * v[i]
    unfinished = then / now
    # The less the predictor reached, the more the corrector is centred and the farther it stays
    # from the boundary.
    direction(work, unfinished * unfinished * unfinished * now / k)
    primal, dual = fastest_decrease(work)
    share = 0.9 if careful else min(0.999, max(0.9, 1.0 - unfinished * unfinished))
    primal, dual = step_length(primal, share), step_length(dual, share)
    for i in range(k):
        d_lam = (q[i] - second_q[i] - lam[i] * y[i]) / nu[i] - lam[i]
        theta[i] = max(theta[i] + primal * d_theta[i], MIN_LINE_COORDINATE)
        lam[i] = max(lam[i] + dual * d_lam, MIN_LINE_COORDINATE)
        s[i] = max(s[i] - dual * v[i], MIN_LINE_COORDINATE)
    return fit(work, theta)


@njit(error_model="numpy")
def set_support(work: Floats, point: Floats) -> bool:
    """Add to the support the peaks of g above 1; return whether g is near 1 on the support.

    They are added only if they exceed 1 by more than g differs from 1 on the support. Between
    neighbours of the support g has at most one peak, so one position is enough.
    """
    g = work[G]
    error, above = 0.0, 0.0
    for i in range(g.size):
        if point[i] > 0.0:
            error = max(error, abs(g[i] - 1.0))
        else:
            above = max(above, g[i] - 1.0)
    if above > error:
        for i in range(g.size):
            left = g[i - 1] if i > 0 else 0.0
            right = g[i + 1] if i + 1 < g.size else 0.0
            if point[i] == 0.0 and g[i] > 1.0 and g[i] >= left and g[i] > right:
                point[i] = MIN_LINE_COORDINATE
    return error < 0.5


@njit(error_model="numpy")
def newton(work: Floats, point: Floats) -> None:
    """Take Newton's step towards g = 1 on the support, in place.

    It is the system of `factor` with theta / s huge on the support and 0 elsewhere.
    """
    q, nu, g, y, v, change = work[Q], work[NU], work[G], work[Y], work[V], work[D_THETA]
    # lam shares a row with the change, which is computed after lam has been used.
    lam, s = work[D_THETA], work[SECOND_C]
    for i in range(q.size):
        lam[i] = q[i] / nu[i]
        s[i] = point[i] / RATIO_ON_SUPPORT if point[i] > 0.0 else 1.0
        y[i] = 0.0
        v[i] = RATIO_ON_SUPPORT * work[COST, i] * (g[i] - 1.0) if point[i] > 0.0 else 0.0
    factor(work, point, s, lam)
    solve(work)
    unsweep(work[RATIO], work[LOSS], y, change)
    for i in range(q.size):
        if point[i] > 0.0:
            point[i] = max(point[i] + change[i], 0.0)


@njit(error_model="numpy")
def cross_over(work: Floats, allowed: float) -> float:
    """Guess the support, where theta is larger than s, and solve g = 1 on it by Newton's method.

    Returns the excess, with the point in BEST, if it is at most `allowed`; otherwise inf, and BEST
    is unchanged.
    """
    theta, s, point = work[THETA], work[S], work[SECOND_Q]
    # If eps is small, so is every s; theta and s are compared relative to their largest entries.
    largest_theta, largest_s = 0.0, 0.0
    for i in range(theta.size):
        largest_theta, largest_s = max(largest_theta, theta[i]), max(largest_s, s[i])
    scale = largest_theta / largest_s
    for i in range(theta.size):
        point[i] = theta[i] if theta[i] > scale * s[i] else 0.0
    reached = np.inf
    for _ in range(MAX_NEWTON_STEPS):
        largest = fit(work, point)
        if not largest < np.inf:
            break
        before = reached
        if largest * cost_of(work, point) - 1.0 <= allowed:
            reached = keep(work, point, largest, reached)
        if (reached < np.inf and reached == before) or not set_support(work, point):
            break
        newton(work, point)
    # Restore nu and g.
    fit(work, theta)
    return reached


@njit(error_model="numpy")
def climb(
    work: Floats,
    goal: float,
    em_steps: int,
    uniform_share: float,
    careful: bool,
    polish_below: float,
    max_iter: int,
    patience: int,
) -> tuple[float, int]:
    """Follow the path to the goal; return the smallest excess, its point in BEST, and the steps."""
    best = start(work, em_steps, uniform_share, goal)
    if best <= goal:
        return best, 0
    since, beyond = 0, 0
    for step in range(1, max_iter + 1):
        largest = advance(work, careful)
        before = best
        best = keep(work, work[THETA], largest, best)
        if largest * cost_of(work, work[THETA]) - 1.0 <= max(goal, polish_below):
            exact = cross_over(work, max(goal, best))
            if exact <= goal:
                return exact, step
            best = min(best, exact)
        since = 0 if best < before else since + 1
        # The path goes on beyond the goal: nearer to the solution its zeros are easier to tell.
        beyond += best <= goal
        if beyond > STEPS_BEYOND_GOAL or since > patience:
            return best, step
    return best, max_iter
