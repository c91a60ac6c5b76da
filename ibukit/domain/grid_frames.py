"""Grids as GeoDataFrames: a rectangle for each cell, and the grid that such a frame describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats

if TYPE_CHECKING:
    from geopandas import GeoDataFrame


def rectangles(
    columns: dict[str, Any], edges: tuple[Floats, Floats], in_degrees: bool
) -> GeoDataFrame:
    """Return a frame with the rectangle of each cell, row by row from the south-west."""
    import geopandas
    import shapely

    north, east = edges
    i, j = np.divmod(np.arange((len(north) - 1) * (len(east) - 1)), len(east) - 1)
    boxes = shapely.box(east[j], north[i], east[j + 1], north[i + 1])
    return geopandas.GeoDataFrame(columns, geometry=boxes, crs="EPSG:4326" if in_degrees else None)


def cells_of_frame(frame: GeoDataFrame, name: str) -> tuple[tuple[int, int], tuple[int, int], Any]:
    """Return first cell, numbers of rows and columns, and the sorted rows of such a frame."""
    if not hasattr(frame, "crs"):
        raise TypeError(
            "frame must be a GeoDataFrame as grid.to_geodataframe makes it, got "
            f"{type(frame).__name__}"
        )
    missing = {arguments.text("name", name)} - set(frame.columns)
    if missing:
        raise ValueError(
            f"frame must have the columns row, col and {name}; {sorted(missing)} missing"
        )
    if frame.crs is not None and not frame.crs.equals("EPSG:4326"):
        raise ValueError(
            f"frame must be in EPSG:4326 or have no CRS, it has {frame.crs}; use frame.to_crs(4326)"
        )
    first = int(frame["row"].min()), int(frame["col"].min())
    shape = int(frame["row"].max()) + 1 - first[0], int(frame["col"].max()) + 1 - first[1]
    cells = frame.sort_values(["row", "col"])
    if not np.array_equal(
        cells[["row", "col"]].to_numpy(), np.indices(shape).reshape(2, -1).T + first
    ):
        raise ValueError(
            f"frame must have each of the {shape[0]} x {shape[1]} cells once, but it has "
            f"{len(frame)} rows"
        )
    return first, shape, cells
