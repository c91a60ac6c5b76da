"""Loops of water filling over a million secrets, each touched once a round."""

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit

# Terms that are added up before they are added to the total: the rounding error of a sum grows with
# the length of its blocks and with their number, not with their product.
BLOCK = 1024


@njit()
def water_level(q: Floats | Ints, total: float, contrast: float, off: float) -> float:
    """The beta with q(S) = beta (contrast + |S| off) for S = {q_z > beta off}; q sums to `total`.

    Beta rises from round to round, so a secret that is left out never comes back.
    """
    left, size, first = np.empty(q.size), q.size, True
    while True:
        beta = total / (contrast + size * off)
        level, kept = beta * off, 0
        if first:
            for i in range(size):
                left[kept] = q[i]
                kept += q[i] > level
        else:
            for i in range(size):
                left[kept] = left[i]
                kept += left[i] > level
        if kept == size or kept == 0:
            return beta
        first, size, total, done = False, kept, 0.0, 0
        while done < size:
            part = 0.0
            end = min(done + BLOCK, size)
            for i in range(done, end):
                part += left[i]
            total += part
            done = end


@njit()
def fill(
    theta: Floats, reports: Ints, q: Floats | Ints, beta: float, contrast: float, off: float
) -> None:
    """theta_z = max(q_z / beta - off, 0) / contrast at the reports seen, scaled to sum 1."""
    total, done = 0.0, 0
    # Products are faster than quotients.
    a, b = 1 / (beta * contrast), off / contrast
    while done < q.size:
        part = 0.0
        end = min(done + BLOCK, q.size)
        for i in range(done, end):
            value = max(q[i] * a - b, 0.0)
            theta[reports[i]] = value
            part += value
        total += part
        done = end
    # As far as doubles can tell, no frequency exceeds the level: the most frequent reports are
    # equally frequent and share the mass.
    if total == 0:
        # q.max() takes long to compile.
        largest = q[0]
        for i in range(q.size):
            largest = max(largest, q[i])
        for i in range(q.size):
            if q[i] == largest:
                theta[reports[i]] = 1.0
                total += 1.0
    scale = 1 / total
    for x in range(theta.size):
        theta[x] *= scale
