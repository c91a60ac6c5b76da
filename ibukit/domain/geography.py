"""Geography of grids: read points in common forms, boxes in degrees, and cells in metres.

Cells of a grid are equal in degrees. Lengths are those of geodesics on the WGS 84 ellipsoid. Points
are (latitude, longitude); two mistakes are common and are looked for: both exchanged, and the
``total_bounds`` of a GeoDataFrame, which begin with the longitude.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import wraps
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.alphabet import MAX_LABELS
from ibukit.errors import AlphabetMismatch, TooLarge

if TYPE_CHECKING:
    pass

Bounds = tuple[float, float, float, float]
Outside = Literal["raise", "nearest", "drop"]
P = ParamSpec("P")
T = TypeVar("T")

# Smallest side of a cell in metres; edges are rounded to a tenth of a millimetre.
MIN_CELL_SIZE = 1e-3
FORMS = (
    "a GeoSeries or GeoDataFrame with a CRS, a frame with the columns lat and lon, or (lat, lon) "
    "pairs, shape (n, 2)"
)
CELLS = "(row, column) pairs of integers, shape (n, 2), or points with a CRS"


def is_geopandas(points: Any) -> bool:
    """Return whether points are a GeoSeries or a GeoDataFrame."""
    # If geopandas was never imported, the points cannot be of it; importing it takes a second.
    geopandas = sys.modules.get("geopandas")
    return geopandas is not None and isinstance(
        points, (geopandas.GeoSeries, geopandas.GeoDataFrame)
    )


def positions(points: Any, name: str = "points") -> tuple[Floats, Floats]:
    """Return latitudes and longitudes in degrees, each shape (n,), none missing."""
    if is_geopandas(points):
        geometry = in_degrees(points, name)
        # Areas and lines have no single position.
        kinds = sorted(set(geometry.geom_type) - {"Point"})
        if kinds:
            raise ValueError(
                f"{name} must be points, got {', '.join(kinds)}: take "
                f"{name}.representative_point() or {name}.centroid"
            )
        lat, lon = geometry.y.to_numpy(), geometry.x.to_numpy()
    else:
        pairs = number_pairs(points, name, [("lat", "lon")], FORMS)
        lat, lon = pairs[:, 0].astype(np.float64), pairs[:, 1].astype(np.float64)
    return refuse_missing(lat, lon)


def coordinates(lat: Any, lon: Any) -> tuple[Floats, Floats]:
    """Return latitudes and longitudes from two separate arguments, none missing."""
    # A single latitude or longitude stands for all points.
    y, x = np.broadcast_arrays(_floats("lat", lat), _floats("lon", lon))
    return refuse_missing(y, x)


def _floats(name: str, values: Any) -> Floats:
    if np.ma.is_masked(values):
        raise AlphabetMismatch(
            f"{name} must not be masked: leave points without a position out yourself"
        )
    return np.atleast_1d(arguments.numbers(name, values, "degrees, one number for each point"))


def refuse_missing(lat: Floats, lon: Floats) -> tuple[Floats, Floats]:
    """Return the arguments; AlphabetMismatch if a coordinate is NaN."""
    missing = np.isnan(lat) | np.isnan(lon)
    if missing.any():
        raise AlphabetMismatch(
            f"lat and lon must be numbers, {missing.sum()} of {missing.size} points have NaN, the "
            f"first at index {int(np.argmax(missing))}: leave points without a position out "
            "yourself"
        )
    return lat, lon


def in_degrees(points: Any, name: str) -> Any:
    """Return the geometries in degrees (WGS 84), from any coordinate reference system."""
    geometry = points.geometry
    absent = geometry.bounds.isna().any(axis=1).to_numpy()
    if absent.any():
        raise AlphabetMismatch(
            f"{name} must all have a place, {absent.sum()} of {absent.size} are missing, empty or "
            f"not a number, the first at index {geometry.index[int(np.argmax(absent))]!r}: leave "
            f"them out yourself, e.g. by {name}[{name}.geometry.bounds.notna().all(axis=1)]"
        )
    if geometry.crs is None:
        raise ValueError(
            f"{name} must have a CRS, or it is not known where they are: {name}.set_crs(4326) "
            "says that x is the longitude and y the latitude in degrees"
        )
    # A projection gives infinities for points outside its area of use.
    degrees = geometry.to_crs(4326)
    if not np.isfinite(degrees.bounds.to_numpy()).all():
        raise AlphabetMismatch(
            f"{name} must lie where {geometry.crs.name} does; some have no longitude and latitude"
        )
    return degrees


def cells_or_points(labels: Any, name: str) -> tuple[Any, bool]:
    """Return cells as pairs of integers, or points, and whether they are points."""
    if is_geopandas(labels):
        return labels, True
    pairs = number_pairs(labels, name, [("row", "col"), ("lat", "lon")], CELLS)
    # The names of columns decide; without names integers are cells and floats are points.
    named = set(getattr(labels, "column_names", getattr(labels, "columns", ())))
    return pairs, "lat" in named if named else pairs.dtype.kind == "f"


def number_pairs(
    values: Any, name: str, columns: list[tuple[str, str]], forms: str
) -> NDArray[Any]:
    """Return pairs of numbers, shape (n, 2), of their own type; from a frame by column names."""
    if hasattr(values, "columns"):
        # Arrow calls the names of columns `column_names`.
        names = list(getattr(values, "column_names", values.columns))
        matches = [pair for pair in columns if set(pair) <= set(names)]
        if len(matches) != 1:
            wanted = " or ".join(f"{first} and {second}" for first, second in columns)
            raise ValueError(
                f"{name} must have the columns {wanted}, or be {forms}; it has {names}"
            )
        values = np.stack([np.asarray(values[column]) for column in matches[0]], axis=1)
    if np.ma.is_masked(values):
        raise AlphabetMismatch(f"{name} must not be masked: leave what is missing out yourself")
    # Pairs must be numbers; anything else is named in the message.
    array = _array(values)
    if array is None or (array.size and array.shape[1:] != (2,)):
        got = type(values).__name__ if array is None else f"shape {array.shape}"
        codes = (
            array is not None and array.ndim == 1 and array.dtype.kind in "iu" and forms is CELLS
        )
        hint = "; these look like codes: say codes=True" if codes else ""
        raise ValueError(f"{name} must be {forms}, got {got}{hint}")
    if array.size and array.dtype.kind not in "iuf":
        import pandas

        if pandas.isna(array).any():
            raise AlphabetMismatch(
                f"{name} must not be missing: leave what is missing out yourself"
            )
        raise ValueError(f"{name} must be {forms}, got an array of type {array.dtype}")
    # An empty list becomes an array of floats in numpy, but no points are no geographic points.
    return array if array.size else np.zeros((0, 2), dtype=np.int64)


def _array(values: Any) -> NDArray[Any] | None:
    """Return an array, also of a Series of pairs; None if the lengths of rows differ."""
    try:
        array = np.asarray(values)
        return np.array([tuple(pair) for pair in array]) if array.dtype == object else array
    except (TypeError, ValueError):
        return None


def cells(lat: Floats, lon: Floats, edges: tuple[Floats, Floats], outside: Outside) -> Ints:
    """Return rows and columns of the cells that hold the points, shape (2, n) or shorter."""
    if not arguments.is_one_of(outside, ("raise", "nearest", "drop")):
        raise ValueError(f'outside must be "raise", "nearest" or "drop", got {outside!r}')
    # Points on the border are inside.
    (lat0, lat1), (lon0, lon1) = (axis[[0, -1]] for axis in edges)
    inside = (lat >= lat0) & (lat <= lat1) & (lon >= lon0) & (lon <= lon1)
    if not inside.all() and outside == "raise":
        _refuse_outside(lat[~inside], lon[~inside], inside.size, (lat0, lat1, lon0, lon1))
    # Points outside are left out, or moved to the nearest cell.
    if outside == "drop":
        lat, lon = lat[inside], lon[inside]
    elif not inside.all():
        refuse_off_the_globe(lat, lon)
        # Points outside move to the nearest cell, in longitude by the shorter way round the globe.
        lon = lon - 360 * np.rint((lon - (lon0 + lon1) / 2) / 360) * ~inside
        lat, lon = np.clip(lat, lat0, lat1), np.clip(lon, lon0, lon1)
    # The edges are searched, because the quotient (lat - lat0) / step may be rounded across one.
    # The last edge is left out, so that points on it belong to the last cell.
    indices = [
        np.searchsorted(axis[:-1], at, side="right") - 1
        for axis, at in zip(edges, (lat, lon), strict=True)
    ]
    return np.stack(indices)


def cells_beyond(lat: Floats, lon: Floats, edges: tuple[Floats, Floats]) -> Ints:
    """Return rows and columns, shape (n, 2), of the cells of a grid that is continued without end.

    A cell holds its south and west edge, also those at the north and east edge of the grid.
    """
    refuse_off_the_globe(lat, lon)
    middle = (edges[1][0] + edges[1][-1]) / 2
    nearest_way = lon - 360 * np.rint((lon - middle) / 360)
    return np.stack(
        [_cells_on_axis(axis, at) for axis, at in zip(edges, (lat, nearest_way), strict=True)],
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


def _refuse_outside(lat: Floats, lon: Floats, n: int, bounds: Bounds) -> NoReturn:
    lat0, lat1, lon0, lon1 = bounds
    exchanged = lon0 <= lat[0] <= lon1 and lat0 <= lon[0] <= lat1
    hint = "; with latitude and longitude exchanged it is inside" if exchanged else ""
    raise AlphabetMismatch(
        f"{len(lat)} of {n} points are outside the grid, the first is lat={lat[0]}, "
        f"lon={lon[0]}{hint}. If they are "
        'reports of a planar mechanism, take grid.locate(points, outside="nearest"): there these '
        "mechanisms put noise that leaves the grid. If they are positions of people, take a "
        "larger grid, as Grid.covering(points), or leave "
        'them out by outside="drop"'
    )


def refuse_off_the_globe(lat: Floats, lon: Floats) -> None:
    """Raise AlphabetMismatch if degrees are out of range.

    They may be metres, or begin with the longitude.
    """
    wrong = ~((np.abs(lat) <= 90) & (np.abs(lon) <= 180))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise AlphabetMismatch(
            f"lat must be -90..90 and lon -180..180, got lat={lat[i]}, lon={lon[i]} at index {i}; "
            "coordinates of another CRS go in as a GeoSeries that has it"
        )


def extent(points: Any) -> Bounds:
    """Return the south, north, west and east end in degrees of points or geometries."""
    if is_geopandas(points):
        west, south, east, north = (
            in_degrees(points, "points").total_bounds if len(points) else [math.nan] * 4
        )
        lat, lon = np.array([south, north]), np.array([west, east])
    else:
        lat, lon = positions(points)
    if not len(points) or not len(lat):
        raise ValueError("points must be at least one, there are none")
    refuse_off_the_globe(lat, lon)
    return float(lat.min()), float(lat.max()), float(lon.min()), float(lon.max())


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
        "points must be a region of the globe, and cell_size a part of it: they lie between lat "
        f"{south} and {north}, lon {west} and {east}, and the cells are of {size:g} m. Cells "
        "equal in degrees hold no pole and do not go across longitude 180; Grid.from_bounds(...) "
        "takes any box up to there"
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

    Edges by name are not in doubt.
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

    They are meant as (south, north, west, east). A city or a country has a side far below the
    difference of its latitude and its longitude; read in the wrong order, that difference becomes a
    side of the box. So the smaller of the two boxes is the one that is meant.
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
