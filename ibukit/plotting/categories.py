"""Horizontal bar charts of distributions over labels, with room for long labels."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes

from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.alphabet import Alphabet
from ibukit.plotting._looks import ESTIMATORS, looks
from ibukit.plotting._style import WIDTH, axes_for

# Largest number of bars. If there are more labels, the most probable ones are drawn.
MAX_BARS = 40
# Number of characters in a line of a label, and largest number of lines.
LABEL_WIDTH, LABEL_LINES = 32, 2
INCHES_PER_BAR = 0.3


def draw(
    alphabet: Alphabet,
    curves: Sequence[tuple[str, Floats]],
    ax: Axes | None = None,
    intervals: tuple[Floats, Floats] | None = None,
) -> Axes:
    """Draw the first distribution as bars with intervals, the others as marks on them."""
    first = curves[0][1]
    shown = _labels_to_draw(first)
    places = np.arange(len(shown))
    axes = axes_for(ax, (WIDTH, 1.0 + INCHES_PER_BAR * max(len(shown), 3)))
    axes.barh(places, first[shown], height=0.7, color=ESTIMATORS["truth"].color, label=curves[0][0])
    if intervals is not None:
        lower, upper = (ends[shown] for ends in intervals)
        axes.hlines(places, lower, upper, color="black", linestyle="-", linewidth=1.3)
    look = looks(name for name, _ in curves[1:])
    for i, (name, p) in enumerate(curves[1:]):
        # Several marks on one bar stand above each other.
        shift = 0.5 * ((i + 1) / len(curves) - 0.5) if len(curves) > 2 else 0.0
        axes.plot(p[shown], places + shift, **(look[name].line() | {"linestyle": "none"}))
    names = [
        fill(str(label), LABEL_WIDTH, max_lines=LABEL_LINES, placeholder="…")
        for label in alphabet.values[shown]
    ]
    # Without parse_math=False matplotlib would read $ in a label as mathematics.
    axes.set_yticks(places, names, parse_math=False)
    # The reversed axis has the first label on top.
    axes.set_ylim(len(shown) - 0.5, -0.5)
    others = len(first) - len(shown)
    rest = f"; {others:,} other labels have {np.delete(first, shown).sum():.3g}" if others else ""
    axes.set_xlabel(f"probability{rest}")
    if min(p[shown].min() for _, p in curves) >= 0:
        axes.set_xlim(left=0)
    if len(curves) > 1:
        axes.legend()
    return axes


def _labels_to_draw(p: Floats) -> Ints:
    """Return the codes of all labels in their order, or of the most probable ones, sorted."""
    return np.arange(len(p)) if len(p) <= MAX_BARS else np.argsort(-p, kind="stable")[:MAX_BARS]
