"""Where we deviate from a paper, the paper's own words stand on the page,
in quotation marks, with their place.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def plain(text: str) -> str:
    """The words and numbers of a text, without formulas' commands, marks and breaks."""
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"\\[a-zA-Z]+", "", text).lower()))


def quoted(page: str, words: str) -> bool:
    """Whether each piece of the words between dots stands on the page inside quotation marks."""
    inside = [plain(found) for found in re.findall(r"[“\"]([^”\"]*)[”\"]", page)]
    pieces = [plain(piece) for piece in re.split(r"\.\.\.|…", words)]
    return all(any(piece in text for text in inside) for piece in pieces if piece)


def test_each_erratum_is_quoted_on_its_page():
    pages, missing = {}, []
    for row in csv.DictReader((ROOT / "data" / "errata.csv").read_text("utf8").splitlines()):
        if row["chapter"] not in pages:
            cells = json.loads(
                (ROOT / "book" / "chapters" / f"{row['chapter']}.ipynb").read_text("utf8")
            )["cells"]
            pages[row["chapter"]] = "\n".join(
                "".join(c["source"]) for c in cells if c["cell_type"] == "markdown"
            )
        if not quoted(pages[row["chapter"]], row["quote"]):
            missing.append(f"{row['id']} ({row['chapter']}, {row['where']}): {row['quote']}")
    assert not missing, "\n".join(missing)


def test_words_outside_quotation_marks_are_no_quotation():
    assert quoted("They write: “The matrix $G$ is\ninvertible.”", "matrix G ... invertible")
    assert not quoted("The matrix G is invertible.", "matrix G is invertible")
