"""The key of the estimators: a table of how each is drawn in every figure, made from the dictionary that draws them.

```{looks}
```
"""

from __future__ import annotations

import html
import re
from base64 import b64encode
from io import BytesIO

from docutils import nodes
from matplotlib import rc_context
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ibukit.plotting import ESTIMATORS, Look

WIDE, HIGH = 0.9, 0.22  # inches


def sample(look: Look) -> str:
    """A short piece of the line with one marker, as the address of a drawing."""
    figure = Figure(layout="none", figsize=(WIDE, HIGH), facecolor="none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.plot([0, 0.5, 1], [0, 0, 0], **(look.line() | {"marker": ""}), linewidth=1.8)
    axes.plot([0.5], [0], **look.line(), markersize=7)
    axes.set(xlim=(0, 1), ylim=(-1, 1))
    axes.axis("off")
    drawing = BytesIO()
    with rc_context({"svg.hashsalt": "ibukit"}):  # the same bytes in every build
        FigureCanvasSVG(figure).print_svg(drawing, metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + b64encode(drawing.getvalue()).decode()


def row(name: str, look: Look) -> str:
    """One row of the table: the drawing says nothing that the words beside it do not."""
    shown = re.sub(r"\]_([RM])", r"]<sub>\1</sub>", html.escape(name))
    drawn = f'<img class="figure" role="presentation" alt="" src="{sample(look)}" width="86" height="21">'
    return f"<tr><td>{drawn}</td><td>{shown}</td><td>{html.escape(look.meaning)}</td></tr>"


class Looks(SphinxDirective):
    """The directive."""

    def run(self) -> list[nodes.Node]:
        """Write the table."""
        head = "".join(
            f'<th scope="col">{title}</th>' for title in ("Drawn as", "Name", "What it is")
        )
        rows = "\n".join(row(name, look) for name, look in ESTIMATORS.items())
        table = f'<table class="table looks">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>'
        return [nodes.raw("", table, format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("looks", Looks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
