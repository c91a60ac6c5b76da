"""The plane of a grid: coordinates (x, y) in its unit from its south-west corner, and its cells.

Degrees are put on the plane in proportion to the grid's bounds, because cells are equal in degrees.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.geography import Bounds, Outside, cells, cells_beyond
from ibukit.domain.pair_names import Kind
from ibukit.domain.places import Pairs, degrees_of, refuse_off_the_globe
from ibukit.errors import AlphabetMismatch

# Points in a box with as many units as the grid has degrees are taken for degrees, if this box has
# at most this share of the grid's area. In km the share is 1 / 111^2 at the equator.
MAX_SHARE_OF_DEGREES = 0.01
FORMS = (
    "coordinates (x, y) in the grid's unit from its south-west corner, shape (n, 2), a frame with "
    "the columns x and y or lat and lon, or a GeoSeries with a CRS"
)


class GridPlane(Protocol):
    """Part of a `domain.grid.Grid` that is needed here, because its own file imports this one."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_cols(self) -> int:
        """Number of columns."""

    @property
    def cell_shape(self) -> tuple[float, float]:
        """Height and width of a cell."""

    @property
    def unit(self) -> str:
        """Unit of lengths."""

    @property
    def bounds(self) -> Bounds | None:
        """South, north, west and east edge in degrees."""

    @property
    def first(self) -> tuple[int, int]:
        """Name of the south-west cell."""

    @property
    def bounded(self) -> bool:
        """True unless it has no end."""

    def edges(self) -> tuple[Floats, Floats]:
        """Edges of the rows and of the columns."""


def extent(grid: GridPlane) -> Floats:
    """Width and height of the grid, in its unit."""
    height, width = grid.cell_shape
    return np.array([grid.n_cols * width, grid.n_rows * height])


def plane_edges(grid: GridPlane) -> tuple[Floats, Floats]:
    """Edges of the rows and of the columns in the grid's unit, from its south-west corner."""
    width, height = extent(grid)
    return np.linspace(0, height, grid.n_rows + 1), np.linspace(0, width, grid.n_cols + 1)


def require_bounds(grid: GridPlane, name: str) -> Bounds:
    """Return the bounds of a grid; ValueError if it has none, and so no place on the globe."""
    if grid.bounds is None:
        raise ValueError(
            f"{name} must be {FORMS.partition(',')[0]}: the grid has no bounds, so no place on the "
            "globe; make it by Grid.covering(...) or Grid.from_bounds(...)"
        )
    return grid.bounds


def xy_of(grid: GridPlane, pairs: NDArray[Any], kind: Kind, name: str) -> Floats:
    """Coordinates (x, y) of pairs of degrees (lat, lon), or of lengths (y, x), shape (n, 2)."""
    if kind != "degrees":
        xy: Floats = pairs[:, ::-1].astype(np.float64)
        refuse_not_finite(xy, name)
        if kind == "unit":
            refuse_degrees(grid, xy, name)
        return xy
    lat0, lat1, lon0, lon1 = require_bounds(grid, name)
    lat, lon = degrees_of(pairs)
    refuse_off_the_globe(lat, lon)
    # A longitude is shifted by whole turns to the one that is nearest to the grid's middle.
    middle = (lon0 + lon1) / 2
    lon = lon - 360 * np.rint((lon - middle) / 360)
    shares = np.stack([(lon - lon0) / (lon1 - lon0), (lat - lat0) / (lat1 - lat0)], axis=1)
    return shares * extent(grid)


def located(grid: GridPlane, read: Pairs, outside: Outside, name: str) -> Ints:
    """Codes of the cells that hold points; an array of points is in degrees."""
    pairs, kind = read
    if kind in ("unit", "lengths"):
        x, y = xy_of(grid, pairs, kind, name).T
        row, col = cells(y, x, plane_edges(grid), outside, degrees=False)
    else:
        if grid.bounds is None:
            raise ValueError(
                "locate needs a grid with bounds: make it by Grid.covering(...) or "
                "Grid.from_bounds(...); lengths in the grid's unit go in as a frame with the "
                "columns x and y"
            )
        lat, lon = degrees_of(pairs)
        if kind is None:
            refuse_lengths(grid, lat, lon)
        row, col = cells(lat, lon, grid.edges(), outside)
    codes: Ints = row * grid.n_cols + col
    return codes


