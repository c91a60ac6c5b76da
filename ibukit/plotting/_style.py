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
from ibukit.estimate import Estimate

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


def numbers(values: ArrayLike | Estimate, k: int) -> Floats:
    """One number for each of k elements, also of an estimate."""
    given = values.distribution if isinstance(values, Estimate) else values
    return _validate.vector("values", given, k)


def axes_for(ax: Axes | None) -> Axes:
    """The axes that were given, or those of a new figure."""
    if ax is not None:
        return ax
    made: tuple[Figure, Axes] = plt.subplots(figsize=(6, 3.6))
    return made[1]
