"""Read points in the forms in which people have them: places on the globe, lengths, or cells.

Geometries say where they are by their CRS, and columns by their names. Arrays say nothing: each
function that takes them documents how it reads them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.domain.pair_names import Kind, pair_in, refuse_projected, shown
from ibukit.errors import AlphabetMismatch

FORMS = (
    "a GeoSeries or GeoDataFrame with a CRS, a frame with the columns lat and lon, or (lat, lon) "
    "pairs, shape (n, 2)"
)
CELLS = "(row, column) pairs of integers, shape (n, 2), or points with a CRS"


class Pairs(NamedTuple):
    """Pairs of coordinates, and what they are."""

    values: NDArray[Any]
    """Shape (n, 2). Of columns with names, the one from south to north comes first."""
    kind: Kind | None
    """None for an array, which does not say it."""


def is_geopandas(points: Any) -> bool:
    """Return whether points are a GeoSeries or a GeoDataFrame."""
    # If geopandas was never imported, the points are not its objects; importing it takes a second.
    geopandas = sys.modules.get("geopandas")
    return geopandas is not None and isinstance(
        points, (geopandas.GeoSeries, geopandas.GeoDataFrame)
    )


def positions(points: Any, name: str = "points") -> tuple[Floats, Floats]:
    """Return latitudes and longitudes in degrees, each shape (n,), none missing.

    Arrays are (latitude, longitude).
    """
    if not is_geopandas(points):
        return degrees_of(number_pairs(points, name, ("degrees",), FORMS).values)
    geometry = in_degrees(points, name)
    refuse_other_geometries(geometry, name)
    return refuse_missing(geometry.y.to_numpy(), geometry.x.to_numpy())


def read_points(points: Any, name: str, kinds: Sequence[Kind], forms: str, unit: str = "") -> Pairs:
    """Return geometries as degrees, frames by the names of their columns, and arrays as they are.

    Parameters
    ----------
    points : GeoSeries, GeoDataFrame, frame or array_like, shape (n, 2)
    name : str
        Name of the argument.
    kinds : sequence of Kind
        What the columns of a frame may hold.
    forms : str
        The forms that are taken, for a message.
    unit : str
        Unit of the grid.
    """
    if is_geopandas(points):
        return Pairs(np.column_stack(positions(points, name)), "degrees")
    return number_pairs(points, name, kinds, forms, unit)


def degrees_of(pairs: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return latitudes and longitudes of pairs, none missing."""
    lat, lon = pairs.astype(np.float64).T
    return refuse_missing(lat, lon)


def refuse_other_geometries(geometry: Any, name: str) -> None:
    """Raise ValueError unless all geometries are points, which alone have a single position."""
    kinds = sorted(set(geometry.geom_type.dropna()) - {"Point"})
    if kinds:
        raise ValueError(
            f"{name} must be points, got {', '.join(kinds)}: take {name}.representative_point() or "
            f"{name}.centroid"
        )


def coordinates(lat: Any, lon: Any) -> tuple[Floats, Floats]:
    """Return latitudes and longitudes from two separate arguments, none missing."""
    # A single latitude or longitude stands for all points.
    y, x = np.broadcast_arrays(_floats("lat", lat), _floats("lon", lon))
    return refuse_missing(y, x)


def _floats(name: str, values: Any) -> Floats:
    if np.ma.is_masked(values):
        raise AlphabetMismatch(
            f"{name} must not be masked: remove points without a position before the call, which "
            "is right only if they are like the others"
        )
    return np.atleast_1d(arguments.numbers(name, values, "degrees, one number for each point"))


def refuse_missing(lat: Floats, lon: Floats) -> tuple[Floats, Floats]:
    """Return the arguments; AlphabetMismatch if a coordinate is NaN."""
    missing = np.isnan(lat) | np.isnan(lon)
    if missing.any():
        raise AlphabetMismatch(
            f"lat and lon must be numbers, {missing.sum()} of {missing.size} points have NaN, the "
            f"first at index {int(np.argmax(missing))}: remove these points before the call, which "
            "is right only if they are like the others"
        )
    return lat, lon


