"""Outlines of shores, parks and streets over a map, and the share of land of each cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke

from ibukit._ground.arguments import Floats
from ibukit.domain import geography
from ibukit.domain.grid import Grid
from ibukit.domain.places import in_degrees, is_geopandas
from ibukit.errors import AlphabetMismatch

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries

SHORE_LINE = ("#333333", "-", 1.1)
# Colour, dashes and width by the kind of place; other kinds are drawn as a shore.
LINES: dict[str, tuple[str, Any, float]] = {
    "canal": ("#0072B2", "-", 0.9),
    "park": ("#117733", (0, (4, 1.5)), 1.0),
    "street": ("#555555", (0, (1, 1.5)), 1.0),
}


def land_shares(grid: Grid, places: GeoDataFrame | GeoSeries) -> Floats:
    """Return the share of each cell that is land, from the outlines of a city.

    The rest is water, so that ``estimate.distribution @ (1 - land_shares(grid, places))`` is about
    the mass on water.

    Parameters
    ----------
    grid : Grid
        With bounds.
    places : GeoDataFrame or GeoSeries
        In any CRS. Areas with "land" in a column `kind` are the land; if there are areas with
        "water" but none with "land", all the rest is land. Without such a column all areas are
        land.

    Returns
    -------
    ndarray, shape (k,)
        Between 0 and 1. Outlines for drawing are accurate to 100 m, and the shares of cells along a
        shore are no more accurate than such outlines allow.

    Raises
    ------
    TypeError
        If `places` is not a GeoDataFrame or a GeoSeries.
    ValueError
        If the grid has no bounds, if `places` have no CRS, or if none of them is an area.
    AlphabetMismatch
        If no place is on the map.

    Examples
    --------
    >>> import ibukit as ik
    >>> town = ik.datasets.load_gowalla("manhattan")
    >>> land = land_shares(town.alphabet, ik.datasets.load_places("manhattan"))
    >>> print(f"{town.distribution[land < 0.05].sum():.4f} of the check-ins are in cells of water")
    0.0074 of the check-ins are in cells of water
    """
    import shapely

    geometry, kind = on_map(grid, places)
    # Land is given by areas of land, or as the complement of areas of water.
    wet = kind == "water"
    solid = kind == "land" if (kind == "land").any() else ~wet if not wet.any() else wet
    areas = geometry[solid & geometry.geom_type.isin(["Polygon", "MultiPolygon"]).to_numpy()]
    if not len(areas):
        raise ValueError(
            "places must hold areas, polygons whose kind is land or water, to say what is land; "
            "got none"
        )
    lat, lon = grid.edges()
    # Shares of areas in degrees are right, since all parts of a cell are at nearly one latitude.
    cells = shapely.box(lon[None, :-1], lat[:-1, None], lon[None, 1:], lat[1:, None]).ravel()
    shares = shapely.area(shapely.intersection(cells, areas.union_all())) / shapely.area(cells)
    inverted = wet.any() and not (kind == "land").any()
    return 1 - shares if inverted else shares


def on_map(grid: Grid, places: GeoDataFrame | GeoSeries) -> tuple[Any, Any]:
    """Return geometries in degrees and their kinds; AlphabetMismatch if none is on the map."""
    if not is_geopandas(places):
        raise TypeError(
            f"places must be a GeoDataFrame or a GeoSeries, got {type(places).__name__}; read a "
            "file by geopandas.read_file, or take ibukit.datasets.load_places"
        )
    if grid.bounds is None:
        raise ValueError(
            "places need a grid with bounds: it is not known where on the globe this one is"
        )
    geometry = in_degrees(places, "places")
    south, north, west, east = grid.bounds
    if not geometry.intersects(_box(grid.bounds)).any():
        extent = ", ".join(f"{end:.4f}" for end in geometry.total_bounds)
        raise AlphabetMismatch(
            f"places must be on the map, west {west}, south {south}, east {east}, north {north}; "
            f"these are within {extent}: take those of this city, or set the CRS that they are in"
        )
    column = (
        places["kind"] if "kind" in getattr(places, "columns", ()) else ["area"] * len(geometry)
    )
    return geometry, np.array([str(kind) for kind in column])


def draw(
    axes: Axes,
    grid: Grid,
    places: GeoDataFrame | GeoSeries,
    extent: tuple[float, float, float, float],
) -> None:
    """Draw the lines of places inside the map; points are left out."""
    import shapely

    assert grid.bounds is not None
    geometry, kind = on_map(grid, places)
    shapes = geometry.to_numpy()
    # Areas become their boundary lines before they are cut at the edge of the map; an area that is
    # cut would have the edge as a shore.
    lines = np.where(shapely.get_dimensions(shapes) == 2, shapely.boundary(shapes), shapes)
    inside = shapely.intersection(lines, _box(grid.bounds))
    south, north, west, east = grid.bounds
    left, right, bottom, top = extent
    # Degrees become the units of the map by a linear map for each axis.
    scale = np.array([(right - left) / (east - west), (top - bottom) / (north - south)])
    for each in dict.fromkeys(kind):
        parts = shapely.get_parts(shapely.get_parts(inside[kind == each]))
        parts = [part for part in parts if part.geom_type == "LineString" and not part.is_empty]
        paths = [
            (shapely.get_coordinates(part) - (west, south)) * scale + (left, bottom)
            for part in parts
        ]
        color, dash, width = LINES.get(each, SHORE_LINE)
        drawn = LineCollection(
            paths, colors=color, linestyles=[dash], linewidths=width, label=f"_{each}"
        )
        # A white border makes shores visible on dark cells, too.
        if each not in LINES:
            drawn.set_path_effects(
                [withStroke(linewidth=width + 1.4, foreground="white", alpha=0.7)]
            )
        axes.add_collection(drawn, autolim=False)


def _box(bounds: geography.Bounds) -> Any:
    import shapely

    south, north, west, east = bounds
    return shapely.box(west, south, east, north)
