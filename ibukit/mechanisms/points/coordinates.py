"""Coordinates (x, y) in the plane of a grid, in its unit from its south-west corner."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.doors import words_of
from ibukit.domain import geography
from ibukit.domain.alphabet import require_bounded
from ibukit.domain.grid import Grid
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


def extent(grid: Grid) -> Floats:
    """Width and height of the grid, in its unit."""
    height, width = grid.cell_shape
    return np.array([grid.n_cols * width, grid.n_rows * height])


def centres(grid: Grid) -> Floats:
    """(x, y) of the cells' centres, shape (k, 2)."""
    height, width = grid.cell_shape
    row, col = np.divmod(np.arange(len(grid)), grid.n_cols)
    return np.stack([(col + 0.5) * width, (row + 0.5) * height], axis=1)


def distances(grid: Grid, points: Floats) -> Floats:
    """Distances of the cells' centres from points (x, y), shape (k, s)."""
    # Distances in each direction for each column and row of cells, joined by broadcasting: no array
    # of all cells times all points is made but the result.
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


def points_of(grid: Grid, points: Any, outside: Outside) -> Floats:
    """Coordinates (x, y) of points in the grid's unit, shape (n, 2), or fewer if some are dropped.

    Parameters
    ----------
    grid : Grid
    points : array_like, shape (n, 2), or GeoSeries or GeoDataFrame of points
        Coordinates x and y; or places on the globe, where the grid has bounds.
    outside : {"raise", "keep", "drop"}
        What to do with points outside the grid.
    """
    words = words_of("PlanarLaplace.tally_points", "outside")
    if not arguments.is_one_of(outside, words):
        raise ValueError(
            f"outside must be {arguments.choices(words)}, got {outside!r}; reports that were moved "
            "to the nearest cell go into tally, by codes from grid.locate"
        )
    if geography.is_geopandas(points):
        xy = _from_globe(grid, points)
    else:
        xy = real_numbers("points", points, 2)
    size = extent(grid)
    inside = ((xy >= 0) & (xy <= size)).all(axis=1)
    if outside == "raise" and not inside.all():
        first = int(np.argmin(inside))
        raise AlphabetMismatch(
            f"{(~inside).sum()} of {len(xy)} points are outside the grid, the first is "
            f"x={xy[first, 0]:.6g}, y={xy[first, 1]:.6g} at index {first}; the grid is "
            f"{size[0]:.6g} wide and {size[1]:.6g} high. Noise leaves the map: if that is why, say "
            'outside="keep", and each is taken where it is; outside="drop" leaves people out, '
            "those near the border most often"
        )
    return xy[inside] if outside == "drop" else xy


def _from_globe(grid: Grid, points: Any) -> Floats:
    """Coordinates of places on the globe: degrees, in proportion to the grid's bounds."""
    if grid.bounds is None:
        raise ValueError(
            "points must be coordinates, shape (n, 2): the grid has no bounds, so no place on the "
            "globe; make it by Grid.covering(...) or Grid.from_bounds(...)"
        )
    lat, lon = geography.positions(points)
    geography.refuse_off_the_globe(lat, lon)
    lat0, lat1, lon0, lon1 = grid.bounds
    # A longitude is shifted by whole turns to the one that is nearest to the grid's middle.
    middle = (lon0 + lon1) / 2
    lon = lon - 360 * np.rint((lon - middle) / 360)
    shares = np.stack([(lon - lon0) / (lon1 - lon0), (lat - lat0) / (lat1 - lat0)], axis=1)
    return shares * extent(grid)
