"""The shape of the house: who may import whom, what is light, what is random, what is documented.

Each rule is a function from source text to findings, so that each can be seen to find what it is there for.
"""

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from functools import cache, cached_property
from pathlib import Path

import pytest
from numpydoc.validate import validate

import ibukit

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((PACKAGE := ROOT / "ibukit").rglob("*.py"))

# upstream first: a module imports only from its own layer and the ones above
LAYERS = [
    "_front",
    "_deprecated",
    "errors",
    "_validate",
    "_threads",
    "_efficiency",
    "_workers",
    "alphabet",
    "_labels",
    "_places",
    "grid",
    "distributions",
    "datasets",
    "exact",
    "privacy",
    "channels",
    "_parts",
    "tables",
    "tally",
    "mechanisms",
    "protocols",
    "information",
    "solvers",
    "estimate",
    "estimators",
    "posterior",
    "intervals",
    "identification",
    "theory",
    "planning",
    "evaluation",
    "design",
    "attack",
    "scale",
    "claims",
]
# nothing imports these, and they may import anything
ROOMS_WITH_A_VIEW = ["plotting", "testing", "cli", "__main__"]
HEAVY = {"geopandas", "matplotlib", "ot", "pandas", "shapely", "pyproj", "pooch", "joblib", "arviz_stats"}
HEAVY |= {"narwhals", "duckdb", "polars", "pyarrow", "dask", "distributed"}
# each repetition or cycle has a generator of its own, made from the seed that was handed in
SEEDED = {f"ibukit.{room}" for room in ("evaluation.replicate", "design.privic", "testing", "intervals.resampling")}
SEEDED = dict.fromkeys(SEEDED, ("PCG64", "SeedSequence"))
MOST_LINES = 400


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def layer_of(module):
    """errors for ibukit.errors, estimators for ibukit.estimators.stopping, "" for the package itself."""
    return [*module.split("."), ""][1]


def imports(source):
    """Names of the modules that a source imports: at the top, in functions, for type checkers.

    `from ibukit import datasets` gives ibukit.datasets.
    """
    found, todo = [], [ast.parse(source)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found += [f"{module}.{alias.name}" for alias in node.names] if module == "ibukit" else [module]
        todo += ast.iter_child_nodes(node)
    return found


def wrong_way(module, source):
    """Imports of ibukit that do not point upstream."""
    here = layer_of(module)
    allowed = [*LAYERS, here] if here in ROOMS_WITH_A_VIEW else LAYERS[: LAYERS.index(here) + 1]
    allowed += ["cli"] if here == "__main__" else []  # which is `python -m ibukit`
    return [
        name
        for name in imports(source)
        if name.startswith(".") or (name.split(".")[0] == "ibukit" and layer_of(name) not in allowed)
    ]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_point_upstream(path):
    module = name_of(path)
    if module == "ibukit":
        shown = {layer_of(f"ibukit.{home}") for home in ibukit._HOMES.values()} | set(ibukit.__all__)
        assert not shown & set(ROOMS_WITH_A_VIEW)
    else:
        assert layer_of(module) in LAYERS + ROOMS_WITH_A_VIEW, "a new module needs a place in the order"
        assert wrong_way(module, path.read_text("utf8")) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ibukit.tally", "from ibukit.mechanisms import privacy"),
        ("ibukit.mechanisms.base", "def f():\n    import ibukit.estimators.iterative"),
        ("ibukit.estimators.iterative", "from ibukit import plotting"),
        ("ibukit.evaluation.losses", "import ibukit"),
        ("ibukit.alphabet", "from . import tally"),
        ("ibukit.testing", "from ibukit.plotting import use_style"),
    ],
)
def test_an_import_downstream_is_found(module, source):
    assert len(wrong_way(module, source)) == 1


def test_what_type_checkers_alone_read_counts():
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ibukit.estimate import Estimate\n"
    assert wrong_way("ibukit.errors", source) == ["ibukit.estimate"]


def strings(source):
    """String constants outside docstrings."""
    tree = ast.parse(source)
    prose = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in prose]
    return [node.value for node in nodes if isinstance(node.value, str)]


def of_the_book(source):
    return [text for text in strings(source) if re.search(r"\bbook\b|\.ipynb", text)]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_module_reads_the_book(path):
    assert of_the_book(path.read_text("utf8")) == []


