"""The numbers that a figure of matplotlib shows, and the figure's small picture.

A kernel that runs a chapter of the book loads this file at its start
(``notebooks.kernel_settings``) and calls `install`. From then on each drawing of a cell carries in
its ``<metadata>`` what `data_of` returns, as JSON: the panels with their axes, and in each panel
its series.

A series has a ``kind``, the ``label`` of the legend if it has one, its ``colour``, and numbers to
six significant digits:

* ``line``, ``points``: ``x`` and ``y``, and ``value`` where a colour shows one;
* ``level``, ``upright``: the one ``y`` or ``x`` of a line across the panel;
* ``bars``: ``x`` and ``y`` of the lower left corners, ``width`` and ``height``;
* ``steps``: ``x``, the edges, one more than there are heights ``y``;
* ``outline``: the ``x`` and ``y`` of areas, bands and segments; null between two pieces;
* ``contours``: the ``value`` of each level; the curves are in the drawing only;
* ``picture``: ``value``, row by row from the first row of the array, and its outer edges.

A series of more than `MAX_NUMBERS` numbers has only their count, in its ``omitted``: so the file
stays as light as the page needs it, and the code of the figure computes the numbers. Arrows, words
and the shores of a map are in the drawing only.
"""

from __future__ import annotations

import base64
import html
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

METADATA = re.compile(r"(?s)<metadata>.*?</metadata>")
ROOT_TAG = re.compile(r"<svg\b[^>]*>")
MAX_NUMBERS = 3_000  # of a series: the picture of a channel of 100 values would weigh 70 kB
THUMBNAIL_DPI = 44  # 240 px for the width of a column: words can be made out
Series = dict[str, Any]


def number(value: Any) -> float | int | None:
    """A number as JSON writes it, to six significant digits; None where there is none."""
    value = float(value)
    if not math.isfinite(value):
        return None
    value = float(f"{value:.6g}")
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def numbers(values: Sequence[Any]) -> list[float | int | None]:
    """Numbers of a list or an array."""
    import numpy as np

    # what is masked is not drawn
    filled = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
    return [number(value) for value in filled.ravel()]


def colour(artist: Any) -> str:
    """The colour of a line or of an area."""
    from matplotlib.colors import to_hex

    get = getattr(artist, "get_color", None) or artist.get_facecolor
    found = get()
    if not isinstance(found, str) and len(found) and not isinstance(found[0], float):
        found = found[0]  # the colour of the first of several pieces
    try:
        return str(to_hex(found))
    except ValueError:
        return ""


def looks(artist: Any, label: str | None = None) -> Series:
    """The name and the colour of a series."""
    name = str(artist.get_label() if label is None else label)
    shown = {"label": "" if name.startswith("_") else name, "colour": colour(artist)}
    return {key: word for key, word in shown.items() if word}


def line(artist: Any, axes: Any) -> Series | None:
    """A line through places, or across the whole panel."""
    in_x, in_y = artist.get_transform().contains_branch_seperately(axes.transData)
    x, y = numbers(artist.get_xdata(orig=False)), numbers(artist.get_ydata(orig=False))
    if not len(x) or not (in_x or in_y):
        return None
    if in_x and in_y:
        alone = artist.get_linestyle() in ("None", "none", " ", "")
        return {"kind": "points" if alone else "line", **looks(artist), "x": x, "y": y}
    kind, place = ("upright", {"x": x[0]}) if in_x else ("level", {"y": y[0]})
    return {"kind": kind, **looks(artist), **place}


def bars(rectangles: list[Any], label: str) -> Series:
    """Rectangles of one series."""
    parts = {"x": "get_x", "y": "get_y", "width": "get_width", "height": "get_height"}
    found = {name: numbers([getattr(r, get)() for r in rectangles]) for name, get in parts.items()}
    return {"kind": "bars", **looks(rectangles[0], label), **found}


def outline(artist: Any, paths: list[Any]) -> Series | None:
    """The corners of some pieces, with null between two."""
    x: list[Any] = []
    y: list[Any] = []
    for path in paths:
        for places in path.to_polygons(closed_only=False):
            if x:
                x.append(None)
                y.append(None)
            x += numbers(places[:, 0])
            y += numbers(places[:, 1])
    return {"kind": "outline", **looks(artist), "x": x, "y": y} if x else None


def picture(artist: Any) -> Series:
    """The values of a picture or of a mesh."""
    import numpy as np

    values = np.ma.asarray(artist.get_array())
    found: Series = {"kind": "picture"}
    if hasattr(artist, "get_extent"):
        left, right, low, high = artist.get_extent()
        found |= {"x": [number(left), number(right)], "y": [number(low), number(high)]}
    elif hasattr(artist, "get_coordinates"):
        corners = artist.get_coordinates()
        values = values.reshape(corners.shape[0] - 1, corners.shape[1] - 1)
        found |= {"x": numbers(corners[0, :, 0]), "y": numbers(corners[:, 0, 1])}
    rows = values if values.ndim == 2 else values[..., 0]
    return found | {"value": [numbers(row) for row in rows]}


