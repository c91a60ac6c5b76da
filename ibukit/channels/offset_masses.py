"""Noise on a plane of cells: the mass of each offset, and what becomes of it when reports are remapped to a grid."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.grid import Grid

# e^-45 = 3e-20: what lies farther out is below the rounding of the sum
MAX_NATS_AWAY = 45.0
MAX_CELLS = 2**24
# below this share, what leaves a cell says its mass to more digits than the cell itself
SMALL_ESCAPE = 1e-3


def reach(grid: Grid, epsilon: float) -> tuple[int, int]:
    """How many cells to the north and to the east the noise extends, counted from any cell of the grid.

    A border cell gets a sum over a half-line of offsets, and d-privacy is about its relative
    accuracy: at a distance D to the side of the half-line, terms R further on are smaller by
    exp(-eps (sqrt(D^2 + R^2) - D)), which is e^-45 at the R used here. (Units of 1 / eps.)
    """
    height, width = (max(epsilon * side, sys.float_info.min) for side in grid.cell_shape)
    # without a border there are no such sums, and what lies farther out is only left out
    rows, cols = (grid.n_rows, grid.n_cols) if grid.bounded else (0, 0)
    north = rows + math.sqrt(MAX_NATS_AWAY**2 + 2 * MAX_NATS_AWAY * cols * width) / height
    east = cols + math.sqrt(MAX_NATS_AWAY**2 + 2 * MAX_NATS_AWAY * rows * height) / width
    if north * east > MAX_CELLS:
        sides, unit = "{:g} x {:g}".format(*grid.cell_shape), grid.unit or "unit of distance"
        raise ValueError(
            f"epsilon must be larger: at {epsilon:g} per {unit} the noise spreads over {north:.3g} x {east:.3g} "
            f"cells of {sides} {grid.unit or 'units'} (at most {MAX_CELLS} in all); take larger cells"
        )
    return math.ceil(north), math.ceil(east)


def geometric_table(grid: Grid, epsilon: float) -> Floats:
    """P(offset) = lambda exp(-eps |offset|) for offsets (i, j) with i, j >= 0; the other quadrants mirror it."""
    north, east = reach(grid, epsilon)
    height, width = grid.cell_shape
    r = np.hypot(np.arange(north + 1)[:, None] * height, np.arange(east + 1) * width)
    weights = np.exp(-epsilon * r)
    return np.asarray(weights / (weights * multiplicity(weights.shape)).sum())


def geometric_escape(grid: Grid, epsilon: float) -> float:
    """The mass of the noise outside the origin's own cell where it is tiny: that of the two nearest cells."""
    return 2 * math.exp(-epsilon * min(grid.cell_shape))


def laplace_table(grid: Grid, epsilon: float) -> Floats:
    """Mass of density eps^2 / (2 pi) exp(-eps r) on each cell (i, j), i, j >= 0, around the origin's cell."""
    north, east = reach(grid, epsilon)
    height, width = (epsilon * side for side in grid.cell_shape)  # lengths in units of 1 / eps
    # long cells are cut into about square ones, an odd number so that one has the origin in its
    # middle
    tall, wide = (2 * math.floor(ratio / 2) + 1 for ratio in (height / width, width / height))
    table = _square_table(
        north * tall + tall // 2, east * wide + wide // 2, height / tall, width / wide
    )
    table = _blocks(_blocks(table, tall).T, wide).T
    escape = laplace_escape(grid, epsilon)
    if (
        escape < SMALL_ESCAPE
    ):  # a sum of masses may round to 1 where the noise still leaves the cell
        table[0, 0] = 1 - escape
    return table


def _square_table(north: int, east: int, height: float, width: float) -> Floats:
    """The masses of about square cells (0, 0)..(north, east), sides in units of 1 / eps."""
    table = np.empty((north + 1, east + 1))
    # The density has its only singularity at the origin. Gauss-Legendre with n nodes on a cell
    # whose centre is D half cells away errs by (D + sqrt(D^2 - 1))^(-2n): 32 nodes next to the
    # origin, fewer from six cells on. In a cell of side L the density is a peak of relative width 1
    # / sqrt(L), and beyond L = 1500 all but the centre underflow.
    near = (min(6, north + 1), min(6, east + 1))
    more = 3 * math.ceil(math.sqrt(min(max(height, width), 1500)))
    table[:] = _cell_masses(np.arange(north + 1), np.arange(east + 1), height, width, 6 + more)
    table[: near[0], : near[1]] = _cell_masses(
        np.arange(near[0]), np.arange(near[1]), height, width, 32 + more
    )
    table[0, 0] = _centre_mass(height / 2, width / 2)
    return table


