"""A directive that shows chapters as cards: a drawing, the chapter's number and title, and a sentence.

    ```{chapters}
    ages: The ages above, by four estimators.
    ```

Every chapter of the table of contents must have its line, in that order; ``:only:`` lifts this for
a selection.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sketches import sketch
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from theorems import chapters


class Cards(SphinxDirective):
    """The directive."""

    has_content = True
    option_spec = {"only": directives.flag}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Write the cards and let Sphinx parse their titles and sentences."""
        slugs = [file.rpartition("/")[2] for file in chapters(Path(self.env.srcdir))]
        lines = [line for line in self.content if line.strip()]
        told = dict(line.split(": ", 1) for line in lines)
        if "only" not in self.options and list(told) != slugs:
            wrong = sorted(set(slugs) ^ set(told)) or "the order is another"
            raise self.error(f"the cards are not the chapters of _toc.yml: {wrong}")
        listing = nodes.container(classes=["chapter-cards"])
        for slug, sentence in told.items():
            card = nodes.container(classes=["chapter-card"])
            card += nodes.raw("", sketch(slug), format="html")
            card += nodes.raw(
                "", f'<span class="number">{slugs.index(slug) + 1}</span>', format="html"
            )
            text = [f"{{doc}}`/book/chapters/{slug}`", "", sentence]
            self.state.nested_parse(
                StringList(text, source=self.env.docname), self.content_offset, card
            )
            listing += card
        return [listing]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("chapters", Cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
