"""The loop of the interior point on a line: every pass over the positions is one short recursion.

Notation as in `interior_point`: theta, the fit nu = theta K, the weights lam, the slacks s = 1 - K
lam, and lam nu = q, theta s = mu. Only positions where something was seen take part; between
neighbours at distance d the kernel K falls by the factor a = e^(-eps d), `ratio`, and `loss` = 1 -
a^2 stands beside it because it cannot be computed from a where a is nearly 1. The last of each is 0
and 1: beyond the last position there is nothing.

K^-1 is tridiagonal, so with y = K d_theta and v = -d_s a Newton step is the solution of the 2 x 2
block system

    lam / nu  y  +  K^-1 v      = f = r_q / nu
    K^-1 y       -  theta / s v = h = r_c / s

which is eliminated from the first position to the last (`factor`, `solve`). K^-1 has entries of the
size of 1 / loss; multiplied through by loss, all that `factor` adds up is positive and bounded, for
a from 0 to nearly 1. To eliminate d_theta alone would leave a band of five diagonals, whose pivots
cancel long before the goal.

Positions may have costs c, 1 unless said otherwise: then the simplex is {theta >= 0 : c . theta =
1}, s = c - K lam, and g = K (q / nu) / c is at most 1 at the solution. SHARE is 1 / c.

Twins of `interior_point`, because each pass is a recursion from position to position, which only a
compiled loop can do. `start` is its `em_start` and first point, `advance` its predictor and
corrector, `farthest` and `step_length` its lengths, `climb` one of its tries, and `cross_over`
keeps to its models' protocol. What differs: a step goes 0.9 to 0.999 of the way, by what the
predictor left unfinished and not by mu, and a try goes on BEYOND its goal.

No fastmath: with fused multiply-adds a session that compiles gets other last digits than one that
reads the cache, or than one that runs these loops as plain Python, as `line` does with the first
small problems. No operations on whole arrays: each takes long to compile.
"""

import math

import numpy as np
from numba import njit

from ibukit._ground.arguments import Floats, Ints

# The rows of the work array, each of one number a position.
Q, RATIO, LOSS, COST, SHARE, THETA, LAM, S, NU, G = range(10)
W, U, TAU, PIVOT, Y, V, D_THETA, SECOND_Q, SECOND_C, BEST = range(10, 20)
ROWS = 20

# No theta, lam or s becomes smaller than this.
MIN_LINE_COORDINATE = 1e-100
# theta / s where s is to vanish.
RATIO_WHERE_FREE = 1e60
MAX_NEWTON = 12
# Steps beyond the goal, for exact zeros.
BEYOND = 3


@njit(cache=True, error_model="numpy")
def lay_out(seen: Ints, log_decay: float, ratio: Floats, loss: Floats) -> None:
    """Fill a = e^(-eps d) and 1 - a^2 between each position seen and the next."""
    last = seen.size - 1
    distance, fall, lost = 0, 1.0, 0.0
    for i in range(last):
        if seen[i + 1] - seen[i] != distance:  # mostly it is the same as before
            distance = seen[i + 1] - seen[i]
            fall = math.exp(distance * log_decay)
            lost = -math.expm1(2.0 * distance * log_decay)
        ratio[i], loss[i] = fall, lost
    ratio[last], loss[last] = 0.0, 1.0


@njit(cache=True, error_model="numpy")
def fit(work: Floats, theta: Floats) -> float:
    """Fill nu = theta K and g = K (q / nu) / c; return max g, infinite if theta misses a report."""
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


