"""Sums over the set bits or the levels of packed rows: a table of 256 partial sums per byte column, then look-ups."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats

# a row of a table of 256 sums, and a cache line more: entries for the same byte would else share
# few lines of the cache
STRIDE = 264


@njit(cache=True, nogil=True)
def look_up(rows: NDArray[np.uint8], table: Floats) -> Floats:
    """y_z = the sum over the bytes j of row z of the table's entry for byte j and its value."""
    n, n_bytes = rows.shape
    y = np.empty(n)
    for z in range(n):
        total = 0.0
        for j in range(n_bytes):
            total += table[j, rows[z, j]]
        y[z] = total
    return y


@njit(cache=True, nogil=True)
def gather(rows: NDArray[np.uint8], w: Floats, table: Floats) -> None:
    """The transpose, added to the table: for each byte j and value the weights of the rows that have it."""
    n, n_bytes = rows.shape
    for z in range(n):
        for j in range(n_bytes):
            table[j, rows[z, j]] += w[z]


@njit(cache=True)
def add_pairs(rows: NDArray[np.uint8], w: Floats, total: Floats) -> None:
    """total_xy += sum of w over the rows with bits x and y set, for y <= x: quick where few bits are."""
    n, n_bytes = rows.shape
    ones = np.empty(8 * n_bytes, np.int64)
    for z in range(n):
        many = 0
        for j in range(n_bytes):
            value = rows[z, j]
            if value:
                for bit in range(8):
                    if value & (128 >> bit):
                        ones[many] = 8 * j + bit
                        many += 1
        weight = w[z]
        for a in range(many):
            of_x = total[ones[a]]
            for b in range(a + 1):
                of_x[ones[b]] += weight


@njit(cache=True)
def levels_forward(rows: NDArray[np.uint8], entries: Floats, each: int, theta: Floats) -> Floats:
    """y_z = sum_x theta_x entries[level_zx], with `each` levels in a byte, the first the most significant."""
    n, n_bytes = rows.shape
    sums = np.zeros((n_bytes, STRIDE))
    for j in range(n_bytes):
        fill_sums(sums[j], entries, theta[each * j : each * (j + 1)], each)
    y = np.empty(n)
    for z in range(n):
        total = 0.0
        for j in range(n_bytes):
            total += sums[j, rows[z, j]]
        y[z] = total
    return y


@njit(cache=True)
def levels_adjoint(
    rows: NDArray[np.uint8], entries: Floats, each: int, w: Floats, k: int
) -> Floats:
    """v_x = sum_z w_z entries[level_zx]."""
    n, n_bytes = rows.shape
    gathered = np.zeros((n_bytes, STRIDE))
    for z in range(n):
        for j in range(n_bytes):
            gathered[j, rows[z, j]] += w[z]
    v = np.zeros(k)
    for j in range(n_bytes):
        share_out(gathered[j], entries, v[each * j : each * (j + 1)], each)
    return v


@njit(cache=True)
def fill_sums(sums: Floats, entries: Floats, theta: Floats, each: int) -> None:
    """In place: for each byte the sum of theta times the entries of its levels; secrets beyond the last weigh nothing.

    From one level to the next every sum that is known becomes as many as there are entries, the
    last one first.
    """
    sums[0] = 0.0
    known = 1
    for i in range(each):
        mass = theta[i] if i < theta.size else 0.0
        for value in range(known - 1, -1, -1):
            before = sums[value]
            for level in range(entries.size):
                sums[value * entries.size + level] = before + mass * entries[level]
        known *= entries.size


@njit(cache=True)
def share_out(gathered: Floats, entries: Floats, v: Floats, each: int) -> None:
    """The reverse: v_i += the weights of the bytes times the entry of their level i; `gathered` is overwritten."""
    known = entries.size**each
    for i in range(each - 1, -1, -1):
        known //= entries.size
        for value in range(known):
            total = 0.0
            for level in range(entries.size):
                weight = gathered[value * entries.size + level]
                total += weight
                if i < v.size:
                    v[i] += entries[level] * weight
            gathered[value] = total