@pytest.mark.parametrize("source", ['open(root / "book" / "claims.md")', 'f"{root}/book/x"', 'g(path="a.ipynb")'])
def test_reading_the_book_is_found(source):
    assert of_the_book(f'"""The book may be named in prose."""\n{source}') != []


def global_randomness(source, seeded=()):
    """Anything random but a Generator that was handed in; `seeded` may be called with an argument to make one."""
    findings = [name for name in imports(source) if name.split(".")[0] in ("random", "secrets", "uuid")]
    tree = ast.parse(source)
    given = [call.func for call in ast.walk(tree) if isinstance(call, ast.Call) and call.args]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            allowed = node.attr == "Generator" or (node.attr in seeded and node in given)
            findings += [] if allowed else [ast.unparse(node)]
        elif isinstance(node, ast.ImportFrom) and node.module == "numpy.random":
            findings += [alias.name for alias in node.names if alias.name != "Generator"]
    return findings


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_randomness_comes_from_outside(path):
    assert global_randomness(path.read_text("utf8"), SEEDED.get(name_of(path), ())) == []


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
    assert global_randomness("np.random.PCG64(np.random.SeedSequence(1))", ("PCG64", "SeedSequence")) == []


def uncached_kernels(source):
    """Uses of njit or jit that are not a decorator with cache=True."""
    tree = ast.parse(source)
    compiled = {"njit", "jit", "vectorize", "guvectorize"}
    used = [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id in compiled)
        or (isinstance(node, ast.Attribute) and node.attr in compiled and ast.unparse(node.value) in ("numba", "nb"))
    ]
    cached = [
        call.func
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for call in node.decorator_list
        if isinstance(call, ast.Call)
        and any(word.arg == "cache" and ast.unparse(word.value) == "True" for word in call.keywords)
    ]
    return [ast.unparse(node) for node in used if node not in cached]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_compiled_kernels_are_cached_and_stand_in_files_of_their_own(path):
    source = path.read_text("utf8")
    assert uncached_kernels(source) == []
    if any(name.split(".")[0] == "numba" for name in imports(source)):
        assert re.fullmatch(r"_\w*kernels\.py", path.name)


@pytest.mark.parametrize(
    "source",
    [
        "@njit\ndef f(x): ...",
        "@numba.njit(fastmath=True)\ndef f(x): ...",
        "@njit(cache=False)\ndef f(x): ...",
        "g = njit(f)",
    ],
)
def test_an_uncached_kernel_is_found(source):
    assert uncached_kernels(source) != []
    assert uncached_kernels("@njit(cache=True)\ndef f(x): ...") == []


