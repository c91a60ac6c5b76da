"""Finish the drawings of a built book: each says what it is and carries its data; small pictures.

    python scripts/figure_files.py [--html _build/html]

A drawing of a chapter comes from its kernel with its numbers (``figure_data.py``). The page around
it knows the rest: this script writes the caption as the title and the alternative text as the
description, and the source and the licence beside the numbers and as Dublin Core, which programs
for drawings show. It moves the small picture out into ``_static/gallery``, where the gallery looks
for it. `make book` calls it after ``light_book``; it changes nothing if it is called again.
"""

from __future__ import annotations

import argparse
import base64
import html
import io
import os
import re
from pathlib import Path
from typing import NamedTuple

import yaml
from PIL import Image

import figure_data

ROOT = Path(__file__).resolve().parents[1]
GALLERY = Path("_static", "gallery")
COLOURS = 48  # of a small picture: lines, their soft edges and the shades of a map
FIGURE = re.compile(
    r'(?s)<figure [^>]*\bid="(?P<name>[^"]+)"[^>]*>(?:(?!</figure>).)*?'
    r'<img alt="(?P<alt>[^"]*)"[^>]*? src="[^"]*?_images/(?P<file>[^"/]+\.svg)"'
    r"(?:(?!</figure>).)*?<figcaption>(?P<caption>.*?)</figcaption>"
)
DESCRIBED = re.compile(r"(?s)<title>.*?</title><desc>.*?</desc>|<metadata><rdf:RDF.*?</metadata>")
PERMALINK = re.compile(r'(?s)<a class="headerlink".*?</a>')
ADDRESS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://purl.org/dc/elements/1.1/"
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


def dublin_core(title: str, source: str, about: dict[str, str]) -> str:
    """Title, source, authors and licence in the form that programs for drawings read."""
    entries = {"title": title, "source": source}
    entries |= {"creator": about["creator"], "rights": about["licence"]}
    inside = "".join(f"<dc:{k}>{html.escape(v, quote=False)}</dc:{k}>" for k, v in entries.items())
    rdf, dc = ADDRESS
    inside = f'<rdf:Description rdf:about="">{inside}</rdf:Description>'
    return f'<metadata><rdf:RDF xmlns:rdf="{rdf}" xmlns:dc="{dc}">{inside}</rdf:RDF></metadata>'


def described(svg: str, figure: Drawn, about: dict[str, str], home: str) -> str:
    """The drawing with its title, its description, and what it is beside its numbers."""
    svg = DESCRIBED.sub("", svg)
    data = figure_data.read(svg) or {}
    data.pop("thumbnail", None)
    source = f"{home}{figure.page}#{figure.name}"
    book = f"The Iterative Bayesian Update, {about['version']}"
    data = {"figure": figure.name, "book": book, "source": source, **about, "note": NOTE} | data
    svg = figure_data.with_data(svg, data)
    title, said = (html.escape(text, quote=False) for text in (figure.caption, figure.alt))
    head = f"<title>{title}</title><desc>{said}</desc>"
    head += dublin_core(figure.caption, source, about)
    return figure_data.ROOT_TAG.sub(lambda tag: tag[0] + head, svg, count=1)


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
    (folder / GALLERY).mkdir(parents=True, exist_ok=True)
    for page in sorted((folder / "book").rglob("*.html")):
        for figure in figures(page.read_text("utf8"), page.relative_to(folder).as_posix()):
            path = folder / "_images" / figure.file
            svg = path.read_text("utf8")
            data = figure_data.read(svg) or {}
            if "panels" not in data:
                faults.append(f"{figure.page}: {figure.name} carries no data")
            if "thumbnail" in data:
                small = folder / GALLERY / f"{figure.name}.png"
                small.write_bytes(small_picture(data["thumbnail"]))
            path.write_text(described(svg, figure, about, home), "utf8")
    return faults


def main() -> int:
    """Carry out the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html")
    faults = finish(parser.parse_args().html)
    print(*(f"figure_files: {fault}" for fault in faults), sep="\n", end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    raise SystemExit(main())
