"""One number per cell of a grid as a map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import FancyArrowPatch
from matplotlib.patheffects import withStroke
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike

from ibukit import _places
from ibukit.errors import AlphabetMismatch
from ibukit.estimate import Estimate
from ibukit.grid import Grid
from ibukit.plotting._style import axes_for, numbers

if TYPE_CHECKING:
    from geopandas import GeoSeries

Extent = tuple[float, float, float, float]


def heatmap(
    grid: Grid,
    values: ArrayLike | Estimate,
    ax: Axes | None = None,
    vmax: float | None = None,
    scale: bool = True,
    norm: Normalize | None = None,
    names: Mapping[str, tuple[float, float]] | GeoSeries | None = None,
) -> Axes:
    """Draw one number per cell of a grid as a map, north up.

    It has a bar of known length, an arrow to the north and no base map.

    Parameters
    ----------
    grid : Grid
    values : array_like, shape (k,), or Estimate
    ax : matplotlib Axes, optional
    vmax : float, optional
        Upper end of the colours, to compare maps.
    scale : bool
        Whether to draw the bar and the arrow.
    norm : matplotlib Normalize, optional
        Colours of one's own, e.g. ``LogNorm(1e-5, 1)``, instead of linear ones from 0 to `vmax`.
    names : mapping of name to (lat, lon), or GeoSeries whose index are names, optional
        Places to be marked, if the grid has bounds; those of the cities of Gowalla are the `landmarks` of their data.

    Returns
    -------
    matplotlib Axes
        Its image is ``ax.images[0]``, e.g. for a colour bar.

    Raises
    ------
    TypeError
        If `grid` is not a Grid.
    AlphabetMismatch
        If there is not one number for each cell, or an estimate is over another alphabet.
    ValueError
        If there are names and the grid has no bounds, or a name lies outside of them.

    Examples
    --------
    >>> import ibukit as ik
    >>> ax = heatmap(ik.Grid(2, 3), ik.uniform(6))
    >>> ax.images[0].get_array().shape
    (2, 3)
    >>> paris = ik.datasets.load_gowalla("paris")
    >>> ax = heatmap(paris.alphabet, paris.distribution, names=paris.landmarks)
    >>> [text.get_text() for text in ax.texts][:4]
    ['2 km', 'N', 'Eiffel Tower', 'Arc de Triomphe']
    """
    if not isinstance(grid, Grid):
        raise TypeError(f"grid must be a Grid, got {grid!r}; distributions draws lines and labels")
    picture = numbers(values, grid).reshape(grid.n_rows, grid.n_cols)
    marked = _places_of(grid, {} if names is None else names)
    axes = axes_for(ax)
    height, width = grid.cell_shape
    row, col = grid.first
    extent = (col * width, (col + grid.n_cols) * width, row * height, (row + grid.n_rows) * height)
    colours = Normalize(min(0.0, picture.min()), vmax) if norm is None else norm
    axes.imshow(picture, origin="lower", extent=extent, norm=colours, interpolation="none")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    if scale:
        _scale_bar(axes, grid, extent)
        _north(axes, extent)
    _mark(axes, marked, extent)
    return axes


def _scale_bar(axes: Axes, grid: Grid, extent: Extent) -> None:
    west, east, south, north = extent
    third, height = (east - west) / 3, north - south
    length = max((step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if step <= third), default=third)
    end, below = west + length, south - 0.04 * height
    axes.plot([west, end], [below, below], color="black", linewidth=3, linestyle="-", clip_on=False)
    label = f"{length:g} {grid.unit}".rstrip()
    axes.annotate(label, (end, below), xytext=(6, 0), textcoords="offset points", va="center")
    axes.set_xlim(west, east)
    axes.set_ylim(south - 0.09 * height, north)


def _north(axes: Axes, extent: Extent) -> None:
    """An arrow on the right of the strip that the bar is in; its size is in inches."""
    _, east, south, north = extent
    at = axes.figure.dpi_scale_trans + ScaledTranslation(
        east,
        south - 0.04 * (north - south),
        axes.transData,  # type: ignore[arg-type]  # the stubs ask for less than what it takes
    )
    arrow = FancyArrowPatch((-0.05, -0.08), (-0.05, 0.08), arrowstyle="-|>", mutation_scale=9, shrinkA=0, shrinkB=0)
    arrow.set(transform=at, color="black", clip_on=False)
    axes.add_artist(arrow)
    axes.text(-0.12, 0, "N", transform=at, ha="right", va="center")


def _places_of(grid: Grid, names: Mapping[str, tuple[float, float]] | GeoSeries) -> dict[str, tuple[float, float]]:
    """Where the names are, as parts of the width and of the height of the map."""
    if not len(names):
        return {}
    if grid.bounds is None:
        raise ValueError("names need a grid with bounds: it is not known where on the globe this one is")
    lat, lon = _places.positions(names if _places.of_geopandas(names) else list(names.values()), "names")
    lat0, lat1, lon0, lon1 = grid.bounds
    found = {}
    keys = getattr(names, "geometry", names).keys()
    for name, up, right in zip(keys, (lat - lat0) / (lat1 - lat0), (lon - lon0) / (lon1 - lon0), strict=True):
        if not (0 <= up <= 1 and 0 <= right <= 1):
            raise AlphabetMismatch(f"names has {name!r}, which is outside the map: {grid.bounds}; leave it out")
        found[str(name)] = (float(right), float(up))
    return found


def _mark(axes: Axes, places: dict[str, tuple[float, float]], extent: Extent) -> None:
    west, east, south, north = extent
    for name, (right, up) in places.items():
        at = west + right * (east - west), south + up * (north - south)
        axes.plot(*at, marker="o", markersize=4, color="white", markeredgecolor="black", linestyle="none")
        # towards the middle, so that it does not leave the map
        side, align = (-5, "right") if right > 0.5 else (5, "left")
        text = axes.annotate(name, at, (side, 0), textcoords="offset points", ha=align, va="center", fontsize="small")
        text.set_path_effects([withStroke(linewidth=2, foreground="white")])
