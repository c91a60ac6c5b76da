"""What a built book is relieved of, and what stays."""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64decode, b64encode
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from fontTools.ttLib import TTFont
from PIL import Image

import light_book

NAMES = {"used", "also", "fa-bars"}


@pytest.mark.parametrize(
    ("css", "left"),
    [
        (".used{a:b}", ".used{a:b}"),
        (".gone{a:b}", ""),
        (".used,.gone{a:b}", ".used{a:b}"),
        (".used .gone{a:b}", ""),
        ("p:not(.gone){a:b}", "p:not(.gone){a:b}"),
        (":is(.gone,.used) p{a:b}", ":is(.gone,.used) p{a:b}"),
        ('a[href$=".gone"]{a:b}', 'a[href$=".gone"]{a:b}'),
        (".bs-tooltip-auto{a:b}", ".bs-tooltip-auto{a:b}"),
        ("@media print{.gone{a:b}}", ""),
        ("@media print{.gone{a:b}.used{a:b}}", "@media print{.used{a:b}}"),
        ("@keyframes x{0%{a:b}12.5%{a:b}}", "@keyframes x{0%{a:b}12.5%{a:b}}"),
        ("/* a note, .gone */.used{a:b}", ".used{a:b}"),
        ("/*! a licence */.gone{a:b}", "/*! a licence */"),
        ('@charset "utf-8";.gone{a:b}', '@charset "utf-8";'),
        ("html .used:hover::before{a:b}", "html .used:hover::before{a:b}"),
    ],
)
def test_a_rule_stays_if_its_classes_are_in_use(css, left):
    assert light_book.rules_in_use(css, NAMES) == left


def test_classes_are_found_on_pages_and_in_scripts():
    page = '<p class="a b-c"></p><td class=number><script>f("made")</script>'
    found = light_book.names_in_use([page], ["x.classList.add('open-now')"])
    assert {"a", "b-c", "number", "made", "open-now"} <= found
    assert "p" not in light_book.names_in_use([page], [])


@pytest.mark.parametrize("word", ["00412", "731", "4096", "5173620", "003821fit", "1629991"])
def test_the_search_forgets_the_digits_of_a_computed_value(word):
    kept = {"2014": [1], "95": 2, "k2": 3, "4p": 1, "bootstrap": [0, 3]}
    index = {"docnames": ["a"], "terms": {word: 1, **kept}, "titleterms": {word: 0, "map": 1}}
    light = light_book.light_index(f"Search.setIndex({json.dumps(index)})")
    assert light == (
        'Search.setIndex({"docnames":["a"],'
        + f'"terms":{json.dumps(kept, separators=(",", ":"))},"titleterms":{{"map":1}}}})'
    )
    assert light_book.light_index(light) == light


LIGHT = 'html[data-theme="light"] .highlight'
DARK = 'html[data-theme="dark"] .highlight'


def test_a_mark_goes_if_it_is_not_seen_in_either_theme():
    css = f"""{LIGHT} .hll {{ background: #fff }}
{LIGHT} {{ background: #fefefe; color: #080808 }}
{LIGHT} .n {{ color: #080808 }}
{LIGHT} .k {{ color: #7928a1 }}
{LIGHT} .p {{ color: #080808 }}
{LIGHT} .w {{ color: #080808; font-weight: bold }}
{DARK} {{ background: #2b2b2b; color: #F8F8F2 }}
{DARK} .n {{ color: #f8f8f2 }}
{DARK} .k {{ color: #f8f8f2 }}
{DARK} .p {{ color: #ffd900 }}
{DARK} .w {{ color: #f8f8f2 }}
"""
    assert light_book.plain_marks(css) == {"n"}


TYPESETTER = '<script async src="../_static/mathjax/tex-chtml.js?v=1"></script>'


def test_a_page_without_a_formula_loads_no_mathjax():
    formula = '<span class="math notranslate">x</span>'
    assert light_book.light_page(f"{TYPESETTER}<p>x</p>", set()) == "<p>x</p>"
    assert light_book.light_page(TYPESETTER + formula, set()) == TYPESETTER + formula


def test_code_says_the_same_without_its_marks():
    code = '<span class="n">ik</span><span class="o">.</span><span class="n">mle</span>'
    assert light_book.light_page(code, {"n"}) == 'ik<span class="o">.</span>mle'


@pytest.fixture
def built(tmp_path):
    """A folder as Sphinx leaves it, with the font of the theme."""
    theme = Path(find_spec("pydata_sphinx_theme").origin).parent / "theme" / "pydata_sphinx_theme"
    static = tmp_path / "_static"
    for name in ("styles", "scripts", "vendor"):
        shutil.copytree(theme / "static" / name, static / name)
    for name in ("tex-chtml.js", "tex-svg.js", "output/chtml/fonts/a.woff", "sre/mathmaps/fr.json"):
        (static / "mathjax" / name).parent.mkdir(parents=True, exist_ok=True)
        (static / "mathjax" / name).write_text("x", "utf8")
    (tmp_path / "index.html").write_text('<i class="fa-solid fa-bars"></i>', "utf8")
    return tmp_path


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_book_keeps_what_it_loads(built):
    light_book.lighten(built)
    static = built / "_static"
    assert {p.name for p in (static / "mathjax").iterdir()} == {"tex-chtml.js", "output"}
    assert not list(static.rglob("*.map"))
    assert [p.name for p in (static / light_book.FONTS).iterdir()] == [light_book.ICONS]
    css = (static / "styles" / "pydata-sphinx-theme.css").read_text("utf8")
    assert len(css) < 150_000
    assert css.count("@font-face") == 1
    assert light_book.ICONS in css
    assert ".fa-bars" in css
    assert ".fa-cat" not in css


