"""Finish the drawings of a built book: describe each, take out its numbers and small picture.

    python scripts/figure_files.py [--html _build/html]

A drawing of a chapter comes from its kernel with its numbers (``figure_data.py``). The page around
it knows the rest: this script writes the caption as the title, and the source and the licence as
metadata. It moves the numbers out into ``_static/figures``, so that a page that only shows the
drawing does not carry them: ``figure-files.js`` loads them when they are asked for, and puts them
into the drawing that it saves. The small picture goes to ``_static/gallery``, where the gallery
looks for it. `make book` calls this after ``light_book``; it changes nothing if it is called again.
"""

from __future__ import annotations

import base64
import html
import io
import json
import os
import re
from pathlib import Path
from typing import NamedTuple

import yaml
from PIL import Image

import figure_data
import light_book

ROOT = Path(__file__).resolve().parents[1]
GALLERY, NUMBERS = Path("_static", "gallery"), Path("_static", "figures")
COLOURS = 24  # of a small picture: lines, their soft edges and the shades of a map
FIGURE = re.compile(
    r'(?s)<figure [^>]*\bid="(?P<name>[^"]+)"[^>]*>(?:(?!</figure>).)*?'
    r'<img alt="(?P<alt>[^"]*)"[^>]*? src="[^"]*?_images/(?P<file>[^"/]+\.svg)"'
    r"(?:(?!</figure>).)*?<figcaption>(?P<caption>.*?)</figcaption>"
)
DESCRIBED = re.compile(r"(?s)<title>.*?</title>")
PERMALINK = re.compile(r'(?s)<a class="headerlink".*?</a>')
NOTE = "Numbers to six significant digits, as plotted; scripts/figure_data.py explains the kinds."


class Drawn(NamedTuple):
    """A figure of a page: what the page knows of it."""

    name: str
    page: str
    alt: str
    caption: str
    file: str


def words(markup: str) -> str:
    """The text of a piece of a page."""
    text = html.unescape(re.sub(r"<[^>]+>", "", PERMALINK.sub("", markup)))
    return " ".join(text.split())


def figures(text: str, page: str) -> list[Drawn]:
    """The computed figures of a page."""
    return [
        Drawn(
            found["name"],
            page,
            html.unescape(found["alt"]),
            words(found["caption"]),
            found["file"],
        )
        for found in FIGURE.finditer(text)
    ]


def imprint() -> dict[str, str]:
    """The authors and the licence of the book."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    authors = ", ".join(author["name"] for author in cited["authors"])
    return {"creator": authors, "licence": cited["license"], "version": cited["version"]}


def described(svg: str, figure: Drawn, about: dict[str, str], home: str) -> str:
    """The drawing with its title and with what it is, and without its numbers."""
    source = f"{home}{figure.page}#{figure.name}"
    book = f"The Iterative Bayesian Update, {about['version']}"
    data = {"figure": figure.name, "book": book, "source": source, **about}
    svg = figure_data.with_data(DESCRIBED.sub("", svg), data)
    title = f"<title>{html.escape(figure.caption, quote=False)}</title>"
    return figure_data.ROOT_TAG.sub(lambda tag: tag[0] + title, svg, count=1)


def small_picture(encoded: str) -> bytes:
    """A small picture with a table of few colours."""
    picture = Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGBA")
    few = picture.quantize(COLOURS, method=Image.Quantize.FASTOCTREE)
    file = io.BytesIO()
    few.save(file, "PNG", optimize=True)
    return file.getvalue()


def finish(folder: Path) -> list[str]:
    """Finish the drawings of the book in this folder; the figures that carry no data."""
    about, faults = imprint(), []
    home = os.environ.get("BOOK_URL", "")
    home = f"{home.rstrip('/')}/" if home else ""
    for place in (GALLERY, NUMBERS):
        (folder / place).mkdir(parents=True, exist_ok=True)
    for page in sorted((folder / "book").rglob("*.html")):
        for figure in figures(page.read_text("utf8"), page.relative_to(folder).as_posix()):
            path = folder / "_images" / figure.file
            svg = path.read_text("utf8")
            data = figure_data.read(svg) or {}
            table = folder / NUMBERS / f"{figure.name}.js"
            if "panels" in data:
                held = {"note": NOTE, "panels": data["panels"]}
                text = json.dumps(held, ensure_ascii=False, separators=(",", ":"))
                table.write_text(f"ibukitFigure({text});\n", "utf8")
            elif not table.exists():
                faults.append(f"{figure.page}: {figure.name} carries no data")
            if "thumbnail" in data:
                small = folder / GALLERY / f"{figure.name}.png"
                small.write_bytes(small_picture(data["thumbnail"]))
            path.write_text(described(svg, figure, about, home), "utf8")
    return faults


def main() -> int:
    """Carry out the command line."""
    faults = finish(light_book.asked_for(__doc__))
    print(*(f"figure_files: {fault}" for fault in faults), sep="\n", end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    raise SystemExit(main())