def _blocks(table: Floats, n: int) -> Floats:
    """Sum n (odd) neighbouring entries along the first axis; the first block is centred on entry 0, mirrored."""
    mirrored = np.concatenate([table[1 : n // 2 + 1][::-1], table])
    return np.asarray(mirrored.reshape(-1, n, table.shape[1]).sum(axis=1))


def _cell_masses(rows: Ints, cols: Ints, height: float, width: float, n: int) -> Floats:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    mass = np.zeros((len(rows), len(cols)))
    for node_y, weight_y in zip(nodes, weights, strict=True):
        y = (rows + node_y / 2) * height
        for node_x, weight_x in zip(nodes, weights, strict=True):
            x = (cols + node_x / 2) * width
            mass += weight_y * weight_x * np.exp(-np.hypot(y[:, None], x))
    return np.asarray(mass * (height * width / 4 / (2 * math.pi)))


def _centre_mass(half_height: float, half_width: float) -> float:
    """The origin's own cell in polar coordinates, where the radial integral is 1 - (1 + r) e^-r."""
    return _mean_over_directions(half_height, half_width, lambda r: -np.expm1(-r) - r * np.exp(-r))


def laplace_escape(grid: Grid, epsilon: float) -> float:
    """The mass of the noise outside the origin's own cell, without cancellation; 0 where it underflows."""
    height, width = (epsilon * side / 2 for side in grid.cell_shape)
    if min(height, width) > 1000:
        return 0.0
    return _mean_over_directions(height, width, lambda r: (1 + r) * np.exp(-r))


def _mean_over_directions(
    half_height: float, half_width: float, radial: Callable[[Floats], Floats]
) -> float:
    """The mean, over all directions from a cell's centre, of a function of the way to its edge."""

    def triangle(near: float, far: float) -> float:
        # directions from the origin through one edge at distance `near`, over the angles up to its
        # corner
        nodes, weights = np.polynomial.legendre.leggauss(64)
        top = math.atan2(far, near)
        r = near / np.cos((nodes + 1) / 2 * top)
        return float((weights * radial(r)).sum() * top / 2)

    return (
        4 * (triangle(half_height, half_width) + triangle(half_width, half_height)) / (2 * math.pi)
    )


def multiplicity(shape: tuple[int, ...]) -> Floats:
    """How many offsets (+-i, +-j) an entry of a quarter-plane table stands for."""
    rows, cols = (np.where(np.arange(size) == 0, 1.0, 2.0) for size in shape)
    return np.outer(rows, cols)


def remapped_kernels(grid: Grid, table: Floats) -> Floats:
    """What a report gets by its row and column offset when all goes to the nearest cell, shape (4, n_rows, n_cols).

    A border cell also gets all that lies beyond it: its entry is a sum over a half-line of offsets,
    a corner's over a quadrant. All terms are positive, so nothing cancels. Kind 0 is a cell inside,
    1 one on a western or eastern border, 2 on a southern or northern one, 3 a corner.
    """
    by_col = _remapped_axis(table.T, grid.n_cols)  # (2, n_cols, i)
    by_both = _remapped_axis(np.moveaxis(by_col, -1, 0), grid.n_rows)  # (2, n_rows, 2, n_cols)
    return np.ascontiguousarray(by_both.transpose(0, 2, 1, 3).reshape(4, grid.n_rows, grid.n_cols))


def _remapped_axis(table: Floats, size: int) -> Floats:
    """Entries at the offsets 0..size-1 along the first axis for reports (inside, on the border)."""
    beyond = np.cumsum(table[::-1], axis=0)[::-1]  # offsets at least d
    border = beyond[:1] + beyond[1:2] if size == 1 else beyond[:size]
    return np.stack([table[:size], border])


def remapped_kind(grid: Grid, cells: Ints) -> Ints:
    """The kernel of each report, see `remapped_kernels`."""
    on_border = (cells == 0) | (cells == [grid.n_rows - 1, grid.n_cols - 1])
    return np.asarray(on_border @ [2, 1])


def remapped_matrix(grid: Grid, table: Floats) -> Floats:
    """P(z given x) when each report goes to the nearest cell of the grid, shape (k, k)."""
    kernels = remapped_kernels(grid, table).reshape(2, 2, grid.n_rows, grid.n_cols)
    rows, cols = np.arange(grid.n_rows), np.arange(grid.n_cols)
    entries = kernels[  # (secret's row, report's row, secret's column, report's column)
        np.isin(rows, rows[[0, -1]]).astype(int)[:, None, None],
        np.isin(cols, cols[[0, -1]]).astype(int),
        np.abs(rows[:, None] - rows)[:, :, None, None],
        np.abs(cols[:, None] - cols),
    ]
    return np.ascontiguousarray(entries.transpose(0, 2, 1, 3).reshape(len(grid), len(grid)))
