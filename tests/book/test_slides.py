"""Slides are made of the built pages of their chapters, and say nothing else."""

import json
import re
import shutil
from io import StringIO
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from docutils.utils.math import MathError
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

import slide_parts
import slides
from chapter_openings import ROOT, notebook, opening

EXTENSIONS = [
    *("sphinx_togglebutton", "myst_nb", "sphinx_design", "sphinx_book_theme"),
    *("sphinxcontrib.bibtex", "sphinx_proof", "sphinx_exercise", "sphinx.ext.mathjax"),
    *("inline_figures", "cell_folding", "copied_code", "evidence", "table_layout", "page_head"),
]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0L9 9"/></svg>'
WORDS = re.compile(r"[^\W_]+")


def words(html):
    """The words of a piece of HTML, without formulas."""
    soup = BeautifulSoup(html, "html.parser")
    for gone in soup.select("math, .math, svg"):
        gone.decompose()
    return WORDS.findall(soup.get_text(" "))


def with_pictures(chapter):
    """A chapter with a drawing where its stored outputs have the name of a figure."""
    for cell in chapter["cells"]:
        for output in cell.get("outputs", []):
            if "<Figure" in "".join(output.get("data", {}).get("text/plain", "")):
                output["data"]["image/svg+xml"] = SVG
    return chapter


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    """The pages of the three chapters, built without running them."""
    root = tmp_path_factory.mktemp("book")
    (root / "book" / "chapters").mkdir(parents=True)
    for name in slides.DECKS:
        page = root / "book" / "chapters" / f"{name}.ipynb"
        page.write_text(json.dumps(with_pictures(notebook(name))), "utf8")
    for name in ("schematics", "moving"):
        shutil.copytree(ROOT / "book" / name, root / "book" / name)
    shutil.copy(ROOT / "book" / "references.bib", root)
    toc = "\n".join(f"chapters/{name}" for name in slides.DECKS)
    (root / "book" / "index.md").write_text(f"# Book\n\n```{{toctree}}\n{toc}\n```\n")
    settings = {
        "extensions": EXTENSIONS,
        "master_doc": "book/index",
        # The default is one mapping for all applications of a process, and each adds to it.
        "source_suffix": {".rst": "restructuredtext"},
        "html_theme": "sphinx_book_theme",
        "html_static_path": [str(ROOT / "book" / "_static")],
        "bibtex_bibfiles": ["references.bib"],
        "nb_execution_mode": "off",
        "nb_merge_streams": True,
        "myst_enable_extensions": ["amsmath", "colon_fence", "dollarmath"],
        "suppress_warnings": ["*"],
    }
    out = tmp_path_factory.mktemp("html")
    with docutils_namespace():
        app = Sphinx(
            str(root),
            None,
            str(out),
            str(root / "trees"),
            "html",
            settings,
            status=None,
            warning=StringIO(),
        )
        app.build()
    slides.write(out)
    return out


def deck(html, name):
    return (html / "slides" / f"{name}.html").read_text("utf8")


@pytest.mark.parametrize("name", slides.DECKS)
def test_a_deck_has_the_question_the_answer_and_the_figures(name, html):
    soup = BeautifulSoup(deck(html, name), "html.parser")
    start, text = opening(name), re.sub(r"\s+", " ", soup.get_text())
    assert soup.title.get_text() == f"{start.title}: slides"
    assert start.question in text
    assert WORDS.findall(start.answer) == words(
        str(soup.find("h2", string="The answer").parent.div)
    )
    page = BeautifulSoup(
        (html / "book" / "chapters" / f"{name}.html").read_text("utf8"), "html.parser"
    )
    evidence = page.find(id=re.compile("^evidence"))
    figures = [
        figure
        for figure in page.select("figure:not(.moving-figure)")
        if figure.get("id", "").startswith("fig-")
        and figure not in evidence.find_all_next("figure")
    ]
    captions = [words(str(figure.figcaption)) for figure in figures]
    assert len(captions) > 1 or name == "survey"
    shown = [words(str(each)) for each in soup.select("figcaption")]
    assert shown == [[word for word in caption if word] for caption in captions]
    assert len(soup.select(".slide svg[role=img], .slide img")) == len(captions)


