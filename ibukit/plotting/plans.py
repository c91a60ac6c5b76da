"""How wide intervals are against how many reports there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ibukit.planning import Plan
from ibukit.plotting._style import DASHES, PALETTE, axes_for
from ibukit.plotting.labels import MARKS

# the axis reaches as many times less and more than what is needed
FEWER, MORE = 100, 10


def draw(plans: Sequence[Plan], ax: Axes | None = None) -> Axes:
    """See `Plan.plot` and `Plans.plot`."""
    axes = axes_for(ax, (6, 3.6 + 0.25 * len(plans)))
    needed = [each.n for each in plans]
    # widths follow a power law: a straight line through two points
    ends = np.array([max(1.0, min(needed) / FEWER), float(max(needed)) * MORE])
    for i, each in enumerate(plans):
        color, widths = PALETTE[(1 + i) % len(PALETTE)], each.width(1) / np.sqrt(ends)
        axes.plot(ends, widths, color=color, linestyle=DASHES[i % len(DASHES)], label=f"{each.name}: {each.n:,}")
        axes.plot([each.n], [each.width(1) / np.sqrt(each.n)], MARKS[i % len(MARKS)], color=color)
    target, level = plans[0].target, plans[0].level
    axes.axhline(target, color=PALETTE[0], linestyle=":", linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="reports", ylabel=f"width at level {level:g}")
    # above: lines cross every corner but one, and that is small
    axes.legend(title=f"reports for width {target:g}", loc="lower left", bbox_to_anchor=(0, 1), alignment="left")
    return axes
