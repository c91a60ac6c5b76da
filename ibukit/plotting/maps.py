"""Maps: one number for each cell of a grid, with scale bar, north arrow and outlines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.patheffects import withStroke
from matplotlib.transforms import ScaledTranslation, Transform, blended_transform_factory

from ibukit.domain import geography
from ibukit.domain.grid import Grid
from ibukit.domain.places import is_geopandas
from ibukit.domain.places import positions as read_positions
from ibukit.domain.vectors import VectorLike
from ibukit.errors import AlphabetMismatch
from ibukit.plotting import outlines
from ibukit.plotting._scales import white_at_zero
from ibukit.plotting._style import WIDTH, axes_for, numbers, plural

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries

Extent = tuple[float, float, float, float]

# Distance in points from the map to the middle of the strip below it, which has the scale bar.
STRIP_POINTS = 9


def heatmap(
    grid: Grid,
    values: VectorLike,
    ax: Axes | None = None,
    vmax: float | None = None,
    scale: bool = True,
    norm: Normalize | None = None,
    names: Mapping[str, tuple[float, float]] | GeoSeries | None = None,
    places: GeoDataFrame | GeoSeries | None = None,
) -> Axes:
    """Draw one number per cell of a grid as a map, north up.

    White is 0. Below the map are a bar of known length and an arrow to the north; they do not make
    the map smaller.

    Parameters
    ----------
    grid : Grid
    values : array_like or labelled, shape (k,)
    ax : matplotlib Axes, optional
    vmax : float, optional
        Number at the upper end of the colours; give it to make maps comparable.
    scale : bool
        Whether to draw the bar and the arrow.
    norm : matplotlib Normalize, optional
        Another scale of colours, e.g. ``LogNorm(1e-5, 1)``, instead of the linear one from 0 to
        `vmax`.
    names : mapping of name to (lat, lon), or GeoSeries whose index are names, optional
        Places to be marked, if the grid has bounds. For the cities of Gowalla they are the
        `landmarks` of the data sets.
    places : GeoDataFrame or GeoSeries, optional
        Outlines to be drawn over the cells, in any CRS, if the grid has bounds: areas and lines, of
        which only the part on the map is shown. A column `kind` may say "park", "street" or
        "canal"; all others are drawn as a shore. `ibukit.datasets.load_places` has the outlines of
        the cities of Gowalla.

    Returns
    -------
    matplotlib Axes
        The image in it is ``ax.images[0]``, for instance for a colour bar.

    Raises
    ------
    TypeError
        If `grid` is not a Grid, or `places` is not a GeoDataFrame or a GeoSeries.
    AlphabetMismatch
        If there is not one number for each cell, or an estimate is over another alphabet.
    ValueError
        If names or places are given and the grid has no bounds; if a named place lies outside the
        bounds; or if the places have no CRS, or none of them is on the map.

    Examples
    --------
    >>> import ibukit as ik
    >>> ax = heatmap(ik.Grid(2, 3), ik.uniform(6))
    >>> ax.images[0].get_array().shape
    (2, 3)
    >>> paris = ik.datasets.load_gowalla("paris")
    >>> seine = ik.datasets.load_places("paris")
    >>> ax = heatmap(paris.alphabet, paris.distribution, names=paris.landmarks, places=seine)
    >>> [text.get_text() for text in ax.texts][:4]
    ['2 km', 'N', 'Eiffel Tower', 'Arc de Triomphe']
    """
    if not isinstance(grid, Grid):
        raise TypeError(f"grid must be a Grid, got {grid!r}; distributions draws lines and labels")
    # Codes run row by row from the south-west, which is the lower left corner of the map.
    picture = numbers(values, grid).reshape(grid.n_rows, grid.n_cols)
    marked = _map_positions(grid, {} if names is None else names)
    if places is not None:
        # Places that cannot be drawn are refused before there is a figure.
        outlines.on_map(grid, places)
    axes = axes_for(ax, (WIDTH, 4.8))
    height, width = grid.cell_shape
    row, col = grid.first
    extent = (col * width, (col + grid.n_cols) * width, row * height, (row + grid.n_rows) * height)
    # The scale begins at 0, or below it if there are negative numbers.
    colours = Normalize(min(0.0, picture.min()), vmax) if norm is None else norm
    cmap = white_at_zero(colours, picture)
    axes.imshow(
        picture, origin="lower", extent=extent, norm=colours, cmap=cmap, interpolation="none"
    )
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set(visible=True, color="0.6", linewidth=0.6)
    if places is not None:
        outlines.draw(axes, grid, places, extent)
    if scale:
        _scale_bar(axes, grid, extent)
        _north_arrow(axes, extent)
    _mark(axes, marked, extent)
    return axes


def maps(
    grid: Grid,
    pictures: Mapping[str, VectorLike],
    columns: int = 3,
    places: GeoDataFrame | GeoSeries | None = None,
    norm: Normalize | None = None,
    label: str = "probability of a cell",
) -> Figure:
    """Draw maps side by side for comparison, of one size and in the same colours.

    Parameters
    ----------
    grid : Grid
    pictures : mapping of name to array_like, shape (k,), or Estimate
    columns : int
        Number of maps side by side; three can still be read on a telephone.
    places : GeoDataFrame or GeoSeries, optional
        Outlines over all maps, as `heatmap` takes them.
    norm : matplotlib Normalize, optional
        Another scale of colours, instead of the linear one from 0 to the largest number on any map.
    label : str
        Label of the colour bar.

    Returns
    -------
    matplotlib Figure
        Its first axes are the maps in their order; the last axes are the bar of colours.

    Raises
    ------
    ValueError
        If there is nothing to draw, and as `heatmap`.
    TypeError, AlphabetMismatch
        As `heatmap`.

    Examples
    --------
    >>> import ibukit as ik
    >>> figure = maps(ik.Grid(1, 2), {"truth": [0.2, 0.8], "MLE": [0.5, 0.5]}, columns=2)
    >>> [axes.get_title() for axes in figure.axes[:2]]
    ['truth', 'MLE']
    """
    if not isinstance(grid, Grid):
        raise TypeError(f"grid must be a Grid, got {grid!r}; panels draws lines")
    if not pictures:
        raise ValueError("pictures must hold at least one map, got none")
    values = {name: numbers(each, grid) for name, each in pictures.items()}
    if places is not None:
        outlines.on_map(grid, places)
    # All maps share one scale, so that they can be compared.
    everything = np.concatenate(list(values.values()))
    colours = Normalize(min(0.0, everything.min()), everything.max()) if norm is None else norm
    rows, (height, width) = -(-len(values) // columns), grid.cell_shape
    # Height of a panel in inches, so that cells have their true proportions.
    panel = WIDTH / columns * grid.n_rows * height / (grid.n_cols * width)
    lines = 1 + max(name.count("\n") for name in values)
    size = (WIDTH, rows * (panel + 0.12 + 0.23 * lines) + 1.1)
    figure, panels = plt.subplots(rows, columns, squeeze=False, figsize=size, layout="constrained")
    for i, (axes, (name, each)) in enumerate(zip(panels.flat, values.items(), strict=False)):
        heatmap(grid, each, axes, norm=colours, scale=i == 0, places=places)
        axes.set_title(name, fontsize="medium")
    for axes in panels.flat[len(values) :]:
        axes.set_visible(False)
    figure.colorbar(
        panels[0, 0].images[0], ax=panels, orientation="horizontal", shrink=0.7, label=label
    )
    return figure


def _scale_bar(axes: Axes, grid: Grid, extent: Extent) -> None:
    """Draw the scale bar below the map, outside of its frame, so that the map keeps its size."""
    west, east, _, _ = extent
    unit, width = grid.unit, grid.cell_shape[1]
    # If the unit is a cell and the bounds are known, the bar has the true length in km.
    if grid.bounds is not None and unit in ("", "cell"):
        unit, width = "km", geography.geodesic_cell_size(grid.bounds, grid.n_rows, grid.n_cols)[1]
    # Length of one unit on the axis.
    one = grid.cell_shape[1] / width
    third = (east - west) / 3 / one
    # The longest round number that fits in a third of the width.
    length = max(
        (step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if step <= third), default=third
    )
    end, at = west + length * one, _strip(axes)
    axes.plot(
        [west, end],
        [0, 0],
        transform=at,
        color="black",
        linewidth=3,
        linestyle="-",
        marker="",
        clip_on=False,
    )
    label = f"{length:g} {unit if length == 1 else plural(unit)}".rstrip()
    axes.annotate(
        label, (end, 0), xycoords=at, xytext=(6, 0), textcoords="offset points", va="center"
    )
    axes.set_xlim(west, east)
    axes.set_ylim(*extent[2:])


def _strip(axes: Axes) -> Transform:
    """Return the transform with data coordinates along the axis, in the strip below the map."""
    down = ScaledTranslation(0, -STRIP_POINTS / 72, axes.figure.dpi_scale_trans)
    return blended_transform_factory(axes.transData, axes.transAxes) + down


def _north_arrow(axes: Axes, extent: Extent) -> None:
    """Draw an arrow on the right of the strip that has the scale bar; its size is in inches."""
    at = axes.figure.dpi_scale_trans + ScaledTranslation(extent[1], 0, _strip(axes))  # type: ignore[arg-type]
    # Coordinates of the arrow are in inches, relative to the right end of the strip.
    arrow = FancyArrowPatch(
        (-0.05, -0.08), (-0.05, 0.08), arrowstyle="-|>", mutation_scale=9, shrinkA=0, shrinkB=0
    )
    arrow.set(transform=at, color="black", clip_on=False)
    axes.add_artist(arrow)
    axes.text(-0.12, 0, "N", transform=at, ha="right", va="center")


def _map_positions(
    grid: Grid, names: Mapping[str, tuple[float, float]] | GeoSeries
) -> dict[str, tuple[float, float]]:
    """Return the positions of names, as shares of the width and of the height of the map."""
    if not len(names):
        return {}
    if grid.bounds is None:
        raise ValueError(
            "names need a grid with bounds: it is not known where on the globe this one is"
        )
    lat, lon = read_positions(names if is_geopandas(names) else list(names.values()), "names")
    lat0, lat1, lon0, lon1 = grid.bounds
    positions = {}
    keys = getattr(names, "geometry", names).keys()
    for name, up, right in zip(
        keys, (lat - lat0) / (lat1 - lat0), (lon - lon0) / (lon1 - lon0), strict=True
    ):
        if not (0 <= up <= 1 and 0 <= right <= 1):
            raise AlphabetMismatch(
                f"names has {name!r}, which is outside the map: {grid.bounds}; leave it out"
            )
        positions[str(name)] = (float(right), float(up))
    return positions


def _mark(axes: Axes, places: dict[str, tuple[float, float]], extent: Extent) -> None:
    west, east, south, north = extent
    for name, (right, up) in places.items():
        at = west + right * (east - west), south + up * (north - south)
        axes.plot(
            *at, marker="o", markersize=4, color="white", markeredgecolor="black", linestyle="none"
        )
        # The name is written towards the middle, so that it stays on the map.
        side, align = (-5, "right") if right > 0.5 else (5, "left")
        text = axes.annotate(
            name, at, (side, 0), textcoords="offset points", ha=align, va="center", fontsize="small"
        )
        text.set_path_effects([withStroke(linewidth=2, foreground="white")])
