"""Read the exercises of the chapters, with their difficulty and the time they take."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import NamedTuple

from chapter_openings import GLUE, ROOT, contents, glued, notebook, opening

TIMES = ROOT / "data" / "exercises.csv"
LEVELS = {
    "Easy": "One idea of the page, used once: with a pencil, or by a few changed lines of its code",
    "Medium": "A few steps of your own: a simulation, a calculation or a short argument",
    "Hard": "You have to find the way: a proof, or a study of several parts",
}
MINUTES = {"Easy": (5, 20), "Medium": (25, 45), "Hard": (60, 120)}  # least and most
EXERCISE = re.compile(
    r"^(?P<fence>:{3,})\{exercise\} *(?P<title>.*?) *\((?P<mark>[a-z, ]+)\)\n"
    r":label: *(?P<label>\S+)\n(?P<text>.*?)^(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)
DOC = re.compile(r"\{doc\}`([^`<>]+ <)?([\w-]+)(>?)`")


class Exercise(NamedTuple):
    """One exercise, numbers written out and links as a page in `book/` has them."""

    slug: str
    chapter: str
    label: str
    title: str
    level: str
    is_by_hand: bool
    minutes: int
    text: str


def times() -> dict[str, int]:
    """Label of an exercise -> minutes."""
    with TIMES.open(encoding="utf8", newline="") as file:
        rows = [(row["label"], int(row["minutes"])) for row in csv.DictReader(file)]
    if len(dict(rows)) < len(rows):
        raise ValueError(f"{TIMES.name} names an exercise twice")
    return dict(rows)


def of_chapter(slug: str) -> Iterator[tuple[str, str, str, str]]:
    """Label, title, mark and text of the exercises of a chapter."""
    numbers = glued(slug)
    for cell in notebook(slug)["cells"]:
        source = "".join(cell["source"]) + "\n" if cell["cell_type"] == "markdown" else ""
        for found in EXERCISE.finditer(source):
            text = GLUE.sub(lambda name: numbers[name[1]], found["text"])
            text = DOC.sub(r"{doc}`\1chapters/\2\3`", text).strip()
            yield found["label"], found["title"], found["mark"], text


def exercises() -> list[Exercise]:
    """All exercises in the order of the book."""
    minutes, found = times(), []
    for slug in (slug for _, slugs in contents() for slug in slugs):
        chapter = opening(slug).title
        for label, title, mark, text in of_chapter(slug):
            level, _, how = mark.partition(", ")
            if label not in minutes:
                raise ValueError(f"{TIMES.name} has no row for {label}, of {slug}")
            found.append(
                Exercise(
                    slug,
                    chapter,
                    label,
                    title,
                    level.capitalize(),
                    how == "by hand",
                    minutes[label],
                    text,
                )
            )
    if gone := minutes.keys() - {each.label for each in found}:
        raise ValueError(f"{TIMES.name} names exercises that no chapter has: {sorted(gone)}")
    return found
