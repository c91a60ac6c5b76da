"""Directives that list the chapters as cards, and the theorems of all chapters.

    ```{chapters}
    ages: One distribution of ages, estimated in four ways.
    ```

A card is a drawing (``book/sketches``), the chapter's number and title, and a sentence. Every
chapter of the table of contents must have its line, in that order; ``:only:`` lifts this for a
selection.

    ```{theorems}
    ```

Each theorem is listed with its number, its name, and a sentence: the theorem's own first sentence,
if that is short and states it, or else the sentence in ``theorem_sentences.tsv``. The proof
extension's index, a list of labels, is not written (``html_domain_indices``).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from inline_figures import drawing
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

SENTENCES = Path(__file__).with_name("theorem_sentences.tsv")
SKETCHES = Path("book", "sketches")
STATEMENT = re.compile(
    r"^(?P<fence>`{3,}|:{3,})"
    r"\{prf:(?P<kind>theorem|proposition|lemma|corollary|definition)\} *(?P<name>.*)\n"
    r"(?P<body>(?:.*\n)*?)(?P=fence) *$",
    re.MULTILINE,
)
LABEL = re.compile(r"^:label: *(\S+)$", re.MULTILINE)
SENTENCE = re.compile(r"(?:\$[^$]*\$|[^$.]|\.(?!\s|$))+\.(?=\s|$)")
MAX_SENTENCE = 220  # characters
# how a sentence begins that only prepares a statement, or that is a list
NO_STATEMENT = ("Let ", "Write ", "$$", "1.", "- ", "(i)")


def chapters(root: Path) -> list[str]:
    """The chapters in the order of the table of contents."""
    parts = yaml.safe_load((root / "_toc.yml").read_text("utf8"))["parts"]
    files = [chapter["file"] for part in parts for chapter in part["chapters"]]
    return [file for file in files if file.startswith("book/chapters/")]


class Cards(SphinxDirective):
    """Chapters as cards."""

    has_content = True
    option_spec = {"only": directives.flag}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Write the cards and let Sphinx parse their titles and sentences."""
        root = Path(self.env.srcdir)
        slugs = [file.rpartition("/")[2] for file in chapters(root)]
        sentences = dict(line.split(": ", 1) for line in self.content if line.strip())
        if "only" not in self.options and list(sentences) != slugs:
            wrong = sorted(set(slugs) ^ set(sentences)) or "the order is another"
            raise self.error(f"the cards are not the chapters of _toc.yml: {wrong}")
        listing = nodes.container(classes=["chapter-cards"])
        for slug, sentence in sentences.items():
            number = f'<span class="number">{slugs.index(slug) + 1}</span>'
            card = nodes.container(classes=["chapter-card"])
            card += nodes.raw("", drawing(root / SKETCHES / f"{slug}.svg"), format="html")
            card += nodes.raw("", number, format="html")
            text = StringList(
                [f"{{doc}}`/book/chapters/{slug}`", "", sentence], source=self.env.docname
            )
            self.state.nested_parse(text, self.content_offset, card)
            listing += card
        return [listing]


class Statement(NamedTuple):
    """One theorem, as the source of its chapter has it."""

    label: str
    kind: str
    name: str
    line: str


def first_sentence(body: str) -> str:
    """The first sentence of a statement, if it is short and stands by itself; else nothing."""
    paragraph = re.split(r"\n\s*\n", LABEL.sub("", body).strip())[0]
    text = " ".join(paragraph.split())
    found = SENTENCE.match(text)
    if found is None or len(found[0]) > MAX_SENTENCE or text.startswith(NO_STATEMENT):
        return ""
    return "" if "{" in re.sub(r"\$[^$]*\$", "", found[0]) else found[0]


def statements(text: str) -> Iterator[Statement]:
    """The theorems in the text of a cell that have a name and a label."""
    for found in STATEMENT.finditer(text + "\n"):
        if label := LABEL.search(found["body"]):
            sentence = first_sentence(found["body"])
            yield Statement(label[1], found["kind"], found["name"].strip(), sentence)


def sentences() -> dict[str, str]:
    """Label -> the sentence for a theorem whose own first sentence does not state it."""
    lines = SENTENCES.read_text("utf8").splitlines()
    return dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))


class Theorems(SphinxDirective):
    """The theorems of all chapters."""

    def run(self) -> list[nodes.Node]:
        """Write one list for each chapter and let Sphinx parse it."""
        root = Path(self.env.srcdir)
        lines: list[str] = []
        written = sentences()
        self.env.note_dependency(str(SENTENCES))
        for file in chapters(root):
            path = root / f"{file}.ipynb"
            self.env.note_dependency(str(path))
            cells = json.loads(path.read_text("utf8"))["cells"]
            texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
            found = [statement for text in texts for statement in statements(text)]
            if found:
                lines += ["", f"**{{doc}}`/{file}`**", ""]
                for s in found:
                    line = s.line or written.get(s.label, "")
                    lines.append(f"- {{prf:ref}}`{s.label}`, **{s.name or s.kind}**. {line}")
        parent = nodes.container(classes=["theorems"])
        text = StringList(lines, source=self.env.docname)
        self.state.nested_parse(text, self.content_offset, parent)
        return [parent]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("chapters", Cards)
    app.add_directive("theorems", Theorems)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
