"""A directive that lists every theorem of the chapters: number, name, and its first sentence if it is short.

The raw index of the proof extension, a list of labels, is not written (``html_domain_indices``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

STATEMENT = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{prf:(?P<kind>theorem|proposition|lemma|corollary|definition)\} *(?P<name>.*)\n"
    r"(?P<body>(?:.*\n)*?)(?P=fence) *$",
    re.MULTILINE,
)
LABEL = re.compile(r"^:label: *(\S+)$", re.MULTILINE)


SENTENCE = re.compile(r"(?:\$[^$]*\$|[^$.]|\.(?!\s|$))+\.(?=\s|$)")
LONGEST = 220
NO_STATEMENT = (
    "Let ",
    "Write ",
    "$$",
    "1.",
    "- ",
    "(i)",
)  # a sentence that only prepares one, or a list


class Statement(NamedTuple):
    """One theorem, as the source of its chapter has it."""

    label: str
    kind: str
    name: str
    line: str


def first_sentence(body: str) -> str:
    """The first sentence of a statement, if it is short and stands by itself; else nothing."""
    paragraphs = [
        part for part in re.split(r"\n\s*\n", LABEL.sub("", body).strip()) if part.strip()
    ]
    text = " ".join(paragraphs[0].split()) if paragraphs else ""
    found = SENTENCE.match(text)
    alone = (
        found
        and "{" not in re.sub(r"\$[^$]*\$", "", found[0])
        and not text.startswith(NO_STATEMENT)
    )
    return found[0] if found and alone and len(found[0]) <= LONGEST else ""


def statements(text: str) -> Iterator[Statement]:
    """The theorems in the text of a cell that have a name and a label."""
    for found in STATEMENT.finditer(text + "\n"):
        if label := LABEL.search(found["body"]):
            yield Statement(
                label[1], found["kind"], found["name"].strip(), first_sentence(found["body"])
            )


def chapters(root: Path) -> list[str]:
    """The chapters in the order of the table of contents."""
    parts = yaml.safe_load((root / "_toc.yml").read_text("utf8"))["parts"]
    files = [chapter["file"] for part in parts for chapter in part["chapters"]]
    return [file for file in files if file.startswith("book/chapters/")]


class Theorems(SphinxDirective):
    """The directive."""

    def run(self) -> list[nodes.Node]:
        """Write one list for each chapter and let Sphinx parse it."""
        root = Path(self.env.srcdir)
        lines: list[str] = []
        for file in chapters(root):
            path = root / f"{file}.ipynb"
            self.env.note_dependency(str(path))
            cells = json.loads(path.read_text("utf8"))["cells"]
            texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
            found = [statement for text in texts for statement in statements(text)]
            if found:
                lines += ["", f"**{{doc}}`/{file}`**", ""]
                lines += [
                    f"- {{prf:ref}}`{s.label}`, **{s.name or s.kind}**. {s.line}" for s in found
                ]
        parent = nodes.container(classes=["theorems"])
        self.state.nested_parse(
            StringList(lines, source=self.env.docname), self.content_offset, parent
        )
        return [parent]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("theorems", Theorems)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
