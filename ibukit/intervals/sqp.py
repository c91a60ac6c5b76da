"""Ends of a region of likely distributions by sequential quadratic programming, on few secrets.

At theta, with g and J the gradient and minus the Hessian of f, a distribution y has about

    f(y) ~ f - 3/2 + 2 g . y - 1/2 y J y

(because theta J theta = g . theta = 1). The y with the largest w . y for which this is at least the
floor has on its support J y = 2 g + t w - m, where t is the multiplier of the floor and m that of
sum y = 1. So there are three right-hand sides for one Cholesky factor. The support is found by an
active-set method that exchanges at once all secrets that violate the optimality conditions. Mostly
three such steps lead from the maximum to the end. None of this is relied on: each point is judged
by the value that it attains and by the bound that it proves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import dpotrf, dpotrs

from ibukit._ground.arguments import Floats
from ibukit.channels.dense import lower_gram
from ibukit.intervals.tilted_likelihood import Likelihood, Tilted

Mask = NDArray[np.bool_]

# Number of quadratic models that are solved for one end, and of exchanges of the support in one
# model. If they are not enough, `Profile` goes on along the tilts.
MAX_QUADRATICS, MAX_EXCHANGES = 25, 15
# Exchanges of many secrets in a row that may fail to lessen the number of violations. After them
# one secret is exchanged at a time, which cannot cycle.
PATIENCE = 3
# Secrets that may enter the support in one step: first chosen by the gradient and, if the floor
# leaves room, by the tilt at which they would enter. If few enter, few are wrong about the next
# step, and each one enlarges the system that is factorised.
MAX_ENTERING, MAX_ENTERING_BY_TILT = 20, 3
# A slack above minus this is rounding error.
SLACK_TOLERANCE = 1e-12


def steps(
    likelihood: Likelihood, w: Floats, floor: float, start: Tilted | None = None
) -> Iterator[Tilted]:
    """Yield points on the way to the largest w . theta over {f >= floor}, weights from 0 to 1.

    The way begins at `start`, by default at the maximum. The iteration ends where a step fails, and
    at once if the channel is not dense.
    """
    if likelihood.rows is None:
        return
    point = likelihood.best if start is None else start._replace(answer=float(w @ start.theta))
    entering = _next_to_enter(w, point)
    for _ in range(MAX_QUADRATICS):
        on = point.theta > 0
        # The model is solved on the secrets that have mass or may gain some.
        (some,) = (on | entering).nonzero()
        squares = point.p**2
        # Quotients by squares below the doubles are no model: `Profile` goes on along the tilts.
        if squares.min() < np.finfo(float).tiny:
            return
        curvature = lower_gram(likelihood.rows[some], likelihood.q / squares)
        best = _solve_model(curvature, point.ratios[some], w[some], on[some], point.fit - floor)
        if best is None:
            return
        theta = np.zeros(len(w))
        theta[some] = np.maximum(best.y, 0)
        theta /= theta.sum()
        point = likelihood.at(theta, w, best.t)
        if not math.isfinite(point.fit):
            return
        yield point
        # Optimality of the whole problem: g_x + t w_x <= 1 + t w . theta. A negative slack means
        # that the secret should gain mass.
        slack = 1 + best.t * (point.answer - w) - point.ratios
        entering = np.zeros(len(w), dtype=bool)
        entering[slack.argsort(kind="stable")[:MAX_ENTERING]] = True
        entering &= slack < 0
        if best.t == 0:
            entering |= _next_to_enter(w, point)


def _next_to_enter(w: Floats, point: Tilted) -> Mask:
    """Mark the secrets that enter the support first as the tilt t grows from here."""
    answer = float(w @ point.theta)
    (more,) = (w > answer).nonzero()
    entering = np.zeros(len(w), dtype=bool)
    tilts = np.maximum(1 - point.ratios[more], 0) / (w[more] - answer)
    entering[more[tilts.argsort(kind="stable")[:MAX_ENTERING_BY_TILT]]] = True
    return entering


class _Quadratic(NamedTuple):
    """Maximiser of a quadratic model, and its multiplier of the floor."""

    y: Floats
    t: float


def _solve_model(lower: Floats, g: Floats, w: Floats, on: Mask, room: float) -> _Quadratic | None:
    """Maximise w . y in the quadratic model on some secrets, or return None if that fails.

    `lower` is the lower triangle of J, `on` marks the secrets that begin in the support, and `room`
    is how far the model may fall from its value here.
    """
    fewest, patience = len(g) + 1, PATIENCE
    for _ in range(MAX_EXCHANGES):
        (inside,) = on.nonzero()
        factor, failed = dpotrf(lower[inside[:, None], inside], lower=1)
        if failed or not len(inside):
            return None
        here_g, here_w = g[inside], w[inside]
        right = np.ones((len(inside), 3), order="F")
        right[:, 0], right[:, 1] = 2 * here_g, here_w
        solved, _ = dpotrs(factor, right, lower=1)
        # A system that is singular up to rounding has a factor, but no solution in doubles.
        if not np.isfinite(solved).all():
            return None
        of_g, of_w, of_one = solved.T
        # y = middle + t direction; m is chosen so that middle sums to 1 and direction to 0.
        m, m_slope = (of_g.sum() - 1) / of_one.sum(), of_w.sum() / of_one.sum()
        middle, direction = of_g - m * of_one, of_w - m_slope * of_one
        # At t = 0 this room is left. It is used up at the t with left = t^2 direction . w / 2.
        left = room - 1.5 + float(2 * here_g @ middle - (middle @ (2 * here_g) - m) / 2)
        curvature = float(direction @ here_w)
        t = math.sqrt(2 * left / curvature) if left > 0 and curvature > 0 else 0.0
        y = np.zeros(len(g))
        y[inside] = middle + t * direction
        slack = m + t * m_slope - (2 * g - dsymv(1.0, lower, y, lower=1) + t * w)
        wrong = np.where(on, y < 0, slack < -SLACK_TOLERANCE)
        most = here_w.max()
        if left >= 0 and here_w.min() == 1:
            # w . y = 1 is the largest possible value, reached with room to spare: others stay out.
            wrong &= w == 1
        number = int(wrong.sum())
        if number == 0:
            others = np.flatnonzero(~on & (w > most))
            if t > 0 or left <= 0 or not len(others):
                return _Quadratic(y, t)
            # All secrets with mass have the same weight, and there is room: one with a larger
            # weight comes in.
            on = on.copy()
            on[others[np.argmin(slack[others] / (w[others] - most))]] = True
            continue
        patience = PATIENCE if number < fewest else patience - 1
        fewest = min(number, fewest)
        # Exchanging one at a time, always the last, cannot cycle.
        on = on ^ (wrong if patience >= 0 else np.arange(len(g)) == np.flatnonzero(wrong)[-1])
    return None
