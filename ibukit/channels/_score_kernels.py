"""Probabilities and gradients in one pass over the reports: k-RR, and a matrix of many reports."""

import math

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit

# Numbers of reports in a block and in a small block. The terms of a small block are added up before
# they are added to those of its block, and these before they are added to the total: the rounding
# error of a sum grows with the length of its blocks and with their number, not with their product.
BLOCK = 1024
SMALL_BLOCK = 32


# Sums of few numbers may be in any order, so that they fill the vector registers.
@njit(fastmath={"reassoc", "nsz"})
def _sum_of_few(values: Floats, start: int, stop: int) -> float:
    total = 0.0
    for i in range(start, stop):
        total += values[i]
    return total


@njit()
def sum_in_blocks(values: Floats) -> float:
    """Sum of the values, in blocks of blocks: few additions follow each other, see below."""
    total = 0.0
    for start in range(0, values.size, BLOCK):
        part, stop = 0.0, min(start + BLOCK, values.size)
        for small in range(start, stop, SMALL_BLOCK):
            part += _sum_of_few(values, small, min(small + SMALL_BLOCK, stop))
        total += part
    return total


def additions_in_blocks(size: int) -> int:
    """Return the largest number of additions that a term goes through in sums of this size."""
    return min(size, SMALL_BLOCK) + min(size, BLOCK) // SMALL_BLOCK + size // BLOCK + 2


@njit(error_model="numpy")
def score_responses(
    theta: Floats,
    g: Floats,
    total: float,
    reports: Ints,
    counts: Floats | Ints,
    off: float,
    extra: float,
) -> tuple[float, float, float]:
    """Log-likelihood, smallest p and largest g for M_xz = off + extra [x = reports[z]].

    Theta sums to `total`, so p_z = off total + extra theta[reports[z]], and with w = counts / p
    g_x = off sum(w) + extra w_z for the report z that names x. g is filled unless it is empty: to
    write it takes as long as all the rest.
    """
    # `most` is the largest extra w; it is 0 for a secret that no report names.
    base = off * total
    logs, weights, idle = 0.0, 0.0, 0.0
    least, most = np.inf, 0.0 if counts.size < theta.size else -np.inf
    for start in range(0, counts.size, BLOCK):
        part_logs, part_weights, stop = 0.0, 0.0, min(start + BLOCK, counts.size)
        for small in range(start, stop, SMALL_BLOCK):
            few_weights = 0.0
            for z in range(small, min(small + SMALL_BLOCK, stop)):
                mass = theta[reports[z]]
                p = base + extra * mass
                w = counts[z] / p
                few_weights += w
                most = max(most, extra * w)
                if g.size:
                    g[reports[z]] += extra * w
                least = min(least, p)
                # Most secrets have no mass at a maximum; their reports share one logarithm.
                if mass == 0.0:
                    idle += counts[z]
                else:
                    part_logs += counts[z] * np.log(p)
            part_weights += few_weights
        logs += part_logs
        weights += part_weights
    # Reports of secrets without mass have p = base.
    if idle > 0:
        logs += idle * np.log(base)
    for x in range(g.size):
        g[x] += off * weights
    return logs, least, most + off * weights


# Sums may be reordered, so that they fill the vector registers.
@njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz", "arcp"})
def score_rows(numbers: Floats, theta: Floats, counts: Floats | Ints, p: Floats, g: Floats) -> None:
    """Fill p = numbers theta and add numbers^T (counts / p) to g.

    Each row is read once and used for g while it is in the cache. The speed is that of memory; two
    products by BLAS, or four rows at a time, take two to three times as long.
    """
    for z in range(len(numbers)):
        total = 0.0
        for x in range(theta.size):
            total += numbers[z, x] * theta[x]
        p[z] = total
        weight = counts[z] / total
        for x in range(theta.size):
            g[x] += weight * numbers[z, x]


def sum_few_in_blocks(values: Floats) -> float:
    """Sum of the values of one block, in small blocks: few additions follow each other."""
    blocks = np.zeros(-(-values.size // SMALL_BLOCK) * SMALL_BLOCK)
    blocks[: values.size] = values
    return _in_turn(blocks.reshape(-1, SMALL_BLOCK).cumsum(axis=1)[:, -1])


def _in_turn(values: Floats) -> float:
    """Sum of the values, added one after the other."""
    return float(values.cumsum()[-1]) if values.size else 0.0


def score_few_responses(
    theta: Floats,
    g: Floats,
    total: float,
    reports: Ints,
    counts: Floats | Ints,
    off: float,
    extra: float,
) -> tuple[float, float, float]:
    """Do what `score_responses` does, in the same order of sums, for the reports of one block."""
    base, masses = off * total, theta[reports]
    p = base + extra * masses
    with np.errstate(all="ignore"):
        w = counts / p
        shares = extra * w
    weights = sum_few_in_blocks(w)
    # These are the machine library's logarithms, as in the compiled loop: numpy's differ in a bit.
    logs = [math.log(each) if each > 0 else -math.inf for each in p[masses != 0].tolist()]
    log_likelihood = _in_turn(counts[masses != 0] * np.array(logs, dtype=np.float64))
    idle = _in_turn(counts[masses == 0].astype(np.float64))
    if idle > 0:
        log_likelihood += idle * (math.log(base) if base > 0 else -math.inf)
    if g.size:
        g[reports] += shares
        g += off * weights
    most = max(float(shares.max()), 0.0 if counts.size < theta.size else -math.inf)
    return log_likelihood, float(p.min()), most + off * weights
