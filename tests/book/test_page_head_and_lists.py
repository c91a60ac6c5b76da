"""What the book's extensions fold, list and say of a page,
and what the browser check reads off a head.
"""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import cell_folding as folds
import chapter_lists
import page_head
import pytest
from sphinx.application import Sphinx
from sphinx.errors import ConfigError
from sphinx.util.docutils import docutils_namespace

import page_checks

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("source", "is_check"),
    [
        ("assert a == b", True),
        ("assert a\nassert b, 'why'", True),
        ("for x in y:\n    assert x\n    assert not -x", True),
        ("for x in y:\n    z = x\n    assert z", False),
        ("a = f()\nassert a", False),
        ("print(1)", False),
        ("", False),
        ("%matplotlib inline", False),
    ],
)
def test_a_cell_of_checks_is_told_from_others(source, is_check):
    assert folds.only_checks(source) is is_check


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("assert a", "all", False, False), "1 check passed"),
        (("x = 1\nassert a\nassert b", "all", False, False), "2 checks passed"),
        (("assert a", "input", True, False), "How this figure is drawn"),
        (("rows()", "input", False, True), "How this table is made"),
        (("x = 1", "input", False, False), "Show the code"),
    ],
)
def test_a_fold_says_what_it_hides(arguments, says):
    assert folds.prompt(*arguments) == says


def test_the_theorems_of_a_cell_are_found():
    text = "Text.\n\n```{prf:theorem} A name\n:label: thm-a\n\nFor $k=2.5$ it holds. More.\n```\n"
    assert list(chapter_lists.statements(text)) == [
        ("thm-a", "theorem", "A name", "For $k=2.5$ it holds.")
    ]
    assert list(chapter_lists.statements(text.replace(":label: thm-a", ""))) == []
    assert next(chapter_lists.statements(text.replace("For", "Let it. For"))).line == ""


def without_a_sentence(written):
    """Statements of the chapters that no sentence tells, and sentences that no statement needs."""
    missing, needed = [], set()
    for file in chapter_lists.chapters(ROOT):
        for cell in json.loads((ROOT / f"{file}.ipynb").read_text("utf8"))["cells"]:
            if cell["cell_type"] == "markdown":
                for found in chapter_lists.statements("".join(cell["source"])):
                    if not found.line:
                        needed.add(found.label)
                        missing += [] if found.label in written else [found.label]
    return missing, sorted(set(written) - needed)


def test_each_theorem_has_a_sentence():
    written = chapter_lists.sentences()
    assert without_a_sentence(written) == ([], [])
    assert without_a_sentence({**written, "thm-none": "Nothing."}) == ([], ["thm-none"])
    written.pop("thm-certificate")
    assert without_a_sentence(written) == (["thm-certificate"], [])


def test_every_chapter_has_a_sketch_and_no_other():
    slugs = {file.rpartition("/")[2] for file in chapter_lists.chapters(ROOT)}
    assert {path.stem for path in (ROOT / chapter_lists.SKETCHES).iterdir()} == slugs
    for slug in slugs:
        root = ET.parse(ROOT / chapter_lists.SKETCHES / f"{slug}.svg").getroot()
        assert root.get("aria-hidden") == "true"
        assert root.get("class") == "sketch"


def head(title, extra=""):
    return f"""<head><meta name="viewport" content="a"/><meta name="description" content="a"/>
    <meta property="og:title" content="a"/>{extra}<title>{title}</title></head>"""


@pytest.mark.parametrize(
    ("pages", "kinds"),
    [
        ({"a.html": head("A — Book"), "b.html": head("B — Book")}, 0),
        ({"a.html": head("A — Book"), "b.html": head("A — Book")}, 1),
        ({"a.html": head("Book — Book")}, 1),
        ({"a.html": head("A — Book", '<meta name="viewport" content="b"/>')}, 1),
        ({"a.html": "<head><title>A</title></head>"}, 3),
        ({"a.html": '<head><meta http-equiv="Refresh" content="0"></head>'}, 0),
    ],
)
def test_heads_are_judged(tmp_path, pages, kinds):
    for name, text in pages.items():
        (tmp_path / name).write_text(text, "utf8")
    assert len(page_checks.heads(tmp_path, list(pages))) == kinds


ADDRESS = "https://example.org/ibukit"


def built(folder, monkeypatch, url="", repository=""):
    """The head of a page, and the theme's options, of a book of one page with these addresses."""
    monkeypatch.setenv("BOOK_URL", url)
    monkeypatch.setenv("BOOK_REPOSITORY", repository)
    (folder / "index.rst").write_text("A page\n======\n", "utf8")
    (folder / "layout.html").write_text(
        "{% extends '!layout.html' %}{% block extrahead %}{{ face_metadata }}{% endblock %}"
    )
    settings = {"extensions": ["page_head"], "templates_path": ["."], "html_theme": "basic"}
    with docutils_namespace():
        app = Sphinx(folder, None, folder / "out", folder / "tree", "html", settings, None, None)
        app.build()
    return (folder / "out" / "index.html").read_text("utf8").partition("</head>")[
        0
    ], app.config.html_theme_options


