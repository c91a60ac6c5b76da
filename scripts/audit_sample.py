"""Draw published rows and sentences of advice, each with its evidence, for somebody to read.

    python scripts/audit_sample.py [--seed 46] [--rows 60] [--sentences 30]

A row of data/published has evidence if a test or a cell of a chapter carries its claim, and no
chapter compares the number with itself. A sentence of advice, or one that says always or never, has
evidence if its own section computes something, shows a table or a figure, proves something, or
refers to a place that does. A row or sentence without evidence is marked with !, and then the exit
code is 1. Only a reader can tell whether the evidence is the right evidence, so everything is
printed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

import ledger
from circular_rows import circular_rows
from ibukit_claims._tables import rows_of

ROOT = Path(__file__).resolve().parents[1]
ADVICE = re.compile(
    r"\b(?:never|nowhere|always|everywhere|in the end|nearly all|must not|prefer|recommend|choose|"
    r"use (?:it|the|a|this)|(?:is|are) (?:the )?best|safest)\b",
    re.IGNORECASE,
)
# pages on how the package is written and called: their rules are not advice on estimating
HOUSE = {"api.md", "contribute.md"}
FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)\s*$", re.MULTILINE | re.DOTALL)
END = re.compile(r"(?<=[.!?])\s+(?=[A-Z*`{\[(])")
EVIDENCE = {
    "a computed number": re.compile(r"\{glue:text\}"),
    "a figure or a table": re.compile(r"\{numref\}|^\|[ :-]*-{3}", re.MULTILINE),
    "a proof": re.compile(r"\{prf:"),
    "a reference": re.compile(r"\{(?:doc|ref|eq|func|class|meth|cite(?::t|:p)?)\}|\]\(https?:"),
}


@dataclass(frozen=True)
class Found:
    """One row or sentence, where it stands, and what it rests on."""

    place: str
    text: str
    evidence: tuple[str, ...]


@dataclass
class Section:
    """The text between two headings of a page."""

    place: str
    prose: list[str]
    evidence: set[str]


def published_rows(root: Path = ROOT) -> list[Found]:
    """Every number that data/published holds and that is not a setting."""
    tested = ledger.places(root)["ledger"]
    paths = sorted((root / "book" / "chapters").glob("*.ipynb"))
    pages = {path.name: nbformat.read(path, as_version=4) for path in paths}
    sound = {name: page for name, page in pages.items() if not circular_rows(page)}
    compared = _compared(sound)
    chapters = {row["id"]: f"{row['chapter']}.ipynb" for row in ledger.rows("ledger", root)}
    found = []
    for path in sorted((root / "data" / "published").glob("*.csv")):
        for line, row in enumerate(rows_of(path), start=2):
            if row["verdict"] == "setting":
                continue
            claim = row["claim"]
            text = f"{claim} {row['setting']}: {row['quantity']} = {row['value']}, {row['verdict']}"
            if claim in chapters:
                places = tested.get(claim, []) if chapters[claim] in sound else []
            else:  # the ledger has rows of the five papers only
                places = compared[path.stem]
            found.append(Found(f"{path.name}:{line}", text, tuple(places)))
    return found


def _compared(pages: dict[str, Any]) -> dict[str, list[str]]:
    """For each table of data/published, the cells that call `beside` on it and assert something."""
    found = defaultdict(list)
    for name, page in pages.items():
        for cell in page.cells:
            if cell.cell_type == "code" and ledger.ASSERTS.search(cell.source):
                for stem in re.findall(r"""beside\(\s*["'](\w+)""", cell.source):
                    found[stem].append(f"{name}#{cell.id}")
    return found


def sections(path: Path) -> list[Section]:
    """The text of a page under each heading; the code and outputs of a chapter are evidence."""
    found = [Section(f"{path.name}, top", [], set())]
    if path.suffix == ".md":
        _read(path.read_text(encoding="utf-8"), path.name, found)
        return found
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            _read(cell.source, path.name, found)
        elif cell.cell_type == "code":
            found[-1].evidence |= set(_of_code(cell))
    return found


def _read(text: str, name: str, found: list[Section]) -> None:
    # directives are taken out, because they hold formulas, drawings or code; theorems are kept
    for part in re.split(r"(?m)^(?=#{1,4} )", FENCE.sub("", text)):
        if heading := re.match(r"#{1,4} (.*)", part):
            found.append(Section(f"{name}, {heading[1]}", [], set()))
        found[-1].prose.append(re.sub(r"^#{1,4} .*\n", "", part))
        found[-1].evidence |= {kind for kind, sign in EVIDENCE.items() if sign.search(part)}


def _of_code(cell: Any) -> Iterator[str]:
    if ledger.ASSERTS.search(cell.source):
        yield "an assert"
    kinds = {kind for output in cell.outputs for kind in output.get("data", {})}
    if kinds & {"image/png", "image/svg+xml", "text/html"}:
        yield "a figure or a table"
    elif any(output.output_type == "stream" for output in cell.outputs):
        yield "a computed number"


def sentences(root: Path = ROOT) -> list[Found]:
    """Every sentence of the book and the README that advises, or says always or never."""
    book = root / "book"
    pages = [root / "README.md", *sorted(book.glob("*.md")), *sorted(book.rglob("*.ipynb"))]
    found = []
    for path in (page for page in pages if page.name not in HOUSE):
        for section in sections(path):
            for paragraph in re.split(r"\n\s*\n", "\n\n".join(section.prose)):
                for sentence in END.split(" ".join(paragraph.split())):
                    if ADVICE.search(sentence) and not sentence.endswith("?"):
                        evidence = tuple(sorted(section.evidence))
                        found.append(Found(section.place, sentence, evidence))
    return found


def shown(found: Found) -> str:
    """A line with the place and its evidence, and the text below it."""
    mark = " " if found.evidence else "!"
    said = ", ".join(found.evidence) or "no evidence"
    text = textwrap.fill(found.text, 100, initial_indent="    ", subsequent_indent="    ")
    return f"{mark} {found.place}: {textwrap.shorten(said, 160)}\n{text}"


def main(argv: list[str] | None = None) -> int:
    """Print the sample; 1 if something in it has no evidence."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=46)
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--sentences", type=int, default=30)
    chosen = parser.parse_args(argv)
    draw = random.Random(chosen.seed)
    sample = []
    for population, size in (
        (published_rows(), chosen.rows),
        (sentences(), chosen.sentences),
    ):
        sample += draw.sample(population, min(size, len(population)))
        print(f"{min(size, len(population))} of {len(population)} (seed {chosen.seed})")
        for one in sample[-size:]:
            print(shown(one))
    return int(not all(one.evidence for one in sample))


if __name__ == "__main__":
    sys.exit(main())
