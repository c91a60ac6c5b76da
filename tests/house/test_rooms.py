"""Rules between rooms: no private names, no types of channels, no circles, no crowd."""

import ast
from collections import Counter
from graphlib import CycleError, TopologicalSorter

import pytest

from ibukit import channels
from source_rules import (  # noqa: F401
    PACKAGE,
    SOURCES,
    UPWARD,
    faults,
    imports_by_string,
    layer_of,
    name_of,
    nodes,
    nodes_of_these_tests,
)

MAX_FILES = 20
# the room that every room uses, and nobody outside the package
SHARED = "ibukit._ground"
KINDS = {name for name in vars(channels) if name.endswith("Channel")}
# these know what a channel is made of
KNOWING = ("channels", "solvers")
MAX_CHECKS = 3.0  # isinstance per thousand lines, checks of arguments not counted


def imported(source):
    """(module, name) for each name that a source imports from ibukit."""
    found = (node for node in nodes(source) if isinstance(node, ast.ImportFrom))
    return [
        (node.module, alias.name)
        for node in found
        if (node.module or "").startswith("ibukit")
        for alias in node.names
    ]


def private_from_other_rooms(module, source):
    """What begins with an underscore and belongs to another room."""
    return [
        f"{where}.{name}"
        for where, name in imported(source)
        if any(part.startswith("_") for part in f"{where}.{name}".removeprefix(SHARED).split("."))
        and layer_of(where) != layer_of(module)
    ]


def test_no_private_name_crosses_rooms():
    assert faults(SOURCES, private_from_other_rooms) == {}


@pytest.mark.parametrize(
    "source",
    [
        "from ibukit.solvers._normal_equations import Dense",
        "from ibukit.solvers import _normal_equations",
    ],
)
def test_a_private_name_from_another_room_is_found(source):
    assert len(private_from_other_rooms("ibukit.attack.detection", source)) == 1
    assert private_from_other_rooms("ibukit.solvers.pooled", source) == []
    shared = "from ibukit._ground.arguments import frozen"
    assert private_from_other_rooms("ibukit.attack.detection", shared) == []
    hidden = "from ibukit._ground.arguments import _frozen"
    assert len(private_from_other_rooms("ibukit.attack.detection", hidden)) == 1


def taken_from_evaluation(source):
    """What design may not lean on:
    it chooses a mechanism, and how that is measured later is not its business.
    """
    return [
        f"{where}.{name}"
        for where, name in imported(source)
        if "evaluation" in f"{where}.{name}".split(".")
    ]


def test_design_takes_nothing_from_evaluation():
    design = sorted((PACKAGE / "design").rglob("*.py"))
    assert len(design) > 8
    assert faults(design, lambda name, source: taken_from_evaluation(source)) == {}


@pytest.mark.parametrize(
    "source",
    [
        "from ibukit.evaluation.replicate import Population",
        "def f():\n    from ibukit.evaluation import emd",
    ],
)
def test_what_is_taken_from_evaluation_is_found(source):
    assert len(taken_from_evaluation(source)) == 1
    assert taken_from_evaluation("from ibukit.domain.distributions import Population") == []


def asks_for_a_channels_type(source):
    """isinstance of a kind of channel, and comparisons of types with one."""
    found = []
    for node in nodes(source):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            "isinstance",
            "issubclass",
        ):
            asked = node.args[1]
        elif (
            isinstance(node, ast.Compare)
            and isinstance(node.left, ast.Call)
            and ast.unparse(node).startswith("type(")
        ):
            asked = node
        elif isinstance(node, ast.MatchClass):
            asked = node.cls
        else:
            continue
        names = {
            ast.unparse(part)
            for part in ast.walk(asked)
            if isinstance(part, (ast.Name, ast.Attribute))
        }
        found += sorted(KINDS & {name.rpartition(".")[2] for name in names})
    return found


def test_nobody_but_channels_and_solvers_asks_for_a_channels_type():
    others = [path for path in SOURCES if layer_of(name_of(path)) not in KNOWING]
    assert 150 < len(others) < len(SOURCES)
    assert faults(others, lambda name, source: asks_for_a_channels_type(source)) == {}


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(part.channel, LineChannel)",
        "isinstance(x, (int, channels.BitChannel))",
        "type(operator) is not DenseChannel",
        "match channel:\n    case ResponseChannel():\n        pass",
    ],
)
def test_asking_for_a_channels_type_is_found(source):
    assert len(asks_for_a_channels_type(source)) == 1