def cells_without_end(grid: GridPlane, pairs: NDArray[Any], kind: Kind, name: str) -> NDArray[Any]:
    """Pairs (row, column) of the cells that hold points, of the grid continued without end.

    Cells are returned as they are.
    """
    if kind == "cells":
        return pairs
    if kind == "degrees":
        require_bounds(grid, name)
        found: Ints = cells_beyond(*degrees_of(pairs), grid.edges()) + grid.first
        return found
    if kind == "unit":
        refuse_whole(pairs, name)
        refuse_degrees(grid, pairs[:, ::-1].astype(np.float64), name)
    if not grid.bounded:
        # Lengths from the corner of cell (0, 0).
        return np.floor(pairs / grid.cell_shape).astype(np.int64)
    y, x = pairs.astype(np.float64).T
    return cells_beyond(y, x, plane_edges(grid), degrees=False) + grid.first


def refuse_whole(pairs: NDArray[Any], name: str) -> None:
    """Raise ValueError where columns x and y are integers, which may be columns and rows."""
    if len(pairs) and pairs.dtype.kind in "iu":
        raise ValueError(
            f"{name} must be cells or lengths: whole numbers in the columns x and y may be either. "
            "Name the columns row and col, or make lengths in the grid's unit floats"
        )


def refuse_not_finite(xy: Floats, name: str) -> None:
    """Raise AlphabetMismatch at the first point with a coordinate that is missing or infinite."""
    bad = ~np.isfinite(xy).all(axis=1)
    if bad.any():
        first = int(np.argmax(bad))
        raise AlphabetMismatch(
            f"{name} must be finite numbers, got {xy[first]} at index {first}, NaN where one is "
            "missing: remove missing ones before the call, which is right only if they are like "
            "the others"
        )


def refuse_lengths(grid: GridPlane, lat: Floats, lon: Floats) -> None:
    """Raise AlphabetMismatch if degrees are certainly meant as lengths in the grid's unit.

    This is certain if all points are far from the grid, but half of them are in it when read as x
    and y.
    """
    if not len(lat):
        return
    lat0, lat1, lon0, lon1 = require_bounds(grid, "points")
    away = np.maximum(np.abs(lat - (lat0 + lat1) / 2), np.abs(lon - (lon0 + lon1) / 2))
    far = away.min() > 10 * max(lat1 - lat0, lon1 - lon0)
    width, height = extent(grid)
    inside = (np.minimum(lat, lon) >= 0) & (lat <= width) & (lon <= height)
    exchanged = (lat >= lon0) & (lat <= lon1) & (lon >= lat0) & (lon <= lat1)
    if far and not exchanged.any() and 2 * inside.sum() >= len(lat):
        raise AlphabetMismatch(
            f"points must be (lat, lon) in degrees, but none is near the grid, and {inside.sum()} "
            f"of {len(lat)} are in it as x and y in its unit: pass these in a frame with the "
            "columns x and y"
        )


def refuse_degrees(grid: GridPlane, xy: Floats, name: str) -> None:
    """Raise AlphabetMismatch if coordinates in the grid's unit are certainly meant as degrees.

    This is certain if no point is in the grid but some lie where degrees would put them; or if
    there are several points, and at least half lie where degrees would put them, in a box that is a
    small part of the grid.
    """
    if grid.bounds is None or not len(xy):
        return
    lat0, lat1, lon0, lon1 = grid.bounds
    x, y = xy.T
    if not ((np.abs(x) <= 180) & (np.abs(y) <= 180)).all():
        return
    size = extent(grid)
    inside = ((xy >= 0) & (xy <= size)).all(axis=1).sum()
    small = (lat1 - lat0) * (lon1 - lon0) <= MAX_SHARE_OF_DEGREES * size[0] * size[1]
    for first, lat, lon in (("latitude", x, y), ("longitude", y, x)):
        there = int(((lat >= lat0) & (lat <= lat1) & (lon >= lon0) & (lon <= lon1)).sum())
        if (there and not inside) or (small and len(xy) > 1 and 2 * there >= len(xy)):
            raise AlphabetMismatch(
                f"{name} must be x and y in the grid's unit from its south-west corner, but "
                f"{there} of {len(xy)} are degrees inside its bounds if the {first} comes first, "
                f"as in ({xy[0, 0]:.6g}, {xy[0, 1]:.6g}): pass degrees in columns lat and lon, or "
                f"as a GeoSeries with a CRS; lengths in columns x_{grid.unit} and y_{grid.unit} "
                "are taken as they are"
            )
