"""The page of faults: each row names a test that exists and runs,
and each test of a fault has its row.
"""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "book" / "state.md").read_text("utf8")
NOT_FAULTS = {"the faults are there"}  # but that the tests' own tools do what they say
HEAD = "| fault | what happens | the test that provokes it |"


def rows(page: str) -> list[list[str]]:
    """The cells of the tables of faults."""
    tables = [table.partition("\n\n")[0] for table in page.split(HEAD + "\n")[1:]]
    lines = [
        line for table in tables for line in table.splitlines() if not line.startswith("| ---")
    ]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@cache
def written(file: str) -> dict[str, ast.FunctionDef]:
    """The tests of a file, by their names in words."""
    sources = [path.read_text("utf8") for path in TESTS.glob(f"*/{file}.py")]
    tree = ast.parse("".join(sources))
    tests = [
        each
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    ]
    return {each.name.removeprefix("test_").replace("_", " "): each for each in tests}


def runs(test: ast.FunctionDef) -> bool:
    """Whether `make test` runs it: it is not slow, and nothing expects it to fail."""
    marks = " ".join(ast.unparse(each) for each in test.decorator_list)
    return not re.search(r"mark\.(slow|skip|xfail)\b", marks)


def untried(page: str) -> list[str]:
    """The rows without a test."""
    named = [(row, *row[-1].partition(": ")[::2]) for row in rows(page)]
    return [
        row[0]
        for row, file, name in named
        if name not in written(file) or not runs(written(file)[name])
    ]


def test_each_row_has_a_test():
    assert len(rows(PAGE)) > 30
    assert all(len(row) == 3 and all(row) for row in rows(PAGE))
    assert untried(PAGE) == []


def test_no_row_is_there_twice_and_no_test_stands_for_two():
    assert [
        row for row, number in Counter(tuple(row) for row in rows(PAGE)).items() if number > 1
    ] == []
    assert [
        name for name, number in Counter(row[-1] for row in rows(PAGE)).items() if number > 1
    ] == []


def test_each_test_of_a_fault_has_a_row():
    said = {row[-1] for row in rows(PAGE)}
    assert [
        name for name in written("test_faults") if f"test_faults: {name}" not in said
    ] == sorted(NOT_FAULTS)


@pytest.mark.parametrize(
    "line",
    [
        "| an earthquake | It goes on. | test_faults: an earthquake |",
        "| an earthquake | It goes on. | test_earthquakes: a test |",
        "| an earthquake | It goes on. | |",
        "| an earthquake | It goes on. | test_threads: no test of that name |",
    ],
)
def test_a_row_without_a_test_is_found(line):
    assert untried(
        PAGE.replace(HEAD + "\n| --- | --- | --- |", HEAD + "\n| --- | --- | --- |\n" + line, 1)
    ) == ["an earthquake"]


@pytest.mark.parametrize("mark", ["slow", "skip(reason='x')", "xfail"])
def test_a_test_that_does_not_run_is_none(mark):
    (test,) = ast.parse(f"@pytest.mark.{mark}\ndef test_it(): ...").body
    assert not runs(test)
    test.decorator_list.clear()
    assert runs(test)
