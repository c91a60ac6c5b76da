"""Download figures of the built book, and check the files.

    python scripts/check_figure_files.py [--self-test] [--html _build/html]

On some pages the fold below each figure is opened by the keyboard. Each drawing must be a file of
its own that a browser draws, with a title, its source, its licence and, unless it is a schematic,
the numbers of its panels; each table must have a row for each of these numbers. In print the fold
must not be shown. With --self-test the scripts are broken on purpose first.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from headless_browser import run_check, serve

ROOT = Path(__file__).resolve().parents[1]
# computed figures of many kinds, schematics and moving figures
PAGES = (
    "book/chapters/ages.html",
    "book/chapters/attack.html",
    "book/chapters/counterexamples.html",
)
SVG = "{http://www.w3.org/2000/svg}"
SCRIPT = Path("_static", "figure-files.js")
WHAT = ("figure", "source", "creator", "licence")
DRAWN = """async text => {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' }));
  try { await image.decode(); } catch { return 0; }
  const canvas = document.createElement('canvas'), draw = canvas.getContext('2d');
  canvas.width = canvas.height = 200;
  draw.drawImage(image, 0, 0, 200, 200);
  return new Set(new Uint32Array(draw.getImageData(0, 0, 200, 200).data.buffer)).size;
}"""  # the number of colours that the browser draws from a file alone
MIN_COLOURS = 8


def file_faults(text: str, schematic: bool) -> list[str]:
    """The faults of a drawing that was saved."""
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        return [f"not well-formed: {error}"]
    found = [] if root.findtext(f"{SVG}title") else ["no title"]
    if "var(" in text or "currentColor" in text:
        found.append("colours of the page that no other program knows")
    held = [(node.text or "").strip() for node in root.iter(f"{SVG}metadata")]
    about: dict[str, Any] = json.loads(next((t for t in held if t.startswith("{")), "{}"))
    found += [f"no {name}" for name in WHAT if not about.get(name)]
    series = [each for panel in about.get("panels", []) for each in panel["series"]]
    if not schematic and not series:
        found.append("no data")
    return found


def saved(tab: Any, control: Any) -> str:
    """The text of the file that a control saves when it is pressed by the keyboard."""
    with tab.expect_download() as download:
        control.focus()
        tab.keyboard.press("Enter")
    return Path(download.value.path()).read_text("utf8")


def figure_faults(tab: Any, figure: Any) -> list[str]:
    """The faults of the files of one figure."""
    fold = figure.locator("details.figure-files")
    if fold.count() != 1:
        return ["there is no fold"]
    fold.locator("summary").focus()
    tab.keyboard.press("Enter")
    controls = fold.locator("a, button")
    schematic = "schematic" in (figure.get_attribute("class") or "")
    drawing = saved(tab, controls.first)
    found = file_faults(drawing, schematic)
    if tab.evaluate(DRAWN, drawing) < MIN_COLOURS:
        found.append("the file draws nothing")
    if controls.count() != (1 if schematic else 2):
        found.append(f"{controls.count()} controls")
    elif not schematic:
        head, *rows = saved(tab, controls.last).splitlines()
        if not head.startswith("panel,series,kind,x,y") or not rows:
            found.append("the table has no rows")
        if any("undefined" in row or "NaN" in row or "[object" in row for row in rows):
            found.append("the table has cells without a number")
    return found


def visit(browser: Any, url: str) -> tuple[list[str], int]:
    """The faults of the files of a page, and the number of its figures."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="dark")
    tab, found = context.new_page(), []
    tab.set_default_timeout(60_000)  # a busy machine takes its time
    tab.on("pageerror", lambda error: found.append(f"script error: {error}"))
    tab.goto(url, wait_until="load")
    theme = tab.evaluate("document.documentElement.dataset.theme")
    figures = tab.locator(".bd-article figure[id]").all()
    for figure in figures:
        name = figure.get_attribute("id")
        try:
            found += [f"{name}: {fault}" for fault in figure_faults(tab, figure)]
        except Exception as error:  # whatever stops a reader
            found.append(f"{name}: not used: {' '.join(str(error).split())[:160]}")
    if tab.evaluate("document.documentElement.dataset.theme") != theme:
        found.append("the theme is not what it was")
    tab.emulate_media(media="print")
    if any(fold.is_visible() for fold in tab.locator(".figure-files").all()):
        found.append("printed")
    context.close()
    return [f"{url.rpartition('/')[2]}: {fault}" for fault in found], len(figures)


def check(browser: Any, html: Path) -> list[str]:
    """The faults of the files of some pages."""
    found, seen = [], 0
    with serve(html) as home:
        for page in PAGES:
            faults, many = visit(browser, home + page)
            found, seen = found + faults, seen + many
    print(f"check_figure_files: {seen} figures saved, {len(found)} findings")
    return found


BROKEN = {
    "nothing": ("", "", None),
    "no licence": ("licence: LICENCE, ", "", "no licence"),
    "the colours stay those of the page": (
        "plain.setAttribute(name, value.replace",
        "void (value.replace",
        "colours of the page",
    ),
    "no data": ("JSON.stringify(about)", "JSON.stringify({ ...about, panels: [] })", "no data"),
    "the table is empty": ('...full, ""]', '""]', "the table has no rows"),
    "the theme stays light": ("finally { root.dataset.theme = theme; }", "finally {}", "the theme"),
    "no fold": ("figure.append(box);", "", "there is no fold"),
}


def self_test(browser: Any) -> list[str]:
    """The faults that are not found on a page with a moving figure and a schematic."""
    missed = []
    styles = ("schematics.css", "moving.css", "figures.css")
    scripts = ("moving-triangle.js", "moving-address.js", "moving.js", SCRIPT.name)
    moving = ROOT / "book" / "moving" / "hump-to-comb"
    html = moving.with_suffix(".html").read_text("utf8")
    html = html.replace("{data}", moving.with_suffix(".json").read_text("utf8"))
    drawing = (ROOT / "book" / "schematics" / "u-curve.svg").read_text("utf8")
    caption = "<figcaption><span class='caption-number'>Fig. 1</span> Words.</figcaption>"
    body = f'<figure id="fig-a" class="moving-figure">{html}{caption}</figure>'
    body += f'<figure id="fig-b" class="schematic">{drawing}{caption}</figure>'
    head = "".join(f'<link rel="stylesheet" href="{name}">' for name in styles)
    head += "".join(f'<script defer src="{name}"></script>' for name in scripts)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in (*styles, *scripts):
            shutil.copy(ROOT / "book" / "_static" / file, folder)
        (folder / "page.html").write_text(
            '<!doctype html><html lang="en" data-theme="dark"><meta charset="utf-8">'
            f'<title>a</title>{head}<body class="bd-article"><main>{body}</main></body></html>',
            "utf8",
        )
        right = (folder / SCRIPT.name).read_text("utf8")
        with serve(folder) as home:
            for fault, (good, bad, expected) in BROKEN.items():
                (folder / SCRIPT.name).write_text(
                    right.replace(good, bad) if good else right, "utf8"
                )
                found, _ = visit(browser, f"{home}page.html")
                if bool(found) != bool(expected) or (
                    expected and not any(expected in text for text in found)
                ):
                    missed.append(f"{fault}: expected {expected!r}, found {found[:3]}")
    print(f"check_figure_files --self-test: {len(BROKEN) - len(missed)} of {len(BROKEN)} judged")
    return missed


def main() -> int:
    """Carry out the command line; 1 where something was found."""
    return run_check(__doc__, self_test, check)


if __name__ == "__main__":
    sys.exit(main())