FOLDERS = ("ibukit", "tests", "benchmarks", "scripts", "book")
OURS = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_long(path):
    assert len(path.read_text("utf8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "oracles").rglob("*.py")), ids=lambda path: path.name)
def test_the_oracle_stands_on_its_own(path):
    assert [name for name in imports(path.read_text("utf8")) if name.split(".")[0] == "ibukit"] == []


@cache
def loaded_after(statement):
    code = f"import sys; {statement}; print(*sys.modules)"
    quiet = os.environ | {"IBUKIT_ROUNDING_NOISE": ""}  # noise would load all of the package
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, env=quiet)
    return set(run.stdout.split())


def test_importing_the_package_loads_nothing_and_its_names_nothing_heavy():
    assert loaded_after("import ibukit") & (HEAVY | {"numpy", "scipy", "numba"}) == set()
    assert loaded_after("from ibukit import *") & HEAVY == set()
    assert loaded_after("from ibukit import *") >= {"numpy", "scipy", "numba"}, "the test must see what is loaded"
    assert "matplotlib" in loaded_after("import ibukit, ibukit.plotting")


@pytest.mark.parametrize("name", ["scipy.stats", "scipy.integrate", "scipy.interpolate"])
def test_no_public_name_loads_a_slow_part_of_scipy(name):
    assert name not in loaded_after("from ibukit import *")
    assert name in loaded_after("import scipy.stats, scipy.integrate, scipy.interpolate"), "the test must see it"


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


def public_objects():
    """Every function and class that a reader of the documentation is shown, with its dotted name."""
    found = {f"ibukit.{name}": getattr(ibukit, name) for name in ibukit.__all__}
    rooms = ["attack", "channels", "claims", "datasets", "design", "errors", "identification", "privacy", "plotting"]
    rooms += ["planning", "scale", "solvers", "testing", "theory"]
    for module in rooms:
        members = vars(importlib.import_module(f"ibukit.{module}"))
        found |= {f"ibukit.{module}.{name}": thing for name, thing in members.items() if not name.startswith("_")}
    return {
        name: thing
        for name, thing in found.items()
        if (inspect.isfunction(thing) or inspect.isclass(thing))
        and thing.__module__.startswith("ibukit" if name.count(".") == 1 else name.rpartition(".")[0])
        and not getattr(thing, "_is_protocol", False)
    }


PUBLIC = public_objects()
# errors are one sentence, except the one that carries something
ERRORS = [name for name, thing in PUBLIC.items() if inspect.isclass(thing) and issubclass(thing, Exception)]
SENTENCES = [name for name in ERRORS if "__init__" not in vars(PUBLIC[name])]
# read, not made by the reader: they document attributes, not parameters
READ = ["ibukit.Estimate", "ibukit.Posterior", "ibukit.RateDistortion", "ibukit.Status", "ibukit.ConvergenceError"]
READ += ["ibukit.Unfolded", "ibukit.OptimalDesign", "ibukit.datasets.Dataset", "ibukit.errors.ConvergenceError"]
READ += ["ibukit.design.OptimalDesign", "ibukit.design.RateDistortion"]
READ += [
    f"ibukit.{room}.{name}"
    for room in ("identification", "theory")
    for name in (
        "Answer",
        "BayesLimits",
        "BinaryResponseMse",
        "Concavity",
        "Condition",
        "Consistency",
        "FixedPoint",
        "Identifiability",
        "LdpBounds",
        "MleSet",
    )
]
READ += ["ibukit.planning.Plan", "ibukit.planning.Plans", "ibukit.privacy.Audit"]
READ += ["ibukit.attack.Detection", "ibukit.attack.RobustEstimate", "ibukit.channels.Score", "ibukit.solvers.Maximum"]
# what claims.show returns: seen in its example
SHOWN = ["ibukit.claims.Comparison"]
# no docstring; sections in a wrong order; parameters missing, unknown or in a wrong order; no example
CODES = {"GL06", "GL07", "GL08", "PR01", "PR02", "PR03", "PR08", "EX01"}


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - {*SENTENCES, *SHOWN}))
def test_public_things_are_documented_with_an_example(name):
    codes = CODES - {"PR01"} if name in READ else CODES
    thing = PUBLIC[name]
    # `ibukit.posterior` is a function, and a room that bears its name
    where = f"{thing.__module__}.{thing.__qualname__}" if name == "ibukit.posterior" else name
    assert [finding for finding in validate(where)["errors"] if finding[0] in codes] == []
    assert ">>> " in PUBLIC[name].__doc__


@pytest.mark.parametrize("name", sorted(SENTENCES + SHOWN))
def test_what_has_no_example_has_a_sentence(name):
    assert inspect.getdoc(PUBLIC[name]).endswith(".")


def public_methods(kind):
    """Functions and properties of a class that a reader sees, by name."""
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        wrapped = (property, cached_property, classmethod, staticmethod)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, wrapped)):
            yield name, getattr(kind, name, member)


def first_line_errors(thing):
    """Docstrings of a public thing and of its methods whose first line is too long or is no sentence."""
    members = dict(public_methods(thing)) if inspect.isclass(thing) else {}
    return [
        f"{name}: {first!r} has {len(first)} characters"
        for name, member in {thing.__name__: thing, **members}.items()
        if (first := (inspect.getdoc(member) or "").partition("\n")[0])[-1:] != "." or len(first) > 80
    ]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_docstrings_begin_with_a_short_sentence(name):
    assert first_line_errors(PUBLIC[name]) == []


def test_a_long_first_line_is_found():
    class Wordy:
        """Short enough."""

        def long(self):
            """A sentence that says what it returns, how it is computed, and why, all on one line."""

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


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_docstring_says_how_a_formula_came_to_us(path):
    assert re.findall("Status: |copy at hand|our text|converted text", path.read_text("utf8")) == []
