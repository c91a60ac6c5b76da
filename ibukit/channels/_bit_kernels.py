"""Sums over the set bits of packed rows: a table of 256 partial sums per byte column, then one look-up per byte."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ibukit._validate import Floats

# a row of a table of 256 sums, and a cache line more: entries for the same byte would else share few lines of the cache
STRIDE = 264


@njit(cache=True)
def forward(rows: NDArray[np.uint8], theta: Floats) -> Floats:
    """y_z = sum of theta over the set bits of row z; bits are packed most significant first."""
    n, n_bytes = rows.shape
    table = np.zeros((n_bytes, STRIDE))
    for j in range(n_bytes):
        for value in range(1, 256):
            low = value & -value  # the lowest set bit; the sum without it is already known
            bit = 7
            while low > 1:
                low >>= 1
                bit -= 1
            table[j, value] = table[j, value & (value - 1)] + theta[8 * j + bit]
    y = np.empty(n)
    for z in range(n):
        total = 0.0
        for j in range(n_bytes):
            total += table[j, rows[z, j]]
        y[z] = total
    return y


@njit(cache=True)
def adjoint(rows: NDArray[np.uint8], w: Floats) -> Floats:
    """v_x = sum of w over the rows whose bit x is set."""
    n, n_bytes = rows.shape
    table = np.zeros((n_bytes, STRIDE))
    for z in range(n):
        for j in range(n_bytes):
            table[j, rows[z, j]] += w[z]
    v = np.zeros(8 * n_bytes)
    for j in range(n_bytes):
        for bit in range(8):
            mask = 128 >> bit
            total = 0.0
            for value in range(256):
                if value & mask:
                    total += table[j, value]
            v[8 * j + bit] = total
    return v


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
