"""Two loops over a million secrets, each element touched once a round."""

import numpy as np
from numba import njit

from ibukit._validate import Floats, Ints

BLOCK = 1024  # sums go by blocks, so that a million roundings do not pile up


@njit(cache=True)
def water_level(q: Floats, total: float, contrast: float, off: float) -> float:
    """The beta with sum over {q_z > beta off} of q_z = beta (contrast + their number off); q sums to `total`."""
    left, size = np.empty(q.size), q.size
    source = q
    while True:
        beta = total / (contrast + size * off)
        kept = 0
        for i in range(size):
            left[kept] = source[i]
            if source[i] > beta * off:
                kept += 1
        if kept == size or kept == 0:
            return beta
        source, size, total, done = left, kept, 0.0, 0
        while done < size:
            part = 0.0
            end = min(done + BLOCK, size)
            for i in range(done, end):
                part += left[i]
            total += part
            done = end


@njit(cache=True)
def fill(theta: Floats, reports: Ints, q: Floats, beta: float, contrast: float, off: float) -> None:
    """theta_z = max(q_z / beta - off, 0) / contrast at the reports seen, then scaled to the sum 1."""
    total, done = 0.0, 0
    while done < q.size:
        part = 0.0
        end = min(done + BLOCK, q.size)
        for i in range(done, end):
            value = max(q[i] / beta - off, 0.0) / contrast
            theta[reports[i]] = value
            part += value
        total += part
        done = end
    if total == 0:  # no report is more frequent than the level to a double: all that are left are equally frequent
        most = q.max()
        for i in range(q.size):
            if q[i] == most:
                theta[reports[i]] = 1.0
                total += 1.0
    for x in range(theta.size):
        theta[x] /= total
