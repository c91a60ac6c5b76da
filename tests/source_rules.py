"""What the rules of the house read:
the sources of the package, their imports, and what they make public.

A rule is a function from a module's name and source text to findings, so that each can be seen to
find something.
"""

import ast
import importlib
import inspect
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

import ibukit
import ibukit_claims

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "ibukit"
SOURCES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = ("ibukit", "tests", "benchmarks", "scripts", "book")
OURS = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

# upstream first: a module imports only from its own layer and the ones above
LAYERS = [
    "errors",
    "_ground",
    "domain",
    "datasets",
    "exact",
    "files",
    "channels",
    "tables",
    "tally",
    "privacy",
    "mechanisms",
    "surveys",
    "solvers",
    "fisher_information",
    "bayes",
    "identification",
    "intervals",
    "model_checks",
    "plotting",
    "estimate",
    "estimators",
    "theory",
    "planning",
    "evaluation",
    "design",
    "attack",
    "scale",
]
# nothing imports these, and they may import anything
ROOMS_WITH_A_VIEW = ["testing", "sklearn", "cli", "__main__"]
# The one arrow upwards: a file names a class, which this room looks up among the public names.
UPWARD = ("files", "ibukit")


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def layer_of(module):
    """errors for ibukit.errors, estimators for ibukit.estimators.stopping,
    "" for the package itself.
    """
    return [*module.split("."), ""][1]


@cache
def nodes(source):
    """All nodes of a source's syntax tree, made once for all rules."""
    return list(ast.walk(ast.parse(source)))


@pytest.fixture(scope="module", autouse=True)
def nodes_of_these_tests():
    yield
    nodes.cache_clear()  # a hundred megabytes


def faults(paths, rule):
    """What a rule finds in each of these files, from its name and its source;
    files without fault are left out.
    """
    found = ((name_of(path), rule(name_of(path), path.read_text("utf8"))) for path in paths)
    return {name: faults for name, faults in found if faults}


# what a line may hold beside code
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}
NO_CODE |= {tokenize.INDENT, tokenize.DEDENT}


def code_lines(source):
    """The number of lines with code on them: no comments, no docstrings, no blank lines."""
    texts = [node for node in nodes(source) if isinstance(node, ast.Expr)]
    texts = [node for node in texts if isinstance(getattr(node.value, "value", None), str)]
    prose = {line for node in texts for line in range(node.lineno, node.end_lineno + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    code = (token for token in tokens if token.type not in NO_CODE)
    return len({i for token in code for i in range(token.start[0], token.end[0] + 1)} - prose)


# functions that import a module by its name, and a name of ours with what follows it
IMPORTERS = {"import_module", "__import__", "resolve_name", "find_spec"}
OUR_MODULE = re.compile(r"ibukit(\.\w+)+")


def imports(source):
    """Names of the modules that a source imports, wherever and however.

    At the top, in functions, for type checkers alone, and by strings: each string that names a
    module of ours counts, whoever may be called with it. `from ibukit import datasets` gives
    ibukit.datasets, the string f"ibukit.cli.{name}" gives ibukit.cli.*, and a name that only
    running the code would tell gives "?".
    """
    found = []
    for node in nodes(source):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found += (
                [f"{module}.{alias.name}" for alias in node.names]
                if module == "ibukit"
                else [module]
            )
    return found + imports_by_string(source)


def imports_by_string(source):
    """Names of the modules that a source may import by strings; see `imports`."""
    tree = nodes(source)
    prose = {id(node.value) for node in tree if isinstance(node, ast.Expr)}
    texts = [node for node in tree if isinstance(node, ast.Constant) and id(node) not in prose]
    found = [node.value for node in texts if OUR_MODULE.fullmatch(str(node.value))]
    for node in tree:
        if isinstance(node, ast.JoinedStr):
            first = getattr(node.values[0], "value", "") if node.values else ""
            begin = re.match(r"ibukit\.(\w+\.)*", first) if isinstance(first, str) else None
            found += [f"{begin[0]}*"] if begin else []
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("exec", "eval"):
            found.append("?")
        elif isinstance(node, ast.Call) and name_called(node) in IMPORTERS:
            name = node.args[0] if node.args else None
            if isinstance(name, ast.Constant):
                found += [] if OUR_MODULE.fullmatch(str(name.value)) else [str(name.value)]
            elif not (isinstance(name, ast.JoinedStr) and isinstance(name.values[0], ast.Constant)):
                found.append("?")
    return found


def name_called(call):
    """The last part of the name of what is called."""
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


# Public doors show names of the rooms behind them.
BEHIND = {
    "surveys": "ibukit.mechanisms.surveys",
    "theory": ("ibukit.theory", "ibukit.identification", "ibukit.estimators.mle_set"),
}


def public_objects():
    """Every function and class that a reader
    of the documentation is shown, with its dotted name.
    """
    found = {f"ibukit.{name}": getattr(ibukit, name) for name in ibukit.__all__}
    rooms = [
        "attack",
        "channels",
        "datasets",
        "design",
        "errors",
        "privacy",
        "plotting",
    ]
    rooms += ["planning", "scale", "solvers", "surveys", "testing", "theory"]
    for module in rooms:
        members = vars(importlib.import_module(f"ibukit.{module}"))
        found |= {
            f"ibukit.{module}.{name}": thing
            for name, thing in members.items()
            if not name.startswith("_")
        }
    found |= {f"ibukit_claims.{name}": thing for name, thing in vars(ibukit_claims).items()}
    return {
        name: thing
        for name, thing in found.items()
        if (inspect.isfunction(thing) or inspect.isclass(thing))
        and thing.__module__.startswith(
            "ibukit"
            if name.count(".") == 1
            else BEHIND.get(name.split(".")[1], name.rpartition(".")[0])
        )
        and not getattr(thing, "_is_protocol", False)
    }
