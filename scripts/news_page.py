"""Write the page *News*: ten findings, each with a picture, a chapter, and what would refute it.

    python scripts/news_page.py

The findings stand in ``data/news.csv``. {chapter:name} in a sentence is a number that this chapter
puts into its own text; every other number must be in the chapter's opening, which a test checks.
"""

from __future__ import annotations

import csv
import re

from chapter_openings import ROOT, glued, inline, opening

TABLE = ROOT / "data" / "news.csv"
FILE = ROOT / "book" / "news.md"
NUMBER = re.compile(r"\{([\w-]+):(\w+)\}")
HEAD = """# Ten findings

This book presents ten findings that were not known before, or not stated so clearly. Each has a
chapter, and the last line of each finding says what would refute it.
"""


def findings() -> list[dict[str, str]]:
    """The rows of the table."""
    with TABLE.open(encoding="utf8", newline="") as file:
        return list(csv.DictReader(file))


def with_numbers(text: str) -> str:
    """A sentence with the numbers of its chapter."""
    return NUMBER.sub(lambda found: glued(found[1])[found[2]], text)


def text() -> str:
    """The page."""
    parts = [HEAD]
    for number, row in enumerate(findings(), start=1):
        start = opening(row["chapter"])
        parts += [
            f"## {number}. {row['heading']}\n",
            f"{inline(start.picture, start.alt)}\n",
            f"{with_numbers(row['finding'])}\n",
            f"*It would be refuted by* {row['refuted_by']}. "
            f"{{doc}}`Read the chapter. <chapters/{row['chapter']}>`\n",
        ]
    return "\n".join(parts)


if __name__ == "__main__":
    FILE.write_text(text(), "utf8")
    print(f"wrote {FILE.name}")
