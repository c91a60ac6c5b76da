"""The shape of the house: who may import whom, what is light, what is random, what is documented.

Each rule is a function from source text to findings, so that each can be seen to find what it is
there for.
"""

import ast
import inspect
import os
import re
import subprocess
import sys
from functools import cache, cached_property

import pytest
from numpydoc.validate import validate

import ibukit
from source_rules import (
    LAYERS,
    OURS,
    PACKAGE,
    ROOMS_WITH_A_VIEW,
    ROOT,
    SOURCES,
    UPWARD,
    code_lines,
    faults,
    imports,
    layer_of,
    name_of,
    nodes,
    nodes_of_these_tests,  # noqa: F401 - a fixture
    public_objects,
)

HEAVY = {
    "geopandas",
    "matplotlib",
    "ot",
    "pandas",
    "shapely",
    "pyproj",
    "pooch",
    "joblib",
    "arviz_stats",
    "xarray",
    "sklearn",
}
HEAVY |= {"narwhals", "duckdb", "polars", "pyarrow", "dask", "distributed"}
# each repetition has a generator of its own, made from the seed handed in; FIXED are the same signs
# or walks each time
SEEDED = (
    "ibukit.evaluation.replicate",
    "ibukit.design.privic.privic",
    "ibukit.testing",
    "ibukit.intervals.resampling",
)
FIXED = (
    "ibukit.estimators._plane_evidence",
    "ibukit.design.optimal.heuristic_paths",
    "ibukit.design.optimal.grids.hill_climbing",
)
SEEDED = dict.fromkeys(SEEDED, ("PCG64", "SeedSequence")) | dict.fromkeys(FIXED, ("PCG64",))
# lines of code, without docstrings, comments and blank lines; a file of tests is one list of cases
MAX_LINES, MAX_LINES_OF_ONE_CLASS = 300, 450


def wrong_way(module, source):
    """Imports of ibukit that do not point upstream."""
    here = layer_of(module)
    allowed = [*LAYERS, here] if here in ROOMS_WITH_A_VIEW else LAYERS[: LAYERS.index(here) + 1]
    allowed += ["cli"] if here == "__main__" else []  # which is `python -m ibukit`
    ours = [name for name in imports(source) if name.split(".")[0] in ("", "?", "ibukit")]
    return [
        name
        for name in ours
        if (here, name) != UPWARD and (name.startswith(".") or layer_of(name) not in allowed)
    ]


def test_imports_point_upstream():
    below = [path for path in SOURCES if path != PACKAGE / "__init__.py"]
    new = {layer_of(name_of(path)) for path in below} - {*LAYERS, *ROOMS_WITH_A_VIEW}
    assert new == set(), "a new module needs a place in the order"
    assert faults(below, wrong_way) == {}


def test_no_public_name_comes_from_a_room_that_may_import_anything():
    stub = nodes(PACKAGE.joinpath("__init__.pyi").read_text("utf8"))
    lines = [node for node in stub if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: node.module or alias.name for node in lines for alias in node.names}
    assert {*ibukit.__all__} <= homes.keys()
    shown = {homes[name].partition(".")[0] for name in ibukit.__all__}
    assert not shown & {*ROOMS_WITH_A_VIEW, "plotting"}


