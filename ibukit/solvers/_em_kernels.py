"""Steps of the iterative Bayesian update, one kernel for each structure of a channel.

All kernels share their last arguments. On entry g holds the ratios at theta. A kernel repeats `n`
times, or until no g exceeds `target`: theta <- theta g, then p = theta M, the probabilities of the
reports, and g = M (q / p), the ratios at the new theta. All three are overwritten; the number of
steps is returned. With g = 1 on entry one step evaluates p and g at theta itself.

Each report is read once a step: as soon as p_z is known, q_z / p_z times its column is added to g.
"""

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit

# The smallest normal double. Arithmetic with subnormal numbers is ten times slower, and such a mass
# has no effect.
MIN_NORMAL = 2.2250738585072014e-308
# Length of a row of a table: 256 sums and a cache line. With rows of 256 doubles the entries of the
# same value would fall into few sets of the cache and evict each other.
STRIDE = 264
# Sums may be reordered, so that they fill the vector registers; the order does not depend on the
# number of threads. Reciprocals ("arcp") are what makes LLVM vectorise `dense` along the secrets:
# without them it takes three times as long.
REORDER = {"contract", "reassoc", "nsz", "arcp"}


@njit(error_model="numpy", fastmath=REORDER)
def _step(theta: Floats, g: Floats) -> float:
    """Theta <- theta g, g <- 0; return the sum of theta."""
    total = 0.0
    for x in range(theta.size):
        mass = theta[x] * g[x]
        # A subnormal mass that still falls is 0 for good; one that rises is kept.
        if mass < MIN_NORMAL and g[x] < 1.0:
            mass = 0.0
        theta[x] = mass
        total += mass
        g[x] = 0.0
    return total


@njit(error_model="numpy")
def _any_above(g: Floats, target: float) -> bool:
    """True if some g exceeds `target` or is NaN."""
    above = 0
    for x in range(g.size):
        above += not g[x] <= target
    return above > 0


@njit(error_model="numpy", fastmath=REORDER)
def dense(
    columns: Floats, q: Floats, theta: Floats, p: Floats, g: Floats, n: int, target: float
) -> int:
    """Steps for M_xz = columns[z, x]; a column is used for g while it is still in the cache."""
    s, k = columns.shape
    for step in range(n):
        _step(theta, g)
        # Four columns at a time, so that theta and g are read a fourth as often.
        for z in range(0, s - 3, 4):
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
        if not _any_above(g, target):
            return step + 1
    return n


@njit(error_model="numpy", fastmath=REORDER)
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
    target: float,
) -> int:
    """Steps for M_xz = off + extra [x = reports[z]], with two numbers for each slice of reports.

    So p_z = off sum(theta) + extra theta[reports[z]], and the weights w = q / p add off sum(w) to
    every g and extra w_z to the g of the report's own secret.
    """
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
        if not _any_above(g, target):
            return step + 1
    return n


@njit(error_model="numpy", fastmath=REORDER)
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
    target: float,
) -> int:
    """Steps for M_xz = scale_z decay^|x - positions[z]|, with a decay for each slice of reports.

    Sums against decay^|x - y| are two recursions, one from each end. They share a loop, in which
    neither waits for the other. The scale of a report cancels from g.
    """
    k = theta.size
    right, left, scattered = np.empty(k), np.empty(k), np.empty(k)
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
                scattered[x] = 0.0
            for z in range(starts[i], starts[i + 1]):
                u = right[positions[z]] + left[positions[z]]
                p[z] = scale[z] * u
                scattered[positions[z]] += q[z] / u
            from_left = from_right = 0.0
            for x in range(k):
                y = k - 1 - x
                from_left = scattered[x] + a * from_left
                g[x] += from_left
                g[y] += from_right
                from_right = a * scattered[y] + a * from_right
        if not _any_above(g, target):
            return step + 1
    return n


@njit(error_model="numpy", nogil=True)
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
    target: float,
) -> int:
    """Steps for M_xz = scale_z (one if bit x of row z is set else zero), a pair for each slice.

    Each step makes one pass over the packed rows, with two tables for each byte column: the sums of
    theta over the set bits of each of the 256 values, and the weights (one - zero) q / p gathered
    by value. All slices share these tables. The most significant bit comes first. The scale of a
    row cancels from g.
    """
    n_bytes = rows.shape[1]
    k = theta.size
    # np.zeros takes longer to compile.
    sums, gathered = np.empty((n_bytes, STRIDE)), np.empty((n_bytes, STRIDE))
    for j in range(n_bytes):
        sums[j, 0] = 0.0
    for step in range(n):
        total = _step(theta, g)
        for j in range(n_bytes):
            # From the least significant bit on, each bit doubles the part of the table that is
            # known.
            for bit in range(8):
                x = 8 * j + 7 - bit
                mass = theta[x] if x < k else 0.0
                for value in range(1 << bit):
                    sums[j, value + (1 << bit)] = sums[j, value] + mass
            for value in range(256):
                gathered[j, value] = 0.0
        everywhere = 0.0
        for i in range(one.size):
            base, extra, weights = zero[i] * total, one[i] - zero[i], 0.0
            # With views the compiler knows that no index is negative, which saves a fifth of the
            # time.
            own = slice(starts[i], starts[i + 1])
            own_rows, own_scale, own_q, own_p = rows[own], scale[own], q[own], p[own]
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
            # The transpose: each bit halves the table; the dropped half sums to the bit's entry.
            for bit in range(7, -1, -1):
                on_set = 0.0
                for value in range(1 << bit):
                    on_set += gathered[j, value + (1 << bit)]
                    gathered[j, value] += gathered[j, value + (1 << bit)]
                x = 8 * j + 7 - bit
                if x < k:
                    g[x] = on_set
        for x in range(k):
            g[x] += everywhere
        if not _any_above(g, target):
            return step + 1
    return n
