"""Probabilities and slopes in one pass over the reports: of k-ary randomized response, and of written numbers."""

import numpy as np
from numba import njit

from ibukit._ground.arguments import Floats, Ints

BLOCK = 1024  # sums go by blocks, so that a million roundings do not pile up


@njit(cache=True, error_model="numpy")
def score_responses(
    theta: Floats,
    g: Floats,
    total: float,
    reports: Ints,
    counts: Floats | Ints,
    off: float,
    extra: float,
) -> tuple[float, float, float]:
    """Log-likelihood, least p and largest g for M_xz = off + extra [x = reports[z]]; theta sums to `total`.

    g is filled, unless it is empty: to write it takes as long as all the rest.
    """
    base = off * total
    logs, weights, idle = 0.0, 0.0, 0.0
    least, most = np.inf, 0.0 if counts.size < theta.size else -np.inf
    for start in range(0, counts.size, BLOCK):
        part_logs, part_weights = 0.0, 0.0
        for z in range(start, min(start + BLOCK, counts.size)):
            mass = theta[reports[z]]
            p = base + extra * mass
            w = counts[z] / p
            part_weights += w
            most = max(most, extra * w)
            if g.size:
                g[reports[z]] += extra * w
            least = min(least, p)
            if mass == 0.0:  # mostly most of them, and they share a logarithm
                idle += counts[z]
            else:
                part_logs += counts[z] * np.log(p)
        logs += part_logs
        weights += part_weights
    if idle > 0:
        logs += idle * np.log(base)
    for x in range(g.size):
        g[x] += off * weights
    return logs, least, most + off * weights


# Sums may be reordered, so that they fill the vector registers
@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz", "arcp"})
def score_written(
    numbers: Floats, theta: Floats, counts: Floats | Ints, p: Floats, g: Floats
) -> None:
    """Fill p = numbers theta and add counts / p times the numbers to g: each report is read once.

    A report is used for g while it is in the cache of the core. That is as fast as memory is, where
    two products of BLAS, or four reports at a time, take twice to three times as long.
    """
    for z in range(len(numbers)):
        total = 0.0
        for x in range(theta.size):
            total += numbers[z, x] * theta[x]
        p[z] = total
        weight = counts[z] / total
        for x in range(theta.size):
            g[x] += weight * numbers[z, x]
