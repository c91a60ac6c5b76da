"""The words by which `first_minute` finds an answer stand on the landing page."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest
import verdict_html

from first_minute import OURS

PAGE = Path(__file__).resolve().parents[2] / "book" / "index.ipynb"
WRITTEN = "\n".join("".join(cell["source"]) for cell in json.loads(PAGE.read_text("utf8"))["cells"])


@pytest.mark.parametrize("question", OURS)
def test_the_words_of_an_answer_stand_on_the_landing_page(question: str) -> None:
    # marks of bold type and links are not shown; the verdict bar writes its own words
    shown = re.sub(r"\*\*|\]\([^)]*\)|\[", "", WRITTEN) + inspect.getsource(verdict_html)
    assert OURS[question] in shown
