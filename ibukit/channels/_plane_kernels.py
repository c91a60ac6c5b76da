"""Direct sums against a planar kernel, for reports whose Fourier transform would not be exact."""

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit


@njit()
def forward(mass: Floats, secrets: Ints, kernels: Floats, kinds: Ints, cells: Ints) -> Floats:
    """p_z = sum over some secrets of mass_x kernels[kind_z][|row_x - row_z|, |col_x - col_z|]."""
    p = np.zeros(kinds.size)
    for z in range(kinds.size):
        kind, row, col = kinds[z], cells[z, 0], cells[z, 1]
        total = 0.0
        for i in range(mass.size):
            total += mass[i] * kernels[kind, abs(secrets[i, 0] - row), abs(secrets[i, 1] - col)]
        p[z] = total
    return p
