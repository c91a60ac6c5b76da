"""Coordinates (x, y) in the plane of a grid, in its unit from its south-west corner."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.doors import words_of
from ibukit.domain.alphabet import require_bounded
from ibukit.domain.grid import Grid
from ibukit.domain.pair_names import PLACES
from ibukit.domain.places import is_geopandas, read_points
from ibukit.domain.plane import FORMS, extent, refuse_degrees, xy_of
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms.points.real_numbers import real_numbers

Outside = Literal["raise", "keep", "drop"]


def bounded_grid(alphabet: Any) -> Grid:
    """Return the alphabet itself; TypeError unless it is a grid, TooLarge if it has no end."""
    if not isinstance(alphabet, Grid):
        raise TypeError(
            f"alphabet must be a Grid, because the noise moves in the plane; got {alphabet!r}"
        )
    require_bounded(alphabet)
    return alphabet


def centres(grid: Grid) -> Floats:
    """(x, y) of the cells' centres, shape (k, 2)."""
    height, width = grid.cell_shape
    row, col = np.divmod(np.arange(len(grid)), grid.n_cols)
    return np.stack([(col + 0.5) * width, (row + 0.5) * height], axis=1)


def distances(grid: Grid, points: Floats) -> Floats:
    """Distances of the cells' centres from points (x, y), shape (k, s)."""
    # Distances in either direction are computed for each column and row of cells, and joined by
    # broadcasting: so the result is the only array of all cells times all points.
    east, north = (
        (np.arange(n) + 0.5)[:, None] * side - at
        for n, side, at in zip(
            (grid.n_cols, grid.n_rows), grid.cell_shape[::-1], points.T, strict=True
        )
    )
    return np.hypot(north[:, None], east).reshape(len(grid), len(points))


def nearest_distance(grid: Grid, points: Floats) -> Floats:
    """Distance of points (x, y) from the nearest centre of a cell, shape (s,)."""
    # The nearest centre is that of the cell that holds the point, or of the border cell next to it.
    sides = np.array(grid.cell_shape[::-1])
    cell = np.clip(np.floor(points / sides), 0, np.array([grid.n_cols, grid.n_rows]) - 1)
    away = points - (cell + 0.5) * sides
    return np.hypot(away[:, 0], away[:, 1])


def coordinates_of(grid: Grid, points: Any, name: str) -> Floats:
    """Coordinates (x, y) of points in the grid's unit, shape (n, 2), from any form of points.

    Geometries and columns lat and lon are put on the grid; columns x and y, and arrays, are taken
    as (x, y).
    """
    if is_geopandas(points) or hasattr(points, "columns"):
        pairs, kind = read_points(points, name, PLACES, FORMS, grid.unit)
        if kind is not None:
            return xy_of(grid, pairs, kind, name)
        points = pairs
    xy = real_numbers(name, points, 2)
    refuse_degrees(grid, xy, name)
    return xy


def points_of(grid: Grid, points: Any, outside: Outside) -> Floats:
    """Coordinates (x, y) of points in the grid's unit, shape (n, 2), or fewer if some are dropped.

    Parameters
    ----------
    grid : Grid
    points : array_like, shape (n, 2), frame, or GeoSeries or GeoDataFrame of points
        As for `coordinates_of`.
    outside : {"raise", "keep", "drop"}
        What to do with points outside the grid.
    """
    words = words_of("PlanarLaplace.tally_points", "outside")
    if not arguments.is_one_of(outside, words):
        raise ValueError(
            f"outside must be {arguments.choices(words)}, got {outside!r}; reports that were moved "
            "to the nearest cell go into tally, by codes from grid.locate"
        )
    xy = coordinates_of(grid, points, "points")
    size = extent(grid)
    inside = ((xy >= 0) & (xy <= size)).all(axis=1)
    if outside == "raise" and not inside.all():
        first = int(np.argmin(inside))
        raise AlphabetMismatch(
            f"{(~inside).sum()} of {len(xy)} points are outside the grid, the first is "
            f"x={xy[first, 0]:.6g}, y={xy[first, 1]:.6g} at index {first}; the grid is "
            f"{size[0]:.6g} wide and {size[1]:.6g} high{_unit_of(grid)}. Make sure that they are "
            "(x, y) in this unit from its south-west corner; degrees go in as a frame with the "
            "columns lat and lon, or as a GeoSeries with a CRS. Noise leaves the map: if that is "
            'why, say outside="keep", and each is taken where it is; outside="drop" leaves people '
            "out, those near the border most often, so that the estimate is wrong there"
        )
    return xy[inside] if outside == "drop" else xy


def _unit_of(grid: Grid) -> str:
    return f", in {grid.unit}" if grid.unit else ""
