"""Curves of distributions, one over the other or in panels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.domain.alphabet import AlphabetLike, Line, as_alphabet
from ibukit.domain.distributions import EstimatedDistribution, is_estimate
from ibukit.domain.grid import Grid
from ibukit.domain.vectors import VectorLike
from ibukit.errors import AlphabetMismatch
from ibukit.plotting import categories
from ibukit.plotting._looks import ESTIMATORS, looks
from ibukit.plotting._style import axes_for, numbers, plural

Curves = Mapping[str, VectorLike] | Sequence[VectorLike] | EstimatedDistribution | Floats


def distributions(alphabet: AlphabetLike, curves: Curves, ax: Axes | None = None) -> Axes:
    """Draw distributions on a line, or on labels.

    On a line the first distribution (the truth) is filled, and the others are lines over it; on
    labels the first is drawn as bars, and the others as marks.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        Not a Grid.
    curves : mapping of name to array_like, shape (k,), or Estimate
        The distributions; or a sequence of them without names, or a single one.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        If there are more than 40 labels, the most probable ones of the first distribution are
        drawn; the axis states the mass of the others.

    Raises
    ------
    AlphabetMismatch
        If there is not one number for each element, if an estimate is over another alphabet, or if
        the alphabet is a Grid.
    ValueError
        If there is nothing to draw.

    Examples
    --------
    >>> import ibukit as ik
    >>> ax = distributions(ik.Line(0, 3), {"truth": [0.1, 0.4, 0.4, 0.1], "uniform": ik.uniform(4)})
    >>> len(ax.lines)
    1
    """
    space = as_alphabet(alphabet)
    if isinstance(space, Grid):
        raise AlphabetMismatch(
            f"alphabet must be a line or categories, got {space!r}; heatmap(grid, values) draws a "
            "map"
        )
    drawn = [(name, numbers(values, space)) for name, values in _named(curves)]
    if not drawn:
        raise ValueError("curves must hold at least one distribution, got none")
    if not isinstance(space, Line):
        return categories.draw(space, drawn, ax)
    # The first curve is an area in grey; the others have the looks of their estimators.
    axes, look = axes_for(ax), looks(name for name, _ in drawn[1:])
    for i, (name, p) in enumerate(drawn):
        if i == 0:
            _fill(axes, space, p, label=name)
        else:
            of = look[name]
            _step(axes, space, p, label=of.label, color=of.color, linestyle=of.dash)
    axes.set_xlabel(value_label(space))
    axes.set_ylabel("probability")
    axes.set_xlim(space.first - 0.5, space.last + 0.5)
    # Raw inversion has negative entries; the axis then keeps a margin below them.
    if min(p.min() for _, p in drawn) >= 0:
        axes.set_ylim(bottom=0)
    axes.legend()
    return axes


def panels(
    alphabet: AlphabetLike,
    truth: VectorLike,
    estimates: Mapping[str, EstimatedDistribution],
    columns: int = 2,
) -> Figure:
    """Draw each estimate over the truth in a panel of its own.

    The title of each panel has the estimate's steps and its certified gap.

    Parameters
    ----------
    alphabet : Line or int
    truth : array_like or labelled, shape (k,)
        The truth, drawn as a filled curve behind each estimate.
    estimates : mapping of name to Estimate
    columns : int
        Number of panels side by side; two can still be read on a telephone.

    Returns
    -------
    matplotlib Figure
        All panels end at three times the maximum of the truth; a panel whose estimate goes higher
        says how high.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.TruncatedGeometric(3, epsilon=1.0).tally_counts([50, 30, 20])
    >>> estimates = {"INV-P": ik.inv(tally), "IBU": ik.ibu(tally, stop=ik.Steps(5))}
    >>> figure = panels(3, [0.6, 0.3, 0.1], estimates)
    >>> figure.axes[1].get_title().splitlines()
    ['IBU', '5 steps, gap 0.013']
    """
    line, rows = _line(alphabet), -(-len(estimates) // columns)
    real = numbers(truth, line)
    # Without a common end, one panel with high peaks would flatten all others.
    ceiling = 3 * real.max()
    size, look = (2.7 * columns, 2.45 * rows), looks(estimates)
    figure, grid = plt.subplots(
        rows, columns, sharex=True, sharey=True, squeeze=False, figsize=size
    )
    for i, (axes, (name, estimate)) in enumerate(zip(grid.flat, estimates.items(), strict=False)):
        _fill(axes, line, real)
        _step(
            axes, line, estimate.distribution, color=look[name].color, linewidth=1.3, linestyle="-"
        )
        steps = f"{estimate.n_iter:,} steps" if estimate.n_iter else "closed form"
        # the digits of a smaller gap are those of rounding
        gap = f"{estimate.gap:.2g}" if estimate.gap >= 1e-9 else "below $10^{-9}$"
        axes.set_title(f"{look[name].label}\n{steps}, gap {gap}", fontsize="medium")
        highest = estimate.distribution.max()
        if highest > ceiling:
            axes.annotate(
                f"up to {highest:.2f}", (1, 1), xycoords="axes fraction", ha="right", va="top"
            )
        axes.set(
            xlabel=value_label(line) if i >= len(estimates) - columns else "", ylim=(0, ceiling)
        )
        axes.set_xlim(line.first - 0.5, line.last + 0.5)
    for axes in grid.flat[len(estimates) :]:
        axes.set_visible(False)
    figure.supylabel("probability", fontsize="medium")
    return figure


def value_label(line: Line) -> str:
    """Return the label of the axis of a line."""
    return f"× {line.unit}" if line.unit[:1].isdigit() else plural(line.unit) or "value"


def _line(alphabet: AlphabetLike) -> Line:
    line = as_alphabet(alphabet)
    if not isinstance(line, Line):
        raise AlphabetMismatch(
            f"alphabet must be a Line, got {line!r}; distributions(alphabet, curves) draws labels"
        )
    return line


def _named(curves: Curves) -> Iterator[tuple[str, VectorLike]]:
    """Yield each distribution with a name: its own, the method of an estimate, or a number."""
    if isinstance(curves, Mapping):
        yield from curves.items()
        return
    listed: Any = curves
    if is_estimate(listed) or not isinstance(listed, Iterable):
        listed = [listed]
    each = list(listed)
    # A list of numbers is a single distribution.
    if each and not is_estimate(each[0]) and arguments.ndim(each[0]) == 0:
        each = [listed]
    for i, values in enumerate(each, start=1):
        yield (
            values.method if is_estimate(values) else f"distribution {i}",
            values,
        )


def _fill(axes: Axes, line: Line, p: Floats, **look: Any) -> None:
    """Fill bars without gaps, the first and the last as wide as the others."""
    # One more point at each end makes the outer bars full.
    wider = np.concatenate([[line.first - 1], line.values, [line.last + 1]])
    axes.fill_between(
        wider,
        np.pad(p, 1, mode="edge"),
        step="mid",
        color=ESTIMATORS["truth"].color,
        linewidth=0,
        **look,
    )


def _step(axes: Axes, line: Line, p: Floats, **look: Any) -> None:
    """Draw steps of the same widths as the bars of `_fill`."""
    # `axes.step` goes from the middle of the first bar to that of the last; the two halves are
    # added.
    (drawn,) = axes.step(line.values, p, where="mid", **look)
    start, end = [line.first - 0.5, line.last], [line.first, line.last + 0.5]
    width, dashes = drawn.get_linewidth(), drawn.get_linestyle()
    axes.hlines(p[[0, -1]], start, end, drawn.get_color(), dashes, linewidth=width)