def in_degrees(points: Any, name: str) -> Any:
    """Return the geometries in degrees (WGS 84), from any coordinate reference system."""
    geometry = points.geometry
    absent = geometry.bounds.isna().any(axis=1).to_numpy()
    if absent.any():
        raise AlphabetMismatch(
            f"{name} must all have a place, {absent.sum()} of {absent.size} are missing, empty or "
            f"not a number, the first at index {geometry.index[int(np.argmax(absent))]!r}: remove "
            "them, which is right only if they are like the others, e.g. by "
            f"{name}[{name}.geometry.bounds.notna().all(axis=1)]"
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
            f"{name} must lie in the area for which {geometry.crs.name} is defined; some cannot be "
            "converted to longitude and latitude: check these, and that the CRS is theirs"
        )
    return degrees


def number_pairs(
    values: Any, name: str, kinds: Sequence[Kind], forms: str, unit: str = ""
) -> Pairs:
    """Return pairs of numbers of their own type; from a frame by the names of its columns."""
    kind: Kind | None = None
    if hasattr(values, "columns"):
        # Arrow calls the names of columns `column_names`.
        names = list(getattr(values, "column_names", values.columns))
        pair = pair_in(names, kinds, name, unit)
        # The default names of pandas, 0 and 1, say as little as those of an array.
        if pair is None and names != [0, 1]:
            refuse_projected(names, name)
            raise ValueError(
                f"{name} must have the columns {shown(kinds)}, or be {forms}; it has {names}"
            )
        if pair is not None:
            kind = pair.kind
            values = _side_by_side(values, (pair.north, pair.east), name)
    if np.ma.is_masked(values):
        raise AlphabetMismatch(
            f"{name} must not be masked: remove what is missing before the call, which is right "
            "only if it is like the rest"
        )
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
                f"{name} must not be missing: remove what is missing before the call, which is "
                "right only if it is like the rest"
            )
        raise ValueError(f"{name} must be {forms}, got an array of type {array.dtype}")
    # numpy makes floats of an empty list, which would then be taken for geographic points.
    return Pairs(array if array.size else np.zeros((0, 2), dtype=np.int64), kind)


def _side_by_side(frame: Any, names: tuple[Any, Any], name: str) -> NDArray[Any]:
    """Return two columns of a frame as an array, shape (n, 2)."""
    try:
        return np.stack([np.asarray(frame[column]) for column in names], axis=1)
    # Frames that are not computed yet have no values, or no columns to take.
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a frame in memory, got {type(frame).__module__.split('.')[0]}'s "
            f"{type(frame).__name__}: Tally.from_table(table, mechanism, report={list(names)}) "
            "counts reports where the table lives"
        ) from None


def _array(values: Any) -> NDArray[Any] | None:
    """Return an array, also of a Series of pairs; None if the lengths of rows differ."""
    try:
        array = np.asarray(values)
        return np.array([tuple(pair) for pair in array]) if array.dtype == object else array
    except (TypeError, ValueError):
        return None


def refuse_off_the_globe(lat: Floats, lon: Floats) -> None:
    """Raise AlphabetMismatch if degrees are out of range.

    The numbers may be metres, or begin with the longitude.
    """
    wrong = ~((np.abs(lat) <= 90) & (np.abs(lon) <= 180))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise AlphabetMismatch(
            f"lat must be -90..90 and lon -180..180, got lat={lat[i]}, lon={lon[i]} at index {i}; "
            "coordinates of another CRS go in as a GeoSeries that has it"
        )


def extent(points: Any) -> tuple[float, float, float, float]:
    """Return the south, north, west and east end in degrees of points or geometries."""
    if is_geopandas(points):
        west, south, east, north = (
            in_degrees(points, "points").total_bounds if len(points) else [math.nan] * 4
        )
        lat, lon = np.array([south, north]), np.array([west, east])
    else:
        lat, lon = positions(points)
    if not len(points) or not len(lat):
        raise ValueError("points must hold at least one point, but there is none")
    refuse_off_the_globe(lat, lon)
    return float(lat.min()), float(lat.max()), float(lon.min()), float(lon.max())
