"""The page of verdicts: what it reads, what it counts, what it links,
and the check of the built page.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import verdict_html as html
import verdict_rows as data
from verdict_pages import link_tables

import check_verdict_page
import ledger

ROOT = Path(__file__).resolve().parents[2]
KNOWN = data.known(ROOT)
ENTRIES = data.entries(ROOT, ("claim", "erratum"), {"A-F8": ["comparison"]})
PAGE = html.Page(data.in_the_books_order(ROOT), KNOWN)


def row(name):
    (entry,) = [entry for entry in ENTRIES if entry.id == name]
    return html.rows([entry], PAGE)


def test_every_row_of_the_tables_is_an_entry_in_the_order_of_the_book():
    assert {entry.id for entry in ENTRIES} == {
        row["id"] for kind in ("ledger", "erratum") for row in ledger.rows(kind)
    }
    order = list(data.in_the_books_order(ROOT))
    assert [order.index(entry.chapter) for entry in ENTRIES] == sorted(
        order.index(entry.chapter) for entry in ENTRIES
    )
    shown = html.rows(ENTRIES, PAGE)
    anchors = re.findall(r'<li class="verdict-row" id="([^"]+)"', shown)
    assert anchors == [entry.id.replace(".", "-") for entry in ENTRIES]
    assert len(set(anchors)) == len(anchors)


def test_totals_are_those_of_the_data_and_count_no_setting():
    rows = ledger.rows("ledger")
    results = [row for row in rows if row["verdict"] not in ("setting", "ours")]
    counts = data.counts(ROOT)
    assert counts.verdicts == Counter(row["verdict"] for row in results)
    of_privic = Counter(row["verdict"] for row in results if row["paper"] == "privic")
    assert counts.results["E"] == of_privic
    bars = html.bars(counts, "claims.html")
    assert f"<strong>{len(results)} results of five papers</strong>" in bars
    settings = sum(row["verdict"] == "setting" for row in rows)
    assert f"Another {settings} rows are settings" in bars
    assert f"{len(rows) - len(results) - settings} rows are results of ours" in bars
    assert f"PRIVIC: {of_privic.total()} results" in bars
    strip = html.strip(counts, "claims.html")
    assert f"<strong>{len(results)} results of five papers</strong>" in strip
    for word, n in counts.verdicts.items():
        assert f'<span data-verdict="{word}" style="flex-grow: {n}">{n}</span>' in strip
        assert f"{n} {word}" in strip.partition('aria-label="')[2].partition('"')[0]
    assert check_verdict_page.totals(bars, check_verdict_page.rows()) == []
    assert check_verdict_page.totals(bars.replace(">1<", ">2<"), check_verdict_page.rows()) != []


def test_every_printed_result_has_our_number_beside_it_unless_it_cannot_be_checked():
    numbers = [number for entry in ENTRIES for number in entry.numbers]
    assert len(numbers) > 300
    assert [n for n in numbers if n.ours == "–" and n.verdict != "not checkable"] == []
    assert all(entry.numbers == () for entry in ENTRIES if entry.word == "setting")


def marks(files, carried):
    """Which tests carry each row, from this run's own collection where that was of all tests."""
    if {*(ROOT / "tests").glob("*/test_*.py")} <= files:
        return carried
    code = "import json, ledger; print(json.dumps(ledger.marks()))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "scripts",
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def differing(carried):
    """The rows of which the page names other tests than carry them."""
    found = []
    for entry in ENTRIES:
        wanted = carried["ledger" if entry.kind == "claim" else "erratum"].get(entry.id, [])
        named = [f"{file}.py::{name.replace('.', '::')}" for file, name in entry.tests]
        found += [entry.id] if sorted(named) != sorted(wanted) else []
    return found


def test_the_tests_that_carry_a_row_are_those_that_pytest_collects(collected):
    carried = marks(*collected)
    assert differing(carried) == []
    of_one, *others = carried["ledger"]["A-L4"]
    assert differing({**carried, "ledger": {**carried["ledger"], "A-L4": others}}) == ["A-L4"]
    assert of_one not in others


MARKS = """
import pytest
LIST = [pytest.param(1, marks=pytest.mark.ledger("A-D03")),
        pytest.param(2, marks=pytest.mark.ledger(CODES["x"]))]
CODES = {"x": "A-P2"}
both = pytest.mark.parametrize("k", LIST)

@both
def test_x(k): pass

@pytest.mark.erratum("B9")
class TestY:
    @pytest.mark.ledger("D-T4.1")
    def test_z(self): pass

def test_bare(): "pytest.mark.ledger('A-F8')"
"""


def test_marks_are_found_wherever_they_stand(tmp_path):
    path = tmp_path / "test_toy.py"
    path.write_text(MARKS, "utf8")
    assert {
        tag: [name for _, name in places] for tag, places in data.marked_tests(path).items()
    } == {
        "ledger:A-D03": ["test_x"],
        "ledger:A-P2": ["test_x"],
        "erratum:B9": ["TestY.test_z"],
        "ledger:D-T4.1": ["TestY.test_z"],
    }


# Rows


