"""Normal equations of structured channels, entry by entry."""

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.numba_cache import njit


@njit()
def add_line(total: Floats, w: Floats, decay: float) -> None:
    """total_xy += sum_z w_z decay^(|x - z| + |y - z|) for x <= y.

    The sum over z <= x is decay^(y-x) times left_x = sum_z<=x w_z decay^2(x-z), a recursion from
    left to right; that over z >= y likewise. Every z strictly between contributes w_z decay^(y-x).
    All terms are positive: nothing cancels.
    """
    k = w.size
    left, right = np.empty(k), np.empty(k)
    carried = 0.0
    for x in range(k):
        carried = w[x] + decay * decay * carried
        left[x] = carried
    carried = 0.0
    for x in range(k - 1, -1, -1):
        carried = w[x] + decay * decay * carried
        right[x] = carried
    # Row by row, with the power of the decay and the sum of w strictly between x and y.
    for x in range(k):
        total[x, x] += left[x] + right[x] - w[x]
        power, between = 1.0, 0.0
        for y in range(x + 1, k):
            power *= decay
            total[x, y] += power * (left[x] + between + right[y])
            between += w[y]


@njit()
def mirror(total: Floats) -> None:
    """Copy the lower triangle to the upper one."""
    for x in range(len(total)):
        for y in range(x):
            total[y, x] = total[x, y]
