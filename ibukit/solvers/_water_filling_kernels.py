"""Two loops over a million secrets, each element touched once a round."""

import numpy as np
from numba import njit

from ibukit._ground.arguments import Floats, Ints

BLOCK = 1024  # sums go by blocks, so that a million roundings do not pile up


@njit(cache=True)
def water_level(q: Floats | Ints, total: float, contrast: float, off: float) -> float:
    """Solve sum of q_z over {q_z > beta off} = beta (contrast + off times their number)."""
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


@njit(cache=True)
def fill(
    theta: Floats, reports: Ints, q: Floats | Ints, beta: float, contrast: float, off: float
) -> None:
    """Return theta_z = max(q_z / beta - off, 0) / contrast at the reports seen, scaled to sum 1."""
    total, done = 0.0, 0
    a, b = 1 / (beta * contrast), off / contrast  # products are quicker than quotients
    while done < q.size:
        part = 0.0
        end = min(done + BLOCK, q.size)
        for i in range(done, end):
            value = max(q[i] * a - b, 0.0)
            theta[reports[i]] = value
            part += value
        total += part
        done = end
    # no report is more frequent than the level to a double: all that are left are equally frequent
    if total == 0:
        most = q[0]
        for i in range(q.size):  # q.max() takes long to compile
            most = max(most, q[i])
        for i in range(q.size):
            if q[i] == most:
                theta[reports[i]] = 1.0
                total += 1.0
    scale = 1 / total
    for x in range(theta.size):
        theta[x] *= scale
