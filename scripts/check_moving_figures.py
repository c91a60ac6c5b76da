"""Move every moving figure of the built book by keyboard and finger, and compare it with Python.

    python scripts/check_moving_figures.py [--self-test] [--html _build/html]

Each control of each figure in book/moving is moved through all its values. At some of these
choices, the words of the sentence and the places of the marks must be those that `moving_marks`
computes, at 1280 and 390 px. Words must be large enough to read. The address of the page must bring
a setting back, whether the page comes from the disk or from a server. Without a script the page
must show the still picture and its sentence, and no control. With --self-test the pages are broken
on purpose first.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import check_addresses
from check_addresses import SHOWN
from headless_browser import run_check, serve
from moving_marks import Choice, Spec, complete, first_choice, said, shape

ROOT = Path(__file__).resolve().parents[1]

WIDE, NARROW = 1280, 390  # px
SCRIPTS = ("moving-triangle.js", "moving-address.js", "moving.js")  # in the order of the pages
LEGIBLE = 9.0  # px
NEAR = 0.11  # of a place, in units of the picture: it has one decimal, and rounding may differ
FEW = 6  # about this many choices of each control are compared, and the last; the keys visit all
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
SMALLEST = """box => Math.min(...[...box.querySelectorAll('svg text')].map(text => {
  const scale = text.getScreenCTM().a;
  return parseFloat(getComputedStyle(text).fontSize) * scale; }))"""


def specs(root: Path = ROOT) -> dict[str, Spec]:
    """Each figure by its title, which is also the label of its box on a page."""
    read = (
        json.loads(path.read_text("utf8"))
        for path in sorted((root / "book" / "moving").glob("*.json"))
    )
    return {spec["title"]: spec for spec in read}


def near(wanted: str, got: str, most: float) -> bool:
    """True if two texts have the same words, and numbers within a tolerance."""
    ours, theirs = ([float(x) for x in NUMBER.findall(text)] for text in (wanted, got))
    same = NUMBER.sub("", wanted) == NUMBER.sub("", got) and len(ours) == len(theirs)
    return same and all(abs(a - b) <= most for a, b in zip(ours, theirs, strict=True))


def unit(text: str) -> float:
    """One unit in the last digit of the numbers in a text."""
    return min((10.0 ** -len(x.partition(".")[2]) for x in NUMBER.findall(text)), default=0.0)


def differences(spec: Spec, stand: Choice, shown: dict[str, Any]) -> list[str]:
    """The differences of the page from what Python computes for a choice."""
    choice = complete(spec, stand)
    # the page may round a number that it computes differently from Python
    slack = 1.01 if "computed" in spec else 0.0
    found = [
        f"says {shown['said'].get(name)!r} for {name}, not {word!r}"
        for name, word in said(spec, choice).items()
        if name in shown["said"] and not near(word, shown["said"][name], slack * unit(word))
    ]
    for panel, marks in zip(spec["panels"], shown["marks"], strict=True):
        for mark, attributes in zip(panel["marks"], marks, strict=False):
            for name, value in shape(panel, mark, choice).items():
                if not near(value, attributes.get(name, ""), NEAR):
                    found.append(
                        f"a {mark['kind']} of {mark['look']} has {name}"
                        f" {attributes.get(name, '')[:40]!r}"
                    )
    return [f"{text} at {stand}" for text in found]


def operate(tab: Any, box: Any, spec: Spec) -> list[str]:
    """The faults that show when the controls are moved by the keyboard, one after the other."""
    choice = first_choice(spec)
    found = differences(spec, choice, box.evaluate(SHOWN))
    for control in spec["controls"]:
        field = box.locator(f"[name={control['name']}]")
        if not field.is_visible():
            return [*found, f"the control {control['name']} is not shown"]
        field.focus()
        tab.keyboard.press("Home")
        for i in range(len(control["values"])):
            if i:
                tab.keyboard.press("ArrowRight" if control.get("kind") != "select" else "ArrowDown")
            if i % max(1, len(control["values"]) // FEW) == 0 or i == len(control["values"]) - 1:
                found += differences(spec, choice | {control["name"]: i}, box.evaluate(SHOWN))
        for _ in range(len(control["values"]) - 1 - control["start"]):
            tab.keyboard.press("ArrowLeft" if control.get("kind") != "select" else "ArrowUp")
    return found + differences(spec, choice, box.evaluate(SHOWN)) + drag(tab, box, spec)


def drag(tab: Any, box: Any, spec: Spec) -> list[str]:
    """The faults that show when a finger drags a choice to the right end of its plot."""
    found = []
    for i, panel in enumerate(spec["panels"]):
        if "computed" in spec:
            found += drag_the_start(tab, box)
        if "x" not in panel.get("pad", {}):
            continue
        name = panel["pad"]["x"]
        control = next(control for control in spec["controls"] if control["name"] == name)
        place = box.locator(".moving-plot").nth(i).locator(".moving-pad").bounding_box()
        x, y = place["x"] + place["width"] - 1, place["y"] + place["height"] / 2
        tab.mouse.move(x - 20, y)
        tab.mouse.down()
        tab.mouse.move(x, y)
        tab.mouse.up()
        last = max(range(len(control["at"])), key=lambda j: control["at"][j])
        now = int(box.locator(f"[name={name}]").input_value())
        if now != last:
            found.append(f"dragged to the end, {name} stands at {now}, not at {last}")
        box.locator("form").evaluate(
            "form => { form.reset(); form.dispatchEvent(new Event('input')); }"
        )
    return found


def drag_the_start(tab: Any, box: Any) -> list[str]:
    """The faults that show when the start is dragged to a place in the triangle."""
    place = box.locator(".moving-pad").bounding_box()
    x, y = place["x"] + 0.55 * place["width"], place["y"] + 0.6 * place["height"]
    tab.mouse.move(x, y + 30)
    tab.mouse.down()
    tab.mouse.move(x, y)
    tab.mouse.up()
    start = box.locator(".moving-plot circle").first.bounding_box()
    off = max(abs(start["x"] + start["width"] / 2 - x), abs(start["y"] + start["height"] / 2 - y))
    box.locator("form").evaluate(
        "form => { form.reset(); form.dispatchEvent(new Event('input')); }"
    )
    return [f"the start is {off:.0f} px from where it was dragged"] if off > 8 else []


def visit(browser: Any, url: str, width: int, script: bool = True) -> tuple[list[str], int]:
    """The faults of the figures of one page, and the number of figures."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, java_script_enabled=script
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab, found = context.new_page(), []
    tab.set_default_timeout(300_000)  # a busy machine takes its time
    tab.on("pageerror", lambda error: found.append(f"script error: {error}"))
    known = specs()
    try:
        tab.goto(url, wait_until="load")
        boxes = tab.locator(".moving").all()
        for box in boxes:
            title = box.get_attribute("aria-label")
            if title not in known:
                found.append(f"no file in book/moving has the title {title!r}")
            elif script:
                box.scroll_into_view_if_needed()
                moved = operate(tab, box, known[title])
                found += moved or check_addresses.faults(tab, box, known[title])
                if (small := box.evaluate(SMALLEST)) < LEGIBLE:
                    found.append(f"text of {small:.1f} px, below {LEGIBLE}")
            elif box.locator("form").is_visible() or not box.locator("svg").first.is_visible():
                found.append("without a script: controls that do nothing, or no picture")
    except Exception as error:  # whatever stops a reader
        found.append(f"not used: {' '.join(str(error).split())[:200]}")
        boxes = []
    context.close()
    return [
        f"{Path(url).name} at {width} px{'' if script else ', no script'}: {text}" for text in found
    ], len(boxes)


