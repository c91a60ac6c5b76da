"""How wide intervals are against how many reports there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ibukit.planning import Plan
from ibukit.plotting._looks import looks
from ibukit.plotting._style import WIDTH, axes_for

# the axis reaches as many times less and more than what is needed
FEWER, MORE = 100, 10


def draw(plans: Sequence[Plan], ax: Axes | None = None) -> Axes:
    """See `Plan.plot` and `Plans.plot`."""
    axes = axes_for(ax, (WIDTH, 3.6 + 0.25 * len(plans)))
    needed = [each.n for each in plans]
    # widths follow a power law: a straight line through two points
    ends = np.array([max(1.0, min(needed) / FEWER), float(max(needed)) * MORE])
    for each, look in zip(
        plans, looks(f"{i} {each.name}" for i, each in enumerate(plans)).values(), strict=True
    ):
        widths = each.width(1) / np.sqrt(ends)
        axes.plot(
            ends, widths, color=look.color, linestyle=look.dash, label=f"{each.name}: {each.n:,}"
        )
        axes.plot([each.n], [each.width(1) / np.sqrt(each.n)], look.marker, color=look.color)
    target, level = plans[0].target, plans[0].level
    axes.axhline(target, color="black", linestyle=":", linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="reports", ylabel=f"width at level {level:g}")
    # above: lines cross every corner but one, and that is small
    axes.legend(
        title=f"reports for width {target:g}",
        loc="lower left",
        bbox_to_anchor=(0, 1),
        alignment="left",
    )
    return axes
