"""Draw one estimate in the form that suits its alphabet: bars, steps, or a map."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.grid import Grid
from ibukit.plotting import categories
from ibukit.plotting._looks import looks
from ibukit.plotting._style import axes_for
from ibukit.plotting.interval_maps import hatch
from ibukit.plotting.lines import value_label
from ibukit.plotting.maps import heatmap

Intervals = tuple[Floats, Floats]


def draw(
    distribution: Floats,
    alphabet: Alphabet,
    method: str,
    intervals: Intervals | None = None,
    ax: Axes | None = None,
    void: NDArray[np.bool_] | None = None,
) -> Axes:
    """Draw a distribution and its intervals; `method` decides the colour.

    `void` marks intervals that say no more than what is possible.

    `Estimate.plot` documents it.
    """
    if isinstance(alphabet, Line):
        return _steps(alphabet, distribution, looks([method])[method].color, intervals, ax)
    if isinstance(alphabet, Grid):
        return _map(alphabet, distribution, intervals, void, ax)
    return categories.draw(alphabet, [("probability", distribution)], ax, intervals)


def _steps(line: Line, p: Floats, color: str, intervals: Intervals | None, ax: Axes | None) -> Axes:
    axes = axes_for(ax)
    # Each value has a step of width 1 around it.
    edges = np.arange(line.first, line.last + 2) - 0.5
    # The corners of the steps are drawn as a line: `stairs` takes seconds for 100,000 values.
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


def _map(
    grid: Grid,
    p: Floats,
    intervals: Intervals | None,
    void: NDArray[np.bool_] | None,
    ax: Axes | None,
) -> Axes:
    axes = heatmap(grid, p, ax)
    figure = axes.get_figure()
    assert figure is not None
    figure.colorbar(axes.images[0], ax=axes, label="probability")
    # Cells whose interval reaches down to 0 may be empty: they are crossed out.
    if intervals is not None:
        empty = intervals[0] <= 0
        if void is not None and void.any():
            # A void interval is no sign that a cell is empty.
            empty &= ~void
            axes.set_title(f'{void.sum():,} cells without an interval: see method="profile"')
        hatch(grid, grid.values[empty], axes)
    return axes
