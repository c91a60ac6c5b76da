"""The rows of the page of verdicts, read off data/, the tests and the chapters."""

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup

import ibukit_claims
from ibukit_claims._counts import Counts
from ibukit_claims._tables import rows_of

PAPERS = {
    "A": ("consistency", "Consistency of the iterative Bayesian update"),
    "B": ("geometric", "Geometric noise"),
    "C": ("freewill", "Free-will privacy"),
    "D": ("estimators", "Frequency estimation"),
    "E": ("privic", "PRIVIC"),
}
CLAIM, ERRATUM = r"[A-E]-\w+(?:\.\w+)?", r"[A-E]\d+"
CODE = re.compile(rf"(?<![\w-])(?:{CLAIM}|{ERRATUM})(?![\w-])")
# as in "(E27)", "(A6, A8)" and "(A17 and A18)"
IN_BRACKETS = re.compile(rf"\(((?:{ERRATUM})(?:(?:, | and | to ){ERRATUM})*)(?=[),;: ])")
RANGE = re.compile(r"(?<![\w-])([A-E])(\d+) to \1(\d+)(?![\w-])")
# in the order of a bar, the best first
RESULTS = ("reproduced", "fitted", "holds with a condition", "deviates", "not checkable")
CLASSES = ("error", "conditional error", "missing condition", "irreproducible", "remark")
TABLES = {
    "claim": ("ledger.csv", "ledger", "verdict"),
    "erratum": ("errata.csv", "erratum", "class"),
}


@dataclass(frozen=True)
class Number:
    """A number that a paper prints, beside ours; texts, as the chapter shows them."""

    what: str
    where: str
    printed: str
    ours: str
    verdict: str
    quantity: str = ""

    @property
    def error(self) -> float | None:
        """``|ours - printed| / |printed|``, where both are numbers."""
        try:
            ours, printed = (float(text.replace(",", "")) for text in (self.ours, self.printed))
        except ValueError:
            return None
        return abs(ours - printed) / abs(printed) if printed else None


@dataclass(frozen=True)
class Entry:
    """One row of the ledger or of the errata, with everything that leads to it or away from it."""

    id: str
    kind: str
    word: str
    chapter: str
    columns: dict[str, str]
    numbers: tuple[Number, ...] = ()
    cells: tuple[tuple[str, str], ...] = ()
    tests: tuple[tuple[str, str], ...] = ()
    mentions: tuple[str, ...] = field(default=())

    @property
    def paper(self) -> str:
        """The paper's letter."""
        return self.id[0]


def table(root: Path, name: str) -> list[dict[str, str]]:
    """The rows of a file in data/."""
    return rows_of(root / "data" / name)


def known(root: Path) -> set[str]:
    """The codes of all rows."""
    return {row["id"] for file, _, _ in TABLES.values() for row in table(root, file)}


def anchor(name: str) -> str:
    """The name of a row or a test in an address; the theme's script takes a dot for a class."""
    return name.replace(".", "-")


def label(tag: str) -> str:
    """The name under which a cell with this tag is referred to."""
    return re.sub(r"[^a-z0-9]+", "-", tag.lower())


def shown(cell: dict[str, Any]) -> list[str]:
    """The tags of a cell that name a row, if a reader sees the cell."""
    tags = cell["metadata"].get("tags", [])
    marks = {mark for _, mark, _ in TABLES.values()}
    return [] if "remove-cell" in tags else [tag for tag in tags if tag.partition(":")[0] in marks]


def codes(text: str, rows: set[str], every: bool) -> list[tuple[int, int]]:
    """The places of codes of rows in a text; those of errata in brackets only, or `every` one."""
    inside = [match.span() for match in IN_BRACKETS.finditer(text)]
    found = []
    for match in CODE.finditer(text):
        plain = "-" not in match.group()
        if match.group() in rows and (
            not plain or every or any(a <= match.start() < b for a, b in inside)
        ):
            found.append(match.span())
    return found


def spelled_out(text: str, rows: set[str], every: bool) -> str:
    """A text in which "(E11 to E13)" is "(E11, E12 and E13)", so that each row can be a link."""
    inside = [match.span() for match in IN_BRACKETS.finditer(text)]

    def names(found: re.Match[str]) -> str:
        letter, first, last = found[1], int(found[2]), int(found[3])
        of_range = [f"{letter}{i}" for i in range(first, last + 1)]
        is_code = every or any(a <= found.start() < b for a, b in inside)
        if not is_code or len(of_range) < 2 or not set(of_range) <= rows:
            return found[0]
        return f"{', '.join(of_range[:-1])} and {of_range[-1]}"

    return RANGE.sub(names, text)


def in_the_books_order(root: Path) -> dict[str, str]:
    """Slug and title of the chapters as the contents have them; planned ones come last."""
    titles = {row["slug"]: row["title"] for row in table(root, "chapters.csv")}
    contents = (root / "_toc.yml").read_text("utf8")
    slugs = re.findall(r"book/chapters/([\w-]+)", contents)
    return {
        slug: titles[slug] for slug in dict.fromkeys([*(s for s in slugs if s in titles), *titles])
    }


def counts(root: Path) -> Counts:
    """Every count that a page shows."""
    return ibukit_claims.counts(root / "data")


def chapters(root: Path) -> list[Path]:
    """The chapters' files."""
    return sorted((root / "book" / "chapters").glob("*.ipynb"))


def marked_tests(path: Path) -> dict[str, list[tuple[str, str]]]:
    """The tests of a file that carry an id: "ledger:A-F8" -> [(name of the file, of the test)]."""
    return _marked_tests(path, path.stat().st_mtime_ns)


