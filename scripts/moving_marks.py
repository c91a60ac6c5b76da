"""The attributes of a moving figure's marks for a choice, which ``moving.js`` also sets.

A figure is one JSON file in ``book/moving`` (written by ``scripts/moving_figures.py``): its
controls, its panels with their axes and marks, and the sentence below. A number that depends on
controls stands in a *table*, ``{"by": ["epsilon", "steps"], "values": [[...], ...]}``: the choice
of each control picks one entry. The still picture is drawn by these rules from the first choice,
and the page's script draws every other choice by the same rules. ``{"is": "walk"}`` stands for a
value that is computed from the choice, by the module and the script that the figure names as
``computed``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import moving_triangle

Spec = dict[str, Any]
Choice = dict[str, Any]  # where each control stands, and what is computed from that
COMPUTED = {"triangle": moving_triangle.world}
LEFT, RIGHT, TOP, BOTTOM, WIDE = (
    40,
    12,
    24,
    38,
    360,
)  # of a panel; its text is then legible on a phone


def first_choice(spec: Spec) -> Choice:
    """Where the controls stand at first."""
    return {control["name"]: control["start"] for control in spec["controls"]}


def complete(spec: Spec, choice: Choice) -> Choice:
    """The choice with what is computed from it."""
    return choice | (COMPUTED[spec["computed"]](spec, choice) if "computed" in spec else {})


def at(table: Any, choice: Choice) -> Any:
    """The entry of a table for a choice; anything but a table is returned as it is."""
    if not isinstance(table, dict):
        return table
    if "is" in table:
        return choice[table["is"]]
    entry = table["values"]
    for name in table["by"]:
        entry = entry[choice[name]]
    return entry


def plot_size(panel: Spec) -> tuple[int, int]:
    """Width and height between the axes."""
    return WIDE - LEFT - RIGHT, panel["height"] - TOP - BOTTOM


def along(axis: Spec, value: float, length: float) -> float:
    """How far from the start of its axis a value stands."""
    if axis.get("log"):
        if value <= 0:
            return 0.0
        share = math.log(value / axis["from"]) / math.log(axis["to"] / axis["from"])
    else:
        share = (value - axis["from"]) / (axis["to"] - axis["from"])
    return share * length


def points(panel: Spec, mark: Spec, choice: Choice) -> list[tuple[float, float]]:
    """The places of a mark, in the units of the plot, from its upper left corner."""
    wide, high = plot_size(panel)
    unit = mark.get("unit", 1)
    if "at" in mark:
        pairs = at(mark["at"], choice)
    else:
        xs, ys = at(mark["x"], choice), at(mark["y"], choice)
        pairs = zip(xs, ys, strict=True) if isinstance(xs, list) else [(xs, ys)]
    return [
        (along(panel["x"], x, wide), high - along(panel["y"], y * unit, high)) for x, y in pairs
    ]


def _path(places: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def line(panel: Spec, mark: Spec, choice: Choice) -> dict[str, str]:
    """A straight line from each place to the next."""
    return {"d": _path(points(panel, mark, choice))}


def area(panel: Spec, mark: Spec, choice: Choice) -> dict[str, str]:
    """The area below a line."""
    places, high = points(panel, mark, choice), plot_size(panel)[1]
    return {"d": _path([(places[0][0], high), *places, (places[-1][0], high)]) + "Z"}


def region(panel: Spec, mark: Spec, choice: Choice) -> dict[str, str]:
    """The area inside a border."""
    return {"d": _path(points(panel, mark, choice)) + "Z"}


def dots(panel: Spec, mark: Spec, choice: Choice) -> dict[str, str]:
    """Many dots, each drawn as a line of no length with round ends."""
    return {"d": "".join(f"{_path([place])}h0" for place in points(panel, mark, choice))}


def tiles(panel: Spec, mark: Spec, choice: Choice) -> dict[str, str]:
    """Tiles around the places, each one unit of the axes wide and high."""
    wide, high = plot_size(panel)
    w, h = (
        wide / (panel["x"]["to"] - panel["x"]["from"]),
        high / (panel["y"]["to"] - panel["y"]["from"]),
    )
    places = points(panel, mark, choice)
    return {
        "d": "".join(
            f"{_path([(x - w / 2, y - h / 2)])}h{w:.1f}v{h:.1f}h{-w:.1f}Z" for x, y in places
        )
        or "M0 0"
    }


def level(panel: Spec, mark: Spec, choice: Choice) -> dict[str, str]:
    """A line across the plot, at one height."""
    wide, high = plot_size(panel)
    y = high - along(panel["y"], at(mark["y"], choice) * mark.get("unit", 1), high)
    return {"d": _path([(0, y), (wide, y)])}


def upright(panel: Spec, mark: Spec, choice: Choice) -> dict[str, str]:
    """A line from the foot to the top of the plot."""
    wide, high = plot_size(panel)
    x = along(panel["x"], at(mark["x"], choice), wide)
    return {"d": _path([(x, high), (x, 0)])}


def dot(panel: Spec, mark: Spec, choice: Choice) -> dict[str, str]:
    """A circle at one place."""
    ((x, y),) = points(panel, mark, choice)
    return {"cx": f"{x:.1f}", "cy": f"{y:.1f}"}


SHAPES: dict[str, Callable[[Spec, Spec, Choice], dict[str, str]]] = {
    "line": line,
    "area": area,
    "region": region,
    "dots": dots,
    "tiles": tiles,
    "frame": tiles,
    "ends": region,  # through one, two or three places, drawn with a wide line
    "level": level,
    "upright": upright,
    "dot": dot,
}
TAGS = {"dot": "circle"}  # all others are paths


def shape(panel: Spec, mark: Spec, choice: Choice) -> dict[str, str]:
    """The attributes of a mark that depend on its place."""
    return SHAPES[mark["kind"]](panel, mark, choice)


def said(spec: Spec, choice: Choice) -> dict[str, str]:
    """The words of the sentence that depend on the choice; a control's name gives its value."""
    shown = {
        control["name"]: control["values"][choice[control["name"]]] for control in spec["controls"]
    }
    return shown | {name: at(table, choice) for name, table in spec["said"]["values"].items()}
