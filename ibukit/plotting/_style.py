"""Style of all plots: fonts, sizes and formats; and helpers that every plot uses."""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ibukit._ground.arguments import Floats
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.vectors import VectorLike, vector_over
from ibukit.plotting._looks import DASHES, PALETTE
from ibukit.plotting._scales import NAME

# Width of a figure in inches. At this width small text is 9 px high on a phone, whose column is 342
# px.
WIDTH = 5.4
STYLE: Any = {
    "axes.facecolor": "none",
    # Unnamed series use the palette of things that are not estimators.
    "axes.prop_cycle": cycler(color=PALETTE) + cycler(linestyle=DASHES),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "figure.facecolor": "none",
    "figure.figsize": (WIDTH, 3.6),
    "font.size": 13.2,
    "image.cmap": NAME,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    # Text stays text: a reader's browser draws it in the font of the page, and the file is a third
    # smaller than with the outlines of all letters.
    "svg.fonttype": "none",
    # Identifiers inside an SVG are hashed from this instead of a random salt.
    "svg.hashsalt": "ibukit",
}


def use_style() -> None:
    """Set the book's style for this session.

    The style has colours with dashes, white for 0, no frame and a transparent background. In a
    notebook, figures are drawings (SVG), with the same bytes every time. To get pixel images, write
    ``%config InlineBackend.figure_formats = {"png"}`` after the call.

    Examples
    --------
    >>> use_style()
    >>> plt.rcParams["image.cmap"]
    'white to blue'
    """
    plt.rcParams.update(STYLE)
    _draw_svg()


def _draw_svg() -> None:
    """Set a notebook to draw figures as SVG; do nothing elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return
    from matplotlib_inline.config import InlineBackend

    # The configuration is changed instead of the registered formats, because the first figure
    # registers them again.
    inline = InlineBackend.instance(parent=shell)
    undated: Any = {"bbox_inches": "tight", "metadata": {"Date": None, "Creator": None}}
    inline.print_figure_kwargs = undated
    inline.figure_formats = {"svg"}


def numbers(values: VectorLike, alphabet: Alphabet) -> Floats:
    """Return one number for each element, from an array or an estimate over this alphabet."""
    return vector_over("values", values, alphabet)


def axes_for(ax: Axes | None, size: tuple[float, float] = (WIDTH, 3.6)) -> Axes:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    made: tuple[Figure, Axes] = plt.subplots(figsize=size, layout="constrained")
    return made[1]


def plural(unit: str) -> str:
    """Return the plural of a unit that is a word, e.g. "years"; symbols such as "km" have none."""
    return f"{unit}s" if len(unit) > 2 and not unit.endswith("s") else unit
