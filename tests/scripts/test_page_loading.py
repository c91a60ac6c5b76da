"""Pages of a built book that show their words soon, and look and work as before."""

from __future__ import annotations

import pytest

import page_loading

LINK = '<link rel="stylesheet" type="text/css" href="{}" />\n'
SCRIPTS = '<script src="a/clipboard.min.js?v=1"></script><script src="a/book.js?v=2"></script>'
SHEETS = {
    "styles/theme.css": '@import "../basic.css";\n',
    "basic.css": ".a{background:url(file.png)}",
    "styles/icons.css": "@font-face{src:url(../vendor/icons.woff)}.b{src:url(data:x)}",
    "book.css": ".a{color:red}",
    "moving.css": ".a{color:blue}",
}


def written(page, *names):
    links = "".join(LINK.format(f"{name}?v=12") for name in names)
    text = f"<html><head>\n{links}{SCRIPTS}</head><body>{SCRIPTS}</body></html>"
    page.write_text(text, "utf8")


@pytest.fixture
def built(tmp_path):
    """A book of three pages, one without any style."""
    static = tmp_path / "_static"
    for name, text in SHEETS.items():
        (static / name).parent.mkdir(parents=True, exist_ok=True)
        (static / name).write_text(text, "utf8")
    (tmp_path / "book").mkdir()
    names = ["styles/theme.css", "styles/icons.css", "book.css"]
    written(tmp_path / "a.html", *(f"_static/{name}" for name in names))
    names.insert(2, "moving.css")
    written(tmp_path / "book" / "b.html", *(f"../_static/{name}" for name in names))
    (tmp_path / "plain.html").write_text("<p>word</p>", "utf8")
    return tmp_path


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_sheets_that_all_pages_have_are_one_file(built):
    page_loading.finish(built)
    found = page_loading.sheets(built / "a.html", built / "_static")
    assert found == [page_loading.SHARED]
    found = page_loading.sheets(built / "book" / "b.html", built / "_static")
    assert found == [page_loading.SHARED, "moving.css"]
    assert (built / "plain.html").read_text("utf8") == "<p>word</p>"


def test_the_shared_sheet_says_what_the_others_said_in_their_order(built):
    page_loading.finish(built)
    first, *rules = (built / "_static" / page_loading.SHARED).read_text("utf8").split("\n")
    assert first == "/*! styles/theme.css styles/icons.css book.css */"
    assert [rule for rule in rules if rule] == [
        ".a{background:url(../file.png)}",
        SHEETS["styles/icons.css"],
        ".a{color:red}",
    ]


def test_scripts_of_the_head_wait_unless_the_page_calls_on_them(built):
    page_loading.finish(built)
    head, body = (built / "a.html").read_text("utf8").split("</head>")
    assert '<script defer="defer" src="a/clipboard.min.js?v=1"></script>' in head
    assert '<script src="a/book.js?v=2"></script>' in head
    assert SCRIPTS in body


def test_scripts_of_the_search_keep_their_order(built):
    page = built / "search.html"
    written(page)
    text = page.read_text("utf8").replace(
        "</head>", '<script src="a/searchtools.js"></script></head>'
    )
    page.write_text(text, "utf8")
    page_loading.finish(built)
    assert page.read_text("utf8") == text


def test_a_second_call_changes_nothing(built):
    page_loading.finish(built)
    once = files(built)
    page_loading.finish(built)
    assert files(built) == once


def test_a_page_that_was_written_again_joins_the_others(built):
    page_loading.finish(built)
    once = files(built)
    names = ["styles/theme.css", "styles/icons.css", "moving.css", "book.css"]
    written(built / "book" / "b.html", *(f"../_static/{name}" for name in names))
    page_loading.finish(built)
    assert files(built) == once


def test_a_style_that_changed_changes_on_every_page(built):
    page_loading.finish(built)
    before = (built / "a.html").read_text("utf8")
    (built / "_static" / "book.css").write_text(".a{color:green}", "utf8")
    page_loading.finish(built)
    assert "color:green" in (built / "_static" / page_loading.SHARED).read_text("utf8")
    assert (built / "a.html").read_text("utf8") != before  # another version in the address
