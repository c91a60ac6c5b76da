"""One-sided sums with geometric weights, by one pass each."""

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.numba_cache import njit


@njit()
def from_below(w: Floats, decay: float) -> Floats:
    """y_x = sum over u <= x of w_u decay^(x - u)."""
    y, total = np.empty(w.size), 0.0
    for x in range(w.size):
        total = w[x] + decay * total
        y[x] = total
    return y


@njit()
def from_above(w: Floats, decay: float) -> Floats:
    """y_x = sum over u >= x of w_u decay^(u - x)."""
    y, total = np.empty(w.size), 0.0
    for x in range(w.size - 1, -1, -1):
        total = w[x] + decay * total
        y[x] = total
    return y
