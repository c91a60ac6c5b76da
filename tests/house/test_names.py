"""How constants are named: a limit is MAX_ or MIN_, whatever it bounds."""

import ast
import re

import pytest

from source_rules import OURS, faults

DIALECT = re.compile(r"_?(MOST|LEAST(?!_SQUARES)|FEWEST|LARGEST)(_|$)")


def constants(source):
    """The names in capitals that a module or a class assigns."""
    targets = []
    tree = ast.parse(source)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for node in [line for block in (tree, *classes) for line in block.body]:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign):
            targets.append(node.target)
    names = [
        part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
    ]
    return [name for name in names if name.isupper()]


def limits_in_dialect(source):
    """Constants that bound something and are called neither MAX_ nor MIN_."""
    return [name for name in constants(source) if DIALECT.match(name)]


def test_limits_are_called_max_and_min():
    assert faults(OURS, lambda name, source: limits_in_dialect(source)) == {}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("MAX = 3", ["MAX"]),
        ("MAX: int = 3\nMIN: int", ["MAX", "MIN"]),
        ("MAX, MIN = 3, 2", ["MAX", "MIN"]),
        ("class A:\n    LEVEL = 3\n    level = 3", ["LEVEL"]),
        ("most = Most = 3\ndef f():\n    MAX = 3", []),
    ],
)
def test_constants_are_read_from_the_source(source, names):
    assert constants(source) == names


@pytest.mark.parametrize(
    "name", ["MOST_ROWS", "LEAST_MASS", "FEWEST_REPORTS", "LARGEST", "_LARGEST_STEP"]
)
def test_a_limit_of_another_name_is_found(name):
    assert limits_in_dialect(f"{name} = 3") == [name]
    assert limits_in_dialect("MAX_ROWS, MIN_MASS, LEAST_SQUARES, ALMOST = 3, 2, 1, 0") == []
