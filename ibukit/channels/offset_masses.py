"""Noise on a plane of cells: the mass of each offset, before and after remapping to a grid."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.grid import Grid

# Nats by which a mass may fall before it is left out: e^-45 = 3e-20 is below the rounding of sums.
MAX_NATS_AWAY = 45.0
# Cells of a table of masses: 128 MB. Beyond, epsilon is refused.
MAX_CELLS = 2**24
# If less mass than this leaves the centre cell, that cell's mass is computed as 1 minus the mass
# that leaves it, which is more accurate than a quadrature of the cell.
MAX_ESCAPE_FOR_COMPLEMENT = 1e-3


def reach(grid: Grid, epsilon: float) -> tuple[int, int]:
    """Number of cells that the noise extends to the north and to the east of any cell of the grid.

    A border cell receives a sum over a half-line of offsets, and d-privacy requires that its
    relative error is small. In units of 1 / eps, at a distance D to the side of the half-line the
    term R further on is smaller by the factor exp(-(sqrt(D^2 + R^2) - D)). It is e^-45 at R =
    sqrt(45^2 + 2 45 D), the reach used here, with D the width of the grid.
    """
    # The square of the second number is the largest double.
    least, most = sys.float_info.min, math.sqrt(sys.float_info.max)
    height, width = (min(max(epsilon * side, least), most) for side in grid.cell_shape)
    # Without a border there are no such sums: cells beyond 45 nats are merely left out.
    rows, cols = (grid.n_rows, grid.n_cols) if grid.bounded else (0, 0)
    north = rows + math.sqrt(MAX_NATS_AWAY**2 + 2 * MAX_NATS_AWAY * cols * width) / height
    east = cols + math.sqrt(MAX_NATS_AWAY**2 + 2 * MAX_NATS_AWAY * rows * height) / width
    if north * east > MAX_CELLS:
        sides, unit = "{:g} x {:g}".format(*grid.cell_shape), grid.unit or "unit of distance"
        raise ValueError(
            f"alphabet must have larger cells: at epsilon={epsilon:g} per {unit} the noise spreads "
            f"over {north:.3g} x {east:.3g} cells of {sides} {grid.unit or 'units'}, and at most "
            f"{MAX_CELLS} in total are accepted; take larger cells before reports are made"
        )
    return math.ceil(north), math.ceil(east)


def geometric_table(grid: Grid, epsilon: float) -> Floats:
    """P(offset) = lambda exp(-eps |offset|) for offsets (i, j) with i, j >= 0.

    The other quadrants mirror it; lambda makes all masses sum to 1.
    """
    north, east = reach(grid, epsilon)
    height, width = grid.cell_shape
    r = np.hypot(np.arange(north + 1)[:, None] * height, np.arange(east + 1) * width)
    weights = np.exp(-epsilon * r)
    return weights / (weights * multiplicity(weights.shape)).sum()


def geometric_escape(grid: Grid, epsilon: float) -> float:
    """Mass outside the centre cell if it is tiny: that of the two nearest cells dominates."""
    return 2 * math.exp(-epsilon * min(grid.cell_shape))


def laplace_table(grid: Grid, epsilon: float) -> Floats:
    """Mass of the density eps^2 / (2 pi) exp(-eps r) on each cell (i, j) with i, j >= 0."""
    north, east = reach(grid, epsilon)
    # Lengths are in units of 1 / eps from here on.
    height, width = (epsilon * side for side in grid.cell_shape)
    # Oblong cells are cut into about square ones, an odd number so that one is centred on the
    # origin.
    tall, wide = (2 * math.floor(ratio / 2) + 1 for ratio in (height / width, width / height))
    table = _square_table(
        north * tall + tall // 2, east * wide + wide // 2, height / tall, width / wide
    )
    # The masses of the square cells are summed to those of the oblong ones.
    table = _blocks(_blocks(table, tall).T, wide).T
    escape = laplace_escape(grid, epsilon)
    if escape < MAX_ESCAPE_FOR_COMPLEMENT:
        table[0, 0] = 1 - escape
    return table


def _square_table(north: int, east: int, height: float, width: float) -> Floats:
    """Masses of about square cells (0, 0)..(north, east), with sides in units of 1 / eps."""
    table = np.empty((north + 1, east + 1))
    # The density is analytic but for the origin. Gauss-Legendre quadrature with n nodes on a cell
    # whose centre is D half cells away errs by about (D + sqrt(D^2 - 1))^(-2n): 32 nodes suffice
    # next to the origin, and 6 at six cells or farther. In a cell of side L the density has a peak
    # of relative width 1 / sqrt(L), hence more nodes; beyond L = 1500 all cells but the centre
    # underflow.
    near = (min(6, north + 1), min(6, east + 1))
    more = 3 * math.ceil(math.sqrt(min(max(height, width), 1500)))
    table[:] = _cell_masses(np.arange(north + 1), np.arange(east + 1), height, width, 6 + more)
    table[: near[0], : near[1]] = _cell_masses(
        np.arange(near[0]), np.arange(near[1]), height, width, 32 + more
    )
    # The density of the centre cell is singular; polar coordinates remove the singularity.
    table[0, 0] = _centre_mass(height / 2, width / 2)
    return table


def _blocks(table: Floats, n: int) -> Floats:
    """Sum n (odd) neighbours along the first axis; the first block is centred on entry 0."""
    # The first block needs the entries at negative offsets, which are those at positive ones.
    mirrored = np.concatenate([table[1 : n // 2 + 1][::-1], table])
    return mirrored.reshape(-1, n, table.shape[1]).sum(axis=1)


def _cell_masses(rows: Ints, cols: Ints, height: float, width: float, n: int) -> Floats:
    """Masses of cells by Gauss-Legendre quadrature with n x n nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    mass = np.zeros((len(rows), len(cols)))
    for node_y, weight_y in zip(nodes, weights, strict=True):
        y = (rows + node_y / 2) * height
        for node_x, weight_x in zip(nodes, weights, strict=True):
            x = (cols + node_x / 2) * width
            mass += weight_y * weight_x * np.exp(-np.hypot(y[:, None], x))
    return mass * (height * width / 4 / (2 * math.pi))


