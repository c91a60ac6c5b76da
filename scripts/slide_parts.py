"""The parts of slides: what stands on one, and pieces of a built page that need no other file."""

from __future__ import annotations

import re
from base64 import b64encode
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from docutils.utils.math.latex2mathml import tex2mathml

LATER = '<div class="later">'  # what the next key shows
DRAWN = ["svg", "math"]  # whose parts keep what they say of themselves
FORMULA = re.compile(r"\\[(\[](.*)\\[)\]]", re.DOTALL)


class Slide:
    """A heading and what stands below it."""

    def __init__(self, heading: str, tag: str = "h2"):
        self.heading, self.tag = heading, tag
        self.parts: list[str] = []
        self.words = 0

    def add(self, html: str) -> None:
        """Append a block; the first block of a slide is never kept for later."""
        if not self.parts:
            html = (
                html.removeprefix(LATER).removesuffix("</div>") if html.startswith(LATER) else html
            )
        self.parts.append(html)
        self.words += len(BeautifulSoup(html, "html.parser").get_text().split())


def mathml(tex: str, is_block: bool) -> str:
    """A formula as browsers draw it without a script."""
    tex = re.sub(r"\\(begin|end)\{split\}", "", tex).replace("{gathered}", "{aligned}")
    tex = re.sub(r"\\([td]?frac)\s*(\d)\s*(\d|[a-z])", r"\\\1{\2}{\3}", tex)
    return str(tex2mathml(tex.strip(), as_block=is_block))


def one(element: Tag, selector: str) -> Tag:
    """The first part of an element that a selector finds."""
    found = element.select_one(selector)
    if found is None:
        raise ValueError(f"a page of the book has no {selector}")
    return found


def plain(element: Tag, page: Path) -> Tag:
    """A copy of an element that needs no other file: no links, formulas drawn, pictures in it."""
    made = BeautifulSoup(str(element), "html.parser")
    for gone in made.select("a.headerlink, span.eqno, script, style, form, .section-number"):
        gone.decompose()
    for math in made.select(".math"):
        if found := FORMULA.search(math.get_text()):
            drawn = mathml(found[1], math.name == "div")
            math.replace_with(BeautifulSoup(drawn, "html.parser"))
    for image in made.select("img[src]"):
        path = page.parent / str(image["src"])
        kind = {".svg": "svg+xml"}.get(path.suffix, path.suffix[1:])
        image["src"] = f"data:image/{kind};base64,{b64encode(path.read_bytes()).decode()}"
        for name in ("class", "loading", "style"):
            del image[name]
    for link in made.select("a"):
        link.unwrap()
    for title in made.select("p.admonition-title"):
        title.name = "strong"
        title.wrap(made.new_tag("p"))
    for each in made.find_all(True):
        if each.name not in DRAWN and each.find_parent(DRAWN) is None:
            for name in ("id", "class", "style"):
                del each[name]
    return one(made, "*")
