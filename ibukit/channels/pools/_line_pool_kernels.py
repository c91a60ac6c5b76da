"""Sums over many lines, each with its own decay, in one call.

The reports of line i are `starts[i]` to `starts[i + 1]`, and `positions` are their places on it.
"""

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit
from ibukit.channels._line_kernels import sweep, sweep_with_steps


@njit()
def at_reports(theta: Floats, decays: Floats, starts: Ints, positions: Ints) -> Floats:
    """sum_x theta_x decay^|x - z| for the position z of each report."""
    u = np.empty(positions.size)
    for i in range(decays.size):
        y = sweep(theta, decays[i])
        for z in range(starts[i], starts[i + 1]):
            u[z] = y[positions[z]]
    return u


@njit()
def at_reports_with_steps(
    theta: Floats, decays: Floats, starts: Ints, positions: Ints
) -> tuple[Floats, Floats]:
    """`at_reports`, and the same sums with each term times its number of steps |x - z|."""
    u, steps = np.empty(positions.size), np.empty(positions.size)
    for i in range(decays.size):
        y, own = sweep_with_steps(theta, decays[i])
        for z in range(starts[i], starts[i + 1]):
            u[z], steps[z] = y[positions[z]], own[positions[z]]
    return u, steps


@njit()
def at_secrets(w: Floats, decays: Floats, starts: Ints, positions: Ints, k: int) -> Floats:
    """sum_z w_z decay^|x - z| over the reports of all lines, for each secret x."""
    total = np.zeros(k)
    for i in range(decays.size):
        y = sweep(scattered(w, starts[i], starts[i + 1], positions, k), decays[i])
        for x in range(k):
            total[x] += y[x]
    return total


@njit()
def at_secrets_with_steps(
    w: Floats, decays: Floats, starts: Ints, positions: Ints, k: int
) -> tuple[Floats, Floats]:
    """`at_secrets`, and the same sums with each term times its number of steps |x - z|."""
    total, steps = np.zeros(k), np.zeros(k)
    for i in range(decays.size):
        own = scattered(w, starts[i], starts[i + 1], positions, k)
        y, own_steps = sweep_with_steps(own, decays[i])
        for x in range(k):
            total[x] += y[x]
            steps[x] += own_steps[x]
    return total, steps


@njit()
def scattered(w: Floats, start: int, stop: int, positions: Ints, k: int) -> Floats:
    """Sum of the weights of some reports at each place."""
    total = np.zeros(k)
    for z in range(start, stop):
        total[positions[z]] += w[z]
    return total