def graph(sources):
    """Each module with the modules of ours that it imports: lazily, for types and by strings, too.

    A package is its __init__, where a name of it is wanted; "ibukit.cli.*" is all that is in it.
    """
    wanted = {}
    for module, source in sources.items():
        names = {alias.name for node in nodes(source) for alias in imported_whole(node)}
        names |= {*imports_by_string(source)} | {f"{at}.{name}" for at, name in imported(source)}
        found = {other for name in names for other in meant(name, sources)}
        wanted[module] = {other for other in found if (layer_of(module), other) != UPWARD}
        wanted[module].discard(module)
    return wanted


def imported_whole(node):
    """The names of `import a, b`."""
    return node.names if isinstance(node, ast.Import) else []


def meant(name, sources):
    """The modules that a name stands for: itself, the module that it is of, or all in a package."""
    if name.endswith(".*"):
        return {other for other in sources if f"{other}.".startswith(name[:-1])}
    return {name, name.rpartition(".")[0]} & {*sources} if name not in sources else {name}


def circle(sources):
    try:
        TopologicalSorter(graph(sources)).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def all_sources():
    """The package; what type checkers read of the front counts as imported by it."""
    sources = {name_of(path): path.read_text("utf8") for path in SOURCES}
    stub = PACKAGE.joinpath("__init__.pyi").read_text("utf8")
    for begin in ("from .", "from ibukit. "):
        stub = stub.replace(f"{begin} import", "from ibukit import")
    return sources | {"ibukit": sources["ibukit"] + stub.replace("from .", "from ibukit.")}


def test_no_import_goes_round_in_a_circle():
    sources = all_sources()
    assert len(graph(sources)["ibukit"]) > 20, "the front imports what it shows"
    assert circle(sources) == []


@pytest.mark.parametrize(
    "hidden",
    [
        "from ibukit.a import f",
        "import ibukit.a",
        "def g():\n    from ibukit.a import f",
        "def g():\n    import ibukit.a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ibukit.a import f",
        'import_module("ibukit.a").f',
        'def g():\n    return importlib.import_module(f"ibukit.{room}")',
        "__import__('ibukit.a')",
        'HOME = "ibukit.a"',
    ],
)
def test_a_circle_is_found(hidden):
    sources = {
        "ibukit.a": "from ibukit import b",
        "ibukit.b": "from ibukit.c import h",
        "ibukit.c": hidden,
    }
    assert len(circle(sources)) >= 3


def test_the_one_arrow_upwards_is_no_circle():
    low = "ibukit.files.a"
    sources = {low: "import ibukit", "ibukit": f"from {low} import load"}
    assert circle(sources) == []
    assert circle({"ibukit.a": "import ibukit", "ibukit": "from ibukit.a import load"}) != []


def crowded(paths):
    files = Counter(path.parent for path in paths)
    return [folder.name for folder, many in files.items() if many > MAX_FILES]


def test_no_folder_is_crowded():
    assert crowded(SOURCES) == []
    assert crowded([PACKAGE / f"{i}.py" for i in range(MAX_FILES + 1)]) == ["ibukit"]


def checks_of_types(source):
    """isinstance where it decides what to do:
    not in an argument's check, whose branch raises or makes the argument.
    """
    guards = set()
    for node in nodes(source):
        body = node.body if isinstance(node, ast.If) else []
        raises = isinstance(node, ast.If) and any(isinstance(line, ast.Raise) for line in body)
        if raises or isinstance(node, (ast.Assert, ast.IfExp)):
            guards |= {id(part) for part in ast.walk(node.test)}
    calls = (
        node
        for node in nodes(source)
        if getattr(getattr(node, "func", None), "id", "") == "isinstance"
    )
    return sum(id(call) not in guards for call in calls)


def test_types_are_seldom_asked_for():
    # which library a table, a label or a matrix comes from is what these check
    names = (
        "_ground/arguments.py",
        "_ground/array_arguments.py",
        "domain/labels.py",
        "domain/places.py",
        "scale/_inputs.py",
        "domain/matrices.py",
        "mechanisms/matrix_entries.py",
    )
    checks = {*(PACKAGE / "tables").glob("*.py"), *(PACKAGE / name for name in names)}
    assert checks <= {*SOURCES}
    outside = [path for path in SOURCES if path not in checks]
    sources = [path.read_text("utf8") for path in outside]
    lines = sum(len(source.splitlines()) for source in sources)
    assert 1000 * sum(map(checks_of_types, sources)) / lines <= MAX_CHECKS


def test_a_check_that_decides_is_told_from_one_that_refuses():
    assert checks_of_types("if isinstance(x, int):\n    y = 1") == 1
    assert checks_of_types("if not isinstance(x, int):\n    raise TypeError") == 0
    assert checks_of_types("x = x if isinstance(x, A) else A(x)") == 0
