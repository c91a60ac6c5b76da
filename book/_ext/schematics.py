"""A directive that draws a schematic into the page, so that it takes the colours of the theme.

    ```{schematic} pipeline
    :name: fig-pipeline
    :alt: What a reader hears who does not see the picture.

    The caption.
    ```

``book/schematics/pipeline.svg`` becomes part of the page. ``currentColor`` is then the colour of
the text, and the variables of ``schematics.css`` are the colours of the estimators, light or dark.
The figure is numbered with the others and can be referred to by its name.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER = Path("book", "schematics")


def inline(drawing: str, alt: str) -> str:
    """The drawing as one picture with a name: what is written in it is not read out piece by piece."""
    if not drawing.startswith("<svg "):
        raise ValueError("a schematic must begin with <svg")
    small = re.sub(
        r">\s+<", "><", drawing.strip()
    )  # a blank line would end the HTML block in some readers
    return small.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1)


class Schematic(SphinxDirective):
    """A figure whose picture is a drawing in ``book/schematics``."""

    required_arguments = 1
    option_spec = {"alt": directives.unchanged_required, "name": directives.unchanged_required}  # noqa: RUF012
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the figure, with the drawing in it and the content below."""
        path = Path(self.env.srcdir) / FOLDER / f"{self.arguments[0]}.svg"
        if not path.is_file():
            raise self.error(
                f"there is no schematic {self.arguments[0]!r}: {FOLDER / path.name} is missing"
            )
        for option in ("alt", "name"):
            if option not in self.options:
                raise self.error(f"the schematic {self.arguments[0]!r} needs :{option}:")
        if not self.content:
            raise self.error(f"the schematic {self.arguments[0]!r} needs a caption")
        self.env.note_dependency(str(path))
        figure = nodes.figure(classes=["schematic"])
        self.set_source_info(figure)
        self.add_name(figure)
        alt = " ".join(self.options["alt"].split())
        figure += nodes.raw("", inline(path.read_text("utf8"), alt), format="html")
        text = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, text)
        first, *others = text.children
        if others or not isinstance(first, nodes.paragraph):
            raise self.error("the caption of a schematic is one paragraph")
        figure += nodes.caption("", "", *first.children)
        return [figure]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("schematic", Schematic)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
