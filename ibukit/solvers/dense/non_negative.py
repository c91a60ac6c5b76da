"""Non-negative least squares by its normal equations, from a warm start.

Maximise the parabola b . y - 1/2 y H y over y >= 0, for a positive semidefinite H. This is the
active set of Lawson and Hanson with two changes. It starts at a point that is known already, so
that a step of Newton's method exchanges few coordinates; and all coordinates whose slope is at
least half of the largest slope enter together. Every point is feasible, and none is lower than the
one before, so the method may end after any amount of work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from ibukit._ground.arguments import Floats

# Slope, relative to the largest entry of b, that counts as none: the rounding of H y.
SLOPE_TOLERANCE = 1e-13
# Share of the largest slope from which a coordinate enters.
MIN_SLOPE_SHARE = 0.5
# At most as many coordinates enter together as have mass already, plus this number.
MIN_ENTERING = 4


class ParabolaPoint(NamedTuple):
    """A point of the parabola, the work that it took, and whether it is the maximiser."""

    y: Floats
    work: float
    """Multiplications: p^3 / 3 for each system of order p."""
    is_maximiser: bool


def maximise_parabola(hessian: Floats, b: Floats, start: Floats, max_work: float) -> ParabolaPoint:
    """The maximiser over y >= 0, or the best point once `max_work` multiplications are spent.

    Where H is singular, coordinates that depend on those with mass stay at 0.
    """
    y, on = start.copy(), start > 0
    barred = np.zeros(len(y), dtype=bool)
    entered = np.empty(0, dtype=np.intp)
    work = 0.0
    while work <= max_work:
        at = on.nonzero()[0]
        # A small system takes as long as one of order 40, because of the calls.
        work += max(len(at), 40) ** 3 / 3
        if len(at):
            _, solution, failed = dposv(hessian[np.ix_(at, at)], b[at])
            if failed and len(entered) == 0:
                return ParabolaPoint(y, work, False)
            falling = at[solution <= 0]
            stuck = entered if failed else falling[y[falling] == 0]
            if len(stuck):
                # Of several that have entered together, those that would fall wait. If all would
                # fall, or there is no factor, all but the steepest wait. If a single one depends on
                # those with mass, or falls by rounding, it stays out.
                barred[entered] = len(entered) == 1
                if len(stuck) == len(entered):
                    stuck = entered[int(len(entered) > 1) :]
                on[stuck] = False
                entered = entered[on[entered]]
                continue
            if len(falling):
                change = np.zeros(len(y))
                change[at] = solution - y[at]
                reach = y[falling] / -change[falling]
                step = float(reach[reach.argmin()])
                y += step * change
                leaving = falling[reach <= step]
                y[leaving], on[leaving] = 0, False
                barred[:], entered = False, entered[:0]
                continue
            y[at] = solution
        slope = b - np.dot(hessian[:, at], y[at])
        slope[on | barred] = -np.inf
        entered = np.argsort(-slope, kind="stable")
        steepest = float(slope[entered[0]])
        if not steepest > SLOPE_TOLERANCE * float(np.abs(b).max()):
            return ParabolaPoint(y, work, True)
        # If all rows are alike, so are their slopes; but few rows will keep mass, so few enter.
        entered = entered[: len(at) + MIN_ENTERING]
        entered = entered[slope[entered] >= MIN_SLOPE_SHARE * steepest]
        on[entered] = True
    return ParabolaPoint(y, work, False)