def test_a_published_page_names_its_address_and_a_picture(tmp_path, monkeypatch):
    head, _ = built(tmp_path, monkeypatch, f"{ADDRESS}/")
    assert f'<meta property="og:url" content="{ADDRESS}/index.html" />' in head
    assert f'<meta property="og:image" content="{ADDRESS}/_static/cover.png" />' in head
    assert re.search(rf'<link rel="canonical" href="{ADDRESS}/index.html" ?/?>', head)
    assert (ROOT / "book" / "_static" / "cover.png").read_bytes()[16:24] == bytes(
        [0, 0, 4, 176, 0, 0, 2, 118]
    )


def test_without_an_address_nothing_is_said_of_it(tmp_path, monkeypatch):
    head, options = built(tmp_path, monkeypatch)
    assert 'property="og:title"' in head
    assert not re.search("og:url|og:image|canonical", head)
    assert options == {}


def test_with_a_repository_pages_can_be_edited(monkeypatch):
    config = SimpleNamespace(
        html_baseurl="", book_repository=ADDRESS, html_theme_options={"show_toc_level": 2}
    )
    monkeypatch.delenv("BOOK_REPOSITORY", raising=False)
    page_head.addresses(None, config)
    options = {**config.html_theme_options}
    assert options.pop("repository_url") == ADDRESS
    assert options.pop("show_toc_level") == 2
    assert options == dict.fromkeys(
        ("use_repository_button", "use_edit_page_button", "use_source_button"), True
    )
    config.book_repository = "ibukit"
    with pytest.raises(ConfigError, match="book_repository must begin with https"):
        page_head.addresses(None, config)


def test_the_root_of_the_site_has_a_title_a_description_and_a_picture():
    for url, base in (("", ""), (ADDRESS, f"{ADDRESS}/"), (f"{ADDRESS}/", f"{ADDRESS}/")):
        page = page_head.root_page(url)
        assert f"<title>{page_head.TITLE}</title>" in page
        assert f'<meta name="description" content="{page_head.ABOUT}" />' in page
        assert f'<meta property="og:image" content="{base}_static/cover.png" />' in page
        assert ('property="og:url"' in page) == bool(url)
        assert 'http-equiv="Refresh" content="0; url=book/index.html"' in page


def test_the_root_page_is_written_over_that_of_the_book_tool(tmp_path):
    (tmp_path / "index.html").write_text('<meta http-equiv="Refresh">', "utf8")
    app = SimpleNamespace(
        builder=SimpleNamespace(format="html"),
        env=SimpleNamespace(found_docs={page_head.INDEX}),
        config=SimpleNamespace(html_baseurl=""),
        outdir=tmp_path,
    )
    page_head.write_root(app, RuntimeError("the build failed"))
    assert "<title>" not in (tmp_path / "index.html").read_text("utf8")
    page_head.write_root(app, None)
    assert "<title>" in (tmp_path / "index.html").read_text("utf8")


def test_the_imprint_is_that_of_the_citation(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    (tmp_path / "CITATION.cff").write_text(
        "version: 1.2\nlicense: MIT\n"
        "authors: [{name: A group}, {given-names: Ada, family-names: Lovelace}]\n",
        "utf8",
    )
    (tmp_path / "index.rst").write_text("A page\n======\n\n.. imprint::\n", "utf8")
    settings = {"extensions": ["page_head"], "html_theme": "basic"}
    with docutils_namespace():
        app = Sphinx(
            tmp_path, None, tmp_path / "out", tmp_path / "tree", "html", settings, None, None
        )
        app.build()
    said = "A group, Ada Lovelace · version 1.2 · built on 14 November 2023 · MIT licence"
    assert said in (tmp_path / "out" / "index.html").read_text("utf8")


def asks_to_write(text):
    """The sentences that ask a reader to write, which need an address."""
    wanted = re.compile(r"\b(?:tell us|write to us|let us know|contact us)\b", re.I)
    return [sentence for sentence in text.split(".") if wanted.search(sentence)]


def test_no_page_asks_to_write_where_there_is_no_address():
    pages = [*ROOT.glob("book/*.md"), *ROOT.glob("book/*.ipynb"), *ROOT.glob("book/chapters/*")]
    assert {p.name: asks for p in pages if (asks := asks_to_write(p.read_text("utf8")))} == {}
    assert asks_to_write("So. If it is wrong, please tell us.") == [
        " If it is wrong, please tell us"
    ]


TITLE = '<p class="admonition-title"><span class="caption-number">Exercise 1.1 </span> ({})</p>'
LINK = '<p class="admonition-title">Solution to<a class="x" href="#y"> Exercise 1.1 ({})</a></p>'


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (TITLE, '<span class="caption-number">Exercise 1.1.</span> {}</p>'),
        (LINK, 'Solution to <a class="x" href="#y">Exercise 1.1. {}</a></p>'),
    ],
)
def test_an_exercise_has_no_brackets_around_those_of_its_title(given, shown):
    title = "More than half (easy, by hand)"
    context = {"body": given.format(title), "title": "A"}
    config = SimpleNamespace(html_title="B", html_baseurl="")
    page_head.introduce(SimpleNamespace(config=config), "book/a", "page.html", context, None)
    assert context["body"].endswith(shown.format(title))
