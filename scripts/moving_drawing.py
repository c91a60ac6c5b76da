"""Draw the still picture of a moving figure, with its sentence and its hidden controls.

`page` is what ``scripts/moving_figures.py`` writes to ``book/moving/NAME.html``. The book puts it
into the page that shows the figure, with the numbers of ``NAME.json`` in the place of ``{data}``.
Where there is a script (``moving.js``) the controls appear and the picture follows them; where
there is none, the picture and its sentence stay.
"""

from __future__ import annotations

from html import escape
from typing import Any

from ibukit.plotting import ESTIMATORS
from moving_marks import (
    LEFT,
    TAGS,
    TOP,
    WIDE,
    Spec,
    along,
    complete,
    first_choice,
    plot_size,
    said,
    shape,
)

# the variables of schematics.css; what stands for no estimator has its own
COLOURS = {"truth": "truth", "reports": "grey", "IBU": "ibu", "MLE": "mle", "smooth": "smooth"}
COLOURS |= {"INV-N": "inv-n", "INV-P": "inv-p", "posterior mean": "posterior"}
COLOURS |= {name: name for name in ("first", "second", "grey", "shade")}
DASHES = {"-": "", "--": "6 3", "-.": "6 3 1 3", ":": "1 3"}


def element(tag: str, attributes: dict[str, Any], inside: str = "") -> str:
    """One element."""
    return (
        f"<{tag}"
        + "".join(f' {key}="{escape(str(value))}"' for key, value in attributes.items())
        + f">{inside}</{tag}>"
    )


def drawn_as(mark: Spec) -> dict[str, str]:
    """The colour and the dashes of a mark, by what it shows."""
    look, kind = mark["look"], mark["kind"]
    colour = f"var(--ik-{COLOURS[look]})"
    if kind in ("area", "dot", "region", "tiles"):
        pale = {"style": f"fill-opacity: {mark['opacity']}"} if "opacity" in mark else {}
        return {"fill": colour, "class": f"moving-{kind}"} | pale
    if kind in ("dots", "ends", "frame"):
        return {"stroke": colour, "class": f"moving-{kind}"}
    known = ESTIMATORS.get(look)
    dash = known.dash if known else "-"
    dashes = DASHES[dash] if isinstance(dash, str) else " ".join(str(2 * part) for part in dash[1])
    return {"stroke": colour, "class": "moving-line"} | (
        {"stroke-dasharray": dashes} if dashes else {}
    )


def corners(panel: Spec) -> str:
    """A triangle with a name at each corner."""
    wide, high = plot_size(panel)
    left, right, foot, middle = LEFT, LEFT + wide, TOP + high, LEFT + wide / 2
    places = [(left, foot + 17, "start"), (middle, TOP - 8, "middle"), (right, foot + 17, "end")]
    names = "".join(
        f'<text x="{x}" y="{y}" text-anchor="{side}">{escape(name)}</text>'
        for (x, y, side), name in zip(places, panel["corners"], strict=True)
    )
    return f'<path class="moving-axis" d="M{left} {foot}L{middle} {TOP}L{right} {foot}Z"/>{names}'


def axes(panel: Spec) -> str:
    """Ticks, their numbers, and the names of the axes; the vertical axis has its name above it."""
    wide, high = plot_size(panel)
    found = [f'<path class="moving-axis" d="M{LEFT} {TOP}V{TOP + high}H{LEFT + wide}"/>']
    for value, text in panel["x"]["ticks"]:
        x = LEFT + along(panel["x"], value, wide)
        found.append(f'<path class="moving-axis" d="M{x:.1f} {TOP + high}v4"/>')
        found.append(
            f'<text x="{x:.1f}" y="{TOP + high + 16}" text-anchor="middle">{escape(text)}</text>'
        )
    for value, text in panel["y"]["ticks"]:
        y = TOP + high - along(panel["y"], value, high)
        found.append(f'<path class="moving-axis" d="M{LEFT} {y:.1f}h-4"/>')
        found.append(
            f'<text x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>'
        )
    found.append(f'<text x="2" y="12">{escape(panel["y"]["title"])}</text>')
    middle = LEFT + wide / 2
    found.append(
        f'<text x="{middle}" y="{panel["height"] - 5}" text-anchor="middle">'
        f"{escape(panel['x']['title'])}</text>"
    )
    return "".join(found)


