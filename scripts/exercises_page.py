"""Write the page *All exercises*: those of every chapter, by difficulty, without the solutions.

python scripts/exercises_page.py
"""

from __future__ import annotations

from chapter_exercises import LEVELS, MINUTES, Exercise, exercises
from chapter_openings import ROOT

FILE = ROOT / "book" / "exercises.md"
HEAD = """---
nosearch: true
---

# All exercises

Here are all {count} exercises of the book, sorted by difficulty and, within each level, in the
order of the chapters. There are no solutions on this page, so that you can print it for a class.
The title of an exercise leads to the exercise in its chapter, where the solution is folded below.

{levels}

The {hand} exercises marked *by hand* need a pencil and at most a calculator. Many others change a
cell of the chapter, whose notebook you can download at the top of its page. The minutes are our
estimates for someone who has read the chapter.
"""


def levels(found: list[Exercise]) -> str:
    """The meaning of each level, and how many exercises have it."""
    rows = ["| Level | Meaning | Minutes | Exercises |", "| --- | --- | --- | --- |"]
    for level, meaning in LEVELS.items():
        least, most = MINUTES[level]
        number = sum(each.level == level for each in found)
        link = f"[{level}](#exercises-{level.lower()})"
        rows.append(f"| {link} | {meaning} | {least} to {most} | {number} |")
    return "\n".join(rows)


def entry(exercise: Exercise) -> str:
    """One exercise."""
    how = ", by hand" if exercise.is_by_hand else ""
    return (
        f"**[{exercise.title}]({exercise.label})** · {{doc}}`chapters/{exercise.slug}` · "
        f"{exercise.minutes} minutes{how}\n\n{exercise.text}\n"
    )


def text() -> str:
    """The page."""
    found = exercises()
    hand = sum(each.is_by_hand for each in found)
    parts = [HEAD.format(count=len(found), levels=levels(found), hand=hand)]
    for level in LEVELS:
        parts.append(f"(exercises-{level.lower()})=\n## {level}\n")
        parts += [entry(each) for each in found if each.level == level]
    return "\n".join(parts)


if __name__ == "__main__":
    FILE.write_text(text(), "utf8")
    print(f"wrote {FILE.name}")
