"""Each table of the tree has as many fields in every row as in its first."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("benchmarks", "book", "data", "scripts", "tests")
TABLES = sorted(
    path for place in PLACES for end in ("csv", "tsv") for path in (ROOT / place).rglob(f"*.{end}")
)


def widths(text: str, tabs: bool = False) -> set[int]:
    """Numbers of fields of the rows."""
    if tabs:
        return {line.count("\t") for line in text.splitlines() if line[:1] not in ("", "#")}
    return {len(row) for row in csv.reader(io.StringIO(text, newline="")) if row}


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_every_row_has_the_fields_of_the_first(path):
    # A comma that nobody has quoted cuts a sentence short, and nothing else would tell.
    assert len(widths(path.read_text("utf8"), path.suffix == ".tsv")) == 1


def test_a_comma_without_quotes_is_found():
    assert widths('finding,refuted_by\nmaps,"a case, if any"\n') == {2}
    assert widths("finding,refuted_by\nmaps,a case, if any\n") == {2, 3}