def picture(panel: Spec, choice: dict[str, int]) -> str:
    """One panel; marks are cut off at the edges of a plot, but not at the edges of a triangle."""
    wide, high = plot_size(panel)
    marks = "".join(
        element(TAGS.get(mark["kind"], "path"), drawn_as(mark) | shape(panel, mark, choice))
        for mark in panel["marks"]
    )
    if "pad" in panel:  # what a finger or a mouse drags
        marks += element("rect", {"class": "moving-pad", "width": wide, "height": high})
    place = {
        "class": f"moving-plot{' open' if 'corners' in panel else ''}",
        "x": LEFT,
        "y": TOP,
        "width": wide,
        "height": high,
    }
    frame = {
        "viewBox": f"0 0 {WIDE} {panel['height']}",
        "role": "img",
        "aria-label": panel["label"],
    }
    around = corners(panel) if "corners" in panel else axes(panel)
    return element("svg", frame, around + element("svg", place, marks))


def key(spec: Spec) -> str:
    """The key, which says what each line is."""
    entries = []
    for panel in spec["panels"]:
        for mark in panel["marks"]:
            if "key" in mark:
                looks = drawn_as(mark)
                across, block, three = "M0 6H26", "M0 1H26V11H0Z", "M3 6h0M13 6h0M23 6h0"
                path = {
                    "line": across,
                    "level": across,
                    "upright": across,
                    "ends": across,
                    "dots": three,
                }
                path |= {"area": block, "region": block, "tiles": block}
                sample = (
                    element("circle", looks | {"cx": 13, "cy": 6})
                    if mark["kind"] == "dot"
                    else element("path", looks | {"d": path[mark["kind"]]})
                )
                drawing = element("svg", {"viewBox": "0 0 26 12", "aria-hidden": "true"}, sample)
                entries.append(f"<li>{drawing}{escape(mark['key'])}</li>")
    return f'<ul class="moving-key">{"".join(entries)}</ul>' if entries else ""


def control(spec: Spec) -> str:
    """A slider, or a list to choose from, with its name and what it shows."""
    chosen, looks = (
        spec["values"][spec["start"]],
        {"class": f"moving-control {spec.get('size', '')}".strip()},
    )
    name = f"<span>{escape(spec['label'])}</span>"
    if spec.get("kind") == "select":
        options = "".join(
            element(
                "option",
                {"value": i} | ({"selected": ""} if i == spec["start"] else {}),
                escape(text),
            )
            for i, text in enumerate(spec["values"])
        )
        return element("label", looks, name + element("select", {"name": spec["name"]}, options))
    bounds = f'min="0" max="{len(spec["values"]) - 1}" step="1" value="{spec["start"]}"'
    slider = (
        f'<input type="range" name="{spec["name"]}" {bounds} aria-valuetext="{escape(chosen)}"/>'
    )
    return element("label", looks, f"{name}{slider}<output>{escape(chosen)}</output>")


def sentence(spec: Spec, choice: dict[str, int]) -> str:
    """The sentence below the picture, with the numbers of the choice."""
    words = {
        name: element("b" if text[0].isdigit() else "span", {"data-say": name}, escape(text))
        for name, text in said(spec, choice).items()
    }
    return f'<p class="moving-said">{escape(spec["said"]["text"]).format(**words)}</p>'


def page(spec: Spec) -> str:
    """All of a figure but its caption, with {data} in the place of its numbers."""
    choice = complete(spec, first_choice(spec))
    pictures = "".join(picture(panel, choice) for panel in spec["panels"])
    play = (
        f'<button type="button" data-play="{spec["play"]}">Play</button>' if "play" in spec else ""
    )
    controls = "".join(map(control, spec["controls"])) + play
    form = f'<form class="moving-controls" hidden="">{controls}</form>'
    script = '<script type="application/json">{data}</script>'
    inside = f'<div class="moving-panels">{pictures}</div>{key(spec)}{form}'
    inside += f"{sentence(spec, choice)}{script}"
    return element("div", {"class": "moving", "role": "group", "aria-label": spec["title"]}, inside)
