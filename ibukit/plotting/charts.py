"""Plots of channels, boxplots, and the likelihood of three secrets on a triangle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import Polygon
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ibukit._ground.arguments import Floats
from ibukit.domain.vectors import VectorLike
from ibukit.plotting._looks import HATCHES, estimator_of, looks
from ibukit.plotting._scales import NAME, white_at_zero
from ibukit.plotting._style import axes_for, numbers
from ibukit.tally.tally import Tally, check_tally


def channel(
    matrix: ArrayLike,
    ax: Axes | None = None,
    norm: Normalize | None = None,
    first_secret: int = 0,
    first_report: int = 0,
) -> Axes:
    r"""Draw a channel matrix, one row per secret, one column per report.

    The first secret is on top. The colour shows :math:`P(z \mid x)`, with white for 0.

    Parameters
    ----------
    matrix : array_like, shape (k, m)
    ax : matplotlib Axes, optional
    norm : matplotlib Normalize, optional
        Scale of the colours, e.g. ``LogNorm(1e-5, 1)``; by default it is linear from 0 to the
        largest entry.
    first_secret, first_report : int
        Labels of the first row and column, if secrets and reports are consecutive integers.

    Returns
    -------
    matplotlib Axes
        The image in it is ``ax.images[0]``, for instance for a colour bar.

    Raises
    ------
    ValueError
        If `matrix` does not have two dimensions.

    Examples
    --------
    >>> import ibukit as ik
    >>> ax = channel(ik.RandomizedResponse(3, epsilon=1.0).matrix())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('report', 'secret')
    """
    entries = np.asarray(matrix, dtype=np.float64)
    if entries.ndim != 2:
        raise ValueError(f"matrix must have two dimensions, got shape {entries.shape}")
    axes = axes_for(ax)
    k, m = entries.shape
    # Each entry is a unit square around its integer labels; the vertical axis points down.
    extent = (
        first_report - 0.5,
        first_report + m - 0.5,
        first_secret + k - 0.5,
        first_secret - 0.5,
    )
    colours = Normalize(0.0, entries.max()) if norm is None else norm
    cmap = white_at_zero(colours, entries)
    axes.imshow(
        entries, extent=extent, norm=colours, cmap=cmap, interpolation="none", aspect="auto"
    )
    for axis in (axes.xaxis, axes.yaxis):
        # Ticks are integers: there is no secret 2.5.
        axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    axes.spines[:].set(visible=True, color="0.6", linewidth=0.6)
    axes.set_xlabel("report")
    axes.set_ylabel("secret")
    return axes


def boxes(
    samples: Mapping[str, Mapping[Any, ArrayLike]], ax: Axes | None = None, log: bool = False
) -> Axes:
    """Boxplots side by side, one box per estimator and setting.

    The settings are on the horizontal axis.

    Parameters
    ----------
    samples : mapping of estimator to mapping of setting to array_like of results
    ax : matplotlib Axes, optional
    log : bool
        Whether the vertical axis is logarithmic.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = boxes({"INV-P": {0.1: [3, 4, 5]}, "IBU": {0.1: [1, 1, 2]}})
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['INV-P', 'IBU']
    """
    axes = axes_for(ax)
    # Settings in the order in which they first occur; estimators may lack some of them.
    settings = list(dict.fromkeys(setting for results in samples.values() for setting in results))
    width, look = 0.8 / len(samples), looks(samples)
    for i, (name, results) in enumerate(samples.items()):
        positions = [
            settings.index(setting) + (i - (len(samples) - 1) / 2) * width for setting in results
        ]
        color = look[name].color
        drawn = axes.boxplot(
            [np.asarray(values) for values in results.values()],
            positions=positions,
            widths=0.8 * width,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": color, "alpha": 0.55, "hatch": HATCHES[i % len(HATCHES)]},
            medianprops={"color": "black", "linestyle": "-"},
            whiskerprops={"linestyle": "-"},
            flierprops={"marker": ".", "markersize": 3, "markeredgecolor": color},
        )
        # One box of each estimator stands for it in the legend.
        drawn["boxes"][0].set_label(look[name].label)
    axes.set_xticks(range(len(settings)), [str(setting) for setting in settings])
    if log:
        axes.set_yscale("log")
    columns = {"ncols": 2, "fontsize": "small"} if len(samples) > 3 else {}
    # A long legend stands above the axes, because there is no room beside the boxes.
    axes.legend(**(columns | {"loc": "lower left", "bbox_to_anchor": (0, 1)} if columns else {}))
    return axes


def triangle(
    tally: Tally,
    marks: Mapping[str, Sequence[VectorLike]] | None = None,
    ax: Axes | None = None,
    levels: int = 12,
) -> Axes:
    """Draw the mean log-likelihood of a tally of three secrets.

    It is drawn over the simplex, with distributions marked on it.

    Parameters
    ----------
    tally : Tally
        With k = 3.
    marks : mapping of label to distributions, optional
    ax : matplotlib Axes, optional
    levels : int
        Number of contours.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the tally is not over three secrets.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([5, 3, 2])
    >>> ax = triangle(tally, {"MLE": [ik.mle(tally).distribution]})
    """
    if check_tally(tally, weighted=True).k != 3:
        raise ValueError(
            f"tally must be over 3 secrets to be drawn on a triangle, but it is over {tally.k}"
        )
    axes = axes_for(ax)
    # The points are mixed with a little of the uniform distribution, because the log-likelihood
    # can be -inf on the edges.
    parts = 90
    # A triangular lattice of points, in which each coordinate is a multiple of 1 / parts.
    whole = [(a, b, parts - a - b) for a in range(parts + 1) for b in range(parts + 1 - a)]
    inside = 1e-3 + (1 - 3e-3) * np.array(whole) / parts
    likelihood = [float(tally.frequencies @ np.log(tally.forward(theta))) for theta in inside]
    x, y = _corners(inside)
    drawn = axes.tricontourf(x, y, likelihood, levels=levels, cmap=NAME)
    # as high as the triangle, beside it
    bar = axes.inset_axes((1.08, 0, 0.05, np.sqrt(3) / 2), transform=axes.transData)
    axes.figure.colorbar(drawn, cax=bar, label="nats per report")
    edge = Polygon(np.column_stack(_corners(np.eye(3))), fill=False, edgecolor="0.6", linewidth=0.6)
    # Without an edge the smallest likelihoods, which are white, would merge with the page.
    axes.add_patch(edge)
    names = [str(value) for value in tally.alphabet.values]
    for corner, name in zip(np.eye(3), names, strict=True):
        cx, cy = _corners(corner[None])
        shift = (0, 6 if cy[0] > 0 else -14)
        # The contours end just inside the corner, which may lie outside the axes;
        # annotation_clip=False draws its name all the same.
        at, offset = (cx[0], cy[0]), "offset points"
        axes.annotate(name, at, xytext=shift, textcoords=offset, ha="center", annotation_clip=False)
    for i, (name, look) in enumerate(looks(marks or {}).items()):
        mx, my = _corners(
            np.array([numbers(point, tally.alphabet) for point in (marks or {})[name]])
        )
        # Marks that are not estimators get colours that are visible on every contour.
        color = look.color if estimator_of(name) else ("#D55E00", "#FFFFFF", "#56B4E9")[i % 3]
        axes.plot(mx, my, "ov^sD"[i % 5], color=color, mec="black", label=look.label)
    if marks:
        axes.legend(loc="upper left", fontsize="small")
    axes.set_aspect("equal")
    # This leaves room for the names of the corners, and for a legend above the upper one.
    axes.set_ylim(-0.12, 1.02 + 0.1 * len(marks or {}))
    axes.axis("off")
    return axes


def _corners(theta: Floats) -> tuple[Floats, Floats]:
    """Return plane coordinates: secret 0 left, secret 2 right, secret 1 on top."""
    return theta[:, 2] + theta[:, 1] / 2, theta[:, 1] * np.sqrt(3) / 2
