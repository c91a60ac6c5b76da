"""A constant of one name has one value throughout the package: its name says what it bounds."""

import ast
from collections import defaultdict
from importlib import import_module
from typing import ParamSpec, TypeVar

import pytest

from source_rules import SOURCES, name_of

# each interior point has its settings, one try after the other, under the name that all three give
# them
OF_EACH_SOLVER = {"TRIES"}


def constants(source):
    """The names in capitals that a module assigns at its top."""
    targets = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets.append(node.target)
    names = [
        part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
    ]
    return [name for name in names if name.isupper()]


def ambiguous(values):
    """Names with more than one value, from (name, module, value)."""
    homes = defaultdict(list)
    for name, module, value in values:
        if all(value != other or type(value) is not type(other) for _, other in homes[name]):
            homes[name].append((module, value))
    return {name: [module for module, _ in each] for name, each in homes.items() if len(each) > 1}


def values_of(modules):
    for module, source in modules.items():
        for name in constants(source):
            value = getattr(import_module(module), name)
            if not isinstance(value, (ParamSpec, TypeVar)):  # which stand for any type
                yield name, module, value


def test_no_constant_has_two_values():
    found = ambiguous(values_of({name_of(path): path.read_text("utf8") for path in SOURCES}))
    assert {name: modules for name, modules in found.items() if name not in OF_EACH_SOLVER} == {}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("MOST = 3", ["MOST"]),
        ("MOST: int = 3\nLEAST: int", ["MOST"]),
        ("MOST, LEAST = 3, 2", ["MOST", "LEAST"]),
        ("most = Most = 3\ndef f():\n    MOST = 3", []),
    ],
)
def test_constants_are_read_from_the_source(source, names):
    assert constants(source) == names


def test_a_constant_of_two_values_is_found():
    once = [("MOST", "a", 5000), ("MOST", "b", 5000), ("LEAST", "a", 1e-9)]
    assert ambiguous(once) == {}
    assert ambiguous([*once, ("MOST", "c", 12)]) == {"MOST": ["a", "c"]}
    assert ambiguous([*once, ("LEAST", "c", (1e-9,))]) == {"LEAST": ["a", "c"]}
