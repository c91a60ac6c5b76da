"""Secrets behind reports, drawn with uniforms that were drawn outside: nothing here is random by itself."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ibukit._validate import Floats, Ints


@njit(cache=True)
def told_by_bits(
    rows: NDArray[np.uint8], counts: Ints, zero: float, contrast: float, p: Floats, uniforms: Floats
) -> Ints:
    """Totals of the secrets that reports tell, each with probability contrast p_x [bit x of z] / (theta M)_z.

    With the rest of the probability, zero / (theta M)_z, a report tells nothing. `p` has as many entries as the rows
    have bits; one uniform for each report; bits are packed most significant first.
    """
    n_rows, n_bytes = rows.shape
    table = np.zeros((n_bytes, 256))
    for j in range(n_bytes):
        for value in range(1, 256):
            low = value & -value
            bit = 7
            while low > 1:
                low >>= 1
                bit -= 1
            table[j, value] = table[j, value & (value - 1)] + p[8 * j + bit]
    totals = np.zeros(8 * n_bytes, dtype=np.int64)
    user = 0
    for z in range(n_rows):
        held = 0.0
        for j in range(n_bytes):
            held += table[j, rows[z, j]]
        for _ in range(counts[z]):
            # below `held` with the probability that the report tells, and then uniform up to there
            left = uniforms[user] * (zero / contrast + held)
            user += 1
            if left >= held:
                continue
            x = -1
            for j in range(n_bytes):
                here = table[j, rows[z, j]]
                if left >= here and j < n_bytes - 1:
                    left -= here
                    continue
                for bit in range(8):
                    if rows[z, j] & (128 >> bit) and p[8 * j + bit] > 0:
                        x = 8 * j + bit
                        left -= p[x]
                        if left < 0:
                            break
                if x >= 0:
                    break
            if x >= 0:
                totals[x] += 1
    return totals


@njit(cache=True)
def told_by_columns(excess: Floats, least: Floats, counts: Ints, p: Floats, uniforms: Floats) -> Ints:
    """The same for any channel: report z tells x with probability p_x excess_zx / (theta M)_z, else nothing.

    excess_zx = M_xz - least_z, with least_z = min_x M_xz.
    """
    n_rows, k = excess.shape
    totals = np.zeros(k, dtype=np.int64)
    user = 0
    for z in range(n_rows):
        held = 0.0
        for x in range(k):
            held += p[x] * excess[z, x]
        for _ in range(counts[z]):
            left = uniforms[user] * (least[z] + held)
            user += 1
            if left >= held:
                continue
            told = -1
            for x in range(k):
                here = p[x] * excess[z, x]
                if here > 0:
                    told = x
                    left -= here
                    if left < 0:
                        break
            totals[told] += 1
    return totals
