"""A reader may change the setting of a chapter:
what was checked in the published one is then said, and raises nothing.

`make test` changes a quick chapter, `make slow` all of them, the seed and the rest of the setting
on their own.
"""

from __future__ import annotations

import ast
import copy
from pathlib import Path
from typing import Any

import nbformat
import pytest

import notebooks
from test_verdicts import parsed

CHAPTERS = {path.stem: path for path in notebooks.chapters()}
QUICK = ["start-here"]  # seconds of processor time; `make slow` has all
SWITCH = "claims.published"


def code_cells(notebook: Any) -> list[Any]:
    return [
        cell for cell in notebook.cells if cell["cell_type"] == "code" and cell["source"].strip()
    ]


def assigned(tree: ast.Module) -> dict[str, ast.Constant]:
    """The literals that are given names at the top of a cell, in tuples too."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = zip(target.elts, value.elts, strict=True) if both else [(target, value)]
            found |= {
                name.id: of
                for name, of in pairs
                if isinstance(name, ast.Name) and isinstance(of, ast.Constant)
            }
    return found


def switches(tree: ast.AST) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == SWITCH
    ]


def setting(notebook: Any) -> dict[str, ast.Constant]:
    """The names and numbers of the first cell that the second says are the published setting;
    ValueError where it does not say so.
    """
    first, second = (ast.parse(cell["source"]) for cell in code_cells(notebook)[:2])
    given, calls = assigned(first), switches(second)
    try:
        [[compared]] = [call.args for call in calls]
        names, numbers = [node.id for node in compared.left.elts], compared.comparators[0].elts
        published = {name: given[name] for name in names}
        same = [of.value for of in published.values()] == [of.value for of in numbers]
    except (ValueError, AttributeError, KeyError, IndexError) as error:
        raise ValueError(
            f"must call {SWITCH}((NAME, SEED) == (number, seed)) once, on literals of cell 1"
        ) from error
    if not same or "SEED" not in published or len(published) < 2:
        raise ValueError(
            f"{ast.unparse(compared)} must name a seed and another number, and hold as it stands"
        )
    return published


def faults(notebook: Any) -> list[str]:
    """What of a chapter could end in a bare AssertionError."""
    first, second, *rest = code_cells(notebook)
    found = []
    try:
        setting(notebook)
    except ValueError as error:
        found.append(f"{second['id']}: {error}")
    found += [
        f"{cell['id']}: asserts up to the cell of the switch, which acts from the next one on"
        for cell in (first, second)
        if any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(cell["source"])))
    ]
    for cell in (first, *rest):
        tree = parsed(cell["source"])
        if switches(tree):
            found.append(f"{cell['id']}: calls {SWITCH}, as the second cell does")
        for node in ast.walk(tree):
            bare = isinstance(node, ast.Raise) and ast.unparse(node.exc or tree) in (
                "AssertionError",
                "AssertionError()",
            )
            if bare:
                found.append(f"{cell['id']}: raises an AssertionError that says nothing")
    return found


def changed(notebook: Any, *parts: str) -> Any:
    """The notebook with "seed" another one, or "rest" (epsilon,
    or what is like it) twice what it is.
    """
    [first, *_] = code_cells(notebook)
    lines = first["source"].split("\n")
    numbers = {
        name: of for name, of in setting(notebook).items() if name != "ROUNDS"
    }  # twice as long, no more
    chosen = [name for name in numbers if ("seed" if name == "SEED" else "rest") in parts]
    for name in sorted(chosen, key=lambda name: -numbers[name].col_offset):
        node, i = numbers[name], numbers[name].lineno - 1
        other = node.value + 1 if name == "SEED" else 2 * node.value
        lines[i] = f"{lines[i][: node.col_offset]}{other!r}{lines[i][node.end_col_offset :]}"
    first["source"] = "\n".join(lines)
    return notebook


def errors_of(cells: list[Any]) -> list[str]:
    """What cells that have been run have raised, and where."""
    errors = [
        (cell["id"], out)
        for cell in cells
        for out in cell["outputs"]
        if out["output_type"] == "error"
    ]
    return [f"{where}: {error['ename']}: {error['evalue']}" for where, error in errors]


def raised(notebook: Any, folder: Path) -> list[str]:
    """The cells that raise when the notebook is run to its end."""
    return errors_of(code_cells(notebooks.execute(notebook, folder, allow_errors=True)))


def read(stem: str) -> Any:
    return nbformat.read(CHAPTERS[stem], 4)


IN_CHAPTERS = [stem for stem, path in CHAPTERS.items() if path.parent.name == "chapters"]


@pytest.mark.parametrize("stem", IN_CHAPTERS)
def test_a_chapter_says_what_its_published_setting_is(stem):
    assert faults(read(stem)) == []


@pytest.mark.parametrize("stem", sorted(set(CHAPTERS) - set(IN_CHAPTERS)))
def test_other_pages_assert_nothing(stem):
    for cell in code_cells(read(stem)):
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(parsed(cell["source"]))), (
            cell["id"]
        )


@pytest.mark.parametrize("stem", QUICK)
def test_a_changed_chapter_runs_to_its_end(stem):
    assert raised(changed(read(stem), "seed", "rest"), CHAPTERS[stem].parent) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", ["seed", "rest"])
@pytest.mark.parametrize("stem", IN_CHAPTERS)
def test_each_part_of_a_setting_may_be_changed(stem, part):
    assert raised(changed(read(stem), part), CHAPTERS[stem].parent) == []


# Negative controls

FIRST = "EPSILON, SEED = 0.05, 7"
SECOND = "import ibukit_claims as claims\n\nclaims.published((EPSILON, SEED) == (0.05, 7))"
CHECK = "x = EPSILON\nassert x == 0.05, 'a reason'\nassert x < 0.06\nprint('went on')"


def toy(*sources: str) -> Any:
    cells = [
        nbformat.v4.new_code_cell(source, id=f"toy-{i:02d}") for i, source in enumerate(sources)
    ]
    return nbformat.v4.new_notebook(cells=cells, metadata=notebooks.METADATA)


@pytest.mark.parametrize(
    ("sources", "says"),
    [
        ([FIRST, "EPSILON", CHECK], "must call claims.published"),
        (
            [FIRST, SECOND.replace("== (0.05, 7)", "== (0.06, 7)"), CHECK],
            "must name a seed and another number, and hold",
        ),
        (
            ["SEED = 7", "claims.published((SEED,) == (7,))", CHECK],
            "must name a seed and another number, and hold",
        ),
        ([FIRST.replace("7", "f(7)"), SECOND, CHECK], "must call claims.published"),
        ([FIRST, f"{SECOND}\nassert EPSILON < 1"], "asserts up to the cell of the switch"),
        ([FIRST, SECOND, "claims.published(True)", CHECK], "calls claims.published, as the second"),
        (
            [FIRST, SECOND, "if EPSILON > 0.05:\n    raise AssertionError"],
            "raises an AssertionError that says nothing",
        ),
    ],
)
def test_a_chapter_that_could_stop_is_found(sources, says):
    assert [says in fault for fault in faults(toy(*sources))] == [True]


def test_a_chapter_with_the_switch_passes():
    assert faults(toy(FIRST, SECOND, CHECK, "raise AssertionError('this must be refused')")) == []


IN_A_FUNCTION = "def f(y):\n    for _ in range(3):\n        assert y[9] == 1\nf([0])"


def without_the_switch() -> Any:
    return toy(FIRST.replace("0.05", "0.1"), CHECK)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The cells of each toy, run one toy after the other:
    they share a kernel, whose start is what takes the time.
    """
    fixed = toy(FIRST, SECOND, CHECK, "[1, 2][int(20 * EPSILON)]")
    toys = {
        "broken": without_the_switch(),  # first, as no switch has been called before it
        "fixed": fixed,
        "changed": changed(copy.deepcopy(fixed), "rest"),
        "said": changed(toy(FIRST, SECOND, CHECK, IN_A_FUNCTION), "rest"),
        "wrong": toy(
            FIRST, SECOND, "assert EPSILON > 1", "claims.published(False)", "assert EPSILON > 1"
        ),
    }
    cells = {name: code_cells(each) for name, each in toys.items()}
    for name, each in cells.items():
        for cell in each:
            cell["id"] = cell["id"].replace("toy", name)
    together = nbformat.v4.new_notebook(cells=[cell for each in cells.values() for cell in each])
    together["metadata"] = notebooks.METADATA
    notebooks.execute(together, tmp_path_factory.mktemp("toys"), allow_errors=True)
    return cells


def test_a_bare_assert_and_a_fixed_position_are_caught_when_they_run(ran):
    with pytest.raises(ValueError, match=r"must call claims\.published"):
        changed(without_the_switch(), "rest")
    assert errors_of(ran["broken"]) == ["broken-01: AssertionError: a reason"]
    assert errors_of(ran["fixed"]) == []
    assert errors_of(ran["changed"]) == ["changed-03: IndexError: list index out of range"]


def test_the_switch_in_a_notebook(ran):
    assert errors_of(ran["said"]) == []
    said = [cell["outputs"][0]["text"].splitlines() for cell in ran["said"][1:]]
    assert said == [
        ["This is not the published setting: a check that fails is printed and stops nothing."],
        [
            "Does not hold in this setting: x == 0.05",
            "Does not hold in this setting: x < 0.06",
            "went on",
        ],
        ["Does not hold in this setting: y[9] == 1 (IndexError: list index out of range)"],
    ]
    [error] = errors_of(ran["wrong"])
    assert error.startswith(
        "wrong-02: AssertionError: EPSILON > 1 does not hold; if you changed the setting, call"
    )