def test_a_row_shows_verdict_numbers_cell_and_test():
    shown = row("A-N1")
    assert 'data-paper="A" data-chapter="inv-bounds" data-verdict="deviates"' in shown
    assert "paper 227.28, ours 277.28" in shown
    assert "(22 %)" in shown
    assert 'href="chapters/inv-bounds.html#ledger-a-n1"' in shown
    assert 'href="../tests/test_bounds.html#test_the_bound_of_k_rr"' in shown
    assert 'href="chapters/comparison.html#see-A-F8"' in row("A-F8")


def test_what_opens_a_row_holds_no_link():
    for entry in ENTRIES:
        summary = re.search(r"<summary>(.*?)</summary>", row(entry.id), re.DOTALL)
        assert summary is not None
        assert "<a " not in summary[1], entry.id


def test_an_entry_with_numbers_that_are_wrong_in_different_ways():
    error = {
        (ours, printed): data.Number("x", "y", printed, ours, "fitted").error
        for ours, printed in [("1,100", "1000"), ("–", "3"), ("0.1", "0"), ("2", "unreadable")]
    }
    assert error[("1,100", "1000")] == pytest.approx(0.1)
    assert [error[key] for key in (("–", "3"), ("0.1", "0"), ("2", "unreadable"))] == [
        None,
        None,
        None,
    ]


# Codes in a text


@pytest.mark.parametrize(
    ("text", "every", "found"),
    [
        ("holds for every kernel (E27).", False, ["E27"]),
        ("on the plane (A6, A8) and (E1 and E2; see there)", False, ["A6", "A8", "E1", "E2"]),
        ("withdrawn (A15), no row (A99), (E27b)", False, []),
        ("E27 without brackets", False, []),
        ("these are A5, A7, A8 and A9", True, ["A5", "A7", "A8", "A9"]),
        ("Figure 8 is A-F8, the theorem D-T4.1.", False, ["A-F8", "D-T4.1"]),
        ("A-F8b and XA-F8", False, []),
    ],
)
def test_codes_in_a_text(text, every, found):
    assert [text[start:end] for start, end in data.codes(text, KNOWN, every)] == found


@pytest.mark.parametrize(
    ("text", "every", "shown"),
    [
        (
            "slips of the pen (E11 to E13; see there)",
            False,
            "slips of the pen (E11, E12 and E13; see there)",
        ),
        ("these are C1 to C3", True, "these are C1, C2 and C3"),
        ("these are C1 to C3", False, "these are C1 to C3"),
        (
            "(E13 to E11), (E1 to E99) and (A1 to B2)",
            False,
            "(E13 to E11), (E1 to E99) and (A1 to B2)",
        ),
    ],
)
def test_a_range_of_codes_names_each_row(text, every, shown):
    assert data.spelled_out(text, KNOWN, every) == shown


def test_codes_in_tables_are_links_and_code_is_left_alone():
    table = '<table class="dataframe"><tr title="(E2)"><td>slower (E27)</td></tr></table>'
    body = f"<pre>say('(E27)')</pre>{table}"
    linked = link_tables(body, KNOWN, "../claims.html")
    assert linked == body.replace(
        "slower (E27)",
        'slower (<a class="to-row reference internal" href="../claims.html#E27">E27</a>)',
    )


# The check of the built page


@pytest.fixture
def built(tmp_path):
    """A page as it would be built, with whatever it links to; without the chapters' links to it."""
    folder = tmp_path / "html"
    bars = html.bars(data.counts(ROOT), "")
    text = f"{bars}<section>{html.rows(ENTRIES, PAGE)}</section>".replace(
        "</ul></section>", "</ul>\n</section>"
    )
    (folder / "book" / "chapters").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "book" / "claims.html").write_text(text, "utf8")
    shutil.copy(folder / "book" / "claims.html", folder / "book" / "errata.html")
    to: dict[str, set[str]] = {}
    for page, place in re.findall(r'href="(chapters/[^"#]+|\.\./tests/[^"#]+)#?([^"]*)"', text):
        to.setdefault(page, set()).add(place)
    for page, places in to.items():
        (folder / "book" / page).write_text(
            "".join(f'<p id="{place}"></p>' for place in places), "utf8"
        )
    links = "".join(
        f'<a href="../claims.html#{entry.id.replace(".", "-")}">x</a>' for entry in ENTRIES
    )
    with (folder / "book" / "chapters" / "comparison.html").open("a") as file:
        file.write(links)
    check_verdict_page._anchors.cache_clear()
    return folder


def test_a_good_page_passes(built):
    assert check_verdict_page.look(built) == []


@pytest.mark.parametrize(
    ("page", "old", "new", "says"),
    [
        ("claims", '<li class="verdict-row" id="A-F8"', "<li", "no row #A-F8"),
        ("errata", 'id="E27"', "", "errata.html: no row #E27"),
        (
            "chapters/comparison",
            'id="ledger-a-f8"',
            "",
            "row #A-F8 leads to chapters/comparison.html#ledger-a-f8",
        ),
        ("chapters/comparison", "claims.html#E27", "claims.html#P27", "#P27 is not there"),
        (
            "chapters/comparison",
            "claims.html#",
            "elsewhere.html#",
            "only 0 links from the chapters",
        ),
    ],
)
def test_a_broken_page_is_found(built, page, old, new, says):
    path = built / "book" / f"{page}.html"
    text = path.read_text("utf8")
    assert old in text
    path.write_text(text.replace(old, new), "utf8")
    check_verdict_page._anchors.cache_clear()
    found = check_verdict_page.look(built)
    assert any(says in complaint for complaint in found), found[:3]
