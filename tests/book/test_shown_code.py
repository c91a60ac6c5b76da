"""The code that a page shows is what a reader copies: it runs as it stands, cell after cell.

Shown is a cell without a tag that folds or removes it. Checks, the code of figures and tables and
what glues numbers into the text are evidence, which a switch in the header shows.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
import symtable
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

import notebooks
from test_changed_chapters import assigned, raised, setting
from test_verdicts import parsed

CHAPTERS = {p.stem: p for p in notebooks.chapters() if p.parent.name == "chapters"}
FOLDED = {"hide-input", "hide-cell", "hide-output", "remove-input", "remove-cell", "check"}
# what serves the page and not the reader
PLUMBING = ("ibukit_claims", "claims", "glue", "HTML", "IPython", "myst_nb")
TIMES = 20  # a setting may be this many times what is published, or this part of it
RANGE = re.compile(r"\b([A-Z_]{2,}) from (\S+) to (\S+?)[,;.]?(?:\s|$)")


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell["cell_type"] == "code" and cell["source"]]


def shown(notebook: Any) -> list[Any]:
    """The cells of code that a page shows."""
    return [
        cell for cell in code_cells(notebook) if not FOLDED & set(cell["metadata"].get("tags", []))
    ]


def names(tree: ast.AST) -> set[str]:
    """Every name that code mentions, those of modules too."""
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def comment(source: str) -> str:
    """The comments of a cell as one line."""
    found = [line.partition("#")[2].strip() for line in source.splitlines() if "#" in line]
    return " ".join(found)


def ranges(source: str) -> dict[str, tuple[float, float]]:
    """Between what a first cell says that each of its numbers may be."""
    found = RANGE.findall(comment(source))
    return {name: (float(low), float(high)) for name, low, high in found}


def faults(notebook: Any) -> list[str]:
    """What a reader who copies the shown cells would stumble over before running them."""
    cells = shown(notebook)
    first = code_cells(notebook)[0]
    if cells[:1] != [first]:
        return [f"{first['id']}: the first cell must be shown: imports, setting and seed"]
    found = []
    if "import ibukit as ik" not in first["source"] or "SEED" not in assigned(parsed(first.source)):
        found.append(f"{first['id']}: must import ibukit as ik and set SEED")
    for cell in cells:
        tree = parsed(cell["source"])
        if any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
            found.append(f'{cell["id"]}: asserts; move that into a cell with the tag "check"')
        if used := sorted(names(tree) & set(PLUMBING)):
            found.append(f"{cell['id']}: {', '.join(used)} serves the page, not a reader")
        if cell is not first and any(
            isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body
        ):
            found.append(f"{cell['id']}: imports; the first cell does so for all that is shown")
    return found


def faults_of_range(notebook: Any) -> list[str]:
    """Where a first cell does not say how far the numbers of the setting may be changed."""
    source = code_cells(notebook)[0]["source"]
    said, found = ranges(source), []
    for name, node in setting(notebook).items():
        if name in ("SEED", "ROUNDS"):
            continue
        if name not in said:
            found.append(f"{name}: say for what values the chapter runs: {name} from ... to ...")
            continue
        low, high = said[name]
        full = low <= 1.01 * node.value / TIMES and high >= 0.99 * node.value * TIMES
        if not (low <= node.value <= high and (full or "beyond" in comment(source))):
            found.append(f"{name}: {TIMES} times either way, or why not beyond")
    return found


def at_end(notebook: Any, end: int) -> Any:
    """The notebook with each number of its setting at the low end, 0, or the high end, 1."""
    first = code_cells(notebook)[0]
    numbers, said = setting(notebook), ranges(first["source"])
    lines = first["source"].split("\n")
    for name in sorted(said, key=lambda name: -numbers[name].col_offset):
        node, i = numbers[name], numbers[name].lineno - 1
        value = type(node.value)(said[name][end])
        lines[i] = f"{lines[i][: node.col_offset]}{value!r}{lines[i][node.end_col_offset :]}"
    first["source"] = "\n".join(lines)
    return notebook


def copied(notebook: Any) -> Any:
    """A new notebook with the shown cells, one below the other."""
    new = nbformat.v4.new_notebook(metadata=notebooks.METADATA)
    new.cells = [nbformat.v4.new_code_cell(cell["source"]) for cell in shown(notebook)]
    return new


def read(stem: str) -> Any:
    return nbformat.read(CHAPTERS[stem], 4)


@pytest.mark.parametrize("stem", CHAPTERS)
def test_a_page_shows_what_a_reader_would_copy(stem):
    assert faults(read(stem)) == []


def missing_names(notebook: Any) -> list[str]:
    """The names that shown cells read, but neither they nor Python define, in whatever order."""
    # commands of IPython become calls of get_ipython()
    plain = TransformerManager().transform_cell
    tables = [symtable.symtable(plain(c["source"]), c["id"], "exec") for c in shown(notebook)]
    defined = {s.get_name() for top in tables for s in top.get_symbols() if s.is_assigned()}
    defined |= {s.get_name() for top in tables for s in top.get_symbols() if s.is_imported()}
    read = {
        symbol.get_name()
        for top in tables
        for table in inner_tables(top)
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (table is top or symbol.is_global())
    }
    return sorted(read - defined - {*dir(builtins), "get_ipython"})


def inner_tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from inner_tables(child)


@pytest.mark.parametrize("stem", CHAPTERS)
def test_every_name_that_a_shown_cell_reads_is_shown(stem):
    assert missing_names(read(stem)) == []


# Names are looked at above, and whole chapters are run by nbval. What only this run finds is a
# hidden cell that changes what a shown cell reads.
@pytest.mark.slow
@pytest.mark.parametrize("stem", CHAPTERS)
def test_the_shown_cells_run_one_after_the_other(stem, tmp_path):
    notebooks.execute(copied(read(stem)), tmp_path)


@pytest.mark.parametrize("stem", CHAPTERS)
def test_a_first_cell_says_how_far_its_numbers_may_be_changed(stem):
    assert faults_of_range(read(stem)) == []


@pytest.mark.slow
@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("stem", CHAPTERS)
def test_a_chapter_runs_at_both_ends_of_its_range(stem, end):
    assert raised(at_end(read(stem), end), CHAPTERS[stem].parent) == []


# Negative controls

FIRST = "import ibukit as ik\n\nEPSILON, SEED = 0.5, 7  # nats\n# runs for EPSILON from 0.025 to 10"


def toy(*cells: str | tuple[str, str]) -> Any:
    made = []
    for i, cell in enumerate(cells):
        source, tag = cell if isinstance(cell, tuple) else (cell, "")
        metadata = {"tags": [tag]} if tag else {}
        made.append(nbformat.v4.new_code_cell(source, id=f"toy-{i:02d}", metadata=metadata))
    return nbformat.v4.new_notebook(cells=made, metadata=copy.deepcopy(notebooks.METADATA))


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ([(FIRST, "hide-input")], "the first cell must be shown"),
        (["import numpy as np\nSEED = 1"], "must import ibukit"),
        ([FIRST.replace("SEED", "SAND")], "and set SEED"),
        ([FIRST, "x = 1\nassert x"], "asserts"),
        ([FIRST, "for x in ():\n    assert x"], "asserts"),
        ([FIRST, "claims.check(1)"], "claims serves the page"),
        ([f"import ibukit_claims\n{FIRST}"], "ibukit_claims serves the page"),
        ([FIRST, "import numpy"], "imports"),
    ],
)
def test_what_a_reader_cannot_copy_is_found(cells, says):
    assert [says in fault for fault in faults(toy(*cells))] == [True]


def test_what_is_folded_may_serve_the_page():
    assert faults(toy(FIRST, ("import numpy\nassert 1", "check"), ("glue", "remove-cell"))) == []


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("EPSILON, SEED = 0.5, 7", ["EPSILON: say for what values"]),
        ("EPSILON, SEED = 0.5, 7  # EPSILON from 0.1 to 10", ["EPSILON: 20 times"]),
        ("EPSILON, SEED = 0.5, 7  # EPSILON from 0.025 to 2", ["EPSILON: 20 times"]),
        ("EPSILON, SEED = 0.5, 7  # EPSILON from 0.025 to 2, beyond which it refuses", []),
        ("EPSILON, SEED = 0.5, 7  # EPSILON from 0.025 to 10", []),
    ],
)
def test_a_range_that_is_not_said_or_too_narrow_is_found(source, says):
    published = "claims.published((EPSILON, SEED) == (0.5, 7))"
    found = faults_of_range(toy(source, published))
    assert len(found) == len(says)
    assert all(a.startswith(b) for a, b in zip(found, says, strict=True))


@pytest.mark.parametrize(("end", "value"), [(0, "0.025"), (1, "10.0")])
def test_the_ends_of_a_range_are_put_into_the_first_cell(end, value):
    published = "claims.published((EPSILON, SEED) == (0.5, 7))"
    first = at_end(toy(FIRST, published), end).cells[0]
    assert first["source"] == FIRST.replace("0.5,", f"{value},")


def test_a_shown_cell_that_needs_a_hidden_one_does_not_run(tmp_path):
    hidden = toy(FIRST, ("helper = len", "remove-cell"), "helper([])")
    assert missing_names(hidden) == ["helper"]
    assert (
        missing_names(toy(FIRST, "helper = len", "def f(x):\n    return [helper(x), SEED]")) == []
    )
    with pytest.raises(notebooks.CellExecutionError, match="helper"):
        notebooks.execute(copied(hidden), tmp_path)
