"""Districts on a map, as weights of the cells that they cover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.grid import Grid
from ibukit.domain.labels import name_of_alphabet
from ibukit.errors import AlphabetMismatch

if TYPE_CHECKING:
    from geopandas import GeoSeries

# A cylinder on which areas are right, and on which rectangles of degrees stay rectangles.
EQUAL_AREA = "EPSG:6933"
# A share of a cell's area that is nearer to 0 or 1 than this differs from it by rounding only.
AREA_TOLERANCE = 1e-9


def are_districts(of: Any) -> bool:
    """Return whether an argument is a GeoDataFrame or a GeoSeries, without loading geopandas."""
    return type(of).__module__.startswith("geopandas.") and hasattr(of, "geometry")


def weights_of_districts(districts: Any, alphabet: Alphabet) -> Floats:
    """Return the share of each cell's area that lies in each district, shape (r, k).

    Parameters
    ----------
    districts : GeoDataFrame or GeoSeries, r polygons
        In any coordinate reference system, or without one if the grid has none.
    alphabet : Grid

    Raises
    ------
    AlphabetMismatch
        If the alphabet is not a Grid.
    ValueError
        If a reference system is missing, or if a shape is not a valid polygon or covers no cell.

    Examples
    --------
    >>> import ibukit as ik
    >>> import geopandas
    >>> from shapely.geometry import box
    >>> grid = ik.Grid(1, 2, cell_size=1.0)
    >>> weights_of_districts(geopandas.GeoSeries([box(0, 0, 1.5, 1)]), grid)
    array([[1. , 0.5]])
    """
    import shapely

    if not isinstance(alphabet, Grid):
        raise AlphabetMismatch(
            f"of must be weights or labels, got districts: only a Grid has cells with an area, the "
            f"alphabet is {name_of_alphabet(alphabet)}"
        )
    shapes = districts.geometry
    cells = alphabet.to_geodataframe(np.zeros(len(alphabet))).geometry
    shapes, cells = _on_one_map(shapes, cells)
    areal = shapes.geom_type.isin(["Polygon", "MultiPolygon"]) & shapes.is_valid & ~shapes.is_empty
    if not areal.all():
        row = int(np.argmin(areal.to_numpy()))
        raise ValueError(
            f"of must have valid polygons, got a {shapes.geom_type.iloc[row]} at "
            f"{shapes.index[row]!r}; shapely.make_valid mends what crosses itself"
        )
    rows, columns = cells.sindex.query(shapes, predicate="intersects")
    whole = cells.to_numpy()
    shared = shapely.area(shapely.intersection(shapes.to_numpy()[rows], whole[columns]))
    share = shared / shapely.area(whole[columns])
    weights = np.zeros((len(shapes), len(whole)))
    share[share < AREA_TOLERANCE], share[share > 1 - AREA_TOLERANCE] = 0, 1
    weights[rows, columns] = share
    outside = ~weights.any(axis=1)
    if outside.any():
        raise ValueError(
            f"of must have districts on the grid, {shapes.index[int(np.argmax(outside))]!r} covers "
            "no cell of it: leave it out, and check the reference system of the others"
        )
    return weights


def _on_one_map(shapes: GeoSeries, cells: GeoSeries) -> tuple[GeoSeries, GeoSeries]:
    if cells.crs is None and shapes.crs is None:
        return shapes, cells
    if cells.crs is None:
        raise ValueError(
            f"of must have coordinates in the grid's own unit and no reference system, got "
            f"{shapes.crs.to_string()}; the grid does not know where it lies (Grid.covering and "
            "Grid.from_bounds make grids that do)"
        )
    if shapes.crs is None:
        raise ValueError(
            'of must have a reference system, got districts without one: set_crs("EPSG:4326") if '
            "its coordinates are degrees, else that of the map that they come from"
        )
    return shapes.to_crs(EQUAL_AREA), cells.to_crs(EQUAL_AREA)