@pytest.mark.parametrize("name", slides.DECKS)
def test_a_deck_says_nothing_that_its_page_does_not_say(name, html):
    page = words((html / "book" / "chapters" / f"{name}.html").read_text("utf8"))
    said = " ".join(page)
    for part in BeautifulSoup(deck(html, name), "html.parser").select(".content :is(p, pre, td)"):
        # formulas are left out on both sides, so the words beside them are compared one by one
        if part.find("math") is None:
            assert " ".join(words(str(part))) in said, part


@pytest.mark.parametrize("name", slides.DECKS)
def test_a_deck_asks_for_nothing(name, html):
    text = deck(html, name)
    soup = BeautifulSoup(text, "html.parser")
    sources = [each[key] for key in ("src", "href") for each in soup.find_all(attrs={key: True})]
    assert [to for to in sources if not to.startswith("data:")] == []
    assert re.findall(r"url\(|@import|\\\(|\\\[|fetch\(", text) == []
    assert len({each["id"] for each in soup.select(".slide")}) == len(soup.select(".slide")) > 10


@pytest.mark.parametrize("name", slides.DECKS)
def test_every_part_of_the_story_has_its_heading(name, html):
    soup = BeautifulSoup(deck(html, name), "html.parser")
    shown = [each.get_text() for each in soup.select(".slide > h2")]
    story = "\n".join(
        "".join(c["source"]) for c in notebook(name)["cells"] if c["cell_type"] == "markdown"
    )
    wanted = re.findall(r"^## (.*)$", story.split("## Evidence")[0], re.MULTILINE)
    parts = {"Broken rules and silence cause bias"}  # whose sections have headings of their own
    assert [
        each for each in wanted if each not in parts and each.replace('"', "“") not in shown
    ] == []
    assert "Evidence" not in shown


def test_the_answer_to_a_question_for_the_pencil_comes_later(html):
    soup = BeautifulSoup(deck(html, "start-here"), "html.parser")
    asked = soup.find("p", class_="pencil", string=None)
    pencils = [each for each in soup.select("p.pencil") if "true answer is" in each.get_text()]
    assert asked is not None
    assert len(pencils) == 1
    assert pencils[0].select_one(".later").get_text().strip().startswith("In half of all cases")
    assert "75 %" not in pencils[0].get_text().removesuffix(
        pencils[0].select_one(".later").get_text()
    )


def test_a_cell_that_is_tagged_is_no_slide(html):
    assert "untruncated = ik.LinearGeometric" not in deck(html, "ages")
    assert "mechanism = ik.TruncatedGeometric" in deck(html, "ages")


def test_formulas_need_no_script():
    drawn = slide_parts.mathml(
        r"\begin{split}\begin{gathered} \frac14 \\ x \end{gathered}\end{split}", True
    )
    assert drawn.startswith("<math")
    assert "<mfrac>" in drawn
    with pytest.raises(MathError, match="nosuchcommand"):
        slide_parts.mathml(r"\nosuchcommand{", False)


def test_a_picture_that_is_missing_is_an_error(tmp_path):
    picture = BeautifulSoup('<figure><img src="gone.svg"></figure>', "html.parser").figure
    with pytest.raises(FileNotFoundError):
        slide_parts.plain(picture, tmp_path / "page.html")


def test_a_page_without_an_answer_is_an_error(tmp_path):
    page = Path(tmp_path) / "page.html"
    page.write_text('<article class="bd-article"><section><h1>A</h1></section></article>', "utf8")
    with pytest.raises(KeyError, match="Question"):
        slides.slides(page)
