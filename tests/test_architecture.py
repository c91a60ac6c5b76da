"""The shape of the house: who may import whom, what is light, what is random, what is documented.

Each rule is a function from source text to findings, so that each can be seen to find what it is there for.
"""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from numpydoc.validate import validate

import ibukit

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "ibukit"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# upstream first: a module imports only from its own layer and the ones above
LAYERS = [
    "errors",
    "_validate",
    "_threads",
    "alphabet",
    "grid",
    "distributions",
    "datasets",
    "tally",
    "mechanisms",
    "information",
    "estimate",
    "estimators",
    "theory",
    "evaluation",
    "design",
    "claims",
]
# nothing imports these, and they may import anything
ROOMS_WITH_A_VIEW = ["plotting", "testing", "cli"]
HEAVY = {"geopandas", "matplotlib", "ot", "pandas", "shapely", "pyproj", "pooch", "joblib", "arviz_stats"}
# `Estimate.identified` asks for all MLEs, which are found with the help of one: the only call against the stream
UPSTREAM = {("ibukit.estimate", "ibukit.theory.mle_set")}
# each repetition or cycle has a generator of its own, made from the seed that was handed in
SEEDED = dict.fromkeys(("ibukit.evaluation.replicate", "ibukit.design.privic"), ("PCG64", "SeedSequence"))
MOST_LINES = 400


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def layer_of(module):
    """errors for ibukit.errors, estimators for ibukit.estimators.stopping, "" for the package itself."""
    return [*module.split("."), ""][1]


def type_checking_only(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports(source):
    """Names of the modules that a source imports, at the top and in functions; for type checkers only does not count.

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
        todo += [child for child in ast.iter_child_nodes(node) if not type_checking_only(node)]
    return found


def wrong_way(module, source):
    """Imports of ibukit that do not point upstream."""
    here = layer_of(module)
    allowed = [*LAYERS, here] if here in ROOMS_WITH_A_VIEW else LAYERS[: LAYERS.index(here) + 1]
    return [
        name
        for name in imports(source)
        if name.startswith(".")
        or (name.split(".")[0] == "ibukit" and layer_of(name) not in allowed and (module, name) not in UPSTREAM)
    ]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_point_upstream(path):
    module = name_of(path)
    if module == "ibukit":
        shown = {layer_of(name) for name in imports(path.read_text("utf8")) if name.startswith("ibukit")}
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


def test_what_type_checkers_alone_read_does_not_count():
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ibukit.estimate import Estimate\n"
    assert wrong_way("ibukit.errors", source) == []
    assert wrong_way("ibukit.errors", source.replace("if TYPE_CHECKING", "if True")) == ["ibukit.estimate"]


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


def loaded_after(statement):
    code = f"import sys; {statement}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(run.stdout.split())


def test_importing_the_package_is_light():
    assert loaded_after("import ibukit") & HEAVY == set()
    assert loaded_after("import ibukit, ibukit.plotting") & HEAVY >= {"matplotlib"}, "the test must see what is loaded"


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


def public_objects():
    """Every function and class that a reader of the documentation is shown, with its dotted name."""
    found = {f"ibukit.{name}": thing for name, thing in vars(ibukit).items() if not name.startswith("_")}
    for module in ("claims", "datasets", "design.attack", "mechanisms.privacy", "plotting", "testing", "theory"):
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
# the steps of check_mechanism, which has the example
STEPS = [name for name in PUBLIC if re.search(r"testing\.check_(?!mechanism$|tally$)", name)]
# read, not made by the reader: they document attributes, not parameters
READ = ["ibukit.Estimate", "ibukit.Posterior", "ibukit.RateDistortion", "ibukit.Status", "ibukit.ConvergenceError"]
READ += ["ibukit.OptimalDesign", "ibukit.datasets.Dataset"]
READ += [
    f"ibukit.theory.{name}"
    for name in (
        "Answer",
        "BayesLimits",
        "Concavity",
        "Condition",
        "Consistency",
        "FixedPoint",
        "Identifiability",
        "LdpBounds",
        "MleSet",
    )
]
READ += ["ibukit.design.attack.Detection", "ibukit.design.attack.RobustEstimate"]
# what claims.show returns: seen in its example
SHOWN = ["ibukit.claims.Comparison"]
# no docstring; sections in a wrong order; parameters missing, unknown or in a wrong order; no example
CODES = {"GL06", "GL07", "GL08", "PR01", "PR02", "PR03", "PR08", "EX01"}


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - {*SENTENCES, *STEPS, *SHOWN}))
def test_public_things_are_documented_with_an_example(name):
    codes = CODES - {"PR01"} if name in READ else CODES
    assert [finding for finding in validate(name)["errors"] if finding[0] in codes] == []
    assert ">>> " in PUBLIC[name].__doc__


@pytest.mark.parametrize("name", sorted(SENTENCES + STEPS + SHOWN))
def test_what_has_no_example_has_a_sentence(name):
    assert inspect.getdoc(PUBLIC[name]).endswith(".")


@pytest.mark.parametrize("name", sorted(name for name, thing in PUBLIC.items() if inspect.isclass(thing)))
def test_public_methods_have_docstrings(name):
    for attribute in dir(PUBLIC[name]):
        member = inspect.getattr_static(PUBLIC[name], attribute)
        mine = inspect.isfunction(member) or isinstance(member, (property, classmethod, staticmethod))
        if mine and not attribute.startswith("_"):
            assert inspect.getdoc(getattr(PUBLIC[name], attribute, member)), f"{name}.{attribute}"