def collection(artist: Any, axes: Any) -> Series | None:
    """Points, a mesh, or the outlines of what is drawn as a whole."""
    if hasattr(artist, "levels"):
        return {"kind": "contours", "value": numbers(artist.levels)}
    if re.match(r"_(?!child)", str(artist.get_label())):  # what stands below a map
        return None
    if hasattr(artist, "get_coordinates"):
        return picture(artist)
    places = artist.get_offsets()
    if type(artist).__name__ == "PathCollection" and len(places):
        found = {"kind": "points", **looks(artist)}
        found |= {"x": numbers(places[:, 0]), "y": numbers(places[:, 1])}
        values = artist.get_array()
        return found if values is None else found | {"value": numbers(values)}
    if not all(artist.get_transform().contains_branch_seperately(axes.transData)):
        return None
    return outline(artist, artist.get_paths())


def patches(axes: Any) -> list[Series]:
    """Bars, steps and shapes of a panel; each container of bars is one series."""
    from matplotlib.container import BarContainer
    from matplotlib.patches import FancyArrowPatch, Rectangle, StepPatch

    found, seen = [], set()
    for container in axes.containers:
        if isinstance(container, BarContainer) and len(container.patches):
            found.append(bars(list(container.patches), str(container.get_label())))
            seen |= {id(patch) for patch in container.patches}
    for patch in axes.patches:
        if id(patch) in seen or isinstance(patch, FancyArrowPatch):
            continue
        in_data = patch.get_transform().contains_branch_seperately(axes.transData)
        if isinstance(patch, StepPatch):
            heights, edges, _ = patch.get_data()
            found.append(
                {"kind": "steps", **looks(patch), "x": numbers(edges), "y": numbers(heights)}
            )
        elif isinstance(patch, Rectangle) and any(in_data):
            found.append(bars([patch], str(patch.get_label())))
        elif all(in_data) and (shape := outline(patch, [patch.get_path()])):
            found.append(shape)
    return found


def axis(found: Any) -> dict[str, Any]:
    """The name of an axis, its scale, and the words at some of its places."""
    words = {
        number(place): text.get_text()
        for place, text in zip(found.get_ticklocs(), found.get_ticklabels(), strict=False)
        if re.search(r"[A-Za-z]", re.sub(r"\$.*?\$", "", text.get_text()))
    }
    about = {"label": found.get_label_text(), "scale": found.get_scale()}
    return about | ({"words": list(words.items())} if words else {})


def counted(values: Any) -> int:
    """How many numbers there are in nested lists."""
    return sum(map(counted, values)) if isinstance(values, list) else 1


def at_most(series: Series) -> Series:
    """The series, without its numbers where they are too many."""
    lists = {key: counted(values) for key, values in series.items() if isinstance(values, list)}
    if max(lists.values(), default=0) <= MAX_NUMBERS:
        return series
    kept = {key: value for key, value in series.items() if key not in lists}
    return kept | {"omitted": lists}


def panel(axes: Any) -> dict[str, Any]:
    """One panel with its series."""
    series = [line(each, axes) for each in axes.lines]
    series += [collection(each, axes) for each in axes.collections]
    series += [*patches(axes), *(picture(each) for each in axes.images)]
    found = {"title": axes.get_title(), "x": axis(axes.xaxis), "y": axis(axes.yaxis)}
    return found | {"series": [at_most(each) for each in series if each]}


def data_of(figure: Any) -> dict[str, Any]:
    """The panels of a figure that show numbers."""
    shown = [panel(axes) for axes in figure.axes if not hasattr(axes, "_colorbar")]
    return {"panels": [each for each in shown if each["series"]]}


def thumbnail(figure: Any) -> str:
    """The figure as a small picture (PNG, base64)."""
    file = io.BytesIO()
    figure.canvas.print_figure(
        file, format="png", dpi=THUMBNAIL_DPI, bbox_inches="tight", facecolor="none"
    )
    return base64.b64encode(file.getvalue()).decode()


def as_metadata(data: dict[str, Any]) -> str:
    """Data as an element of a drawing."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"<metadata>{html.escape(text, quote=False)}</metadata>"


def read(svg: str) -> dict[str, Any] | None:
    """The data of a drawing, if it has any."""
    found = re.search(r"(?s)<metadata>(\{.*?\})</metadata>", svg)
    return dict(json.loads(html.unescape(found[1]))) if found else None


def with_data(svg: str, data: dict[str, Any]) -> str:
    """The drawing with the given data in place of its own data."""
    svg = METADATA.sub("", svg)
    return ROOT_TAG.sub(lambda tag: tag[0] + as_metadata(data), svg, count=1)


def carrying(print_figure: Callable[..., Any]) -> Callable[..., Any]:
    """A function that prints a figure as the given one does, but puts its data into a drawing."""

    def with_its_data(figure: Any, fmt: str = "png", **options: Any) -> Any:
        printed = print_figure(figure, fmt=fmt, **options)
        if fmt != "svg" or not printed:
            return printed
        return with_data(printed, data_of(figure) | {"thumbnail": thumbnail(figure)})

    return with_its_data


def install() -> None:
    """Let every drawing of this kernel carry its data."""
    from IPython.core import pylabtools

    pylabtools.print_figure = carrying(pylabtools.print_figure)
