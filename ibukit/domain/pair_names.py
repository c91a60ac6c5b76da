"""Names of two columns that say what their numbers are: degrees, lengths, or rows and columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

# Two kinds are lengths in the unit of the grid: "unit" for columns x and y, which other programs
# fill with degrees, and "lengths" for columns whose names say the unit, such as x_km.
Kind = Literal["cells", "degrees", "unit", "lengths"]
PLACES: tuple[Kind, ...] = ("degrees", "unit", "lengths")
ALL: tuple[Kind, ...] = ("cells", *PLACES)

LATITUDES, LONGITUDES = ("lat", "latitude"), ("lon", "lng", "long", "longitude")
# Coordinates of a projection, which mean nothing without its CRS: most often metres from an origin
# far away.
PROJECTED = re.compile(r"(east|north)ings?(?![a-z])")
# The axis is 0 from south to north, and 1 from west to east.
AXES: dict[str, tuple[Kind, int]] = {
    **dict.fromkeys(LATITUDES, ("degrees", 0)),
    **dict.fromkeys(LONGITUDES, ("degrees", 1)),
    "y": ("unit", 0),
    "x": ("unit", 1),
    "row": ("cells", 0),
    "col": ("cells", 1),
    "column": ("cells", 1),
}
SHOWN: dict[Kind, str] = {"cells": "row and col", "degrees": "lat and lon", "unit": "x and y"}


class PairNames(NamedTuple):
    """Two columns of coordinates, and what their numbers are."""

    kind: Kind
    north: Any
    """The name of the column of rows, latitudes or y."""
    east: Any
    """The name of the column of columns, longitudes or x."""


def shown(kinds: Sequence[Kind]) -> str:
    """Return the usual names of the columns of these kinds, for a message."""
    return " or ".join(SHOWN[kind] for kind in kinds if kind in SHOWN)


def axis_of(name: Any, unit: str = "") -> tuple[Kind, int] | None:
    """Return what the numbers of a column are, and along which axis, or None if this is not known.

    Parameters
    ----------
    name : object
        Name of the column. Case does not matter, and "pickup_latitude" is a latitude.
    unit : str
        Unit of the grid: with "km", the column "x_km" holds lengths.
    """
    if not isinstance(name, str):
        return None
    text = name.strip().lower()
    if unit and text in (f"x_{unit.lower()}", f"y_{unit.lower()}"):
        return "lengths", int(text[0] == "x")
    if text in AXES:
        return AXES[text]
    words = re.split(r"[^a-z]+", text)
    # The word may also be the end of a longer one, as in "decimalLatitude".
    latitude = any(word in LATITUDES or word.endswith("latitude") for word in words)
    longitude = any(word in LONGITUDES or word.endswith("longitude") for word in words)
    return None if latitude == longitude else ("degrees", int(longitude))


def refuse_projected(names: Sequence[Any], name: str) -> None:
    """Raise ValueError if columns are eastings or northings, whose CRS no table says.

    Parameters
    ----------
    names : sequence
        Names of the columns.
    name : str
        Name of the argument.
    """
    projected = [x for x in names if isinstance(x, str) and PROJECTED.search(x.lower())]
    if projected:
        raise ValueError(
            f"{name} must not be eastings and northings without a CRS, got {projected}: most often "
            "they are metres from an origin far from the grid. Pass geopandas.GeoDataFrame(table, "
            "geometry=geopandas.points_from_xy(easting, northing, crs=...)), for Tally.from_table "
            'with report="geometry"; on a grid without bounds, or if they are lengths in the '
            "grid's unit from its south-west corner already, take such lengths and name the "
            "columns x and y"
        )


def pair_in(
    names: Sequence[Any], kinds: Sequence[Kind], name: str, unit: str = ""
) -> PairNames | None:
    """Return the columns of a frame that hold coordinates, or None if it has none.

    Degrees come before lengths, because they do not depend on a grid.

    Raises
    ------
    ValueError
        If it is not certain which columns are meant.
    """
    found: dict[tuple[Kind, int], list[Any]] = {}
    for column in names:
        axis = axis_of(column, unit)
        if axis is not None and axis[0] in kinds:
            found.setdefault(axis, []).append(column)
    whole = [kind for kind in kinds if (kind, 0) in found and (kind, 1) in found]
    if "degrees" in whole:
        whole = [kind for kind in whole if kind not in ("unit", "lengths")]
    columns = [column for kind in whole for axis in (0, 1) for column in found[kind, axis]]
    if len(columns) > 2:
        raise ValueError(
            f"{name} must have the columns {shown(kinds)}, and only two of them, but it has "
            f"{columns}: select two"
        )
    return PairNames(whole[0], *columns) if whole else None


def pair_of(names: Sequence[Any], name: str, unit: str = "") -> PairNames | None:
    """Return what two columns hold, in any order, or None if neither of their names says it.

    Raises
    ------
    ValueError
        If the names do not belong together, or are those of a projection without its CRS.
    """
    refuse_projected(names, name)
    axes = [axis_of(column, unit) for column in names]
    if axes == [None] * len(names):
        return None
    pair = pair_in(names, ALL, name, unit) if None not in axes else None
    if pair is None:
        raise ValueError(
            f"{name} must name two columns that belong together, such as {shown(ALL)}, got "
            f"{list(names)}: rename them"
        )
    return pair
