"""Normal equations of structured channels, entry by entry."""

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit


@njit()
def add_lines(total: Floats, w: Floats, decays: Floats, starts: Ints, positions: Ints) -> None:
    """total_xy += sum_z w_z decay^(|x - z| + |y - z|) for x <= y, over all lines.

    The reports of line i are `starts[i]` to `starts[i + 1]`, at their `positions`. The sum over
    z <= x is decay^(y-x) times left_x = sum_z<=x w_z decay^2(x-z), a recursion from left to right;
    that over z > y likewise. Every z with x < z <= y contributes w_z decay^(y-x). All terms are
    positive: nothing cancels. For one difference y - x there is one power, and no secret waits for
    another, so that the processor adds several at a time.
    """
    k = len(total)
    # The weight at k, beyond the last secret, is 0.
    at, left, right, between = np.empty(k + 1), np.empty(k), np.empty(k), np.empty(k)
    sums = np.zeros((k, k))
    for i in range(decays.size):
        at[:] = 0.0
        for z in range(starts[i], starts[i + 1]):
            at[positions[z]] += w[z]
        again = decays[i] * decays[i]
        carried = 0.0
        for x in range(k):
            carried = at[x] + again * carried
            left[x], between[x] = carried, 0.0
        carried = 0.0
        for x in range(k - 1, -1, -1):
            right[x] = carried
            carried = again * (at[x] + carried)
        power = 1.0
        for d in range(k):
            for x in range(k - d):
                sums[d, x] += power * (left[x] + between[x] + right[x + d])
                between[x] += at[x + d + 1]
            power *= decays[i]
    for d in range(k):
        for x in range(k - d):
            total[x, x + d] += sums[d, x]


@njit()
def mirror(total: Floats) -> None:
    """Copy the lower triangle to the upper one."""
    for x in range(len(total)):
        for y in range(x):
            total[y, x] = total[x, y]