def _centre_mass(half_height: float, half_width: float) -> float:
    """Mass of the centre cell in polar coordinates: the radial integral is 1 - (1 + r) e^-r."""
    return _mean_over_directions(half_height, half_width, lambda r: -np.expm1(-r) - r * np.exp(-r))


def laplace_escape(grid: Grid, epsilon: float) -> float:
    """Mass of the noise outside the centre cell, without cancellation; 0 if it underflows."""
    height, width = (epsilon * side / 2 for side in grid.cell_shape)
    # exp(-1000) underflows.
    if min(height, width) > 1000:
        return 0.0
    return _mean_over_directions(height, width, lambda r: (1 + r) * np.exp(-r))


def _mean_over_directions(
    half_height: float, half_width: float, radial: Callable[[Floats], Floats]
) -> float:
    """Mean over all directions of a function of the distance from a cell's centre to its edge."""

    def triangle(near: float, far: float) -> float:
        # Directions through one edge, at distance `near` from the centre, up to its corner: the
        # distance to the edge at the angle phi is near / cos(phi).
        # 64 Gauss-Legendre nodes give all digits of a smooth function of the angle.
        nodes, weights = np.polynomial.legendre.leggauss(64)
        top = math.atan2(far, near)
        r = near / np.cos((nodes + 1) / 2 * top)
        return float((weights * radial(r)).sum() * top / 2)

    return (
        4 * (triangle(half_height, half_width) + triangle(half_width, half_height)) / (2 * math.pi)
    )


def multiplicity(shape: tuple[int, ...]) -> Floats:
    """Number of offsets (+-i, +-j) that an entry of a quarter-plane table stands for: 1, 2 or 4."""
    rows, cols = (np.where(np.arange(size) == 0, 1.0, 2.0) for size in shape)
    return np.outer(rows, cols)


def remapped_kernels(grid: Grid, table: Floats) -> Floats:
    """Probability of a report by its offset from the secret, remapped to the nearest cell.

    Shape (4, n_rows, n_cols), one kernel for each kind of cell. A border cell also receives the
    mass beyond it: its entry is a sum over a half-line of offsets, a corner's over a quadrant. All
    terms are positive, so nothing cancels. Kind 0 is a cell inside, 1 on a western or eastern
    border, 2 on a southern or northern one, 3 a corner.
    """
    # Rows and columns are remapped independently of each other. Shapes: (2, n_cols, rows of the
    # table), then (2, n_rows, 2, n_cols).
    by_col = _remapped_axis(table.T, grid.n_cols)
    by_both = _remapped_axis(np.moveaxis(by_col, -1, 0), grid.n_rows)
    return np.ascontiguousarray(by_both.transpose(0, 2, 1, 3).reshape(4, grid.n_rows, grid.n_cols))


def _remapped_axis(table: Floats, size: int) -> Floats:
    """Entries at the offsets 0..size-1 along the first axis for reports (inside, on the border)."""
    # beyond[d] is the mass of all offsets of at least d. A single row is both borders at once.
    beyond = np.cumsum(table[::-1], axis=0)[::-1]
    border = beyond[:1] + beyond[1:2] if size == 1 else beyond[:size]
    return np.stack([table[:size], border])


def remapped_kind(grid: Grid, cells: Ints) -> Ints:
    """Kind of each report, see `remapped_kernels`."""
    on_border = (cells == 0) | (cells == [grid.n_rows - 1, grid.n_cols - 1])
    return on_border @ [2, 1]


def remapped_matrix(grid: Grid, table: Floats) -> Floats:
    """Matrix P(z given x) of reports remapped to the nearest cell of the grid, shape (k, k)."""
    # The kind of a kernel is (report's row on the border, report's column on the border).
    kernels = remapped_kernels(grid, table).reshape(2, 2, grid.n_rows, grid.n_cols)
    rows, cols = np.arange(grid.n_rows), np.arange(grid.n_cols)
    # Axes: secret's row, report's row, secret's column, report's column.
    entries = kernels[
        np.isin(rows, rows[[0, -1]]).astype(int)[:, None, None],
        np.isin(cols, cols[[0, -1]]).astype(int),
        np.abs(rows[:, None] - rows)[:, :, None, None],
        np.abs(cols[:, None] - cols),
    ]
    return np.ascontiguousarray(entries.transpose(0, 2, 1, 3).reshape(len(grid), len(grid)))