def test_every_file_is_looked_at_and_named_with_its_fault():
    assert len(SOURCES) > 250
    assert len(faults(SOURCES, lambda name, source: name.split(".")[0] == "ibukit")) == len(SOURCES)
    assert faults(SOURCES, lambda name, source: "class Grid(" in source) == {
        "ibukit.domain.grid": True
    }


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ibukit.tally.tally", "from ibukit.mechanisms import base"),
        ("ibukit.mechanisms.base", "def f():\n    import ibukit.estimators.iterative_update"),
        ("ibukit.estimators.iterative_update", "from ibukit import theory"),
        ("ibukit.evaluation.losses", "import ibukit"),
        ("ibukit.domain.alphabet", "from . import tally"),
        ("ibukit.domain.alphabet", "from .. import tally"),
        ("ibukit.estimate.result", "from ibukit.testing import check_tally"),
        ("ibukit.estimate.result", 'import_module("ibukit.estimators").mle'),
        ("ibukit.estimate.result", 'importlib.import_module(".estimators", "ibukit")'),
        ("ibukit.estimate.result", "__import__('ibukit.estimators.mle')"),
        ("ibukit.estimate.result", 'ROOM = "ibukit.estimators"\nload(ROOM)'),
        ("ibukit.estimate.result", 'sys.modules["ibukit.theory"]'),
        ("ibukit.estimate.result", 'import_module(f"ibukit.estimators.{name}")'),
        ("ibukit.estimate.result", 'import_module(f"ibukit.{room}")'),
        ("ibukit.estimate.result", "import_module(room)"),
        ("ibukit.estimate.result", 'import_module("ibukit." + room)'),
        ("ibukit.estimate.result", "import_module(f'{package}.estimators')"),
        ("ibukit.estimate.result", 'exec("from ibukit import mle")'),
        ("ibukit.files.tallies", "from ibukit import tally"),
        ("ibukit.files.tallies", 'import_module(f"ibukit.{name}")'),
        ("ibukit.tally.tally", 'import_module("ibukit")'),
    ],
)
def test_an_import_downstream_is_found(module, source):
    assert len(wrong_way(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ibukit.scale.tally", 'import_module("ibukit.channels.partitioned")'),
        ("ibukit.cli.main", 'import_module(f"ibukit.cli.{name}")'),
        ("ibukit.estimate.result", '"""See ibukit.estimators."""'),
        ("ibukit.estimate.result", 'import_module("arviz_stats")'),
        ("ibukit.files.mechanisms", "import ibukit"),
        ("ibukit.files.estimates", 'import_module("ibukit")'),
    ],
)
def test_an_import_upstream_is_none(module, source):
    assert wrong_way(module, source) == []


def test_what_type_checkers_alone_read_counts():
    source = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
        "    from ibukit.estimate import Estimate\n"
    )
    assert wrong_way("ibukit.errors", source) == ["ibukit.estimate"]


