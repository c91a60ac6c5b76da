"""Whole steps of the iterative Bayesian update, one kernel for each structure of a channel.

All share their last arguments and their meaning. On entry g holds the ratios at theta; `n` times,
or until no g exceeds `enough`: theta <- theta g, then p = the probabilities of the reports and g =
the ratios at the new theta. All three are overwritten and the number of steps is returned. With g =
1 on entry one step evaluates p and g at theta itself.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints

# the least double with all its digits: arithmetic below it is slow by a factor of ten, for mass
# that nobody can see
MIN_NORMAL = 2.2250738585072014e-308
# a row of a table of 256 sums, and a cache line more: entries for the same byte would else share
# few lines of the cache
STRIDE = 264
# Sums may be reordered, so that they fill the vector registers; the order does not depend on the
# number of threads. Reciprocals ("arcp") are what makes LLVM vectorise `dense` along the secrets:
# without it takes three times as long.
REORDER = {"contract", "reassoc", "nsz", "arcp"}


@njit(cache=True, error_model="numpy", fastmath=REORDER)
def _step(theta: Floats, g: Floats) -> float:
    """Theta <- theta g, g <- 0; the sum of theta."""
    total = 0.0
    for x in range(theta.size):
        mass = theta[x] * g[x]
        if mass < MIN_NORMAL and g[x] < 1.0:  # still falling
            mass = 0.0
        theta[x] = mass
        total += mass
        g[x] = 0.0
    return total


@njit(cache=True, error_model="numpy")
def _any_above(g: Floats, enough: float) -> bool:
    """True if some g exceeds `enough` or is NaN."""
    above = 0
    for x in range(g.size):
        above += not g[x] <= enough
    return above > 0


@njit(cache=True, error_model="numpy", fastmath=REORDER)
def dense(
    columns: Floats, q: Floats, theta: Floats, p: Floats, g: Floats, n: int, enough: float
) -> int:
    """M_xz = columns[z, x]: each column is read once and used for g while it is in the cache."""
    s, k = columns.shape
    for step in range(n):
        _step(theta, g)
        for z in range(
            0, s - 3, 4
        ):  # four at a time, so that theta and g are read a fourth as often
            p0 = p1 = p2 = p3 = 0.0
            for x in range(k):
                mass = theta[x]
                p0 += columns[z, x] * mass
                p1 += columns[z + 1, x] * mass
                p2 += columns[z + 2, x] * mass
                p3 += columns[z + 3, x] * mass
            p[z], p[z + 1], p[z + 2], p[z + 3] = p0, p1, p2, p3
            w0, w1, w2, w3 = q[z] / p0, q[z + 1] / p1, q[z + 2] / p2, q[z + 3] / p3
            for x in range(k):
                g[x] += (
                    w0 * columns[z, x]
                    + w1 * columns[z + 1, x]
                    + w2 * columns[z + 2, x]
                    + w3 * columns[z + 3, x]
                )
        for z in range(s - s % 4, s):
            total = 0.0
            for x in range(k):
                total += columns[z, x] * theta[x]
            p[z] = total
            w = q[z] / total
            for x in range(k):
                g[x] += w * columns[z, x]
        if not _any_above(g, enough):
            return step + 1
    return n


@njit(cache=True, error_model="numpy", fastmath=REORDER)
def responses(
    reports: Ints,
    starts: Ints,
    off: Floats,
    extra: Floats,
    q: Floats,
    theta: Floats,
    p: Floats,
    g: Floats,
    n: int,
    enough: float,
) -> int:
    """M_xz = off + extra [x = reports[z]], with two numbers for each stretch of the reports."""
    for step in range(n):
        total = _step(theta, g)
        everywhere = 0.0
        for i in range(off.size):
            base, weights = off[i] * total, 0.0
            for z in range(starts[i], starts[i + 1]):
                x = reports[z]
                p[z] = base + extra[i] * theta[x]
                w = q[z] / p[z]
                weights += w
                g[x] += extra[i] * w
            everywhere += off[i] * weights
        for x in range(g.size):
            g[x] += everywhere
        if not _any_above(g, enough):
            return step + 1
    return n


@njit(cache=True, error_model="numpy", fastmath=REORDER)
def lines(
    positions: Ints,
    starts: Ints,
    decay: Floats,
    scale: Floats,
    q: Floats,
    theta: Floats,
    p: Floats,
    g: Floats,
    n: int,
    enough: float,
) -> int:
    """M_xz = scale_z decay^|x - positions[z]|, with a decay for each stretch of the reports.

    The sweeps from both sides share a loop: neither waits for the other. A factor of a report
    cancels from g.
    """
    k = theta.size
    right, left, dropped = np.empty(k), np.empty(k), np.empty(k)
    for step in range(n):
        _step(theta, g)
        for i in range(decay.size):
            a = decay[i]
            from_left = from_right = 0.0
            for x in range(k):
                y = k - 1 - x
                from_left = theta[x] + a * from_left
                right[x] = from_left
                left[y] = from_right
                from_right = a * theta[y] + a * from_right
                dropped[x] = 0.0
            for z in range(starts[i], starts[i + 1]):
                u = right[positions[z]] + left[positions[z]]
                p[z] = scale[z] * u
                dropped[positions[z]] += q[z] / u
            from_left = from_right = 0.0
            for x in range(k):
                y = k - 1 - x
                from_left = dropped[x] + a * from_left
                g[x] += from_left
                g[y] += from_right
                from_right = a * dropped[y] + a * from_right
        if not _any_above(g, enough):
            return step + 1
    return n


@njit(cache=True, error_model="numpy", nogil=True)
def bits(
    rows: NDArray[np.uint8],
    starts: Ints,
    one: Floats,
    zero: Floats,
    scale: Floats,
    q: Floats,
    theta: Floats,
    p: Floats,
    g: Floats,
    n: int,
    enough: float,
) -> int:
    """M_xz = scale_z (one if bit x of row z is set else zero), two numbers for a stretch of rows.

    One pass over the packed rows. For every byte column a table of the sums of theta over the set
    bits of each byte, and one that gathers the weights (one - zero) q / p of the rows with that
    byte, both shared by all stretches; the most significant bit comes first. A factor of a report
    cancels from g.
    """
    n_bytes = rows.shape[1]
    k = theta.size
    # zeros take longer to compile
    sums, gathered = np.empty((n_bytes, STRIDE)), np.empty((n_bytes, STRIDE))
    for j in range(n_bytes):
        sums[j, 0] = 0.0
    for step in range(n):
        total = _step(theta, g)
        for j in range(n_bytes):
            for bit in range(
                8
            ):  # from the least significant: each doubles the part of the table that is known
                x = 8 * j + 7 - bit
                mass = theta[x] if x < k else 0.0
                for value in range(1 << bit):
                    sums[j, value + (1 << bit)] = sums[j, value] + mass
            for value in range(256):
                gathered[j, value] = 0.0
        everywhere = 0.0
        for i in range(one.size):
            base, extra, weights = zero[i] * total, one[i] - zero[i], 0.0
            # slices, as an index that starts at starts[i] might be below 0 for all the compiler
            # knows: a fifth slower
            mine = slice(starts[i], starts[i + 1])
            own_rows, own_scale, own_q, own_p = rows[mine], scale[mine], q[mine], p[mine]
            for z in range(own_q.size):
                mass = 0.0
                for j in range(n_bytes):
                    mass += sums[j, own_rows[z, j]]
                u = base + extra * mass
                own_p[z] = own_scale[z] * u
                w = own_q[z] / u
                weights += w
                w *= extra
                for j in range(n_bytes):
                    gathered[j, own_rows[z, j]] += w
            everywhere += zero[i] * weights
        for j in range(n_bytes):
            for bit in range(
                7, -1, -1
            ):  # the reverse: each halves the table, and the half that goes is the bit's
                on_set = 0.0
                for value in range(1 << bit):
                    on_set += gathered[j, value + (1 << bit)]
                    gathered[j, value] += gathered[j, value + (1 << bit)]
                x = 8 * j + 7 - bit
                if x < k:
                    g[x] = on_set
        for x in range(k):
            g[x] += everywhere
        if not _any_above(g, enough):
            return step + 1
    return n
