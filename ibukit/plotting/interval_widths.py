"""Plot the width of intervals against the number of reports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ibukit.plotting._looks import looks
from ibukit.plotting._style import WIDTH, axes_for

# Ends of the axis of reports, as factors of the smallest and the largest number needed.
FEWER, MORE = 100, 10


def draw(
    names: Sequence[str],
    needed: Sequence[int],
    widths_of_one: Sequence[float],
    target: float,
    level: float,
    ax: Axes | None = None,
) -> Axes:
    """Draw a line for each plan: the width from one report, divided by the square root of n.

    Here n is the number of reports. See `Plan.plot` and `Plans.plot`.
    """
    axes = axes_for(ax, (WIDTH, 3.6 + 0.25 * len(names)))
    # Widths follow a power law, which is a straight line through two points on logarithmic axes.
    ends = np.array([max(1.0, min(needed) / FEWER), float(max(needed)) * MORE])
    styles = looks(f"{i} {name}" for i, name in enumerate(names)).values()
    for name, n, width, look in zip(names, needed, widths_of_one, styles, strict=True):
        # numpy has no roots of integers beyond 64 bits.
        reports = float(n)
        axes.plot(
            ends,
            width / np.sqrt(ends),
            color=look.color,
            linestyle=look.dash,
            label=f"{name}: {n:,}",
        )
        axes.plot([reports], [width / np.sqrt(reports)], look.marker, color=look.color)
    axes.axhline(target, color="black", linestyle=":", linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="reports", ylabel=f"width at level {level:g}")
    # The legend stands above the axes: lines cross every corner but one, which is too small.
    axes.legend(
        title=f"reports for width {target:g}",
        loc="lower left",
        bbox_to_anchor=(0, 1),
        alignment="left",
    )
    return axes
