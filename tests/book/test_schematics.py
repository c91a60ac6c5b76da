"""The schematics of the book: drawings that take the theme's colours and can be read on a phone."""

import json
import re
import xml.etree.ElementTree as ET
from io import StringIO
from itertools import takewhile
from pathlib import Path

import inline_figures
import numpy as np
import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

import ibukit as ik

ROOT = Path(__file__).resolve().parents[2]
DRAWINGS = sorted((ROOT / "book" / "schematics").glob("*.svg"))
PAGES = [*sorted((ROOT / "book").rglob("*.ipynb")), *sorted((ROOT / "book").rglob("*.md"))]
STYLES = (ROOT / "book" / "_static" / "schematics.css").read_text("utf8")
NAMED = re.compile(r"^```\{schematic\} (\S+)$", re.MULTILINE)

SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {"svg", "g", "path", "rect", "circle", "text", "tspan"}
COLOUR = re.compile(r"none|currentColor|var\((--ik-[a-z-]+), #[0-9A-Fa-f]{6}\)")
PHONE, LEGIBLE = (
    340,
    9,
)  # px: the width of a figure on a phone 390 px wide, and the least size of text on it
MAX_BYTES = 8_000  # bytes


def variables(selector):
    """The colours that the style sheet sets under a selector."""
    block = re.search(re.escape(selector) + r" \{(.*?)\}", STYLES, re.DOTALL)
    return dict(re.findall(r"(--ik-[a-z-]+): (#[0-9a-f]{6})", block.group(1)))


LIGHT, DARK = variables(":root"), variables('html[data-theme="dark"]')


def faults(drawing):
    """All that is wrong with one drawing, in words."""
    try:
        root = ET.fromstring(drawing)
    except ET.ParseError as error:
        return [f"not well-formed: {error}"]
    found = []
    if root.tag != f"{SVG}svg" or not re.fullmatch(r"0 0 \d+ \d+", root.get("viewBox", "")):
        return ["no viewBox that begins at 0 0"]
    width, height = map(int, root.get("viewBox").split()[2:])
    least = LEGIBLE * width / PHONE

    def look(node, size, fill):
        name = node.tag.removeprefix(SVG)
        size, fill = float(node.get("font-size", size)), node.get("fill", fill)
        if name not in ALLOWED:
            found.append(f"<{name}>")
        for key, value in node.attrib.items():
            if key in ("id", "style", "class", "transform", "href") or key.startswith(("on", "{")):
                found.append(f"attribute {key}")
            if key in ("fill", "stroke"):
                wanted = COLOUR.fullmatch(value)
                if not wanted:
                    found.append(f"fixed colour {value}")
                elif wanted.group(1) and not (wanted.group(1) in LIGHT and wanted.group(1) in DARK):
                    found.append(f"unknown colour {wanted.group(1)}")
        if name in ("text", "tspan"):
            if size < least:
                found.append(f"text of {size:g}, less than {least:.1f}")
            if fill != "currentColor":
                found.append(f"text in {fill}")
        if name == "text" and not (
            0 <= float(node.get("x")) <= width and size / 2 < float(node.get("y")) <= height
        ):
            found.append("text outside of the drawing")
        for child in node:
            look(child, size, fill)

    look(root, 0, "none")
    return found


def test_there_are_schematics_and_both_themes_know_the_same_colours():
    assert len(DRAWINGS) >= 23
    assert LIGHT
    assert LIGHT.keys() == DARK.keys()


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_every_drawing_is_clean_small_and_legible(path):
    assert faults(path.read_text("utf8")) == []
    assert path.stat().st_size <= MAX_BYTES


GOOD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 90" font-size="18"><path d="M0 0h9"'
    ' stroke="var(--ik-ibu, #009E73)"/><g fill="currentColor"><text x="9" y="40">a</text></g></svg>'
)


