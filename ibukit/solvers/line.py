"""The maximum-likelihood mixture for geometric noise on a line, in O(k) time and memory.

The same primal-dual iteration as `interior_point`, on the kernel K_xz = a^|x - z|, a = e^-eps,
alone: what a report's column has besides is a factor that cancels. K^-1 is tridiagonal, and a
Newton step is one elimination along the line.

Between two neighbouring positions where something was seen, g_x is a sum of a rising and a falling
exponential, which is convex, and beyond the outermost it falls: its maxima, and so all of a
maximiser, stand where something was seen.
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

# Aimed at whatever is asked: two or three steps more than for 1e-6, and the zeros are found.
AIM = 1e-10

# positions worked on in plain Python, at some hundred microseconds each: a small part of what
# compiling takes
LOOPS = InterpretUntilWorthCompiling(kernels, "climb", 3000)


def maximise(
    channel: LineChannel, q: Floats, tol: float, cost: Floats | None = None
) -> tuple[Floats, int]:
    """Return the maximiser of q . log(forward(theta)) over the simplex, and the steps taken.

    With costs above 0 it is the maximiser over {theta >= 0 : cost . theta = 1}, and max g - 1 is
    that of adjoint / cost.

    Max g - 1 of the point, by the channel's own arithmetic, is at most `tol`, if that can be
    reached; if not, it is the best of up to three tries. O(k) time a step, and some twenty vectors
    of length k at a time.
    """
    if channel.decay == 1:  # to a double all secrets make the same reports
        cheapest = np.ones(channel.k, dtype=bool) if cost is None else cost == cost.min()
        return cheapest / (cheapest.sum() if cost is None else cost[cheapest].sum()), 0
    return best_of(
        TRIES, tol, lambda settings: _one_try(channel, q, min(tol, AIM) / 2, settings, cost)
    )


def _one_try(
    channel: LineChannel, q: Floats, goal: float, settings: Settings, cost: Floats | None
) -> tuple[tuple[float, Floats], int]:
    """Return the best point of one climb, and the steps taken."""
    theta: Floats = np.bincount(channel.positions, weights=q, minlength=channel.k).astype(
        np.float64, copy=False
    )
    seen = np.flatnonzero(theta) if cost is None else np.arange(channel.k)
    loops = LOOPS.for_size(len(seen))
    work = _workspace(theta[seen], seen, channel.decay, 1.0 if cost is None else cost, loops)
    _, steps = loops.climb(work, goal, *vars(settings).values())
    theta[seen] = work[kernels.BEST]
    g = channel.adjoint(q / channel.forward(theta))
    # max g - 1 as the channel itself computes it
    return (float((g if cost is None else g / cost).max()) - 1, theta), int(steps)


def _workspace(
    q: Floats, seen: Ints, decay: float, cost: Floats | float = 1.0, loops: Any = kernels
) -> Floats:
    """Fill the rows that the kernels read; the other rows are theirs."""
    work = np.empty((kernels.ROWS, len(q)))
    work[kernels.Q], work[kernels.COST], work[kernels.SHARE] = q, cost, 1 / cost
    log_decay = math.log(decay) if decay > 0 else -math.inf
    loops.lay_out(seen, log_decay, work[kernels.RATIO], work[kernels.LOSS])
    return work
