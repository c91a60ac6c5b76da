"""Figures that are part of the page, so that they take the colours of the theme.

    ```{schematic} pipeline
    :name: fig-pipeline
    :alt: What a reader hears who does not see the picture.

    The caption.
    ```

puts ``book/schematics/pipeline.svg`` into the page. ``currentColor`` is the colour of the text, and
the variables of ``schematics.css`` are the colours of the estimators, light or dark.

    ```{moving} epsilon-and-steps
    :name: fig-moving-ages

    The caption.
    ```

puts ``book/moving/epsilon-and-steps.html``, a still picture with its sentence, and the numbers
behind it, ``epsilon-and-steps.json``, into the page; ``scripts/moving_figures.py`` writes both. If
there is a script (``moving.js``) the controls appear and the picture follows them; where there is
none, on paper or in a reader without JavaScript, the picture and its sentence stay. Nothing is
loaded from anywhere.

Both are numbered with the other figures and can be referred to by their names.

    ```{looks}
    ```

is the key of the estimators: a table of how each is drawn in every figure, made from the dictionary
that draws them.
"""

import json
import re
from base64 import b64encode
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from matplotlib import rc_context
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ibukit.plotting import ESTIMATORS, Look

DATA = "{data}"  # the place of the numbers in the HTML of a moving figure


def drawing(path: Path) -> str:
    """The text of a drawing in one line: a blank line would end the HTML block in some readers."""
    text = path.read_text("utf8").strip()
    if not text.startswith("<svg "):
        raise ValueError(f"{path.name} must begin with <svg")
    return re.sub(r">\s+<", "><", text)


def with_name(svg: str, alt: str) -> str:
    """The drawing as one picture with a name: its words are not read out piece by piece."""
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1)


def moving(path: Path) -> str:
    """The still picture and the numbers of a moving figure."""
    numbers = json.loads(path.with_suffix(".json").read_text("utf8"))
    data = json.dumps(numbers, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return path.read_text("utf8").strip().replace(DATA, data)


class InlineFigure(SphinxDirective):
    """A figure from a file, with a caption of one paragraph."""

    required_arguments = 1
    has_content = True
    folder: Path
    suffix: str
    css_class: str

    def content_of(self, path: Path) -> str:
        """The HTML of the picture."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Return the figure, with the picture in it and the content below."""
        what = f"{self.name} {self.arguments[0]!r}"
        path = Path(self.env.srcdir) / self.folder / f"{self.arguments[0]}{self.suffix}"
        if not path.is_file():
            raise self.error(f"there is no {what}: {self.folder / path.name} is missing")
        for option in self.option_spec:
            if option not in self.options:
                raise self.error(f"the {what} needs :{option}:")
        if not self.content:
            raise self.error(f"the {what} needs a caption")
        self.env.note_dependency(str(path))
        figure = nodes.figure(classes=[self.css_class])
        self.set_source_info(figure)
        self.add_name(figure)
        figure += nodes.raw("", self.content_of(path), format="html")
        text = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, text)
        first, *others = text.children
        if others or not isinstance(first, nodes.paragraph):
            raise self.error(f"the caption of the {what} is one paragraph")
        figure += nodes.caption("", "", *first.children)
        return [figure]


class Schematic(InlineFigure):
    """A figure whose picture is a drawing in ``book/schematics``."""

    option_spec = dict.fromkeys(("alt", "name"), directives.unchanged_required)
    folder, suffix, css_class = Path("book", "schematics"), ".svg", "schematic"

    def content_of(self, path: Path) -> str:
        """The drawing, named by the text for those who do not see it."""
        return with_name(drawing(path), " ".join(self.options["alt"].split()))


class Moving(InlineFigure):
    """A figure that moves, from ``book/moving``."""

    option_spec = {"name": directives.unchanged_required}  # noqa: RUF012
    folder, suffix, css_class = Path("book", "moving"), ".html", "moving-figure"

    def content_of(self, path: Path) -> str:
        """The still picture, the hidden controls and the numbers."""
        self.env.note_dependency(str(path.with_suffix(".json")))
        return moving(path)


def load_scripts(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Load the script on the pages that have a moving figure or its still picture."""
    if 'class="moving' in (context.get("body") or ""):
        app.add_css_file("moving.css")
        for name in ("moving-triangle", "moving-address", "moving"):
            app.add_js_file(f"{name}.js", loading_method="defer")


def sample(look: Look) -> str:
    """A short piece of an estimator's line with one marker, as the address of a drawing."""
    figure = Figure(layout="none", figsize=(0.9, 0.22), facecolor="none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.plot([0, 0.5, 1], [0, 0, 0], **(look.line() | {"marker": ""}), linewidth=1.8)
    axes.plot([0.5], [0], **look.line(), markersize=7)
    axes.set(xlim=(0, 1), ylim=(-1, 1))
    axes.axis("off")
    file = BytesIO()
    with rc_context({"svg.hashsalt": "ibukit"}):  # the same bytes in every build
        FigureCanvasSVG(figure).print_svg(file, metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + b64encode(file.getvalue()).decode()


def row(name: str, look: Look) -> str:
    """One row of the table: the drawing says nothing that the words beside it do not."""
    shown = re.sub(r"\]_([RM])", r"]<sub>\1</sub>", escape(name))
    image = f'class="figure" role="presentation" alt="" src="{sample(look)}" width="86" height="21"'
    return f"<tr><td><img {image}></td><td>{shown}</td><td>{escape(look.meaning)}</td></tr>"


class Looks(SphinxDirective):
    """The key of the estimators."""

    def run(self) -> list[nodes.Node]:
        """Write the table."""
        titles = ("Drawn as", "Name", "What it is")
        head = "".join(f'<th scope="col">{title}</th>' for title in titles)
        rows = "\n".join(row(name, look) for name, look in ESTIMATORS.items())
        table = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>"
        return [nodes.raw("", f'<table class="table looks">\n{table}\n</table>', format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("schematic", Schematic)
    app.add_directive("moving", Moving)
    app.add_directive("looks", Looks)
    app.connect("html-page-context", load_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
