"""The end of a region of likely distributions by sequential quadratic programming on the few secrets that have mass.

At theta, with g and J the slope and minus the curvature of f, a distribution y has about

    f(y) ~ f - 3/2 + 2 g . y - 1/2 y J y

(theta J theta = g . theta = 1). The largest w . y with that at least the floor has on its support J
y = 2 g + t w - m, t from the floor and m from sum y = 1: three right-hand sides of one Cholesky
factor. Which secrets have mass is found by exchanging all at once that are wrong. Mostly three such
steps reach the end from the maximum. Nothing here is relied on: each point is judged by what it
attains and by the bound that its weights prove.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf

from ibukit._ground.arguments import Floats
from ibukit.channels.dense import lower_gram
from ibukit.intervals.tilted_likelihood import Likelihood, Tilted

Mask = NDArray[np.bool_]

MAX_QUADRATICS, MAX_EXCHANGES, PATIENCE = 25, 15, 3
# secrets that may enter at a time: few are wrong about the next step, and each makes the system
# larger
MAX_ENTERING, NEXT_TO_ENTER = 20, 3
# a slack that is less below 0 is rounding
NEXT_TO_NOTHING = 1e-12


def steps(likelihood: Likelihood, w: Floats, floor: float) -> Iterator[Tilted]:
    """Points on the way to the largest w . theta over {f >= floor}, of weights from 0 to 1; ends where one fails."""
    if likelihood.rows is None:
        return
    point = likelihood.best
    entering = _next(w, point)
    for _ in range(MAX_QUADRATICS):
        on = point.theta > 0
        some = np.flatnonzero(on | entering)
        curvature = lower_gram(likelihood.rows[some], likelihood.q / point.p**2)
        best = _on_some(curvature, point.ratios[some], w[some], on[some], point.fit - floor)
        if best is None:
            return
        theta = np.zeros(len(w))
        theta[some] = np.maximum(best.y, 0)
        theta /= theta.sum()
        point = likelihood.at(theta, w, best.t)
        if not math.isfinite(point.fit):
            return
        yield point
        slack = 1 + best.t * (point.answer - w) - point.ratios
        entering = np.zeros(len(w), dtype=bool)
        entering[np.argsort(slack, kind="stable")[:MAX_ENTERING]] = True
        entering &= slack < 0
        if best.t == 0:
            entering |= _next(w, point)


def _next(w: Floats, point: Tilted) -> Mask:
    """Those that a growing tilt makes enter first."""
    answer = float(w @ point.theta)
    more = np.flatnonzero(w > answer)
    entering = np.zeros(len(w), dtype=bool)
    tilts = np.maximum(1 - point.ratios[more], 0) / (w[more] - answer)
    entering[more[np.argsort(tilts, kind="stable")[:NEXT_TO_ENTER]]] = True
    return entering


class _Quadratic(NamedTuple):
    y: Floats
    t: float


def _on_some(lower: Floats, g: Floats, w: Floats, on: Mask, room: float) -> _Quadratic | None:
    """The largest w . y of the quadratic model on some secrets, `room` below its value here; None where that fails."""
    fewest, patience = len(g) + 1, PATIENCE
    full = np.tril(lower) + np.tril(lower, -1).T
    for _ in range(MAX_EXCHANGES):
        inside = np.flatnonzero(on)
        factor, failed = dpotrf(lower[np.ix_(inside, inside)], lower=1)
        if failed or not len(inside):
            return None
        here_g, here_w = g[inside], w[inside]
        right = np.stack([2 * here_g, here_w, np.ones(len(inside))], axis=1)
        half = solve_triangular(factor, right, lower=True, check_finite=False)
        of_g, of_w, of_one = solve_triangular(
            factor, half, lower=True, trans="T", check_finite=False
        ).T
        # y = middle + t direction with sums 1 and 0
        m, m_slope = (of_g.sum() - 1) / of_one.sum(), of_w.sum() / of_one.sum()
        middle, direction = of_g - m * of_one, of_w - m_slope * of_one
        left = room - 1.5 + float(2 * here_g @ middle - (middle @ (2 * here_g) - m) / 2)
        curvature = float(direction @ here_w)
        t = math.sqrt(2 * left / curvature) if left > 0 and curvature > 0 else 0.0
        y = np.zeros(len(g))
        y[inside] = middle + t * direction
        slack = m + t * m_slope - (2 * g - full @ y + t * w)
        wrong = np.where(on, y < 0, slack < -NEXT_TO_NOTHING)
        most = here_w.max()
        if left >= 0 and here_w.min() == 1:
            wrong &= w == 1  # the largest answer there is, with room to spare: no others are wanted
        number = int(wrong.sum())
        if number == 0:
            others = np.flatnonzero(~on & (w > most))
            if t > 0 or left <= 0 or not len(others):
                return _Quadratic(y, t)
            # all that have mass answer alike, and there is room: one that answers more comes in
            on = on.copy()
            on[others[np.argmin(slack[others] / (w[others] - most))]] = True
            continue
        patience = PATIENCE if number < fewest else patience - 1
        fewest = min(number, fewest)
        # one at a time, the last of them, cannot go round in a circle
        on = on ^ (wrong if patience >= 0 else np.arange(len(g)) == np.flatnonzero(wrong)[-1])
    return None