def pages(html: Path) -> list[Path]:
    """The pages that have such a figure."""
    return [
        page
        for page in sorted((html / "book").rglob("*.html"))
        if 'class="moving"' in page.read_text("utf8")
    ]


def check(browser: Any, html: Path) -> list[str]:
    """The faults of the figures of the built book."""
    found, seen, shown = [], 0, set()
    with serve(html) as home:
        for page in pages(html):
            names = re.findall(r'class="moving"[^>]*aria-label="([^"]+)"', page.read_text("utf8"))
            shown |= set(names)
            disk, served = page.resolve().as_uri(), home + page.relative_to(html).as_posix()
            for url, width, script in (
                (disk, WIDE, True),
                (served, NARROW, True),
                (disk, NARROW, False),
            ):
                complaints, many = visit(browser, url, width, script)
                found, seen = found + complaints, seen + many
    print(f"check_moving_figures: {seen} figures looked at, {len(found)} findings")
    return found + [f"no page shows {title!r}" for title in sorted(set(specs()) - shown)]


BROKEN = {
    "nothing": ("", "", None),
    "a curve is wrong": ("moving.js", ("high - along(panel.y", "along(panel.y"), "a line of"),
    "a word is not changed": (
        "moving.js",
        ("node.textContent = words", "node.lang = words"),
        "says",
    ),
    "the controls stay hidden": (
        "moving.js",
        ("form.hidden = false", "form.hidden = true"),
        "is not shown",
    ),
    "a script fails": ("moving.js", ('"use strict";', '"use strict"; gone();'), "script error"),
    "the plot cannot be dragged": (
        "moving.js",
        ("if (x) found[x]", "if (y) found[x]"),
        "dragged to the end",
    ),
    "the address is not written": (
        "moving-address.js",
        ("history.replaceState(", "void ("),
        "does not follow the controls",
    ),
    "the address is not read": (
        "moving.js",
        ("Object.entries(address.asked)", "Object.entries({})"),
        "the address gives",
    ),
    "a wrong address is half taken": (
        "moving-address.js",
        ("if (index < 0 || control.name in found) return null", "if (index < 0) continue"),
        "an address that cannot be read",
    ),
    "a wrong address is dropped in silence": (
        "moving-address.js",
        ("if (!asked) note", "if (!asked) note.dataset"),
        "an address that cannot be read",
    ),
    "the anchor is dropped": (
        "moving-address.js",
        ('history.state, "", written(location)', 'history.state, "", written(location).search'),
        "the anchor of the page",
    ),
    "the link does not lead to the figure": (
        "moving-address.js",
        ("url.hash = id;", ""),
        "the link",
    ),
    "the text is small": ("moving.css", ("font-size: 12px", "font-size: 6px"), "text of"),
}