@njit(cache=True, error_model="numpy")
def factor(work: Floats, theta: Floats, s: Floats, lam: Floats) -> None:
    """Eliminate one position after the other, which leaves the block [[w, t], [t, -u]] of the next.

    t = tau + a^2 / loss.

    Nothing is subtracted. tau begins at 1 and stays above, so of w and u at most the share a^2 is
    passed on.
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


@njit(cache=True, error_model="numpy")
def solve(work: Floats) -> None:
    """Replace the right-hand sides (f, h), which stand in (y, v), by the solution."""
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


@njit(cache=True, error_model="numpy")
def unsweep(ratio: Floats, loss: Floats, y: Floats, out: Floats) -> None:
    """The inverse of a sweep: K^-1 y into `out`."""
    from_left = 0.0
    last = y.size - 1
    for i in range(last):
        slope = ratio[i] / loss[i]
        out[i] = y[i] + from_left + slope * (ratio[i] * y[i] - y[i + 1])
        from_left = slope * (ratio[i] * y[i + 1] - y[i])
    out[last] = y[last] + from_left


@njit(cache=True, error_model="numpy")
def direction(work: Floats, target: float) -> None:
    """Newton direction y, v, d_theta to lam nu = q - second_q and theta s = target - second_c."""
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
        # differences of y have lost the digits of a small change: the linearised theta s = target
        # keeps them
        exact = (target - second_c[i] + theta[i] * v[i]) / s[i] - theta[i]
        d_theta[i] = exact if s[i] > theta[i] else d_theta[i]


@njit(cache=True, error_model="numpy")
def farthest(work: Floats) -> tuple[float, float]:
    """Largest -change / value of theta, and of lam and s: the inverse of the longest step."""
    q, theta, lam, s, nu = work[Q], work[THETA], work[LAM], work[S], work[NU]
    second_q, y, v, d_theta = work[SECOND_Q], work[Y], work[V], work[D_THETA]
    primal, dual = 0.0, 0.0
    for i in range(q.size):
        d_lam = (q[i] - second_q[i] - lam[i] * y[i]) / nu[i] - lam[i]
        # a division only where there is a new maximum
        if -d_theta[i] > primal * theta[i]:
            primal = -d_theta[i] / theta[i]
        if v[i] > dual * s[i]:
            dual = v[i] / s[i]
        if -d_lam > dual * lam[i]:
            dual = -d_lam / lam[i]
    return primal, dual


@njit(cache=True, error_model="numpy")
def step_length(fastest: float, share: float) -> float:
    """All of the step, or `share` of the way to the boundary."""
    return 1.0 if fastest <= share else share / fastest


@njit(cache=True, error_model="numpy")
def cost_of(work: Floats, theta: Floats) -> float:
    """C . theta."""
    cost, total = work[COST], 0.0
    for i in range(theta.size):
        total += cost[i] * theta[i]
    return total


@njit(cache=True, error_model="numpy")
def keep(work: Floats, theta: Floats, largest: float, best: float) -> float:
    """Put theta, on the simplex, into BEST if its excess is below `best`; return the smaller."""
    total = cost_of(work, theta)
    # on the simplex g is larger by as much as theta is smaller
    excess = largest * total - 1.0
    if not excess < best:
        return best
    for i in range(theta.size):
        work[BEST, i] = theta[i] / total
    return excess


@njit(cache=True, error_model="numpy")
def start(work: Floats, em_steps: int, uniform_share: float, goal: float) -> float:
    """Start at the uniform distribution after a few EM steps; return the smallest excess."""
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


@njit(cache=True, error_model="numpy")
def advance(work: Floats, careful: bool) -> float:
    """One predictor-corrector step; the largest g after it."""
    theta, lam, s, d_theta, y, v = work[THETA], work[LAM], work[S], work[D_THETA], work[Y], work[V]
    q, nu, second_q, second_c = work[Q], work[NU], work[SECOND_Q], work[SECOND_C]
    k = q.size
    factor(work, theta, s, lam)
    for i in range(k):
        second_q[i] = second_c[i] = 0.0
    direction(work, 0.0)
    primal, dual = farthest(work)
    primal, dual = step_length(primal, 1.0), step_length(dual, 1.0)
    now, then = 0.0, 0.0
    for i in range(k):
        now += theta[i] * s[i]
        then += (theta[i] + primal * d_theta[i]) * (s[i] - dual * v[i])
        second_q[i] = ((q[i] - lam[i] * y[i]) / nu[i] - lam[i]) * y[i]
        second_c[i] = -d_theta[i] * v[i]
    unfinished = then / now
    # towards the centre by as much as the predictor fell short of the solution, and not too near
    # the boundary then
    direction(work, unfinished * unfinished * unfinished * now / k)
    primal, dual = farthest(work)
    share = 0.9 if careful else min(0.999, max(0.9, 1.0 - unfinished * unfinished))
    primal, dual = step_length(primal, share), step_length(dual, share)
    for i in range(k):
        d_lam = (q[i] - second_q[i] - lam[i] * y[i]) / nu[i] - lam[i]
        theta[i] = max(theta[i] + primal * d_theta[i], MIN_LINE_COORDINATE)
        lam[i] = max(lam[i] + dual * d_lam, MIN_LINE_COORDINATE)
        s[i] = max(s[i] - dual * v[i], MIN_LINE_COORDINATE)
    return fit(work, theta)


@njit(cache=True, error_model="numpy")
def set_support(work: Floats, point: Floats) -> bool:
    """Add the peaks of g above 1 to the support; return True if g is near 1 there.

    Between neighbours of the support g has one peak at most that a new point of it could stand on.
    """
    g = work[G]
    wrong, above = 0.0, 0.0
    for i in range(g.size):
        if point[i] > 0.0:
            wrong = max(wrong, abs(g[i] - 1.0))
        else:
            above = max(above, g[i] - 1.0)
    if above > wrong:
        for i in range(g.size):
            left = g[i - 1] if i > 0 else 0.0
            right = g[i + 1] if i + 1 < g.size else 0.0
            if point[i] == 0.0 and g[i] > 1.0 and g[i] >= left and g[i] > right:
                point[i] = MIN_LINE_COORDINATE
    return wrong < 0.5


@njit(cache=True, error_model="numpy")
def newton(work: Floats, point: Floats) -> None:
    """Newton step towards g = 1 on the support, in place; theta / s is infinite there, else 0."""
    q, nu, g, y, v, change = work[Q], work[NU], work[G], work[Y], work[V], work[D_THETA]
    lam, s = work[D_THETA], work[SECOND_C]  # lam is used up before the change is known
    for i in range(q.size):
        lam[i] = q[i] / nu[i]
        s[i] = point[i] / RATIO_WHERE_FREE if point[i] > 0.0 else 1.0
        y[i] = 0.0
        v[i] = RATIO_WHERE_FREE * work[COST, i] * (g[i] - 1.0) if point[i] > 0.0 else 0.0
    factor(work, point, s, lam)
    solve(work)
    unsweep(work[RATIO], work[LOSS], y, change)
    for i in range(q.size):
        if point[i] > 0.0:
            point[i] = max(point[i] + change[i], 0.0)


@njit(cache=True, error_model="numpy")
def cross_over(work: Floats, allowed: float) -> float:
    """Guess the support (theta large, s small) and solve g = 1 on it by Newton's method.

    The excess, with the point in BEST, if it comes to at most `allowed`; infinite, and BEST as it
    was, if not.
    """
    theta, s, point = work[THETA], work[S], work[SECOND_Q]
    # where eps is small, so is every s: each is measured by its largest
    largest_theta, largest_s = 0.0, 0.0
    for i in range(theta.size):
        largest_theta, largest_s = max(largest_theta, theta[i]), max(largest_s, s[i])
    scale = largest_theta / largest_s
    for i in range(theta.size):
        point[i] = theta[i] if theta[i] > scale * s[i] else 0.0
    found = np.inf
    for _ in range(MAX_NEWTON):
        largest = fit(work, point)
        if not largest < np.inf:
            break
        before = found
        if largest * cost_of(work, point) - 1.0 <= allowed:
            found = keep(work, point, largest, found)
        if (found < np.inf and found == before) or not set_support(work, point):
            break
        newton(work, point)
    fit(work, theta)  # as it was
    return found


@njit(cache=True, error_model="numpy")
def climb(
    work: Floats,
    goal: float,
    em_steps: int,
    uniform_share: float,
    careful: bool,
    polish_below: float,
    most: int,
    patience: int,
) -> tuple[float, int]:
    """Follow the path; return the smallest excess, whose point is in BEST, and the steps."""
    best = start(work, em_steps, uniform_share, goal)
    if best <= goal:
        return best, 0
    since, beyond = 0, 0
    for step in range(1, most + 1):
        largest = advance(work, careful)
        before = best
        best = keep(work, work[THETA], largest, best)
        if largest * cost_of(work, work[THETA]) - 1.0 <= max(goal, polish_below):
            exact = cross_over(work, max(goal, best))
            if exact <= goal:
                return exact, step
            best = min(best, exact)
        since = 0 if best < before else since + 1
        # at the goal, but nearer to the solution its zeros are easier to tell
        beyond += best <= goal
        if beyond > BEYOND or since > patience:
            return best, step
    return best, most
