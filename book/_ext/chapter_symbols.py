"""The symbols of a chapter, listed under its opening and linked to the page of notation.

The table ``chapter_symbols.tsv`` registers each symbol of the first table of ``book/notation.md``:
an anchor, the symbol as that table writes it, a few words, and the patterns that find it in
formulas or text. The rows of the notation get the anchors; each chapter gets a fold that lists the
registered symbols in it. Nothing has to be written in a chapter. A row of the notation that is not
registered, or a registered symbol without a row, is a warning, which fails the build.
"""

import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx_design.icons import get_octicon

LOGGER = logging.getLogger(__name__)
TABLE = Path(__file__).with_name("chapter_symbols.tsv")
NOTATION = "book/notation"
CHAPTERS = "book/chapters/"
# the parts of a formula that are not symbols: words, and names of environments and labels
WORDS = re.compile(r"\\(?:text|operatorname|tag|label|begin|end)\{[^{}]*\}")


class Symbol(NamedTuple):
    """One row of the register."""

    anchor: str
    cell: str
    words: str
    found_by: tuple[str, ...]
    where: tuple[str, ...]

    def belongs_to(self, chapter: str) -> bool:
        """True if the symbol has this meaning in the chapter."""
        if not self.where:
            return True
        excluded = self.where[0].startswith("!")
        return (chapter in {name.lstrip("!") for name in self.where}) is not excluded

    def used_in(self, formulas: list[str], text: str) -> bool:
        """True if a formula or the text of a page uses the symbol."""
        return any(_finds(way, formulas, text) for way in self.found_by)


def letter(name: str) -> str:
    """The pattern of a letter or a command that stands by itself."""
    before = (
        "" if name.startswith("\\") else r"(?<![\\A-Za-z])(?<!mathcal )(?<!mathbb )(?<!mathsf )"
    )
    return rf"{before}{re.escape(name)}(?![A-Za-z])"


def _finds(way: str, formulas: list[str], text: str) -> bool:
    if way.startswith('"'):
        word = re.escape(way.strip('"'))
        return re.search(rf"(?<!\w){word}(?!\w)", text) is not None
    pattern = way[1:-1] if way.startswith("/") else letter(way)
    return any(re.search(pattern, formula) for formula in formulas)


@cache
def table() -> tuple[Symbol, ...]:
    """The register, in the order of the page of notation."""
    lines = [
        line for line in TABLE.read_text("utf8").splitlines() if line and not line.startswith("#")
    ]
    rows = [line.split("\t") for line in lines]
    return tuple(
        Symbol(f"symbol-{anchor}", cell, words, tuple(ways.split(" or ")), tuple(where.split()))
        for anchor, cell, words, ways, where in rows
    )


def symbols_of(chapter: str, formulas: list[str], text: str) -> list[Symbol]:
    """The registered symbols that a chapter uses."""
    plain = [WORDS.sub(" ", formula) for formula in formulas]
    return [
        symbol for symbol in table() if symbol.belongs_to(chapter) and symbol.used_in(plain, text)
    ]


class symbol_list(nodes.General, nodes.Element):  # noqa: N801 - docutils writes nodes so
    """The fold, written directly as HTML: the search must not find every symbol on every page."""


def _html(cell: str) -> str:
    """A cell of the table: what stands between dollars is a formula."""
    parts = cell.split("$")
    formula = '<span class="math notranslate nohighlight">\\({}\\)</span>'
    return "".join(
        formula.format(escape(part)) if i % 2 else escape(part) for i, part in enumerate(parts)
    )


def visit(self: Any, node: symbol_list) -> None:
    """Write the fold."""
    link = f'<a class="reference internal" href="{escape(node["page"])}#'
    items = (
        f'<li>{link}{s.anchor}">{_html(s.cell)}</a>: {escape(s.words)}</li>'
        for s in node["symbols"]
    )
    arrow = get_octicon("chevron-right", height="1.5em")  # as the folds of sphinx-design have it
    self.body.append(
        '<details class="sd-sphinx-override sd-dropdown sd-card sd-mb-3 symbols">'
        '<summary class="sd-summary-title sd-card-header">'
        '<span class="sd-summary-text">Symbols on this page</span>'
        f'<span class="sd-summary-state-marker sd-summary-chevron-right">{arrow}</span></summary>'
        '<div class="sd-summary-content sd-card-body">'
        f'<ul class="simple">{"".join(items)}</ul></div></details>\n'
    )
    raise nodes.SkipNode


def list_symbols(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the fold before the first section of a chapter."""
    if not docname.startswith(CHAPTERS):
        return
    formulas = [
        node.astext() for kind in (nodes.math, nodes.math_block) for node in doctree.findall(kind)
    ]
    found = symbols_of(docname.removeprefix(CHAPTERS), formulas, doctree.astext())
    top = next(iter(doctree.findall(nodes.section)), None)
    section = next((child for child in top or () if isinstance(child, nodes.section)), None)
    if found and section is not None:
        page = app.builder.get_relative_uri(docname, NOTATION)
        top.insert(top.index(section), symbol_list("", symbols=found, page=page))


class Anchors(SphinxTransform):
    """Give each row of the table its anchor."""

    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        """Name the symbols of the page of notation."""
        if self.env.docname != NOTATION:
            return
        self.env.note_dependency(str(TABLE))
        anchors = {symbol.cell.replace("$", ""): symbol.anchor for symbol in table()}
        first = next(iter(self.document.findall(nodes.tbody)))
        for row in first.findall(nodes.row):
            cell = row.children[1]
            name = cell.astext()
            if not name:
                continue
            if name not in anchors:
                LOGGER.warning(
                    "the symbol %r of the page of notation is not in %s",
                    name,
                    TABLE.name,
                    location=row,
                )
                continue
            cell.children[0]["ids"].append(anchors.pop(name))
        if anchors:
            LOGGER.warning(
                "%s has symbols that the page of notation lacks: %s", TABLE.name, sorted(anchors)
            )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_node(symbol_list, html=(visit, None))
    app.add_transform(Anchors)
    app.connect("doctree-resolved", list_symbols)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
