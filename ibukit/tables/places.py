"""Reports on a grid that stand in two columns of a table, or in one of geometries.

The names of the columns say what the numbers are. If they do not, and the mechanism reports cells
of a grid, integers are rows and columns, and floats are latitudes and longitudes, in this order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Ints
from ibukit.domain.geography import Outside
from ibukit.domain.grid import Grid
from ibukit.domain.pair_names import axis_of, pair_of
from ibukit.domain.places import Pairs, in_degrees, is_geopandas, refuse_other_geometries
from ibukit.domain.plane import (
    cells_without_end,
    located,
    plane_edges,
    refuse_degrees,
    refuse_whole,
    require_bounds,
    xy_of,
)
from ibukit.domain.report_kind import ReportKind
from ibukit.tables.report_codes import number_in

# Texts of geometries, as PostGIS and shapely write them.
WKT = re.compile(r"\s*(SRID=\d+;)?\s*(MULTI)?(POINT|LINESTRING|POLYGON)\s*(Z|M|ZM)?\s*\(", re.I)
# Endings of the names of the two columns that are made from a column of geometries.
LATITUDE, LONGITUDE = " latitude", " longitude"


# Degrees beyond these are on no globe.
LIMITS = np.array([90, 180])


def with_degrees(table: Any, report: Any) -> tuple[Any, Any]:
    """Return a table and the columns of its reports, with degrees in place of geometries.

    Other tables, and other columns, are returned as they are.
    """
    names = [report] if isinstance(report, str) else report
    if not is_geopandas(table) or not hasattr(table, "columns") or not _is_one(names):
        return table, report
    name = names[0]
    if name not in table.columns or not is_geopandas(table[name]):
        return table, report
    import pandas as pd

    column = table[name]
    given = column.geometry.bounds.notna().all(axis=1).to_numpy()
    present = in_degrees(column[given], f"column {name!r}")
    refuse_other_geometries(present, f"column {name!r}")
    # A geometry that is missing or empty is a missing report.
    degrees = np.full((2, len(table)), np.nan)
    degrees[:, given] = present.y.to_numpy(), present.x.to_numpy()
    pair = [f"{name}{end}" for end in (LATITUDE, LONGITUDE)]
    return pd.DataFrame(table.drop(columns=name)).assign(**dict(zip(pair, degrees, strict=True))), (
        pair
    )


def _is_one(names: Any) -> bool:
    return isinstance(names, (list, tuple)) and len(names) == 1


def refuse_geometries(values: NDArray[Any], columns: Sequence[Any]) -> None:
    """Raise ValueError if values are geometries, which are not read without their CRS."""
    first = next((value for value in values.ravel().tolist() if _is_geometry(value)), None)
    if first is not None:
        raise ValueError(
            f"column {', '.join(map(repr, columns))} holds geometries, got "
            f"{type(first).__name__}: pass a GeoDataFrame with a CRS (geopandas.read_parquet and "
            "geopandas.read_file read files), or name two columns, the latitude and the longitude"
        )


def _is_geometry(value: Any) -> bool:
    if isinstance(value, str):
        return WKT.match(value) is not None
    # Binary geometries of files begin with the order of their bytes, and the type of a point.
    binary = isinstance(value, (bytes, bytearray)) and len(value) >= 21 and value[0] in (0, 1)
    return binary or hasattr(value, "geom_type")


def refuse_action(action: str, mechanism: Any, alphabet: Any) -> None:
    """Raise ValueError if reports of a mechanism cannot be moved, or kept, as `unknown` says.

    Parameters
    ----------
    action : str
        The value of `unknown`.
    mechanism : Mechanism
    alphabet : Alphabet or None
        Alphabet of the reports; the grid, if these are points, or cells of a grid without an end.
    """
    on_grid, listed = isinstance(alphabet, Grid), mechanism.report_kind is ReportKind.LABELS
    if action == "nearest" and on_grid and not listed:
        reason = "its reports outside the grid are counted where they are"
    elif action == "nearest" and not on_grid:
        reason = "its reports are no cells of a grid"
    elif action == "keep" and (listed or not on_grid):
        reason = "what it cannot report has no likelihood"
    else:
        return
    raise ValueError(
        f"unknown must not be {action!r} for {type(mechanism).__name__}: {reason}; leave it out"
    )


def require_pairs(columns: Sequence[Any], mechanism: Any, grid: Grid) -> None:
    """Raise ValueError unless reports on a grid stand in two columns."""
    if len(columns) != 2:
        ends = "row and column" if grid.bounds is None else "latitude and longitude"
        ends = "x and y" if mechanism.report_kind is ReportKind.POINTS else ends
        raise ValueError(
            f"report must name two columns for {type(mechanism).__name__} on a grid, {ends}, or "
            f"one of geometries of a GeoDataFrame, got {list(columns)}"
        )


def read_pairs(values: NDArray[Any], columns: Sequence[Any], grid: Grid) -> Pairs:
    """Return pairs by the names of their columns; the coordinate from south to north comes first.

    Parameters
    ----------
    values : ndarray, shape (s, 2)
    columns : sequence
        Names of both columns; if these say nothing, the pairs are returned as they are.
    grid : Grid
    """
    named = pair_of(columns, "report", grid.unit)
    if named is None:
        return Pairs(values, None)
    return Pairs(values if named.north == columns[0] else values[:, ::-1], named.kind)


def codes_of_cells(read: Pairs, grid: Grid, nearest: bool = False) -> Ints:
    """Return codes of the cells of pairs, -1 outside the grid.

    Parameters
    ----------
    read : Pairs
        NaN where a value is not a number. Without names, integers are cells as by `Grid.codes`.
    grid : Grid
    nearest : bool
        Whether what is outside the grid gets the code of the nearest cell.
    """
    given, kind = read
    pairs = given.astype(np.float64)
    codes = np.full(len(pairs), -1, dtype=np.int64)
    known = np.isfinite(pairs).all(axis=1)
    in_order = grid.bounds is None or given.dtype.kind in "iu"
    if kind == "cells" or (kind is None and in_order):
        known &= (pairs % 1 == 0).all(axis=1)
        cells, size = pairs - grid.first, np.array([grid.n_rows, grid.n_cols])
        cells = np.clip(cells, 0, size - 1) if nearest else cells
        known &= ((cells >= 0) & (cells < size)).all(axis=1)
        codes[known] = (cells[known] @ [grid.n_cols, 1]).astype(np.int64)
        return codes
    if kind in ("unit", "lengths"):
        if kind == "unit":
            refuse_whole(given, "report")
            refuse_degrees(grid, pairs[known][:, ::-1], "report")
        edges, kind = plane_edges(grid), "lengths"
    else:
        require_bounds(grid, "report")
        edges = grid.edges()
        known &= (np.abs(pairs) <= LIMITS).all(axis=1)
    if not nearest:
        low, high = (np.array([axis[end] for axis in edges]) for end in (0, -1))
        known &= ((pairs >= low) & (pairs <= high)).all(axis=1)
    outside: Outside = "nearest" if nearest else "raise"
    codes[known] = located(grid, Pairs(pairs[known], kind), outside, "report")
    return codes


def points_or_cells(
    values: NDArray[Any], columns: Sequence[Any], mechanism: Any
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return reports that are points, or cells without an end, and which values are such reports.

    Parameters
    ----------
    values : ndarray, shape (s, 2)
        NaN where a value is not a number.
    columns : sequence
        Names of both columns.
    mechanism : Mechanism
        Of the kind POINTS or CELLS.
    """
    grid = mechanism.alphabet
    pairs, kind = read_pairs(values, columns, grid)
    known = np.isfinite(pairs).all(axis=1)
    of_points = mechanism.report_kind is ReportKind.POINTS
    if kind == "degrees":
        known &= (np.abs(pairs) <= LIMITS).all(axis=1)
    if kind is None and not of_points:
        # The mechanism reads these pairs as it reads an array.
        return np.where(known[:, None], pairs, 0), known
    if kind is None or of_points:
        if kind is None or kind == "cells":
            raise ValueError(
                f"report must name the columns x and y, in the grid's unit from its south-west "
                f"corner, or lat and lon, in degrees, for {type(mechanism).__name__}, got "
                f"{list(columns)}: rename them"
            )
        reports: NDArray[Any] = np.zeros((len(pairs), 2))
        reports[known] = xy_of(grid, pairs[known], kind, "report")
        return reports, known
    known &= (pairs % 1 == 0).all(axis=1) if kind == "cells" else True
    reports = np.zeros((len(pairs), 2), dtype=np.int64)
    reports[known] = cells_without_end(grid, pairs[known], kind, "report")
    return reports, known


