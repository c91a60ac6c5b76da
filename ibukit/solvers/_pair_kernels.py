"""Sums over the pairs of set bits of packed rows, one after the other."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ibukit._validate import Floats


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
