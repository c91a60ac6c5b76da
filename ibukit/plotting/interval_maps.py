"""Maps of lower and upper ends of intervals, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle
from matplotlib.pyplot import subplots

from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.grid import Grid
from ibukit.errors import AlphabetMismatch
from ibukit.plotting._style import WIDTH
from ibukit.plotting.maps import heatmap

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries


class EstimateWithIntervals(Protocol):
    """The interface of an `Estimate` that is used here: alphabet and intervals."""

    @property
    def alphabet(self) -> Alphabet:
        """The secrets."""

    def interval(self, level: float = ..., *, method: str = ...) -> tuple[Floats, Floats]:
        """Return an interval for each probability."""

    def band(self, level: float = ..., *, method: str = ...) -> tuple[Floats, Floats]:
        """Return intervals of all probabilities that hold together."""


def interval_maps(
    estimate: EstimateWithIntervals,
    level: float = 0.95,
    method: str = "auto",
    together: bool = False,
    wide: float | None = None,
    places: GeoDataFrame | GeoSeries | None = None,
) -> tuple[Axes, Axes]:
    """Draw the lower and the upper ends of all intervals as two maps, side by side.

    Both maps have the same scale of colours. A dark cell on the left certainly has a large
    probability; a light cell on the right certainly has a small one.

    Parameters
    ----------
    estimate : Estimate
        Over a grid.
    level : float
        Level of the intervals, strictly between 0 and 1.
    method : str
        As `Estimate.interval` takes it.
    together : bool
        Whether to draw the band of all cells, `Estimate.band`, instead of single intervals.
    wide : float, optional
        Cells whose interval is wider are hatched on both maps.
    places : GeoDataFrame or GeoSeries, optional
        Outlines over both maps, as `heatmap` takes them.

    Returns
    -------
    tuple of matplotlib Axes
        The map of the lower ends, and that of the upper ends.

    Raises
    ------
    AlphabetMismatch
        If the alphabet is not a Grid.
    ValueError, TooLarge
        As `Estimate.interval`.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(ik.Grid(2, 2), epsilon=2.0).tally_counts([60, 20, 10, 10])
    >>> [axes.get_title() for axes in interval_maps(ik.mle(tally))]
    ['at least', 'at most']
    """
    grid = estimate.alphabet
    if not isinstance(grid, Grid):
        raise AlphabetMismatch(
            f"alphabet must be a Grid to be a map, got {grid!r}; estimate.plot(level) draws others"
        )
    # Both maps have one scale, which ends at the largest upper end.
    lower, upper = (estimate.band if together else estimate.interval)(level, method=method)
    figure, (left, right) = subplots(1, 2, figsize=(WIDTH, 4.6), layout="constrained")
    for axes, values, title in ((left, lower, "at least"), (right, upper, "at most")):
        heatmap(grid, values, axes, vmax=float(upper.max()), places=places)
        axes.set_title(title)
        if wide is not None:
            hatch(grid, grid.values[upper - lower > wide], axes)
    figure.colorbar(
        right.images[0], ax=[left, right], orientation="horizontal", shrink=0.8, label="probability"
    )
    return left, right


def hatch(grid: Grid, cells: Floats | Ints, axes: Axes) -> None:
    """Hatch some cells, which are (row, column) pairs."""
    height, width = grid.cell_shape
    boxes = [Rectangle((col * width, row * height), width, height) for row, col in cells.tolist()]
    axes.add_collection(
        PatchCollection(boxes, facecolor="none", edgecolor="0.6", hatch="///", linewidth=0)
    )