def test_a_clean_drawing_has_no_faults():
    assert faults(GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("</g>", "", "not well-formed"),
        ('viewBox="0 0 600 90"', 'width="600"', "no viewBox"),
        ("<path", "<script/><path", "<script>"),
        ("<path", "<style/><path", "<style>"),
        ("<path", '<image href="https://example.org/a.png"/><path', "attribute href"),
        ("<path", '<path id="a"', "attribute id"),
        ("<path", '<path onclick="a()"', "attribute onclick"),
        ('fill="currentColor"', 'fill="#000000"', "fixed colour #000000"),
        ('fill="currentColor"', 'fill="white"', "fixed colour white"),
        ("--ik-ibu", "--ik-nobody", "unknown colour --ik-nobody"),
        ('fill="currentColor"', 'fill="var(--ik-ibu, #009E73)"', "text in var(--ik-ibu"),
        ('font-size="18"', 'font-size="14"', "text of 14"),
        ('x="9"', 'x="609"', "outside"),
        ('y="40"', 'y="4"', "outside"),
    ],
)
def test_what_is_wrong_with_a_drawing_is_found(old, new, fault):
    assert old in GOOD
    assert any(fault in found for found in faults(GOOD.replace(old, new)))


def contrast(one, other):
    """WCAG's ratio of two colours."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("colours", "ground"), [(LIGHT, "#ffffff"), (DARK, "#121212")], ids=["light", "dark"]
)
def test_lines_stand_out_and_text_can_be_read_on_panels(colours, ground):
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    text = {"#ffffff": "#222832", "#121212": "#ced6dd"}[ground]  # the theme's
    for name in ("--ik-panel", "--ik-shade"):
        assert contrast(colours[name], text) >= 4.5
    for name in ("--ik-ibu", "--ik-mle", "--ik-first", "--ik-second", "--ik-inv-p", "--ik-grey"):
        assert contrast(colours[name], ground) >= 3


def markdown(path):
    """The text of a page; of a notebook, the text before its first code, and all of it."""
    text = path.read_text("utf8")
    if path.suffix != ".ipynb":
        return text, text
    cells = json.loads(text)["cells"]
    opening = list(takewhile(lambda cell: cell["cell_type"] == "markdown", cells))
    texts = [cell for cell in cells if cell["cell_type"] == "markdown"]
    return tuple("\n\n".join("".join(cell["source"]) for cell in part) for part in (opening, texts))


def named(path):
    """The schematics that a page names."""
    return NAMED.findall(markdown(path)[1])


CHAPTERS = [path for path in PAGES if path.parent.name == "chapters"]


def test_every_schematic_that_a_page_names_is_there():
    names = {path.stem for path in DRAWINGS}
    assert {
        (path.name, name) for path in PAGES for name in named(path) if name not in names
    } == set()


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_chapter_opens_with_a_picture_before_any_code(path):
    opening = markdown(path)[0]
    # a page that opens with a question may show a picture that it draws: test_pages.py looks where
    # it stands
    assert NAMED.search(opening) or "**Question.**" in opening


def test_every_drawing_is_shown():
    assert {path.stem for path in DRAWINGS} - {
        name for path in PAGES for name in named(path)
    } == set()


def test_the_names_on_a_page_are_found(tmp_path):
    cells = [
        {
            "cell_type": "markdown",
            "source": ["# A\n", "\n", "```{schematic} nowhere\n", ":alt: a\n", "```"],
        },
        {"cell_type": "code", "source": ["```{schematic} code"]},
    ]
    page = tmp_path / "a.ipynb"
    page.write_text(json.dumps({"cells": cells}), "utf8")
    assert named(page) == ["nowhere"]
    assert NAMED.search(markdown(page)[0])
    page.write_text(json.dumps({"cells": cells[::-1]}), "utf8")
    assert named(page) == ["nowhere"]
    assert not NAMED.search(markdown(page)[0])  # code comes first


def written(folder, text):
    """A drawing in a file, as a page takes it."""
    path = folder / "a.svg"
    path.write_text(text, "utf8")
    return inline_figures.drawing(path)


def test_a_drawing_on_a_page_is_one_picture_with_a_name(tmp_path):
    drawing = written(tmp_path, GOOD.replace("><", ">\n  <"))
    root = ET.fromstring(inline_figures.with_name(drawing, 'it says "a" & <b>'))
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'it says "a" & <b>'
    assert "\n" not in drawing


def test_what_does_not_begin_as_a_drawing_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must begin with <svg"):
        written(tmp_path, "<?xml version='1.0'?>" + GOOD)


PAGE = """# A page

