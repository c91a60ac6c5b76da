"""Distributions over labels: bars that lie, so that long labels can be read."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes

from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.alphabet import Alphabet
from ibukit.plotting._looks import ESTIMATORS, looks
from ibukit.plotting._style import WIDTH, axes_for

MAX_BARS = 40
# characters of a line, and lines, of a label
LABEL_WIDTH, LABEL_LINES = 32, 2
INCHES_A_BAR = 0.3


def draw(
    alphabet: Alphabet,
    curves: Sequence[tuple[str, Floats]],
    ax: Axes | None = None,
    intervals: tuple[Floats, Floats] | None = None,
) -> Axes:
    """The first distribution as bars, with its intervals if given, the others as marks on them."""
    first = curves[0][1]
    shown = _shown(first)
    places = np.arange(len(shown))
    axes = axes_for(ax, (WIDTH, 1.0 + INCHES_A_BAR * max(len(shown), 3)))
    axes.barh(places, first[shown], height=0.7, color=ESTIMATORS["truth"].color, label=curves[0][0])
    if intervals is not None:
        lower, upper = (ends[shown] for ends in intervals)
        axes.hlines(places, lower, upper, color="black", linestyle="-", linewidth=1.3)
    look = looks(name for name, _ in curves[1:])
    for i, (name, p) in enumerate(curves[1:]):
        away = 0.5 * ((i + 1) / len(curves) - 0.5) if len(curves) > 2 else 0.0
        axes.plot(p[shown], places + away, **(look[name].line() | {"linestyle": "none"}))
    names = [
        fill(str(label), LABEL_WIDTH, max_lines=LABEL_LINES, placeholder="…")
        for label in alphabet.values[shown]
    ]
    axes.set_yticks(places, names, parse_math=False)  # $ is a currency here
    axes.set_ylim(len(shown) - 0.5, -0.5)  # the first label on top
    left_out = len(first) - len(shown)
    rest = (
        f"; {left_out:,} other labels have {np.delete(first, shown).sum():.3g}" if left_out else ""
    )
    axes.set_xlabel(f"probability{rest}")
    if min(p[shown].min() for _, p in curves) >= 0:
        axes.set_xlim(left=0)
    if len(curves) > 1:
        axes.legend()
    return axes


def _shown(p: Floats) -> Ints:
    """All labels in their order, or the most probable, the largest on top."""
    return np.arange(len(p)) if len(p) <= MAX_BARS else np.argsort(-p, kind="stable")[:MAX_BARS]
