"""A chapter that was downloaded runs where ``pip install "ibukit[chapters]"`` has run."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import notebooks
from test_verdicts import parsed

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
OURS = {"ibukit", "ibukit_claims"}


def imported(path: Path) -> set[str]:
    """The packages that a chapter imports by name."""
    found = set()
    for cell in nbformat.read(path, 4).cells:
        for node in ast.walk(parsed(cell["source"])) if cell["cell_type"] == "code" else ():
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module or "").partition(".")[0])
    return found - sys.stdlib_module_names - OURS


def asked(extra: str) -> Iterator[Requirement]:
    """What the project asks for with an extra, those of other extras included."""
    extras = PROJECT["optional-dependencies"]
    for text in [*PROJECT["dependencies"], *(extras[extra] if extra else ())]:
        requirement = Requirement(text)
        if requirement.name != "ibukit":
            yield requirement
        for other in requirement.extras if requirement.name == "ibukit" else ():
            yield from asked(other)


@cache
def installed(extra: str) -> set[str]:
    """Every distribution that pip would install with an extra of the project."""
    found: set[str] = set()
    waiting = [(r.name, frozenset(r.extras)) for r in asked(extra)]
    for name, extras in waiting:
        found.add(canonicalize_name(name))
        try:
            lines = requires(name) or []
        except PackageNotFoundError:  # of another platform
            continue
        for requirement in map(Requirement, lines):
            wanted = requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in (*extras, "")
            )
            pair = (requirement.name, frozenset(requirement.extras))
            if wanted and pair not in waiting:
                waiting.append(pair)
    return found


distributions = cache(packages_distributions)


def missing(path: Path, extra: str) -> set[str]:
    """What a chapter imports and no distribution of an extra brings."""
    brings, there = distributions(), installed(extra)
    return {
        name
        for name in imported(path)
        if not there & set(map(canonicalize_name, brings.get(name, [])))
    }


@pytest.mark.parametrize("path", notebooks.chapters(), ids=lambda path: path.stem)
def test_the_extra_brings_what_a_chapter_imports(path):
    assert missing(path, "chapters") == set()


def test_without_the_extra_a_chapter_would_not_run():
    assert missing(ROOT / "book" / "chapters" / "ages.ipynb", "") == {"myst_nb", "IPython"}


def test_what_nobody_installs_is_found(tmp_path):
    cell = nbformat.v4.new_code_cell("import axe_playwright_python, numpy, json")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "x.ipynb")
    assert missing(tmp_path / "x.ipynb", "chapters") == {"axe_playwright_python"}