```{schematic} a
:name: fig-a
:alt: It says a.

A *short* caption.
```

See {numref}`fig-a`.
"""


def built(folder, page):
    """A page as HTML, and the warnings."""
    (folder / "book" / "schematics").mkdir(parents=True)
    (folder / "book" / "schematics" / "a.svg").write_text(GOOD, "utf8")
    (folder / "index.md").write_text(page, "utf8")
    warnings = StringIO()
    with docutils_namespace():
        settings = {"extensions": ["myst_parser", "inline_figures"], "numfig": True}
        app = Sphinx(
            folder, None, folder / "out", folder / "tree", "html", settings, None, warnings
        )
        app.build()
    return (folder / "out" / "index.html").read_text("utf8"), warnings.getvalue()


def test_a_page_shows_the_drawing_as_a_numbered_figure(tmp_path):
    html, warnings = built(tmp_path, PAGE)
    assert warnings == ""
    figure = re.search(
        r'<figure class="[^"]*schematic[^"]*" id="fig-a">(.*?)</figure>', html, re.DOTALL
    ).group(1)
    assert '<svg role="img" aria-label="It says a." ' in figure
    assert "<em>short</em> caption" in figure
    assert "Fig. 1" in figure
    assert re.search(r'href="#fig-a"><span class="std std-numref">Fig. 1', html)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("{schematic} a", "{schematic} b", "there is no schematic 'b'"),
        (":alt: It says a.\n", "", "needs :alt:"),
        (":name: fig-a\n", "", "needs :name:"),
        ("A *short* caption.\n", "", "needs a caption"),
        ("caption.\n", "caption.\n\nAnd more.\n", "is one paragraph"),
    ],
)
def test_what_a_figure_lacks_is_said(tmp_path, old, new, complaint):
    assert old in PAGE
    assert complaint in built(tmp_path, PAGE.replace(old, new))[1]


def drawn_and_computed(noise=0.05):
    """The heights of the dots, the curves and the level in spectrum.svg,
    and what they have to be.
    """
    drawing = ET.parse(ROOT / "book" / "schematics" / "spectrum.svg").getroot()
    dots = [float(dot.get("cy")) for dot in drawing.iter(f"{SVG}circle")]
    paths = [path.get("d") for path in drawing.iter(f"{SVG}path")]
    lines = [
        [float(point.split()[1]) for point in path[1:].split(" L")]
        for path in paths
        if path.count(" L") == 19
    ]
    level = float(
        next(path for path in paths if path.startswith("M64") and path.endswith("H570")).split()[1][
            :-4
        ]
    )

    ages = ik.datasets.load_adult_ages()
    M, k = ik.TruncatedGeometric(ages.alphabet, noise).matrix(), len(ages.alphabet)
    shares, directions = np.linalg.eigh((M / M.mean(axis=0)) @ M.T / k)  # K of prop-near-start
    shares, directions = shares[-2:-22:-1], directions[:, -2:-22:-1]
    seen = np.sqrt(k * shares) * abs((ages.distribution - 1 / k) @ directions)
    heights = [30 - 60 * np.log10(values) for values in (seen, np.sqrt(shares), ages.n**-0.5)]
    learned = [456 - 130 * (1 - (1 - shares) ** t) for t in (30, 300, 3000)]
    return np.concatenate([dots, *lines, [level]]), np.concatenate(
        [*heights[:2], *learned, heights[2:]]
    )


def test_the_drawn_spectrum_is_that_of_the_ages():
    np.testing.assert_allclose(*drawn_and_computed(), atol=0.2)
    drawn, other = drawn_and_computed(noise=0.06)
    assert abs(drawn - other).max() > 5
