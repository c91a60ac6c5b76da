"""Sweeps over a line: sums against a two-sided geometric kernel in O(k)."""

import numpy as np
from numba import njit

from ibukit._ground.arguments import Floats


@njit(cache=True)
def sweep(theta: Floats, decay: float) -> Floats:
    """y_x = sum_u theta_u decay^|x - u|, by one pass from each side."""
    k = theta.size
    y = np.empty(k)
    right = 0.0
    for x in range(k):
        right = theta[x] + decay * right
        y[x] = right
    # from the right only what lies strictly beyond x is added, so no digit cancels
    left = 0.0
    for x in range(k - 1, -1, -1):
        y[x] += left
        left = decay * (theta[x] + left)
    return y
