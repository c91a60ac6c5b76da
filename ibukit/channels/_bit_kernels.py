"""Sums over the set bits or the levels of packed rows.

A table holds 256 partial sums for each byte column, one for each value of the byte. A row then
takes one look-up a byte instead of eight additions.
"""

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit._ground.numba_cache import njit

# Length of a row of a table: 256 sums and a cache line. With rows of 256 doubles the entries of the
# same value would fall into few sets of the cache and evict each other.
STRIDE = 264


@njit(nogil=True)
def look_up(rows: NDArray[np.uint8], table: Floats) -> Floats:
    """y_z = sum over the bytes j of row z of table[j, value of the byte]."""
    n, n_bytes = rows.shape
    y = np.empty(n)
    for z in range(n):
        total = 0.0
        for j in range(n_bytes):
            total += table[j, rows[z, j]]
        y[z] = total
    return y


@njit(nogil=True)
def gather(rows: NDArray[np.uint8], w: Floats, table: Floats) -> None:
    """Add to table[j, value] the weights of the rows with that byte: the transpose of `look_up`."""
    n, n_bytes = rows.shape
    for z in range(n):
        for j in range(n_bytes):
            table[j, rows[z, j]] += w[z]


@njit()
def add_pairs(rows: NDArray[np.uint8], w: Floats, total: Floats) -> None:
    """total_xy += sum of w over the rows with bits x and y set, for y <= x.

    All pairs of set bits of a row are visited, so the time depends on how many are set.
    """
    # The positions of the set bits of a row are listed, then every pair of them is visited.
    n, n_bytes = rows.shape
    ones = np.empty(8 * n_bytes, np.int64)
    for z in range(n):
        count = 0
        for j in range(n_bytes):
            value = rows[z, j]
            if value:
                for bit in range(8):
                    # The first bit is the most significant.
                    if value & (128 >> bit):
                        ones[count] = 8 * j + bit
                        count += 1
        weight = w[z]
        for a in range(count):
            row_of_x = total[ones[a]]
            for b in range(a + 1):
                row_of_x[ones[b]] += weight


@njit()
def levels_forward(
    rows: NDArray[np.uint8], entries: Floats, per_byte: int, theta: Floats
) -> Floats:
    """y_z = sum_x theta_x entries[level_zx], with `per_byte` levels in a byte.

    A byte is a number in base len(entries); its first level is the most significant digit.
    """
    n, n_bytes = rows.shape
    sums = np.zeros((n_bytes, STRIDE))
    for j in range(n_bytes):
        fill_sums(sums[j], entries, theta[per_byte * j : per_byte * (j + 1)], per_byte)
    y = np.empty(n)
    for z in range(n):
        total = 0.0
        for j in range(n_bytes):
            total += sums[j, rows[z, j]]
        y[z] = total
    return y


@njit()
def levels_adjoint(
    rows: NDArray[np.uint8], entries: Floats, per_byte: int, w: Floats, k: int
) -> Floats:
    """v_x = sum_z w_z entries[level_zx]."""
    n, n_bytes = rows.shape
    gathered = np.zeros((n_bytes, STRIDE))
    for z in range(n):
        for j in range(n_bytes):
            gathered[j, rows[z, j]] += w[z]
    v = np.zeros(k)
    for j in range(n_bytes):
        add_by_level(gathered[j], entries, v[per_byte * j : per_byte * (j + 1)], per_byte)
    return v


@njit()
def fill_sums(sums: Floats, entries: Floats, theta: Floats, per_byte: int) -> None:
    """Fill, for each byte, the sum of theta times the entries of its levels.

    One level after the other: each known sum becomes len(entries) sums. The last sum comes first,
    so that none is overwritten before it is read. Secrets beyond the last have no mass.
    """
    # sums[0..known - 1] are those of the levels up to i; the next level multiplies `known`.
    sums[0] = 0.0
    known = 1
    for i in range(per_byte):
        mass = theta[i] if i < theta.size else 0.0
        for value in range(known - 1, -1, -1):
            before = sums[value]
            for level in range(entries.size):
                sums[value * entries.size + level] = before + mass * entries[level]
        known *= entries.size


@njit()
def add_by_level(gathered: Floats, entries: Floats, v: Floats, per_byte: int) -> None:
    """v_i += sum over the bytes of their weight times the entry of level i.

    This is the transpose of `fill_sums`, last level first: the weights of bytes that differ in that
    level alone are then added up, which leaves a table for the other levels. `gathered` is
    overwritten.
    """
    known = entries.size**per_byte
    for i in range(per_byte - 1, -1, -1):
        known //= entries.size
        for value in range(known):
            total = 0.0
            for level in range(entries.size):
                weight = gathered[value * entries.size + level]
                total += weight
                if i < v.size:
                    v[i] += entries[level] * weight
            gathered[value] = total
