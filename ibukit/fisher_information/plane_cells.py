"""Variances of all cells of a large plane, many at once, without a matrix.

Every report must have been seen. An unbiased estimate of the cell x has weights y on the reports
with M y = e_x, and as for any sum (see `plane`)

    V_x = sum_z a_z y_z^2 - (sum_z a_z u_z y_z)^2 / sum_z a_z u_z^2,
    M u = 1,  a_z = (theta M)_z^2 / counts_z.

The second term takes one system for all cells. For the first, y falls off fast around x, so one
system has the right-hand sides of many cells, `spacing` apart and of alternate signs, and each cell
gets a_z y_z^2 of the reports that are nearest to it. The error of this mixing falls as the spacing
grows: the answer counts if a wider spacing gives the same.
"""

from __future__ import annotations

import numpy as np
from tqdm import tqdm

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels import facts
from ibukit.fisher_information.dense import root_weights
from ibukit.fisher_information.plane import PlaneSystemSolver
from ibukit.tally.tally import Tally

# Distances in cells between right-hand sides; a spacing s takes s^2 systems.
SPACINGS = (6, 10, 16)
# Relative difference that the results of two spacings may have: the result of the wider spacing is
# then about ten times nearer to the truth.
SPACINGS_TOLERANCE = 0.01
RESIDUAL_TOLERANCE = 1e-8


def plane_cell_variances(tally: Tally, theta: Floats) -> Floats | None:
    """Variance of each cell, shape (k,), or None.

    The answer is None off a plane, if not all its reports were seen, or if no two spacings agree.
    """
    channel = facts.as_plane(tally.operator)
    if channel is None or not np.array_equal(
        channel.cells, np.argwhere(np.ones(channel.shape, dtype=bool))
    ):
        return None
    a = 1 / root_weights(tally.counts, channel.forward(theta)) ** 2
    solve = PlaneSystemSolver(channel, RESIDUAL_TOLERANCE)
    u = solve.reports(np.ones(channel.k))
    lost = None if u is None else solve.secrets(a * u)
    if u is None or lost is None:
        return None
    lost = (lost**2 / float(a * u @ u)).reshape(channel.shape)
    last = None
    for spacing in SPACINGS:
        sums = _sums_of_squares(solve, a.reshape(channel.shape), spacing)
        if sums is None:
            return None
        variances = sums - lost
        if last is not None and (np.abs(variances - last) <= SPACINGS_TOLERANCE * variances).all():
            return variances.ravel()
        last = variances
    return None


def _sums_of_squares(solve: PlaneSystemSolver, a: Floats, spacing: int) -> Floats | None:
    """Sums of a_z y_z^2, (n_rows, n_cols), by spacing^2 systems; None if one is not solved."""
    found = np.empty(a.shape)
    places = [
        (i, j) for i in range(min(spacing, a.shape[0])) for j in range(min(spacing, a.shape[1]))
    ]
    for i, j in tqdm(
        places, desc=f"cells {spacing} apart", unit=" systems", leave=False, disable=None, delay=1
    ):
        wanted = np.zeros(a.shape)
        some = wanted[i::spacing, j::spacing]
        # Alternate signs, so that contributions of distant cells cancel on average.
        some[:] = 1 - 2 * (np.add.outer(*map(np.arange, some.shape)) % 2)
        y = solve.reports(wanted.ravel())
        if y is None:
            return None
        squares = a * y.reshape(a.shape) ** 2
        # Each report's square goes to the nearest cell of this system.
        for axis, first in enumerate((i, j)):
            squares = np.add.reduceat(
                squares, _beginnings(first, spacing, a.shape[axis]), axis=axis
            )
        found[i::spacing, j::spacing] = squares
    return found


def _beginnings(first: int, spacing: int, size: int) -> Ints:
    """Starts of the stretches nearest to the places first, first + spacing, ...; the first is 0."""
    places = np.arange(first, size, spacing)
    return np.where(places == first, 0, places - spacing // 2)