def strings(source):
    """String constants outside docstrings."""
    tree = nodes(source)
    prose = {
        id(node.value)
        for node in tree
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    constants = [node for node in tree if isinstance(node, ast.Constant) and id(node) not in prose]
    return [node.value for node in constants if isinstance(node.value, str)]


def of_the_book(source):
    return [text for text in strings(source) if re.search(r"\bbook\b|\.ipynb", text)]


def test_no_module_reads_the_book():
    assert faults(SOURCES, lambda name, source: of_the_book(source)) == {}


@pytest.mark.parametrize(
    "source", ['open(root / "book" / "claims.md")', 'f"{root}/book/x"', 'g(path="a.ipynb")']
)
def test_reading_the_book_is_found(source):
    assert of_the_book(f'"""The book may be named in prose."""\n{source}') != []


def global_randomness(source, seeded=()):
    """Anything random but a Generator that was handed in;
    `seeded` may be called with an argument to make one.
    """
    findings = [
        name for name in imports(source) if name.split(".")[0] in ("random", "secrets", "uuid")
    ]
    given = [call.func for call in nodes(source) if isinstance(call, ast.Call) and call.args]
    for node in nodes(source):
        of_random = isinstance(node, ast.Attribute) and getattr(node.value, "attr", "") == "random"
        if of_random and ast.unparse(node.value) in ("np.random", "numpy.random"):
            allowed = node.attr == "Generator" or (node.attr in seeded and node in given)
            findings += [] if allowed else [ast.unparse(node)]
        elif isinstance(node, ast.ImportFrom) and node.module == "numpy.random":
            findings += [alias.name for alias in node.names if alias.name != "Generator"]
    return findings


def test_randomness_comes_from_outside():
    assert (
        faults(SOURCES, lambda name, source: global_randomness(source, SEEDED.get(name, ()))) == {}
    )


@pytest.mark.parametrize(
    "source",
    [
        "np.random.seed(1)",
        "x = numpy.random.rand(3)",
        "rng = np.random.default_rng()",
        "from numpy.random import default_rng",
        "import random",
    ],
)
def test_global_randomness_is_found(source):
    assert global_randomness(source) != []
    assert global_randomness(source, ("PCG64", "SeedSequence")) != []


@pytest.mark.parametrize("call", ["PCG64()", "SeedSequence(spawn_key=(1,))", "PCG64"])
def test_a_generator_without_a_seed_is_found(call):
    assert global_randomness(f"f(np.random.{call})", ("PCG64", "SeedSequence")) != []
    assert (
        global_randomness("np.random.PCG64(np.random.SeedSequence(1))", ("PCG64", "SeedSequence"))
        == []
    )


DECORATOR = "from ibukit._ground.numba_cache import njit\n"


def uncached_kernels(source):
    """Uses of njit or jit that are not the decorator of ours, which decides about caching."""
    compiled = {"njit", "jit", "vectorize", "guvectorize"}
    used = [
        node
        for node in nodes(source)
        if (isinstance(node, ast.Name) and node.id in compiled)
        or (
            isinstance(node, ast.Attribute)
            and node.attr in compiled
            and ast.unparse(node.value) in ("numba", "nb")
        )
    ]
    ours = DECORATOR in source
    cached = [
        call.func
        for node in nodes(source)
        if isinstance(node, ast.FunctionDef)
        for call in node.decorator_list
        if ours and isinstance(call, ast.Call) and not any(w.arg == "cache" for w in call.keywords)
    ]
    return [ast.unparse(node) for node in used if node not in cached]


def test_compiled_kernels_are_cached_and_stand_in_files_of_their_own():
    there = [path for path in SOURCES if path.name != "numba_cache.py"]
    assert faults(there, lambda name, source: uncached_kernels(source)) == {}
    others = [path for path in SOURCES if not re.fullmatch(r"_\w*kernels\.py", path.name)]
    of_numba = faults(
        others,
        lambda name, source: [one for one in imports(source) if one.split(".")[0] == "numba"],
    )
    assert 200 < len(others) < len(SOURCES)
    assert [*of_numba] == ["ibukit._ground.numba_cache"]


@pytest.mark.parametrize(
    "source",
    [
        "@njit\ndef f(x): ...",
        "@numba.njit(fastmath=True)\ndef f(x): ...",
        "@njit()\ndef f(x): ...",
        DECORATOR + "@njit(cache=False)\ndef f(x): ...",
        DECORATOR + "@njit\ndef f(x): ...",
        DECORATOR + "g = njit(f)",
    ],
)
def test_an_uncached_kernel_is_found(source):
    assert uncached_kernels(source) != []
    assert uncached_kernels(DECORATOR + "@njit()\ndef f(x): ...") == []


def is_of_one_public_class(source):
    """Whether a file has one public class at its top, to which all else in it belongs."""
    tops = ast.parse(source).body
    classes = [node.name for node in tops if isinstance(node, ast.ClassDef)]
    return sum(not name.startswith("_") for name in classes) == 1


def too_long(module, source):
    """The number of lines of code, where it is beyond the limit of the file."""
    roomy = module.startswith("tests.") or is_of_one_public_class(source)
    most = MAX_LINES_OF_ONE_CLASS if roomy else MAX_LINES
    lines = code_lines(source) if source.count("\n") >= most else 0
    return lines if lines > most else None


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


def test_no_file_is_long():
    assert len(OURS) > 500
    assert faults(OURS, too_long) == {}


CODE = "x = 1\n"
PROSE = '"""Of\n\nmany lines."""\n# said twice\n\n'


def test_a_long_file_is_found_whatever_its_prose():
    assert too_long("ibukit.m", PROSE * 300 + CODE * MAX_LINES) is None
    assert too_long("ibukit.m", CODE * (MAX_LINES + 1)) == MAX_LINES + 1
    text = f"x = '''{CODE * MAX_LINES}'''"
    assert too_long("ibukit.m", text) == MAX_LINES + 1, "text that is not a docstring is code"


def test_a_file_of_one_public_class_may_be_longer():
    body = CODE * (MAX_LINES_OF_ONE_CLASS - 1)
    one, two = "class A: ...\n", "class B: ...\n"
    assert too_long("ibukit.m", one + body) is None
    assert too_long("ibukit.m", one + "class _B: ...\n" + body[:-6]) is None
    assert too_long("ibukit.m", one + two + body[:-6]) == MAX_LINES_OF_ONE_CLASS
    assert too_long("ibukit.m", one + body + CODE) == MAX_LINES_OF_ONE_CLASS + 1
    assert too_long("tests.m", body) is None


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests" / "oracles").rglob("*.py")), ids=lambda path: path.name
)
def test_the_oracle_stands_on_its_own(path):
    assert [
        name for name in imports(path.read_text("utf8")) if name.split(".")[0] == "ibukit"
    ] == []


@cache
def loaded_after(statement):
    code = f"import sys; {statement}; print(*sys.modules)"
    quiet = os.environ | {"IBUKIT_ROUNDING_NOISE": ""}  # noise would load all of the package
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=quiet,
    )
    return set(run.stdout.split())


def test_importing_the_package_loads_nothing_and_its_names_nothing_heavy():
    assert loaded_after("import ibukit") & (HEAVY | {"numpy", "scipy", "numba"}) == set()
    assert loaded_after("from ibukit import *") & HEAVY == set()
    assert loaded_after("from ibukit import *") >= {"numpy", "scipy"}, (
        "the test must see what is loaded"
    )
    # Loops load it when they are called.
    assert "numba" not in loaded_after("from ibukit import *")
    assert "matplotlib" in loaded_after("import ibukit, ibukit.plotting")


