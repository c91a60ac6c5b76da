"""Print, per chapter, the verdicts on the papers' claims (or errata) and the tests of each.

Settings, which are inputs that a paper chose, are counted apart from results.

    python scripts/ledger.py [--chapter SLUG] [--open] [--errata]
    python scripts/ledger.py --write     set the status of each erratum from the tests, and the
                                         counts in README.md from the tables

A row has a test when a test carries its id, as in ``@pytest.mark.ledger("A-T1")``, or a chapter's
code cell does, as in the tag ``ledger:A-T1``. A tagged cell must assert something, because
otherwise its row would only look tested.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import sys
import textwrap
from collections import Counter, defaultdict
from contextlib import redirect_stdout
from pathlib import Path

import nbformat
import pytest

from ibukit_claims import OURS, counts
from ibukit_claims._tables import rows_of

ROOT = Path(__file__).resolve().parents[1]
TABLES = {"ledger": "ledger.csv", "erratum": "errata.csv"}
ASSERTS = re.compile(r"^\s*assert\b|^[^#\n]*\bclaims\.(check|statements)\(", re.MULTILINE)
WIDTH = 100
# the sentence of README.md with two counts
IN_README = re.compile(
    r"(?<=each of their )(\d+)(\s+claims\s+and\s+settings\s+has\s+a\s+test,"
    r"\s+as\s+does\s+each\s+of\s+our\s+)(\d+)(?=\s+results)"
)

Row = dict[str, str]
Places = dict[str, list[str]]


def rows(kind: str, root: Path = ROOT) -> list[Row]:
    """The rows of data/ledger.csv (`kind` "ledger") or data/errata.csv ("erratum"), in order."""
    return rows_of(root / "data" / TABLES[kind])


def titles(root: Path = ROOT) -> dict[str, str]:
    """Slug and title of every chapter, written or planned, in the book's order."""
    return {row["slug"]: row["title"] for row in rows_of(root / "data" / "chapters.csv")}


CHAPTERS = titles()


class _Marks:
    """A pytest plugin that remembers the ids of all collected tests, the slow ones included."""

    def __init__(self) -> None:
        self.found: dict[str, Places] = {kind: defaultdict(list) for kind in TABLES}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            name = f"{item.path.name}::{item.nodeid.split('::', 1)[-1].split('[')[0]}"
            for kind, places in self.found.items():
                for row in {str(arg) for mark in item.iter_markers(kind) for arg in mark.args}:
                    if name not in places[row]:
                        places[row].append(name)


def marks(root: Path = ROOT) -> dict[str, Places]:
    """The tests of each id: kind -> id -> "file::test". Stops where pytest cannot collect them."""
    plugin, shown = _Marks(), io.StringIO()
    options = [
        "--collect-only",
        "-q",
        "-m",
        "",
        "-p",
        "no:nbval",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
    ]
    place = ["--rootdir", str(root), "-c", str(root / "pyproject.toml"), str(root / "tests")]
    with redirect_stdout(shown):
        code = pytest.main([*options, *place], plugins=[plugin])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise SystemExit(f"{shown.getvalue()}the tests cannot be collected, see above")
    return plugin.found


def tagged_cells(root: Path = ROOT) -> list[tuple[str, str, str, bool]]:
    """Every tag of a cell that names a row: (kind, id, "file#cell", whether the cell asserts)."""
    found = []
    for path in sorted((root / "book").rglob("*.ipynb")):
        if ".ipynb_checkpoints" in path.parts:
            continue
        for i, cell in enumerate(nbformat.read(path, as_version=4).cells):
            asserts = cell.cell_type == "code" and ASSERTS.search(cell.source) is not None
            for tag in cell.metadata.get("tags", []):
                kind, colon, row = tag.partition(":")
                if colon and kind in TABLES:
                    found.append((kind, row, f"{path.name}#{cell.get('id', i)}", asserts))
    return found


def tag_faults(root: Path = ROOT) -> list[str]:
    """The faults of the cells' tags: an id that names no row, a cell that asserts nothing."""
    known = {kind: {row["id"] for row in rows(kind, root)} for kind in TABLES}
    faults = []
    for kind, row, place, asserts in tagged_cells(root):
        if row not in known[kind]:
            faults.append(f"{place}: the tag {kind}:{row} names no row of data/{TABLES[kind]}")
        if not asserts:
            faults.append(
                f"{place}: the tag {kind}:{row} stands on a cell without an assert or a verdict of"
                " claims"
            )
    return faults


