"""Geography of grids: boxes in degrees, the cells that hold points, and cells in metres.

Cells of a grid are equal in degrees. Lengths are those of geodesics on the WGS 84 ellipsoid. Points
are (latitude, longitude); two mistakes are common and are looked for: latitude and longitude
exchanged, and the ``total_bounds`` of a GeoDataFrame, which begin with the longitude.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from numbers import Real
from typing import Any, Literal, NoReturn, ParamSpec, TypeVar

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.doors import words_of
from ibukit.domain.alphabet import MAX_LABELS
from ibukit.domain.places import refuse_off_the_globe
from ibukit.errors import AlphabetMismatch, TooLarge

Bounds = tuple[float, float, float, float]
Outside = Literal["raise", "nearest", "drop"]
P = ParamSpec("P")
T = TypeVar("T")

# Smallest side of a cell in metres; edges are rounded to a tenth of a millimetre.
MIN_CELL_SIZE = 1e-3


def cells(
    north: Floats,
    east: Floats,
    edges: tuple[Floats, Floats],
    outside: Outside,
    *,
    degrees: bool = True,
) -> Ints:
    """Return rows and columns of the cells that hold the points, shape (2, n) or shorter.

    Parameters
    ----------
    north, east : ndarray, shape (n,)
        Latitudes and longitudes, or y and x in the grid's unit.
    edges : pair of ndarray
        Edges of the rows and of the columns, in the same unit.
    outside : {"raise", "nearest", "drop"}
    degrees : bool
        Whether the coordinates are degrees.
    """
    refuse_other_words(outside)
    # Points on the border are inside.
    (lat0, lat1), (lon0, lon1) = bounds = tuple(axis[[0, -1]] for axis in edges)
    inside = (north >= lat0) & (north <= lat1) & (east >= lon0) & (east <= lon1)
    if not inside.all() and outside == "raise":
        _refuse_outside(north, east, inside, bounds, degrees)
    # If latitude and longitude are exchanged, nobody means all points to be moved or left out.
    exchanged = degrees and not inside.any() and _are_far_from_mirror(bounds)
    if exchanged and _exchanged(north, east, bounds).any():
        _refuse_outside(north, east, inside, bounds, degrees)
    # Points outside are left out, or moved to the nearest cell.
    if outside == "drop":
        north, east = north[inside], east[inside]
    elif not inside.all():
        if degrees:
            refuse_off_the_globe(north, east)
            # In longitude points move by the shorter way round the globe.
            east = east - 360 * np.rint((east - (lon0 + lon1) / 2) / 360) * ~inside
        north, east = np.clip(north, lat0, lat1), np.clip(east, lon0, lon1)
    # The edges are searched, because rounding may take the quotient (lat - lat0) / step across an
    # edge. The last edge is left out, so that points on it belong to the last cell.
    indices = [
        np.searchsorted(axis[:-1], at, side="right") - 1
        for axis, at in zip(edges, (north, east), strict=True)
    ]
    return np.stack(indices)


def refuse_other_words(outside: Any) -> None:
    """Raise ValueError unless `outside` is one of the words that `Grid.locate` takes."""
    words = words_of("Grid.locate", "outside")
    if not arguments.is_one_of(outside, words):
        hint = "; outside the grid is no cell to keep" if outside == "keep" else ""
        raise ValueError(f"outside must be {arguments.choices(words)}, got {outside!r}{hint}")


def _exchanged(north: Floats, east: Floats, bounds: Any) -> Any:
    """Return which points are inside if the longitude came first."""
    (lat0, lat1), (lon0, lon1) = bounds
    return (lon0 <= north) & (north <= lon1) & (lat0 <= east) & (east <= lat1)


def _are_far_from_mirror(bounds: Any) -> bool:
    """Return whether no place near the grid is in it with latitude and longitude exchanged."""
    (lat0, lat1), (lon0, lon1) = bounds
    return bool(abs((lat0 + lat1) - (lon0 + lon1)) / 2 > 2 * max(lat1 - lat0, lon1 - lon0))


def cells_beyond(
    north: Floats, east: Floats, edges: tuple[Floats, Floats], *, degrees: bool = True
) -> Ints:
    """Return rows and columns, shape (n, 2), of the cells of a grid that is continued without end.

    A cell holds its south and west edge only, even at the north and east edge of the grid.
    """
    if degrees:
        refuse_off_the_globe(north, east)
        middle = (edges[1][0] + edges[1][-1]) / 2
        east = east - 360 * np.rint((east - middle) / 360)
    return np.stack(
        [_cells_on_axis(axis, at) for axis, at in zip(edges, (north, east), strict=True)],
        axis=1,
    )


def _cells_on_axis(edges: Floats, at: Floats) -> Ints:
    """Return the index of the cell of each coordinate, below 0 and from n on outside the grid."""
    n = len(edges) - 1
    # Inside, cells are found as in `cells`. Outside, the quotient is used; rounding must not bring
    # a coordinate beyond an end back inside.
    inside = np.searchsorted(edges, at, side="right") - 1.0
    outside = np.floor((at - edges[0]) / ((edges[-1] - edges[0]) / n))
    index = np.where(at < edges[0], np.minimum(outside, -1), inside)
    return np.where(at >= edges[-1], np.maximum(outside, n), index).astype(np.int64)


def _refuse_outside(
    north: Floats, east: Floats, inside: Any, bounds: Any, degrees: bool
) -> NoReturn:
    first = int(np.argmin(inside))
    names = ("lat", "lon") if degrees else ("y", "x")
    exchanged = degrees and _exchanged(north, east, bounds)[first]
    hint = "; with latitude and longitude exchanged it is inside" if exchanged else ""
    raise AlphabetMismatch(
        f"{(~inside).sum()} of {inside.size} points are outside the grid, the first is "
        f"{names[0]}={north[first]}, {names[1]}={east[first]}{hint}. If they are "
        'reports of a planar mechanism, take grid.locate(points, outside="nearest"): there these '
        "mechanisms put noise that leaves the grid. If they are positions of people, take a "
        "larger grid, as Grid.covering(points), or leave "
        'them out by outside="drop": the estimate is then of the people inside'
    )


def geodesic_cell_size(bounds: Bounds, n_rows: int, n_cols: int) -> tuple[float, float]:
    """Return height and width in km of the middle cell on the WGS 84 ellipsoid."""
    refuse_too_many(n_rows, n_cols)
    lat0, lat1, lon0, lon1 = bounds
    # The height is that of all rows divided by their number, the width that of the middle cell.
    mid_lat, mid_lon, half = (lat0 + lat1) / 2, (lon0 + lon1) / 2, (lon1 - lon0) / n_cols / 2
    height = _metres(mid_lon, mid_lon, lat0, lat1) / 1000 / n_rows
    return height, _metres(mid_lon - half, mid_lon + half, mid_lat, mid_lat) / 1000


def _metres(lon0: float, lon1: float, lat0: float, lat1: float) -> float:
    """Return the length in metres of the geodesic from one point to another."""
    # pyproj comes with geopandas, which takes a second to import.
    from pyproj import Geod

    return float(Geod(ellps="WGS84").line_length([lon0, lon1], [lat0, lat1]))


def cover(box: Bounds, size: float) -> tuple[int, int, Bounds]:
    """Return rows, columns and edges of square cells of `size` metres that cover a box."""
    # The box is widened to both sides alike until a whole number of cells fits. Cells are measured
    # along the middle meridian and the middle parallel.
    if size < MIN_CELL_SIZE:
        raise ValueError(f"cell_size must be at least {MIN_CELL_SIZE:g} metres, got {size!r}")
    south, north, west, east = box
    lat, lon = (south + north) / 2, (west + east) / 2
    # Starting values of the search for half a cell in degrees: a degree of latitude is about 111 km
    # long, one of longitude shorter by the cosine of the latitude.
    start = size / 2 / 111_000
    along = start / max(math.cos(math.radians(lat)), 1e-9)
    # Boxes of half the globe, and cells at a pole, have no sensible width in degrees.
    if east - west > 180 or along > 45:
        _refuse_region(box, size)
    # Rows by the length of the middle meridian, columns by the width of a cell on the middle
    # parallel.
    n_rows = _cells_across(_metres(lon, lon, south, north) / size)
    high = _half_width(
        lambda half: _metres(lon, lon, lat - half, lat + half), n_rows * size, n_rows * start
    )
    step = _half_width(lambda half: _metres(lon - half, lon + half, lat, lat), size, along)
    # Near a pole no width may be right: the search then leaves the globe.
    if not math.isfinite(high + step):
        _refuse_region(box, size)
    n_cols = _cells_across((east - west) / 2 / step)
    if n_rows * n_cols > MAX_LABELS:
        raise TooLarge(
            f"cell_size is in metres and must be larger: {n_rows} x {n_cols} cells of {size:g} m "
            f"lie between lat {south} and {north}, lon {west} and {east}, more than {MAX_LABELS}. "
            "Look at the farthest points: a missing position is often written as (0, 0)"
        )
    # The edges are rounded outwards, so that all points stay inside.
    lat0, lat1 = _rounded(lat - high, math.floor), _rounded(lat + high, math.ceil)
    lon0, lon1 = _rounded(lon - n_cols * step, math.floor), _rounded(lon + n_cols * step, math.ceil)
    if lat0 < -90 or lat1 > 90 or lon0 < -180 or lon1 > 180:
        _refuse_region(box, size)
    return n_rows, n_cols, (min(lat0, south), max(lat1, north), min(lon0, west), max(lon1, east))


def _refuse_region(box: Bounds, size: float) -> NoReturn:
    south, north, west, east = box
    raise ValueError(
        "points, covered by cells of cell_size, must stay clear of the poles and of longitude 180, "
        f"and span at most 180 degrees: they lie between lat {south} and {north}, lon {west} and "
        f"{east}, and the cells are of {size:g} m. Cells that are equal in degrees cannot contain "
        "a pole or cross longitude 180; Grid.from_bounds(...) takes any box between lat -90 and "
        "90, lon -180 and 180"
    )


def _cells_across(length: float) -> int:
    """Return the number of cells that cover a length in units of a cell."""
    # A millionth of a cell beyond a whole number is rounding.
    return max(math.ceil(length - 1e-6), 1)


def _half_width(metres: Callable[[float], float], wanted: float, degrees: float) -> float:
    """Return the half width in degrees of an interval that is `wanted` metres long."""
    # The length is nearly proportional to the degrees, so each step gains several digits.
    for _ in range(12):
        degrees *= wanted / metres(degrees)
    return degrees


def _rounded(degrees: float, towards: Callable[[float], int]) -> float:
    """Round degrees to a tenth of a millimetre."""
    # Grids are compared by these numbers, and the last digits depend on the version of PROJ.
    return towards(degrees * 1e9) / 1e9


def check_bounds(bounds: Any) -> Bounds:
    """Return the south, north, west and east edge in degrees."""
    edges = arguments.items("bounds", bounds, "four numbers (lat0, lat1, lon0, lon1)")
    if len(edges) != 4 or not all(
        isinstance(edge, Real) and not isinstance(edge, bool) for edge in edges
    ):
        raise ValueError(f"bounds must be four numbers (lat0, lat1, lon0, lon1), got {bounds}")
    lat0, lat1, lon0, lon1 = box = tuple(map(arguments.as_float, edges))
    if not (-90 <= lat0 < lat1 <= 90 and -180 <= lon0 < lon1 <= 180):
        raise ValueError(
            "bounds must be south < north and west < east in degrees (lat0 < lat1, lon0 < lon1), "
            f"got {(lat0, lat1, lon0, lon1)}"
            + (_hint_for_total_bounds(*box) if _are_total_bounds(*box) else "")
        )
    # `total_bounds` of geopandas is an array; people who type the numbers write a tuple.
    if isinstance(bounds, np.ndarray):
        _refuse_ambiguous(lat0, lat1, lon0, lon1)
    return lat0, lat1, lon0, lon1


def check_corner(first: Any) -> tuple[int, ...]:
    """Return row and column of the south-west cell."""
    corner = arguments.items("first", first, "a pair (row, column)")
    if len(corner) != 2:
        raise ValueError(f"first must be a pair (row, column), got {first!r}")
    return tuple(arguments.whole("first", end, -(2**53), 2**53) for end in corner)


def refuse_too_many(n_rows: int, n_cols: int) -> None:
    """Raise TooLarge if a grid has more cells than can be listed."""
    if n_rows * n_cols > MAX_LABELS:
        size = " x ".join(map(arguments.readable, (n_rows, n_cols)))
        raise TooLarge(
            f"a grid must have at most {MAX_LABELS} cells, got {size}: take larger cells"
        )


def refuse_ambiguous_edges(make: Callable[P, T]) -> Callable[P, T]:
    """Refuse four positional edges that may be the ``total_bounds`` of a frame.

    Edges that are given by name are not in doubt.
    """

    @wraps(make)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        edges: Any = args[1:5]
        if len(edges) == 4:
            _refuse_ambiguous(*check_bounds(edges))
        return make(*args, **kwargs)

    return checked


def _are_total_bounds(west: float, south: float, east: float, north: float) -> bool:
    return -180 <= west < east <= 180 and -90 <= south < north <= 90


def _refuse_ambiguous(first: float, second: float, third: float, fourth: float) -> None:
    """Raise ValueError if four edges make a smaller box when read as ``total_bounds``.

    They are meant as (south, north, west, east). The sides of a city or a country are far shorter
    than the difference between its latitude and its longitude. If the edges are read in the wrong
    order, that difference becomes a side of the box. So the smaller of the two boxes is the one
    that is meant.
    """
    as_stated = (second - first) * (fourth - third)
    if _are_total_bounds(first, second, third, fourth) and as_stated >= (third - first) * (
        fourth - second
    ):
        raise ValueError(
            f"bounds must be (lat0, lat1, lon0, lon1): {(first, second, third, fourth)} would be a "
            f"box of {second - first:.3g} x {fourth - third:.3g} degrees"
            + _hint_for_total_bounds(first, second, third, fourth)
            + f". If it is meant, give the edges by name: Grid.from_bounds(lat0={first}, "
            f"lat1={second}, lon0={third}, lon1={fourth}, ...)"
        )


def _hint_for_total_bounds(west: float, south: float, east: float, north: float) -> str:
    return (
        "; total_bounds of a GeoDataFrame is (west, south, east, north), which is "
        f"Grid.from_bounds({south}, {north}, {west}, {east}, n_rows, n_cols), or "
        "Grid.covering(frame, cell_size)"
    )