def trial(html: str, folder: Path, change: tuple[str, Any, Any]) -> Path:
    """A page with one figure, its script and its style, one of which is changed."""
    name, swap, _ = change
    for file in (*SCRIPTS, "moving.css", "schematics.css"):
        text = (ROOT / "book" / "_static" / file).read_text("utf8")
        if file == name:
            if swap[0] not in text:
                raise ValueError(f"{swap[0]!r} is not in {file}")
            text = text.replace(*swap)
        (folder / file).write_text(text, "utf8")
    links = "".join(
        f'<link rel="stylesheet" href="{file}">' for file in ("schematics.css", "moving.css")
    )
    page = folder / "page.html"
    links += "".join(f'<script defer src="{file}"></script>' for file in SCRIPTS)
    figure = f'<figure id="fig-moving-trial">{html}</figure>'
    page.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>a</title>{links}'
        f"<body>{figure}</body></html>",
        "utf8",
    )
    return page


def self_test(browser: Any) -> list[str]:
    """The faults that are not found."""
    figure = ROOT / "book" / "moving" / "hump-to-comb"
    numbers = figure.with_suffix(".json").read_text("utf8")
    html, missed = figure.with_suffix(".html").read_text("utf8").replace("{data}", numbers), []
    with tempfile.TemporaryDirectory() as folder:
        for name, change in BROKEN.items():
            found, _ = visit(browser, trial(html, Path(folder), change).as_uri(), NARROW)
            if bool(found) != (change[2] is not None) or (
                change[2] and not any(change[2] in text for text in found)
            ):
                missed.append(f"{name}: expected {change[2]!r}, found {found[:3]}")
    print(
        f"check_moving_figures --self-test: {len(BROKEN) - len(missed)} of {len(BROKEN)} pages"
        " judged as"
        " they deserve"
    )
    return missed


def main() -> int:
    """Carry out the command line; 1 where something was found."""
    return run_check(__doc__, self_test, check)


if __name__ == "__main__":
    sys.exit(main())
