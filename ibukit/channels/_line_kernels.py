"""Sweeps over a line: sums against a two-sided geometric kernel in O(k)."""

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.numba_cache import njit


@njit()
def sweep(theta: Floats, decay: float) -> Floats:
    """y_x = sum_u theta_u decay^|x - u|, by one pass from each side.

    The sum over u <= x is r_x = theta_x + decay r_(x-1); that over u > x is
    l_x = decay (theta_(x+1) + l_(x+1)).
    """
    k = theta.size
    y = np.empty(k)
    right = 0.0
    for x in range(k):
        right = theta[x] + decay * right
        y[x] = right
    # The second pass adds what is strictly beyond x. Subtracting theta_x instead would cancel.
    left = 0.0
    for x in range(k - 1, -1, -1):
        y[x] += left
        left = decay * (theta[x] + left)
    return y
