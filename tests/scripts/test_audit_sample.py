"""The sample of published rows and of sentences of advice: nothing in it lacks its evidence."""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import nbformat
import pytest

import audit_sample
import ledger

ROOT = Path(__file__).resolve().parents[2]


def quick_places(root):
    """The tests of each claim, read off their texts: pytest's own collection takes a minute."""
    found = {"ledger": defaultdict(list)}
    for path in root.glob("tests/**/test_*.py"):
        for marks in re.findall(r"mark\.ledger\(([^)]*)\)", path.read_text("utf8")):
            for row in re.findall(r'"([^"]+)"', marks):
                found["ledger"][row].append(path.name)
    for _, row, place, _ in ledger.tagged_cells(root):
        found["ledger"][row].append(place)
    return found


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(ledger, "places", quick_places)


# all samples are drawn from the same rows and sentences, which take seconds to read
ROWS, SENTENCES = cache(audit_sample.published_rows), cache(audit_sample.sentences)


@pytest.mark.parametrize("seed", [0, 46, 2026])
def test_each_sample_has_its_evidence(seed, capsys, monkeypatch):
    monkeypatch.setattr(audit_sample, "published_rows", ROWS)
    monkeypatch.setattr(audit_sample, "sentences", SENTENCES)
    assert audit_sample.main(["--seed", str(seed)]) == 0
    shown = capsys.readouterr().out
    assert "60 of " in shown
    assert "30 of " in shown
    assert "\n! " not in shown


def test_no_sentence_of_the_book_lacks_its_evidence():
    # Three samples of thirty find a single one in a third of all cases.
    assert [one.text for one in audit_sample.sentences() if not one.evidence] == []


def page(*cells):
    return nbformat.v4.new_notebook(cells=cells)


def test_what_lacks_evidence_is_marked(tmp_path, capsys, monkeypatch):
    bare = "# Advice\n\nYou should never look back. It rains."
    proved = "# Proved\n\nIt is always so.\n\n:::{prf:proof}\nSee above.\n:::"
    counted = nbformat.v4.new_code_cell("assert 1 + 1 == 2")
    chapters = tmp_path / "book" / "chapters"
    chapters.mkdir(parents=True)
    (tmp_path / "README.md").write_text(bare)
    (chapters / "one.md").write_text("not a page")
    one = page(nbformat.v4.new_markdown_cell("# Counted\n\nIt is best."), counted)
    nbformat.write(one, chapters / "one.ipynb")
    nbformat.write(page(nbformat.v4.new_markdown_cell(proved)), chapters / "two.ipynb")
    found = audit_sample.sentences(tmp_path)
    assert [(one.text, one.evidence) for one in found] == [
        ("You should never look back.", ()),
        ("It is best.", ("an assert",)),
        ("It is always so.", ("a proof",)),
    ]
    monkeypatch.setattr(audit_sample, "published_rows", list)
    monkeypatch.setattr(audit_sample, "sentences", lambda: found)
    assert audit_sample.main([]) == 1
    assert "! README.md, Advice: no evidence" in capsys.readouterr().out


def test_a_row_that_is_compared_with_itself_has_no_evidence(tmp_path):
    for folder in ("book/chapters", "data/published", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    cell = nbformat.v4.new_code_cell(
        "printed = claims.load_published('a')\nclaims.check(claims.beside('a', printed))",
        metadata={"tags": ["ledger:A-F1", "ledger:A-F2"]},
    )
    for name in ("ages", "other"):
        nbformat.write(page(cell), tmp_path / "book" / "chapters" / f"{name}.ipynb")
        cell = nbformat.v4.new_code_cell("ours = 1.5\nclaims.beside('a', ours)")
    (tmp_path / "data" / "ledger.csv").write_text("id,chapter\nA-F1,ages\nA-F2,other\nA-F3,other\n")
    rows = "".join(f"A-F{i},s,q,1,{word}\n" for i, word in enumerate("rrrs", start=1))
    rows = rows.replace(",r\n", ",reproduced\n").replace(",s\n", ",setting\n")
    (tmp_path / "data" / "published" / "a.csv").write_text(
        f"claim,setting,quantity,value,verdict\n{rows}"
    )
    found = audit_sample.published_rows(tmp_path)
    assert [bool(one.evidence) for one in found] == [False, True, False]
    assert "A-F2 s: q = 1, reproduced" in found[1].text
