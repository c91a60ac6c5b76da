"""Each sentence that a chapter sets beside our findings bears the code of its row,
and has the verdict of that row.
"""

from __future__ import annotations

import csv
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from verdict_pages import with_codes

import ledger

ROOT = Path(__file__).resolve().parents[2]
ORDER = ("reproduced", "fitted", "holds with a condition", "deviates")
# what a sentence with an erratum can be; a remark is no fault, so it can be all but false
OF_CLASS = {
    "error": {"deviates"},
    "conditional error": {"deviates"},
    "missing condition": {"holds with a condition"},
    "irreproducible": {"not checkable", "holds with a condition"},
    "remark": {*ORDER, "not checkable"} - {"deviates"},
}
# sentences for which neither list has a row
WITHOUT = 1


def table():
    with (ROOT / "data" / "statements.csv").open(encoding="utf8", newline="") as file:
        return list(csv.DictReader(file))


def shown():
    """(chapter, sentence) -> verdict, of the stored tables of `claims.statements`."""
    found = {}
    for path in sorted((ROOT / "book" / "chapters").glob("*.ipynb")):
        for cell in nbformat.read(path, 4).cells:
            for output in cell.get("outputs", []):
                html = output.get("data", {}).get("text/html", "")
                if "the paper says</th>" in html:
                    for line in BeautifulSoup(html, "html.parser").find_all("tr")[1:]:
                        said, _, verdict = (part.get_text() for part in line.find_all("td"))
                        assert (path.stem, said) not in found, said
                        found[path.stem, said] = verdict
    return found


WORDS = {row["id"]: ledger.word(row) for kind in ledger.TABLES for row in ledger.rows(kind)}


def faults(rows, verdicts, words):
    """The sentences whose verdict is not that of their row."""
    found = []
    for row in rows:
        verdict = verdicts[row["chapter"], row["sentence"]]
        for code in row["rows"].split():
            word = words[code]
            if word in OF_CLASS:
                agrees = verdict in OF_CLASS[word]
            elif row["extent"] == "whole":
                agrees = verdict == word
            else:  # a row that says more can be worse than one of its sentences, never better
                agrees = {verdict, word} <= set(ORDER) and ORDER.index(verdict) <= ORDER.index(word)
            if not agrees:
                found.append(f"{row['chapter']}, {code} is {word}: {row['sentence']}: {verdict}")
    return found


def test_every_sentence_of_the_chapters_is_listed_once():
    rows = table()
    assert [(row["chapter"], row["sentence"]) for row in rows] == list(shown())
    assert {row["extent"] for row in rows} <= {"whole", "part"}
    assert {code for row in rows for code in row["rows"].split()} <= set(WORDS)
    assert sum(not row["rows"] for row in rows) <= WITHOUT


def test_one_sentence_has_one_verdict():
    assert faults(table(), shown(), WORDS) == []


def test_a_sentence_bears_the_links_to_its_rows():
    """In the very tables that the chapters store, a sentence with signs of HTML included."""
    n_links = 0
    for path in sorted((ROOT / "book" / "chapters").glob("*.ipynb")):
        outputs = [out for c in nbformat.read(path, 4).cells for out in c.get("outputs", [])]
        tables = [out.get("data", {}).get("text/html", "") for out in outputs]
        body = "".join(html for html in tables if "the paper says</th>" in html)
        n_links += with_codes(body, path.stem, table()).count('class="to-row')
    assert n_links == sum(len(row["rows"].split()) for row in table())
    assert with_codes("<tr><td>x</td>", "ages", table()) == "<tr><td>x</td>"


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("D-T4.4", "reproduced"),
        ("D-T4.5", "reproduced"),
        ("A-T3", "reproduced"),
        ("A-N2", "deviates"),
        ("B-T44", "reproduced"),
        ("D-T3.3", "reproduced"),
        ("A6", "remark"),
        ("E22", "missing condition"),
    ],
)
def test_two_verdicts_on_one_sentence_are_found(code, word):
    """The first six stood in the lists once, beside chapters that said otherwise."""
    if code == "A6":  # of no sentence by itself: its claim A-N3 has the chapter's
        assert WORDS["A6"] == "error"
        assert WORDS["A-N3"] == "deviates"
        return
    found = faults(table(), shown(), {**WORDS, code: word})
    assert any(f", {code} is {word}: " in fault for fault in found)
