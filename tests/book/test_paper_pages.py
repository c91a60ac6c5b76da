"""The pages of the papers: every row once, in the order of the sections, its links alive."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import verdict_rows as data
import yaml
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

import ibukit_claims as claims
import ledger
from ibukit_claims import _sections

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r'<li class="verdict-row" id="([^"]+)"')
PLACE = re.compile(r'<section id="section-([^"]+)">')


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Letter -> the built page of the paper."""
    folder = tmp_path_factory.mktemp("papers")
    (folder / "book").mkdir()
    for name in ("data", "tests", "_toc.yml", "book/chapters", "book/references.bib"):
        (folder / name).symlink_to(ROOT / name)
    for letter, (stem, _) in data.PAPERS.items():
        text = (ROOT / "book" / f"paper-{stem}.md").read_text("utf8")
        assert text.count(f"```{{paper}} {letter}\n```") == 1
        (folder / "book" / f"paper-{stem}.md").write_text(text, "utf8")
    (folder / "index.md").write_text("# Papers\n\n```{toctree}\n:glob:\n\nbook/*\n```\n", "utf8")
    settings = {
        "extensions": [
            "myst_parser",
            "sphinxcontrib.bibtex",
            "sphinx.ext.mathjax",
            "verdict_pages",
            "paper_pages",
        ],
        "bibtex_bibfiles": ["book/references.bib"],
        "exclude_patterns": ["data", "tests", "book/chapters"],
    }
    with docutils_namespace():
        app = Sphinx(folder, None, folder / "out", folder / "tree", "html", settings, None, None)
        app.build()
    return {
        letter: (folder / "out" / "book" / f"paper-{stem}.html").read_text("utf8")
        for letter, (stem, _) in data.PAPERS.items()
    }


@pytest.mark.parametrize("letter", data.PAPERS)
def test_each_row_of_a_paper_stands_on_its_page_once(built, letter):
    ids = [row["id"] for kind in ledger.TABLES for row in ledger.rows(kind)]
    wanted = [name.replace(".", "-") for name in ids if name[0] == letter]
    assert Counter(ROW.findall(built[letter])) == Counter(wanted)
    assert len(set(wanted)) == len(wanted)


@pytest.mark.parametrize("letter", data.PAPERS)
def test_each_section_is_named_in_order_and_says_why_it_is_empty(built, letter):
    of_paper = _sections.sections(letter)
    names = [row["section"].replace(".", "-").replace("+", "beyond").lower() for row in of_paper]
    assert PLACE.findall(built[letter]) == names
    codes = _sections.rows_by_section(letter)
    parts = re.split(PLACE, built[letter])[2::2]
    for row, part in zip(of_paper, parts, strict=True):
        assert codes[row["section"]] or row["left_out"], row
        within = part.partition('<section id="errata">')[0]
        assert ROW.findall(within) == [c.replace(".", "-") for c in codes[row["section"]]]
        assert row["title"].split("_")[0] in within
        assert not row["left_out"] or row["left_out"] in within
    numbers = [row["section"] for row in of_paper if row["section"][0].isdigit()]
    assert numbers == sorted(numbers, key=lambda n: [int(part) for part in n.split(".")])


@pytest.mark.parametrize("letter", data.PAPERS)
def test_links_of_the_rows_resolve(built, letter):
    known = {name.replace(".", "-") for name in data.known(ROOT)}
    cells = {
        (path.stem, data.label(tag))
        for path in data.chapters(ROOT)
        for tag in data._read(path, path.stat().st_mtime_ns)[0]
    }
    tests = {
        (path.stem, data.anchor(name))
        for path in data.files_with_marks(ROOT)
        for places in data.marked_tests(path).values()
        for _, name in places
    }
    links = [
        href
        for row in re.findall(r'<div class="more">.*?</details>', built[letter], re.DOTALL)
        for href in re.findall(r'href="([^"]+)"', row)
    ]
    assert len(links) >= 2 * len(ROW.findall(built[letter]))
    for href in links:
        page, _, place = href.partition("#")
        stem = Path(page).stem
        if page == "claims.html":
            assert place in known, href
        elif page.startswith("../tests/"):
            assert (stem, place) in tests, href
        else:
            assert (ROOT / "book" / "chapters" / f"{stem}.ipynb").is_file(), href
            assert not place or place.startswith("see-") or (stem, place) in cells, href


@pytest.mark.parametrize("letter", data.PAPERS)
def test_the_bar_of_a_paper_has_the_counts_of_the_one_function(built, letter):
    found = claims.counts().results[letter]
    assert f"<strong>{found.total()} results</strong>" in built[letter]
    bar = re.search(r'aria-label="Paper [A-E], [^:]*: (\d+) results: ([^"]*)"', built[letter])
    assert bar is not None
    assert int(bar[1]) == found.total()
    assert {w: int(n) for n, w in re.findall(r"(\d+) ([a-z ]+)", bar[2])} == found


def test_the_pages_are_in_the_contents_and_linked():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf8"))
    pages = [f"book/paper-{stem}" for stem, _ in data.PAPERS.values()]
    chapters = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    (of_claims,) = [chapter for chapter in chapters if chapter["file"] == "book/claims"]
    assert [section["file"] for section in of_claims["sections"]] == pages
    for name in ("claims.md", "errata.md", "index.ipynb"):
        text = (ROOT / "book" / name).read_text("utf8")
        assert all(f"<{page.removeprefix('book/')}>`" in text for page in pages), name


@pytest.mark.parametrize(
    ("where", "section"),
    [("Fig. 1a", "2"), ("Fig. 12, caption", "3"), ("Sec. 4.1, (2)", "4"), ("Table II", "5")],
)
def test_the_longest_name_that_fits_decides(where, section):
    held = {"2": "Fig. 1;Table I", "3": "Fig. 12", "4": "", "5": "Table II"}
    rows = [{"section": number, "holds": names} for number, names in held.items()]
    assert _sections.section_of(where, rows) == section


@pytest.mark.parametrize("where", ["Fig. 3", "Sec. 7.1"])
def test_a_place_without_a_section_stops_the_build(where):
    with pytest.raises(ValueError, match=r"data/sections.csv has no section"):
        _sections.section_of(where, [{"section": "2", "holds": "Fig. 1"}])
