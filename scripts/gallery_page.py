"""Write the page *Gallery*: every figure except the sketches, with its caption and its code.

python scripts/gallery_page.py
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any, NamedTuple

import moving_figures
from chapter_openings import GLUE, ROOT, contents, glued, notebook
from figure_files import GALLERY

FILE = ROOT / "book" / "gallery.md"
HEAD = """---
nosearch: true
---

# Gallery

Here are all the figures of the book except its sketches, in the order of the chapters; the
sketches that open the chapters are on {doc}`answers`. A picture leads to its place in the
book, which has the whole caption and, under *Download*, the drawing (SVG) with its numbers. *Code*
leads to the same place and shows the code that draws the picture; the code of figures that move is
in `scripts/`.
"""
MOVING_HEAD = """## Figures that move

The address of a page holds the setting of its moving figures, so a link brings back what you saw.
"""
MOVING = re.compile(r"```\{moving\} (\S+)\n((?::\w+: .*\n)*)\n((?:.+\n)+?)```", re.MULTILINE)
OPTION = re.compile(r":(\w+): (.*)")
# a sentence ends before a capital; what stands in brackets ends with the bracket
SENTENCE = re.compile(r"(?<=[a-z0-9)%$`»”][.?])\s+(?=[A-Z(])")


class Figure(NamedTuple):
    """One figure: its page, its name there, its caption, and what it is."""

    page: str
    name: str
    caption: str
    alt: str
    kind: str
    """"computed" or "moving"."""
    source: str
    """The name of its drawing, or the identity of its cell."""


def first_sentence(caption: str) -> str:
    """The first sentence of a caption, or all of the caption if that sentence cuts a bracket."""
    text = " ".join(caption.split())
    found = SENTENCE.split(text, maxsplit=1)[0]
    return found if found.count("(") == found.count(")") else text


def drawn(page: str, text: str) -> list[Figure]:
    """The moving figures in a piece of Markdown."""
    found = []
    for source, options, caption in MOVING.findall(text):
        given = dict(OPTION.findall(options))
        found.append(Figure(page, given["name"], caption, given.get("alt", ""), "moving", source))
    return found


def figures(slug: str) -> list[Figure]:
    """The figures of a chapter, or of the landing page, in their order."""
    page, numbers = "index" if slug == "index" else f"chapters/{slug}", glued(slug)
    found = []
    for cell in notebook(slug)["cells"]:
        if cell["cell_type"] == "markdown":
            found += drawn(page, "".join(cell["source"]))
        elif shown := cell["metadata"].get("mystnb", {}).get("figure"):
            alt = cell["metadata"]["mystnb"]["image"]["alt"]
            found.append(Figure(page, shown["name"], shown["caption"], alt, "computed", cell["id"]))
    return [
        each._replace(caption=GLUE.sub(lambda name: numbers[name[1]], each.caption))
        for each in found
    ]


def words_of(figure: Figure) -> str:
    """The first sentence of the caption; a moving figure's title, as its caption tells its use."""
    if figure.kind != "moving":
        return first_sentence(figure.caption)
    spec = json.loads((ROOT / "book" / "moving" / f"{figure.source}.json").read_text("utf8"))
    return f"{spec['title']}."


def code_of(figure: Figure) -> str:
    """A link to the code of a figure, or the name of the file that has it."""
    if figure.kind == "computed":
        return f' <a href="{figure.page}.html?evidence=1#{figure.name}">Code</a>'
    module = moving_figures.FIGURES[figure.source].__module__
    return f" Code: `{module}.py`"


def still(figure: Figure) -> str:
    """The first panel of a moving figure."""
    path = ROOT / "book" / "moving" / f"{figure.source}.html"
    found = re.search(r'<div class="moving-panels">(<svg .*?</svg></svg>)', path.read_text("utf8"))
    if found is None:
        raise ValueError(f"{path.name} has no panel")
    return f'<div class="moving-still">{found[1]}</div>'


def small(figure: Figure) -> str:
    """The small picture of a figure, which leads to its place."""
    place = f'<a href="{figure.page}.html#{figure.name}">'
    if figure.kind == "moving":
        picture = still(figure)
    else:
        address = f"../{GALLERY.as_posix()}/{figure.name}.png"
        picture = f'<img class="figure" loading="lazy" src="{address}" alt="{escape(figure.alt)}">'
    return f"{place}{picture}</a>"


def entry(figure: Figure) -> str:
    """One figure of the page."""
    words = f"{{numref}}`{figure.name}`. {words_of(figure)}{code_of(figure)}"
    return (
        f":::{{container}} gallery-figure\n```{{raw}} html\n{small(figure)}\n```\n\n{words}\n:::\n"
    )


def shelf(entries: list[Figure]) -> str:
    """Some figures side by side."""
    inside = "\n".join(map(entry, entries))
    return f"::::{{container}} gallery\n{inside}::::\n"


def everything() -> dict[str, list[Figure]]:
    """The figures of each chapter, and of the landing page."""
    slugs = ["index", *(slug for _, each in contents() for slug in each)]
    return {slug: figures(slug) for slug in slugs}


def title(slug: str) -> Any:
    """The title of a chapter."""
    return re.match(r"# (.*)", "".join(notebook(slug)["cells"][0]["source"]))[1]  # type: ignore[index]


def text() -> str:
    """The page."""
    known = everything()
    moving = [each for some in known.values() for each in some if each.kind == "moving"]
    parts, number = [HEAD, MOVING_HEAD, shelf(moving)], 0
    for caption, slugs in contents():
        parts.append(f"## {caption}\n")
        for slug in slugs:
            number += 1
            if still_ones := [each for each in known[slug] if each.kind != "moving"]:
                parts += [f"### {number}. {title(slug)}\n", shelf(still_ones)]
    return "\n".join(parts)


if __name__ == "__main__":
    FILE.write_text(text(), "utf8")
    print(f"wrote {FILE.name}")
