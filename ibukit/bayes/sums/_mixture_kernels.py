"""Sums over the shapes of a mixture of gamma densities, at many places."""

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit

# Terms below this share of the largest gamma density change no digit: no share is that small.
NEGLIGIBLE_TERM = 1e-36


@njit()
def mixture_sums(x: Floats, alpha: float, first: int, shares: Floats, tops: Ints) -> Floats:
    """Return sum_i shares_i g_i(x) / g_top(x) for each x, with the shape alpha + first + i of g_i.

    `tops` are the places of the largest g_i(x), where the sums begin: g_(i + 1) is x / shape_i
    times g_i, and falls on either side.
    """
    found = np.empty(len(x))
    reciprocals = 1 / (alpha + first + np.arange(len(shares)))
    for j in range(len(x)):
        here, top = x[j], tops[j]
        total, term = shares[top], 1.0
        for i in range(top, len(shares) - 1):
            term *= here * reciprocals[i]
            if term < NEGLIGIBLE_TERM:
                break
            total += term * shares[i + 1]
        term = 1.0
        by = 1 / max(here, 1e-300)
        for i in range(top - 1, -1, -1):
            term *= (alpha + first + i) * by
            if term < NEGLIGIBLE_TERM:
                break
            total += term * shares[i]
        found[j] = total
    return found
