"""What stands on the first screen of each chapter: its title, question, answer and picture."""

from __future__ import annotations

import ast
import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
from inline_figures import drawing, with_name  # noqa: E402 - what the book draws with

GLUE = re.compile(r"\{glue:text\}`(\w+)`")
RECORD = "application/papermill.record/text/plain"
DRAWING = re.compile(r"```\{schematic\} (\S+)\n(?:.*\n)*?:alt: (.*)\n")


class Opening(NamedTuple):
    """The beginning of a chapter, numbers written out."""

    slug: str
    title: str
    question: str
    answer: str
    picture: Path
    alt: str


def contents() -> list[tuple[str, list[str]]]:
    """The captions of the table of contents with the chapters below each."""
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text("utf8"))["parts"]
    return [
        (part["caption"], [Path(each["file"]).name for each in part["chapters"]])
        for part in parts
        if part["chapters"][0]["file"].startswith("book/chapters/")
    ]


@cache
def notebook(slug: str) -> Any:
    """The file of a chapter, or of the landing page, "index"."""
    folder = ROOT / "book" if slug == "index" else ROOT / "book" / "chapters"
    return json.loads((folder / f"{slug}.ipynb").read_text("utf8"))


def glued(slug: str) -> dict[str, str]:
    """The numbers that a chapter puts into its text, by name."""
    found = {}
    for cell in notebook(slug)["cells"]:
        for output in cell.get("outputs", []):
            if RECORD in output.get("data", {}):
                name = output["metadata"]["scrapbook"]["name"]
                found[name] = str(ast.literal_eval("".join(output["data"][RECORD])))
    return found


def opening(slug: str) -> Opening:
    """The beginning of one chapter."""
    numbers = glued(slug)
    text = "".join(notebook(slug)["cells"][0]["source"])
    text = GLUE.sub(lambda found: numbers[found[1]], text)
    title = re.match(r"# (.*)", text)
    question, answer = (
        re.search(rf"\*\*{word}\.\*\* ((?:.+\n?)+)", text) for word in ("Question", "Answer")
    )
    if not (title and question and answer):
        raise ValueError(f"{slug}: the first cell must have a title, a question and an answer")
    drawn = DRAWING.search(text)
    picture = (
        ROOT / "book" / "schematics" / f"{drawn[1]}.svg"
        if drawn
        else ROOT / "book" / "sketches" / f"{slug}.svg"
    )
    return Opening(
        slug,
        title[1],
        *(" ".join(each[1].split()) for each in (question, answer)),
        picture,
        drawn[2] if drawn else "",
    )


def inline(picture: Path, alt: str) -> str:
    """A drawing as HTML in a page of Markdown; without a text it is an ornament."""
    svg = drawing(picture)
    svg = with_name(svg, alt) if alt else svg.replace("<svg ", '<svg aria-hidden="true" ', 1)
    kind = "schematic" if picture.parent.name == "schematics" else "sketch"
    return f'```{{raw}} html\n<figure class="{kind} answer">{svg}</figure>\n```'