def advice(values: NDArray[Any], columns: Sequence[Any], alphabet: Any) -> str:
    """Return what to do about reports that are not known, for a message."""
    drop = 'unknown="drop" to leave them out, which is right only if they are like the others'
    if not isinstance(alphabet, Grid):
        return f"correct such rows, or say {drop}"
    named = [axis_of(column, alphabet.unit) for column in columns]
    if named == [None, None] and _are_swapped(values, alphabet.bounds):
        return "these values are (longitude, latitude): name the column of the latitude first"
    return (
        'correct such rows, or say unknown="nearest" if the mechanism puts noise that leaves the '
        f"grid into the nearest cell, as PlanarLaplace does, or {drop}"
    )


def _are_swapped(values: NDArray[Any], bounds: tuple[float, float, float, float] | None) -> bool:
    """Return whether points that were refused are inside the bounds if coordinates are swapped."""
    if bounds is None or values.ndim != 2 or values.shape[1] != 2:
        return False
    south, north, west, east = bounds
    # If the longitude came first, exchanging the two columns puts the points inside.
    lon, lat = (
        np.array([number_in(v) if isinstance(v, str) else v for v in column], float)
        for column in values.T
    )
    return bool(((south <= lat) & (lat <= north) & (west <= lon) & (lon <= east)).any())
