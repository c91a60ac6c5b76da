"""One estimate as its alphabet asks for it: bars, steps, or a map."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from ibukit._ground.arguments import Floats
from ibukit.domain.alphabet import Line
from ibukit.domain.grid import Grid
from ibukit.estimate import Estimate
from ibukit.plotting import categories
from ibukit.plotting._looks import looks
from ibukit.plotting._style import axes_for
from ibukit.plotting.interval_maps import hatch
from ibukit.plotting.lines import value_label
from ibukit.plotting.maps import heatmap


def draw(
    estimate: Estimate, intervals: tuple[Floats, Floats] | None = None, ax: Axes | None = None
) -> Axes:
    """See `Estimate.plot`."""
    alphabet = estimate.alphabet
    if isinstance(alphabet, Line):
        return _steps(alphabet, estimate, intervals, ax)
    if isinstance(alphabet, Grid):
        return _map(alphabet, estimate.distribution, intervals, ax)
    return categories.draw(alphabet, [("probability", estimate.distribution)], ax, intervals)


def _steps(
    line: Line, estimate: Estimate, intervals: tuple[Floats, Floats] | None, ax: Axes | None
) -> Axes:
    axes, p, color = (
        axes_for(ax),
        estimate.distribution,
        looks([estimate.method])[estimate.method].color,
    )
    edges = np.arange(line.first, line.last + 2) - 0.5
    # corners instead of `stairs`, which takes seconds for a hundred thousand values
    x = np.repeat(edges, 2)[1:-1]
    if intervals is not None:
        lower, upper = (np.repeat(ends, 2) for ends in intervals)
        axes.fill_between(x, lower, upper, color=color, alpha=0.3, linewidth=0)
    axes.plot(x, np.repeat(p, 2), color=color, linestyle="-")
    axes.set_xlabel(value_label(line))
    axes.set_ylabel("probability")
    axes.set_xlim(edges[0], edges[-1])
    if p.min() >= 0:
        axes.set_ylim(bottom=0)
    return axes


def _map(grid: Grid, p: Floats, intervals: tuple[Floats, Floats] | None, ax: Axes | None) -> Axes:
    axes = heatmap(grid, p, ax)
    figure = axes.get_figure()
    assert figure is not None
    figure.colorbar(axes.images[0], ax=axes, label="probability")
    if intervals is not None:
        hatch(grid, grid.values[intervals[0] <= 0], axes)
    return axes
