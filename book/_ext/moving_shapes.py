"""What the marks of a moving figure look like for a choice: the attributes that ``moving.js`` sets when it moves them.

A figure is one JSON file in ``book/moving`` (written by ``scripts/moving.py``): its controls, its panels with their
axes and marks, and the sentence below. A number that depends on controls stands in a *table*,
``{"by": ["epsilon", "steps"], "values": [[...], ...]}``: the choice of each control picks one entry. The still picture
is drawn here from the first choice, and the script draws every other one by the same rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Spec = dict[str, Any]
Choice = dict[str, int]
LEFT, RIGHT, TOP, BOTTOM, WIDE = 40, 12, 24, 38, 360  # of a panel; its text is then legible on a phone


def first_choice(spec: Spec) -> Choice:
    """Where the controls stand at first."""
    return {control["name"]: control["start"] for control in spec["controls"]}


def at(table: Any, choice: Choice) -> Any:
    """The entry of a table for a choice; what is no table is the entry itself."""
    if not isinstance(table, dict):
        return table
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
    xs, ys = at(mark["x"], choice), at(mark["y"], choice)
    unit = mark.get("unit", 1)
    pairs = zip(xs, ys, strict=True) if isinstance(xs, list) else [(xs, ys)]
    return [(along(panel["x"], x, wide), high - along(panel["y"], y * unit, high)) for x, y in pairs]


def _path(places: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def line(panel: Spec, mark: Spec, choice: Choice) -> dict[str, str]:
    """Straight from place to place."""
    return {"d": _path(points(panel, mark, choice))}


def area(panel: Spec, mark: Spec, choice: Choice) -> dict[str, str]:
    """All below a line."""
    places, high = points(panel, mark, choice), plot_size(panel)[1]
    return {"d": _path([(places[0][0], high), *places, (places[-1][0], high)]) + "Z"}


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
    """One place."""
    ((x, y),) = points(panel, mark, choice)
    return {"cx": f"{x:.1f}", "cy": f"{y:.1f}"}


SHAPES: dict[str, Callable[[Spec, Spec, Choice], dict[str, str]]] = {
    "line": line,
    "area": area,
    "level": level,
    "upright": upright,
    "dot": dot,
}
TAGS = {"dot": "circle"}  # all others are paths


def shape(panel: Spec, mark: Spec, choice: Choice) -> dict[str, str]:
    """The attributes of a mark that its place decides."""
    return SHAPES[mark["kind"]](panel, mark, choice)


def said(spec: Spec, choice: Choice) -> dict[str, str]:
    """The words of the sentence that depend on the choice; a control's name stands for what it shows."""
    shown = {control["name"]: control["values"][choice[control["name"]]] for control in spec["controls"]}
    return shown | {name: at(table, choice) for name, table in spec["said"]["values"].items()}
