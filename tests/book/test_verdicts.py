"""One vocabulary of verdicts, no circular rows, no estimates without errors:
read off the chapters' own files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest

import ibukit_claims as claims
from circular_rows import circular_rows, code_cells, parsed

CHAPTERS = sorted((Path(__file__).resolve().parents[2] / "book" / "chapters").glob("*.ipynb"))
RESULTS = set(claims.VERDICTS) - {"setting", "open"}
DECIMAL = re.compile(r"\d\.\d")
BARE = "without-error"
"""The tag of a cell whose table needs no error: formulas, enumerations, settings, timings,
or one tally shown as itself.
"""


def texts(node: ast.AST) -> list[str]:
    return [
        n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]


# One vocabulary


class Tables(HTMLParser):
    """The tables of a page as lists of rows of texts."""

    def __init__(self, html: str):
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1]:
            self.tables[-1][-1].append("")
            self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside &= tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.tables[-1][-1][-1] += data


def tables(cell: Any) -> Iterator[list[list[str]]]:
    """Every table that a cell shows."""
    for output in cell.outputs:
        html = output.get("data", {}).get("text/html", "")
        if "<table" in html:
            yield from Tables(html).tables


def wrong_words(notebook: Any) -> list[str]:
    """Verdicts that are shown and are none, that a chapter words by itself,
    or that rest on a literal.
    """
    faults = []
    for cell in code_cells(notebook):
        for table in tables(cell):
            if table and "verdict" in table[0]:
                column = table[0].index("verdict")
                words = {row[column] for row in table[1:] if len(row) > column}
                faults += [
                    f"{cell.id}: shows the verdict {word!r}" for word in sorted(words - RESULTS)
                ]
        for node in ast.walk(parsed(cell.source)):
            if isinstance(node, ast.IfExp) and set(texts(node)) & set(claims.VERDICTS):
                faults.append(
                    f"{cell.id}: words a verdict by itself instead of calling claims.statements"
                )
            if isinstance(node, ast.Tuple) and len(node.elts) == 4:
                said, held, _, verdict = node.elts
                judged = isinstance(verdict, ast.Constant) and verdict.value in RESULTS
                if judged and isinstance(held, ast.Constant) and held.value is not None:
                    faults.append(
                        f"{cell.id}: the test of {ast.unparse(said)} is the literal {held.value}"
                    )
    return faults


# No estimates without errors


def without_errors(notebook: Any) -> list[str]:
    """Tables with decimals, without a standard error, and not said to be exact."""
    faults = []
    for cell in code_cells(notebook):
        if BARE in cell.metadata.get("tags", []):
            continue
        for table in tables(cell):
            inside = " ".join(text for row in table[1:] for text in row)
            if (
                DECIMAL.search(inside)
                and "±" not in " ".join([*table[0], inside])
                and "verdict" not in table[0]
            ):
                faults.append(f"{cell.id}: a table without standard errors: {' | '.join(table[0])}")
    return faults


CHECKS = [wrong_words, circular_rows, without_errors]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapter(path, check):
    assert check(nbformat.read(path, 4)) == []


# Negative controls


def chapter(*cells, outputs=(), tags=()):
    cells = [nbformat.v4.new_code_cell(source, id=f"cell-{i}") for i, source in enumerate(cells)]
    cells[-1].outputs = [
        nbformat.v4.new_output("display_data", {"text/html": html}) for html in outputs
    ]
    cells[-1].metadata["tags"] = list(tags)
    return nbformat.v4.new_notebook(cells=cells)


def html(*rows):
    return (
        "<table>"
        + "".join(f"<tr>{''.join(f'<td>{text}</td>' for text in row)}</tr>" for row in rows)
        + "</table>"
    )


@pytest.mark.parametrize(
    ("notebook", "says"),
    [
        (
            chapter("1", outputs=[html(["what", "verdict"], ["x", "agrees"])]),
            "shows the verdict 'agrees'",
        ),
        (
            chapter("1", outputs=[html(["verdict", "what"], ["setting", "x"])]),
            "shows the verdict 'setting'",
        ),
        (
            chapter("rows = ['reproduced' if held else 'deviates' for held in tests]"),
            "words a verdict by itself",
        ),
        (
            chapter("rows = [('it holds (8.2)', True, 'so it does', 'reproduced')]"),
            "is the literal True",
        ),
    ],
)
def test_wrong_words_are_found(notebook, says):
    assert [says in fault for fault in wrong_words(notebook)] == [True]


def test_right_words_pass():
    shown = html(["what", "verdict"], *[["x", word] for word in sorted(RESULTS)])
    source = (
        "%matplotlib inline\nrows = [('it holds', x > 1, 'so it does', 'reproduced'), ('y', None,"
        " '', 'not checkable')]"
    )
    assert wrong_words(chapter(source, outputs=[shown])) == []


READ = "B = claims.settings('privic')['value'].tolist()"


@pytest.mark.parametrize(
    "cells",
    [
        [
            "rows = claims.load_published('privic')",
            "claims.beside('privic', {('E-F10', 'beta'): rows['value'][0]})",
        ],
        [READ, "claims.beside('p', {('x', f'{b}'): b for b in B})"],
        [READ, "ours = {}\nfor b in B:\n    ours['x', 'y'] = b\nclaims.beside('p', ours)"],
        [
            "def of(n):\n    return list(claims.settings('p')['value'])",
            "claims.beside('p', dict(zip(keys, of(1))))",
        ],
    ],
)
def test_a_circle_is_found(cells):
    assert circular_rows(chapter(*cells)) == [
        "cell-1: sets beside the published table what was read from it"
    ]


@pytest.mark.parametrize(
    "cells",
    [
        [READ, "claims.beside('p', {('x', f'{b}'): error_at(b) for b in B})"],
        [READ, "claims.beside('p', {('x', 'y'): 2 * mean})"],
    ],
)
def test_what_is_computed_at_a_setting_is_no_circle(cells):
    assert circular_rows(chapter(*cells)) == []


def test_a_table_without_errors_is_found():
    bare, with_errors = (
        html(["EMD", "MLE"], ["ages", "0.52"]),
        html(["EMD", "MLE"], ["ages", "0.52 ± 0.01"]),
    )
    counts = html(["n", "steps"], ["1,000", "300"])
    assert len(without_errors(chapter("1", outputs=[bare]))) == 1
    assert without_errors(chapter("1", outputs=[bare], tags=[BARE])) == []
    assert without_errors(chapter("1", outputs=[with_errors, counts])) == []