def places(root: Path = ROOT) -> dict[str, Places]:
    """The tests and cells of each id: kind -> id -> places. Stops where a tag is wrong."""
    if faults := tag_faults(root):
        raise SystemExit("\n".join(faults))
    found = marks(root)
    for kind, row, place, _ in tagged_cells(root):
        found[kind][row].append(place)
    return found


def status(row: Row, tested: Places) -> str:
    """The right entry of an erratum in the column `status` of data/errata.csv."""
    return "recomputed" if tested.get(row["id"]) else "study"


def write_status(tested: Places, root: Path = ROOT) -> int:
    """Set the column `status` of data/errata.csv and return how many rows changed."""
    table = rows("erratum", root)
    changed = [row for row in table if row["status"] != status(row, tested)]
    for row in changed:
        row["status"] = status(row, tested)
    with (root / "data" / TABLES["erratum"]).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    return len(changed)


def with_counts(text: str, root: Path = ROOT) -> str:
    """The text of README.md with its counts set from the tables."""
    found = counts(root / "data")
    return IN_README.sub(rf"{found.n_rows}\g<2>{found.ours}", text)


def chapter_report(slug: str, table: list[Row], tested: Places, only_open: bool = False) -> str:
    """The lines of one chapter: its rows with their tests, then its open rows with their claims."""
    closed = [row for row in table if tested.get(row["id"])]
    lines = [f"{CHAPTERS[slug]} ({slug}): {len(closed)} of {len(table)} rows have a test"]
    if not only_open:
        lines += [
            _entry(row["id"], f"{word(row)}: {', '.join(tested[row['id']])}") for row in closed
        ]
    for row in table:
        if row not in closed:
            text = textwrap.shorten(
                row.get("claim") or row["wrong"], WIDTH - 18, placeholder=" ..."
            )
            lines.append(_entry(row["id"], f"open: {text}"))
    return "\n".join(lines)


def word(row: Row) -> str:
    """The verdict on a claim, or the class of an erratum."""
    return row.get("verdict") or row["class"]


def summary(table: list[Row], tested: Places) -> str:
    """The number of rows of each verdict or class, settings apart, and the number with a test."""
    found = Counter(map(word, table))
    settings, ours = found.pop("setting", 0), found.pop(OURS, 0)
    rest = ", ".join(f"{n} {name}" for name, n in found.most_common())
    apart = (f"{settings} settings; " if settings else "") + (f"{ours} of ours; " if ours else "")
    start = f"{len(table)} rows: {apart}" + (f"{found.total()} results: " if apart else "")
    n_tested = sum(bool(tested.get(row["id"])) for row in table)
    return f"{start}{rest}\n{n_tested} with a test, {len(table) - n_tested} without"


def _entry(row: str, text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=f"  {row:<9} ",
        subsequent_indent=" " * 12,
        break_on_hyphens=False,
    )


def main(argv: list[str] | None = None) -> int:
    """Run the command line; 1 where the named chapter has an open row and --open was asked for."""
    parser = argparse.ArgumentParser(
        description="Which claims of the papers have a test, and which are still open."
    )
    parser.add_argument(
        "--chapter", metavar="SLUG", help=f"only this chapter: {', '.join(CHAPTERS)}"
    )
    parser.add_argument(
        "--open", action="store_true", help="only the open rows; exit 1 if --chapter has any"
    )
    parser.add_argument("--errata", action="store_true", help="the errata instead of the claims")
    parser.add_argument(
        "--write",
        action="store_true",
        help="set the status column of data/errata.csv, print nothing else",
    )
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)  # for the tests
    options = parser.parse_args(argv)
    if options.chapter not in (None, *CHAPTERS):
        parser.error(f"--chapter must be one of {', '.join(CHAPTERS)}; got {options.chapter!r}")

    found = places(options.root)
    if options.write:
        print(
            f"{write_status(found['erratum'], options.root)} rows of data/{TABLES['erratum']}"
            " changed"
        )
        readme = options.root / "README.md"
        if readme.is_file():
            readme.write_text(with_counts(readme.read_text("utf8"), options.root), "utf8")
        return 0
    kind = "erratum" if options.errata else "ledger"
    tested, shown = found[kind], []
    for slug in [options.chapter] if options.chapter else CHAPTERS:
        table = [row for row in rows(kind, options.root) if row["chapter"] == slug]
        shown += table
        if table:
            print(chapter_report(slug, table, tested, options.open), end="\n\n")
    print(summary(shown, tested))
    return int(
        bool(options.open and options.chapter and any(not tested.get(row["id"]) for row in shown))
    )


if __name__ == "__main__":
    sys.exit(main())
