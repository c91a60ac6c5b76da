"""Set the tables that cells show: numbers by their decimal points, powers of ten raised."""

import re
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString
from sphinx.application import Sphinx

TABLE = re.compile(
    r'<table border="\d" class="dataframe.*?</table>|<table class="dataframe.*?</table>', re.DOTALL
)
PLAIN = r"[-−+]?[\d,]+(?:\.\d+)?"
POWER = re.compile(rf"(?<![\w.])({PLAIN})e([-+]?)0*(\d+)(?!\w)")
# a number, perhaps with its error and a unit behind it; in a column of numbers, a dash or an empty
# cell stands for a missing number
EXPONENT = r"(?:e[-+]?\d+)?"
NUMBER = re.compile(rf"[<>≤≥~±]?\s?({PLAIN}){EXPONENT}(\s?±\s?[\d.,]+{EXPONENT})?(\s?%)?")
NOTHING = ("", "–", "-", "NaN", "unreadable")
LONG = 20  # letters: a first column with longer names keeps a third of a phone's width
MINUS = re.compile(r"(?<![\w.,)\]])-(?=[.\d])")


def set_tables(body: str) -> str:
    """Set every table of cells' output in a page's body, each inside a box that scrolls."""
    return TABLE.sub(lambda found: set_table(found.group()), body)


def set_table(html: str) -> str:
    """Set one table."""
    soup = BeautifulSoup(html, "html.parser")
    table = soup.table
    assert table is not None
    lines = [line.find_all(["td", "th"], recursive=False) for line in table.find_all("tr")]
    body = [line for line in lines if any(cell.name == "td" for cell in line)]
    n_columns = max((len(line) for line in lines), default=0)
    for column in range(n_columns):
        cells = [line[column] for line in body if len(line) > column and line[column].name == "td"]
        texts = [cell.get_text().strip() for cell in cells]
        if not any(NUMBER.fullmatch(text) for text in texts):
            continue
        if not all(NUMBER.fullmatch(text) or text in NOTHING for text in texts):
            continue
        heads = [line[column] for line in lines if line not in body and len(line) > column]
        for cell in (*cells, *heads):
            add_class(cell, "number")
        align(soup, cells)
    for cell in table.find_all(["td", "th"]):
        for text in cell.find_all(string=MINUS):
            if text.parent.name != "code":
                text.replace_with(NavigableString(MINUS.sub("−", text)))
        powers(soup, cell)
    long = any(len(line[0].get_text()) > LONG for line in body)
    return f'<div class="table-scroll{" long-names" if long else ""}">{soup}</div>'


def add_class(cell: Tag, name: str) -> None:
    """Give a cell a class."""
    cell["class"] = list(dict.fromkeys([*cell.get("class", []), name]))


def align(soup: BeautifulSoup, cells: list[Tag]) -> None:
    """Pad the digits behind the decimal point to the longest in the column."""
    plain = [
        cell
        for cell in cells
        if cell.string is not None and re.fullmatch(PLAIN, cell.string.strip())
    ]
    behind = [cell.string.strip().partition(".") for cell in plain]
    places = max((len(point + part) for _, point, part in behind), default=0)
    if (
        len(plain) < sum(cell.get_text().strip() not in NOTHING for cell in cells)
        or len({len(p + d) for _, p, d in behind}) < 2
    ):
        return
    for cell, (whole, point, part) in zip(plain, behind, strict=True):
        span = soup.new_tag("span", attrs={"class": "fraction", "style": f"--places: {places}"})
        span.string = point + part
        cell.clear()
        cell.extend([NavigableString(whole), span])


def powers(soup: BeautifulSoup, cell: Tag) -> None:
    """Write 1e-04 as 10 to the power of -4, and 2.5e+06 as 2.5 times 10 to the power of 6."""
    for text in list(cell.find_all(string=POWER)):
        parts: list[Any] = []
        at = 0
        for found in POWER.finditer(text):
            number, sign, exponent = found.groups()
            raised = soup.new_tag("sup")
            raised.string = ("−" if sign == "-" else "") + exponent
            base = "10" if number == "1" else f"{number} × 10"
            parts += [text[at : found.start()], base, raised]
            at = found.end()
        text.replace_with(
            *[NavigableString(p) if isinstance(p, str) else p for p in [*parts, text[at:]]]
        )


def on_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Set the tables of one page."""
    if pagename.startswith("book/") and context.get("body"):
        context["body"] = set_tables(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", on_page, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
