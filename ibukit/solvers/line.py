"""The maximum-likelihood mixture for geometric noise on a line, in O(k) time and memory per step.

The same primal-dual iteration as `interior_point`, on the kernel K_xz = a^|x - z|, a = e^-eps,
alone: the other factors of a report cancel. K^-1 is tridiagonal, and a Newton step is one
elimination along the line.

Between two neighbouring positions with reports, g_x is the sum of a rising and a falling
exponential, which is convex, and beyond the outermost it falls. So its maxima, and all mass of a
maximiser, are at positions with reports.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_fallback import InterpretUntilWorthCompiling
from ibukit.channels import LineChannel
from ibukit.solvers import _line_kernels as kernels
from ibukit.solvers.interior_point import Settings, best_of

TRIES = (
    Settings(em_steps=3, uniform_share=0.1, careful=False, polish_below=1e-8, max_iter=100),
    Settings(em_steps=0, uniform_share=0.1, careful=True, polish_below=1e-8, max_iter=100),
    Settings(em_steps=50, uniform_share=0.5, careful=True, polish_below=1e-8, max_iter=200),
)

# Largest tolerance that is aimed at. Reaching it takes two or three steps more than reaching 1e-6,
# and then the exact zeros can be found.
MAX_AIM = 1e-10

# Positions that are worked on in plain Python first. Each takes a few hundred microseconds; all of
# them together take a quarter of the time that the loops take to compile.
POSITIONS_BY_PYTHON = 5000
LOOPS = InterpretUntilWorthCompiling(kernels, "climb", POSITIONS_BY_PYTHON)


def maximise(
    channel: LineChannel, q: Floats, tol: float, cost: Floats | None = None
) -> tuple[Floats, int]:
    """Maximise q . log(forward(theta)) over the simplex; return the maximiser and the steps taken.

    With costs above 0 the maximum is over {theta >= 0 : cost . theta = 1}, and g is adjoint / cost.
    The result is the first point of up to three tries with max g - 1 <= tol, by the channel's own
    arithmetic, or the best. A step takes O(k) time and about twenty vectors of length k.
    """
    # As far as doubles can tell, all secrets make the same reports.
    if channel.decay == 1:
        cheapest = np.ones(channel.k, dtype=bool) if cost is None else cost == cost.min()
        return cheapest / (cheapest.sum() if cost is None else cost[cheapest].sum()), 0
    return best_of(
        TRIES, tol, lambda settings: _one_try(channel, q, min(tol, MAX_AIM) / 2, settings, cost)
    )


def _one_try(
    channel: LineChannel, q: Floats, goal: float, settings: Settings, cost: Floats | None
) -> tuple[tuple[float, Floats], int]:
    """The best point of one climb and the steps taken.

    Without costs only positions with reports take part; with costs a cheap position may have mass.
    """
    theta: Floats = np.bincount(channel.positions, weights=q, minlength=channel.k).astype(
        np.float64, copy=False
    )
    positions = np.flatnonzero(theta) if cost is None else np.arange(channel.k)
    loops = LOOPS.for_size(len(positions))
    work = _workspace(
        theta[positions], positions, channel.decay, 1.0 if cost is None else cost, loops
    )
    _, steps = loops.climb(work, goal, *vars(settings).values())
    theta[positions] = work[kernels.BEST]
    g = channel.adjoint(q / channel.forward(theta))
    # The excess as the channel itself computes it.
    return (float((g if cost is None else g / cost).max()) - 1, theta), int(steps)


def _workspace(
    q: Floats, positions: Ints, decay: float, cost: Floats | float = 1.0, loops: Any = kernels
) -> Floats:
    """The work array of the kernels, with the rows filled that they only read."""
    work = np.empty((kernels.ROWS, len(q)))
    work[kernels.Q], work[kernels.COST], work[kernels.SHARE] = q, cost, 1 / cost
    log_decay = math.log(decay) if decay > 0 else -math.inf
    loops.lay_out(positions, log_decay, work[kernels.RATIO], work[kernels.LOSS])
    return work
