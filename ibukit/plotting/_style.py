"""Colours, dashes and fonts, and what every plot begins with."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ibukit import _validate
from ibukit._validate import Floats
from ibukit.alphabet import Alphabet
from ibukit.estimate.result import Estimate, distribution_on

# Okabe and Ito's colours, black first; yellow left out, because a yellow line on white cannot be seen
PALETTE = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
STYLE: Any = {
    "axes.prop_cycle": cycler(color=PALETTE) + cycler(linestyle=DASHES),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "font.size": 11,
    "image.cmap": "cividis",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}


def use_style() -> None:
    """Set the book's style for this session.

    Okabe-Ito colours with dashes, cividis maps, no frame.

    Examples
    --------
    >>> use_style()
    >>> plt.rcParams["image.cmap"]
    'cividis'
    """
    plt.rcParams.update(STYLE)


def numbers(values: ArrayLike | Estimate, alphabet: Alphabet) -> Floats:
    """One number for each element: an estimate's own, if it is over this alphabet."""
    return _validate.vector("values", distribution_on("values", values, alphabet), len(alphabet))


def axes_for(ax: Axes | None, size: tuple[float, float] = (6, 3.6)) -> Axes:
    """The axes that were given, or those of a new figure, whose labels have room without `use_style`, too."""
    if ax is not None:
        return ax
    made: tuple[Figure, Axes] = plt.subplots(figsize=size, layout="constrained")
    return made[1]
