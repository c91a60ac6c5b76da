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


@njit()
def sweep_with_steps(theta: Floats, decay: float) -> tuple[Floats, Floats]:
    """`sweep`, and the same sums with each term times its number of steps |x - u|.

    A term is rounded twice at each step, so the second bounds the rounding of the first. A sum that
    is carried a step further has all its terms one step longer: it is added to their sum of steps.
    """
    k = theta.size
    y, steps = np.empty(k), np.empty(k)
    right, right_steps = 0.0, 0.0
    for x in range(k):
        right_steps = decay * (right_steps + right)
        right = theta[x] + decay * right
        y[x], steps[x] = right, right_steps
    left, left_steps = 0.0, 0.0
    for x in range(k - 1, -1, -1):
        y[x] += left
        steps[x] += left_steps
        # The sums that are carried to x - 1 include the term of x, which is then one step away.
        left_steps = decay * (left_steps + left + theta[x])
        left = decay * (theta[x] + left)
    return y, steps
