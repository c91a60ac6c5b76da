"""The words that people type into the search: each has a page, and the page has the entry."""

import json
import re
from collections import Counter
from pathlib import Path

import search_words
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

import check_search

ROOT = Path(__file__).resolve().parents[2]


def test_every_page_is_in_the_contents_and_no_row_stands_twice():
    contents = re.findall(r"file: (\S+)", (ROOT / "_toc.yml").read_text("utf8"))
    rows = search_words.pages()
    assert [page for _, page in rows if page not in contents] == []
    assert [row for row, n in Counter(rows).items() if n > 1] == []


def test_what_people_type_is_there_in_both_spellings():
    words = {words.lower() for words, _ in search_words.pages()}
    assert len(words) >= 40
    for asked in (
        "confidence interval",
        "csv",
        "missing rows",
        "when to stop",
        "em algorithm",
        "convergence",
        "expectation maximization",
        "expectation maximisation",
        "bootstrap",
        "map",
        "sample size",
        "randomized response",
        "randomised response",
    ):
        assert any(asked in entry and 2 * len(asked) >= len(entry) for entry in words), asked


def test_the_page_that_computes_in_the_browser_is_found_by_what_it_is():
    asked = check_search.questions()
    words = (
        "try",
        "try it",
        "own counts",
        "calculator",
        "online",
        "in the browser",
        "paste",
        "csv",
    )
    assert [each for each in words if "book/try" not in asked.get(each, ())] == []
    # A file of reports is read by a chapter as well.
    assert asked["csv"] == {"book/try", "book/chapters/your-own-data"}


def test_a_page_gets_its_words_as_main_entries_of_the_search(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    table = tmp_path / "words.tsv"
    table.write_text("# Words.\nCSV files\tone\nsample size\ttwo\n", "utf8")
    monkeypatch.setattr(search_words, "WORDS", table)
    (tmp_path / "index.rst").write_text("Top\n===\n\n.. toctree::\n\n   book/one\n   book/two\n")
    for name in ("one", "two"):
        (tmp_path / "book" / f"{name}.rst").write_text(f"Page {name}\n=========\n\nText.\n")
    settings = {"extensions": ["search_words"], "html_theme": "basic"}
    with docutils_namespace():
        Sphinx(
            tmp_path, None, tmp_path / "out", tmp_path / "tree", "html", settings, None, None
        ).build()
    text = (tmp_path / "out" / "searchindex.js").read_text("utf8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    found = {
        word: [(index["docnames"][page], is_main) for page, _, is_main in places]
        for word, places in index["indexentries"].items()
    }
    assert found == {"csv files": [("book/one", True)], "sample size": [("book/two", True)]}


def test_a_question_that_leads_elsewhere_is_found():
    asked = check_search.questions()
    assert len(asked) >= 40
    right = {query: ["a", "b", min(pages)] for query, pages in asked.items()}
    assert check_search.faults(asked, right) == []
    right["bootstrap"] = ["a", "b", "c", *asked["bootstrap"]]
    (text,) = check_search.faults(asked, right)
    assert text.startswith("'bootstrap' leads to ['a', 'b', 'c']")