@pytest.mark.parametrize("name", ["scipy.stats", "scipy.integrate", "scipy.interpolate"])
def test_no_public_name_loads_a_slow_part_of_scipy(name):
    assert name not in loaded_after("from ibukit import *")
    assert name in loaded_after("import scipy.stats, scipy.integrate, scipy.interpolate"), (
        "the test must see it"
    )


PUBLIC = public_objects()
# errors are one sentence, except the one that carries something
ERRORS = [
    name
    for name, thing in PUBLIC.items()
    if inspect.isclass(thing) and issubclass(thing, Exception)
]
SENTENCES = [name for name in ERRORS if "__init__" not in vars(PUBLIC[name])]
# read, not made by the reader: they document attributes, not parameters
READ = [
    "ibukit.Estimate",
    "ibukit.Posterior",
    "ibukit.RateDistortion",
    "ibukit.Status",
    "ibukit.ConvergenceError",
]
READ += [
    "ibukit.Unfolded",
    "ibukit.OptimalDesign",
    "ibukit.datasets.Dataset",
    "ibukit.errors.ConvergenceError",
]
READ += ["ibukit.design.OptimalDesign", "ibukit.design.RateDistortion"]
OF_THEORY = [
    "Answer",
    "BayesLimits",
    "BinaryResponseMse",
    "Concavity",
    "Condition",
    "Consistency",
    "FixedPoint",
]
OF_THEORY += ["Identifiability", "LdpBounds", "MleSet"]
READ += [f"ibukit.theory.{name}" for name in OF_THEORY]
READ += ["ibukit.planning.Plan", "ibukit.planning.Plans", "ibukit.planning.PowerPlan"]
READ += ["ibukit.privacy.Audit"]
READ += [
    "ibukit.attack.Detection",
    "ibukit.attack.RobustEstimate",
    "ibukit.channels.Score",
    "ibukit.solvers.Maximum",
]
# what claims.show returns: seen in its example
SHOWN = ["ibukit_claims.Comparison"]
# no docstring; sections in a wrong order; parameters missing, unknown or in a wrong order; no
# example
CODES = {"GL06", "GL07", "GL08", "PR01", "PR02", "PR03", "PR08", "EX01"}


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - {*SENTENCES, *SHOWN}))
def test_public_things_are_documented_with_an_example(name):
    codes = CODES - {"PR01"} if name in READ else CODES
    assert [finding for finding in validate(name)["errors"] if finding[0] in codes] == []
    assert ">>> " in PUBLIC[name].__doc__


def test_what_has_no_example_has_a_sentence():
    assert [
        name for name in SENTENCES + SHOWN if not inspect.getdoc(PUBLIC[name]).endswith(".")
    ] == []


def public_methods(kind):
    """Functions and properties of a class that a reader sees, by name, but not those of Python."""
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if getattr(member, "__module__", None) == "collections.abc":
            continue
        wrapped = (property, cached_property, classmethod, staticmethod)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, wrapped)):
            yield name, getattr(kind, name, member)


def first_line_errors(thing):
    """Docstrings of a public thing and
    of its methods whose first line is too long or is no sentence.
    """
    members = dict(public_methods(thing)) if inspect.isclass(thing) else {}
    return [
        f"{name}: {first!r} has {len(first)} characters"
        for name, member in {thing.__name__: thing, **members}.items()
        if (first := (inspect.getdoc(member) or "").partition("\n")[0])[-1:] != "."
        or len(first) > 80
    ]


def test_docstrings_begin_with_a_short_sentence():
    assert {
        name: errors for name, thing in PUBLIC.items() if (errors := first_line_errors(thing))
    } == {}


def test_a_long_first_line_is_found():
    class Wordy:
        """Short enough."""

        def long(self):
            """A sentence that says what it returns, how it is computed,
            and why, all on one line.
            """

        @cached_property
        def open(self):
            """A sentence that goes on

            below.
            """

        def none(self): ...
        def good(self):
            """One line of 80 characters is as long as a first line of a docstring may be."""

    assert [line.partition(":")[0] for line in first_line_errors(Wordy)] == ["long", "none", "open"]
    assert first_line_errors(Wordy.good) == []


def test_no_docstring_says_how_a_formula_came_to_us():
    words = "Status: |copy at hand|our text|converted text"
    assert faults(SOURCES, lambda name, source: re.findall(words, source)) == {}
