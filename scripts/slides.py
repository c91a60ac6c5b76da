"""Make slides of chapters: for each a file of HTML that needs no other file and no network.

    python scripts/slides.py [--html _build/html] [CHAPTER ...]

A deck is made from the built page of its chapter, so its words and numbers are those of the page.
On slides are: title, question and opening picture; each section of the story with its heading, the
beginning of its first paragraph, its lists, and its paragraphs and formulas that begin in bold
print; each figure, table and theorem; each visible cell that shows something, unless it is tagged
`no-slide`; the answer; the exercises that are done by hand. *With the pencil* shows the question
first, and the rest at the next key.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from slide_parts import LATER, Slide, one, plain

ROOT = Path(__file__).resolve().parents[1]
STYLE = ROOT / "book" / "slides"
DECKS = ("start-here", "survey", "ages")
BOOK = "The Iterative Bayesian Update"
END = "Evidence"  # the section of a chapter where its story is over
MAX_LEAD, MAX_WORDS = 45, 85  # words of a section's first paragraph; words of a slide's text
FEW_WORDS = 40  # at most this many words share a slide with code
MAX_ROWS = 15  # of a table
PENCIL = "With the pencil."
SENTENCE = re.compile(r"(?<=[.?!])\s+")


def beginning(paragraph: Tag) -> str:
    """The first sentence of a paragraph, and the next ones up to `MAX_LEAD` words in total."""
    parts: list[str] = []
    for sentence in SENTENCE.split(paragraph.decode_contents().strip()):
        so_far = BeautifulSoup(" ".join([*parts, sentence]), "html.parser").get_text()
        if parts and len(so_far.split()) > MAX_LEAD:
            break
        parts.append(sentence)
    return f"<p>{' '.join(parts)}</p>"


def with_pencil(paragraph: Tag) -> str:
    """A paragraph to be worked out: up to its last question, and then the rest."""
    asked, _, answer = paragraph.decode_contents().rpartition("?")
    asked = f"{asked}?" if asked else ""
    if not asked:
        asked, _, answer = answer.partition("</strong>")
        asked = f"{asked}</strong>"
    rest = f'<span class="later">{answer}</span>' if answer.strip() else ""
    return f'<p class="pencil">{asked}{rest}</p>'


def is_hidden(cell: Tag) -> bool:
    """True if a cell only checks, imports, or is not wanted on slides."""
    classes = set(cell.get("class") or ())
    return bool(classes & {"evidence", "shown-0", "tag_no-slide"})


def of_cell(cell: Tag, page: Path) -> Iterator[str]:
    """Code with what it prints, then each figure and table of a cell."""
    code = cell.select_one(":scope > .cell_input pre")
    printed = [pre.get_text() for pre in cell.select(".cell_output .output.stream pre")]
    shows = bool(printed or cell.select(".cell_output :is(figure, table)"))
    if shows and (code or printed):
        shown = f"<pre>{escape(code.get_text().strip())}</pre>" if code else ""
        result = "\n".join(text.strip("\n") for text in printed)
        yield shown + (f'<pre class="printed">{escape(result)}</pre>' if printed else "")
    for figure in cell.select(".cell_output figure"):
        yield str(plain(figure, page))
    for table in cell.select(".cell_output table"):
        if len(table.select("tr")) <= MAX_ROWS:
            yield str(plain(table, page))


def blocks(section: Tag) -> Iterator[Tag]:
    """The content of a section, with the heads of the sections in it."""
    for child in section.find_all(True, recursive=False):
        if child.name == "section":
            yield from blocks(child)
        else:
            yield child


def heading_of(element: Tag, page: Path) -> str:
    """The words of a heading, without its number."""
    return plain(element, page).decode_contents().strip()


def is_text(block: Tag) -> bool:
    """True for a block that shares a slide with its neighbours."""
    return block.name in ("p", "ul", "ol") or "math" in (block.get("class") or ())


class Section:
    """The slides of one section of the story, as its blocks come."""

    def __init__(self, page: Path):
        self.page = page
        self.made: list[Slide] = []
        self.slide = Slide("")
        self.is_first = self.is_shown = self.goes_on = False

    def end(self, heading: str) -> None:
        """End the slide, if anything is on it, and begin the next one."""
        if self.slide.parts:
            self.made.append(self.slide)
        self.slide = Slide(heading)

    def head(self, block: Tag) -> None:
        """Begin a section, or a section in it."""
        self.end(heading_of(block, self.page))
        self.is_first, self.is_shown, self.goes_on = True, False, False

    def text(self, block: Tag) -> None:
        """Show a paragraph, a list or a formula, if the rules want it."""
        said, strong = block.get_text(), block.find("strong")
        is_bold = strong is not None and said.startswith(strong.get_text())
        made = plain(block, self.page)
        html = str(made)
        if block.name == "p":
            if said.startswith(PENCIL):
                html = with_pencil(made)
                self.goes_on = said.rstrip().endswith((",", ":"))
            elif self.goes_on:
                html = f"{LATER}{html}</div>"
            elif self.is_first:
                html = beginning(made)
            elif not is_bold:
                self.is_first = self.is_shown = False
                return
        elif not (self.is_shown or self.is_first):
            return
        self.is_first, self.is_shown = False, True
        if self.slide.parts and self.slide.words + len(said.split()) > MAX_WORDS:
            self.end(self.slide.heading)
        self.slide.add(html)

    def item(self, html: str, is_code: bool) -> None:
        """Show a figure, a table or a theorem by itself; code by itself or below a few words."""
        if is_code and 0 < self.slide.words < FEW_WORDS:
            is_answer = 'class="pencil"' in self.slide.parts[-1]
            self.slide.add(f"{LATER}{html}</div>" if is_answer else html)
        else:
            self.end(self.slide.heading)
            self.slide.add(html)
        self.end(self.slide.heading)
        self.is_shown = self.goes_on = False

    def block(self, block: Tag) -> None:
        """Show one block."""
        classes = set(block.get("class") or ())
        if block.name in ("h2", "h3"):
            self.head(block)
        elif is_text(block):
            self.text(block)
        elif "cell" in classes:
            if not is_hidden(block):
                for html in of_cell(block, self.page):
                    self.item(html, html.startswith("<pre"))
        elif (block.name == "figure" and "moving-figure" not in classes) or "proof" in classes:
            self.item(str(plain(block, self.page)), False)


def of_section(section: Tag, page: Path) -> list[Slide]:
    """The slides of one section of the story."""
    made = Section(page)
    for block in blocks(section):
        made.block(block)
    made.end("")
    return made.made


def opening(article: Tag, page: Path) -> tuple[list[Slide], Slide]:
    """The first slides of a chapter, and the one with its answer, which comes last."""
    head = one(article, "section")
    title = heading_of(one(head, "h1"), page)
    said: dict[str, str] = {}
    for paragraph in head.find_all("p", recursive=False):
        word, _, rest = paragraph.decode_contents().partition("</strong>")
        made = one(BeautifulSoup(f"<p>{rest}</p>", "html.parser"), "p")
        said.setdefault(word.replace("<strong>", "").strip(), plain(made, page).decode_contents())
    first, last = Slide(title, "h1"), Slide("The answer")
    first.add(f'<p class="question">{said["Question."].strip()}</p>')
    last.add(f"<p>{said['Answer.'].strip()}</p>")
    picture = one(head, ":scope > figure, :scope > .cell > .cell_output > figure")
    pictured = Slide(title)
    pictured.add(str(plain(picture, page)))
    return [first, pictured], last


def by_hand(article: Tag, page: Path) -> Iterator[Slide]:
    """The exercises that are done by hand."""
    for exercise in article.select("div.exercise.admonition"):
        title = one(exercise, ".admonition-title")
        title["class"] = "title"  # is the heading of the slide
        name = heading_of(title, page)
        if name.endswith("(easy, by hand)"):
            slide = Slide(name.removesuffix("(easy, by hand)").strip())
            content = one(exercise, "[id^=exercise-content]")
            slide.add(plain(content, page).decode_contents())
            yield slide


def slides(page: Path) -> list[Slide]:
    """The slides of a built chapter."""
    article = one(BeautifulSoup(page.read_text("utf8"), "html.parser"), "article.bd-article")
    made, answer = opening(article, page)
    for section in one(article, "section").find_all("section", recursive=False):
        if heading_of(one(section, "h2"), page) == END:
            break
        made += of_section(section, page)
    return [*made, answer, *by_hand(article, page)]


def deck(page: Path) -> str:
    """The file of a built chapter."""
    made = slides(page)
    title = BeautifulSoup(made[0].heading, "html.parser").get_text()
    css = (STYLE / "deck.css").read_text("utf8")
    css = (page.parents[2] / "_static" / "schematics.css").read_text("utf8") + css
    parts = []
    for i, slide in enumerate(made, 1):
        content = "\n".join(slide.parts)
        parts.append(
            f'<section class="slide" id="{i}"><{slide.tag}>{slide.heading}</{slide.tag}>\n'
            f'<div class="content">{content}</div>\n<footer><span>{BOOK} · {escape(title)}</span>'
            f"<span>{i} / {len(made)}</span></footer></section>"
        )
    body = "\n".join(parts)
    return f"""<!DOCTYPE html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}: slides</title>
<style>
{css}
</style>
</head>
<body>
<main>
{body}
</main>
<nav aria-label="Slides"><button type="button" data-go="back" aria-label="Previous">‹</button>
<button type="button" data-go="forth" aria-label="Next">›</button></nav>
<script>
{(STYLE / "deck.js").read_text("utf8")}</script>
</body>
</html>
"""


def write(html: Path, chapters: Sequence[str] = DECKS) -> list[Path]:
    """Write the decks of these chapters beside the built book."""
    folder = html / "slides"
    folder.mkdir(exist_ok=True)
    files = [folder / f"{name}.html" for name in chapters]
    for file in files:
        file.write_text(deck(html / "book" / "chapters" / file.name), "utf8")
    return files


def main() -> int:
    """Carry out the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("chapters", nargs="*", default=DECKS, help="names of chapters")
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html")
    arguments = parser.parse_args()
    for file in write(arguments.html, arguments.chapters):
        print(f"slides: {file} has {file.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