def test_the_font_draws_the_icons_in_use_and_no_others(built):
    light_book.lighten(built)
    with TTFont(built / "_static" / light_book.FONTS / light_book.ICONS) as font:
        drawn = font.getBestCmap()
    assert 0xF0C9 in drawn  # bars
    assert 0xF6BE not in drawn  # cat
    assert len(drawn) < 40


def test_a_light_book_stays_as_it_is(built):
    light_book.lighten(built)
    once = files(built)
    light_book.lighten(built)
    assert files(built) == once


@pytest.mark.parametrize(
    ("page", "left"),
    [
        ("<p>a\n\n  b</p>", "<p>a\nb</p>"),
        ("<pre>a\n\n  b</pre>\n\n <p>c", "<pre>a\n\n  b</pre>\n<p>c"),
        ("<script>a\n  b</script>\n\n<p>c", "<script>a\n  b</script>\n<p>c"),
    ],
)
def test_empty_lines_go_where_nobody_sees_them(page, left):
    assert light_book.light_page(page, set()) == left


SANS = "font-family: 'DejaVu Sans', Verdana, sans-serif"


@pytest.mark.parametrize(
    ("drawing", "left"),
    [
        ('<path d="M 7.2 216.965579 \nL 0.500001 40 \nz\n"/>', '<path d="M7.2 216.97L0.5 40z"/>'),
        ('<g transform="scale(0.132 -0.001236)"/>', '<g transform="scale(0.132 -0.00124)"/>'),
        ("<text>3.14159</text>", "<text>3.14159</text>"),
        ('<g id="a1"/><use href="#b2"/><g id="b2"/>', '<g/><use href="#n0"/><g id="n0"/>'),
        (
            '<path id="a" style="fill: red"/><use xlink:href="#a" style="fill: red; a: b"/>',
            '<path id="n0" style="fill: red; a: b"/><use xlink:href="#n0"/>',
        ),
        (
            '<path id="a" style="fill: red"/><use xlink:href="#a" style="fill: blue"/>',
            '<path id="n0" style="fill: red"/><use xlink:href="#n0"/>',
        ),
        (
            '<path id="a" d="M0 0"/><use xlink:href="#a" x="1" style="fill: red"/>',
            '<path id="n0" d="M0 0" style="fill: red"/><use xlink:href="#n0" x="1"/>',
        ),
        (
            '<path id="a" style="x: 1"/><use xlink:href="#a" style="fill: red"/>'
            '<use xlink:href="#a" style="fill: blue"/>',
            '<path id="n0" style="x: 1"/><use xlink:href="#n0" style="fill: red"/>'
            '<use xlink:href="#n0" style="fill: blue"/>',
        ),
        (
            '<g clip-path="url(#p7)" id="p7"/><text>#p7 in words</text>',
            '<g clip-path="url(#n0)" id="n0"/><text>#p7 in words</text>',
        ),
        ('<text x="1" transform="rotate(-0 1 2)">', '<text x="1">'),
        ('<text transform="rotate(-90 1 2)">', '<text transform="rotate(-90 1 2)">'),
        ('<path style="fill: #123456"/>', '<path style="fill: #123456"/>'),
        ('<image href="data:a1.23456\n"/>', '<image href="data:a1.23456\n"/>'),
        ("<!-- 1 -->\n<metadata>x</metadata>\n<g/>", "<g/>"),
        ('<metadata>{"x": 1.23456}</metadata>', '<metadata>{"x": 1.23456}</metadata>'),
        (
            f'<style>*{{a:b}}</style><text style="font-size: 13px; {SANS}; fill: red">a</text>',
            f"<style>*{{a:b}}{light_book.PAGE_FONT}</style>"
            '<text style="font-size: 13px; fill: red">a</text>',
        ),
    ],
)
def test_a_drawing_looks_the_same_with_less(drawing, left):
    assert light_book.light_drawing(drawing) == left
    assert light_book.light_drawing(left) == left


def embedded(pixels):
    """A picture in a drawing."""
    file = BytesIO()
    Image.fromarray(pixels, "RGBA").save(file, "PNG")
    return f'<image href="data:image/png;base64,{b64encode(file.getvalue()).decode()}"/>'


def pixels_of(drawing):
    data = re.search('base64,([^"]*)"', drawing)[1]
    return np.asarray(Image.open(BytesIO(b64decode(data))).convert("RGBA"))


@pytest.mark.parametrize("n_colours", [3, 200, 1000])
def test_a_picture_keeps_every_pixel(n_colours):
    rng = np.random.default_rng(1)
    colours = rng.integers(0, 256, (n_colours, 4)).astype(np.uint8)
    pixels = colours[rng.integers(0, n_colours, (40, 50))]
    light = light_book.light_drawing(embedded(pixels))
    np.testing.assert_array_equal(pixels_of(light), pixels)
    assert (len(light) < 0.6 * len(embedded(pixels))) is (n_colours <= 256)
    assert light_book.light_drawing(light) == light