@cache
def _marked_tests(path: Path, changed: int) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    module = ast.parse(path.read_text("utf8"))
    assigned = {
        t.id: s.value
        for s in module.body
        if isinstance(s, ast.Assign)
        for t in s.targets
        if isinstance(t, ast.Name)
    }

    def look(nodes: list[ast.stmt], above: list[str], name: str) -> None:
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                here = above + [
                    tag for decorator in node.decorator_list for tag in _marks(decorator, assigned)
                ]
                if isinstance(node, ast.ClassDef):
                    look(node.body, here, f"{name}{node.name}.")
                elif node.name.startswith("test"):
                    for tag in dict.fromkeys(here):
                        found[tag].append((path.stem, f"{name}{node.name}"))

    look(
        module.body,
        _marks(assigned["pytestmark"], assigned) if "pytestmark" in assigned else [],
        "",
    )
    return dict(found)


def _marks(node: ast.AST, assigned: dict[str, ast.expr]) -> list[str]:
    """The ids in ``mark.ledger(...)`` and ``mark.erratum(...)`` of an expression and its names."""
    found = []
    for part in _parts(node, assigned):
        if (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and part.func.attr in ("ledger", "erratum")
        ):
            texts = [
                n.value
                for arg in part.args
                for n in _parts(arg, assigned)
                if isinstance(n, ast.Constant)
            ]
            found += [f"{part.func.attr}:{text}" for text in texts if CODE.fullmatch(str(text))]
    return found


def _parts(node: ast.AST, assigned: dict[str, ast.expr]) -> Iterator[ast.AST]:
    """The nodes of an expression, and of the expressions that the file assigns to its names."""
    for part in ast.walk(node):
        yield part
        if isinstance(part, ast.Name) and part.id in assigned:
            others = {name: value for name, value in assigned.items() if name != part.id}
            yield from _parts(assigned[part.id], others)


def files_with_marks(root: Path) -> list[Path]:
    """The files of tests that carry an id."""
    return [path for path in sorted((root / "tests").rglob("test_*.py")) if marked_tests(path)]


@cache
def _read(path: Path, changed: int) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The tags that a reader of a chapter sees, and the rows of its tables beside a paper."""
    tags: list[str] = []
    numbers: list[tuple[str, ...]] = []
    for cell in json.loads(path.read_text("utf8"))["cells"]:
        tags += shown(cell)
        for output in cell.get("outputs", []):
            html = "".join(output.get("data", {}).get("text/html", []))
            if "<table" in html and "verdict" in html:
                numbers += beside(html)
    return tuple(dict.fromkeys(tags)), tuple(numbers)


def beside(html: str) -> list[tuple[str, ...]]:
    """(what, where, ours, paper, verdict) of each row of the tables of `ibukit_claims.show`."""
    wanted = ("what", "where", "ours", "paper", "verdict")
    found = []
    for drawn in BeautifulSoup(html, "html.parser").find_all("table"):
        lines = [
            [cell.get_text().strip() for cell in line.find_all(["th", "td"])]
            for line in drawn.find_all("tr")
        ]
        if lines and set(wanted) <= set(lines[0]):
            at = [lines[0].index(name) for name in wanted]
            found += [tuple(line[i] for i in at) for line in lines[1:]]
    return found


def numbers(root: Path) -> dict[str, list[Number]]:
    """Id -> the results that the paper prints in digits, beside ours where a chapter shows them."""
    of_chapters = [_read(path, path.stat().st_mtime_ns)[1] for path in chapters(root)]
    ours = {
        (what, where): (our, verdict)
        for rows in of_chapters
        for what, where, our, _, verdict in rows
    }
    found: dict[str, list[Number]] = defaultdict(list)
    for stem, _ in PAPERS.values():
        for row in table(root, f"published/{stem}.csv"):
            if row["verdict"] == "setting":
                continue
            what = ", ".join(filter(None, (row["quantity"], row["setting"]))) + (
                f" ({row['unit']})" if row["unit"] else ""
            )
            our, verdict = ours.get((what, row["where"]), ("–", row["verdict"]))
            found[row["claim"]].append(
                Number(
                    what,
                    row["where"],
                    row["value"] or "unreadable",
                    our,
                    verdict,
                    row["quantity"],
                )
            )
    return found


def entries(root: Path, kinds: tuple[str, ...], mentions: dict[str, list[str]]) -> list[Entry]:
    """The rows of some kinds in the book's order; `mentions`: the chapters that name an id."""
    cells: dict[str, list[tuple[str, str]]] = defaultdict(list)
    order = in_the_books_order(root)
    for path in sorted(chapters(root), key=lambda path: list(order).index(path.stem)):
        for tag in _read(path, path.stat().st_mtime_ns)[0]:
            cells[tag].append((path.stem, label(tag)))
    tests: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in files_with_marks(root):
        for tag, places in marked_tests(path).items():
            tests[tag] += places
    printed, found = numbers(root), []
    replies = {row["id"]: f"{row['reply']} ({row['date']})" for row in table(root, "replies.csv")}
    for kind in kinds:
        file, mark, word = TABLES[kind]
        for row in table(root, file):
            if kind == "erratum":
                row["reply"] = replies.get(row["id"], "")
            tag = f"{mark}:{row['id']}"
            # the cells of the row's own chapter come first
            places = sorted(cells[tag], key=lambda place: place[0] != row["chapter"])
            of_row = printed.get(row["id"], []) if kind == "claim" else []
            lists = (of_row, places, tests[tag], mentions.get(row["id"], []))
            facts = (row["id"], kind, row[word], row["chapter"], row)
            found.append(Entry(*facts, *map(tuple, lists)))
    return sorted(found, key=lambda entry: list(order).index(entry.chapter))
