"""Fold what a reader skips, and say what is folded.

A cell of nothing but checks becomes a chip, "3 checks passed", that opens. A cell that is hidden
already says what it hides: how a figure is drawn, how a table is made, or the code. A chapter is
not built if a check fails, so "passed" is true wherever it is printed.
"""

import ast

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

CHECK = "check"  # the tag by which a cell says that it only checks


def asserts(source: str) -> list[ast.Assert]:
    """The checks in a piece of code; none where it is not Python."""
    try:
        return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]
    except SyntaxError:
        return []


def checks(statement: ast.stmt) -> bool:
    """True for an assertion, and for a loop that holds nothing else."""
    if isinstance(statement, (ast.For, ast.With)):
        return all(map(checks, statement.body)) and not getattr(statement, "orelse", [])
    return isinstance(statement, ast.Assert)


def only_checks(source: str) -> bool:
    """True if the code consists of assertions, alone or in loops that hold nothing else."""
    return bool(asserts(source)) and all(map(checks, ast.parse(source).body))


def chip(source: str) -> str:
    """The text of the chip of a cell of checks."""
    number = len(asserts(source))
    return f"{number} check{'' if number == 1 else 's'} passed"


def prompt(source: str, hidden: str, draws: bool, tabulates: bool) -> str:
    """The text of the fold of a hidden cell."""
    if hidden == "all" and asserts(source):
        return chip(source)
    if draws:
        return "How this figure is drawn"
    return "How this table is made" if tabulates else "Show the code"


def parts(cell: nodes.container) -> tuple[nodes.Element | None, nodes.Element | None]:
    """The input and the output of a cell, where it has them."""
    found = {
        child.get("nb_element"): child
        for child in cell.children
        if isinstance(child, nodes.Element)
    }
    return found.get("cell_code_source"), found.get("cell_code_output")


class Folds(SphinxPostTransform):
    """Decide what folds, before myst-nb folds it."""

    default_priority = 198
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Go through the cells of one page."""
        for cell in self.document.findall(nodes.container):
            if cell.get("nb_element") != "cell_code":
                continue
            shown, output = parts(cell)
            if shown is None:
                continue
            source = shown.astext()
            is_check = CHECK in cell.get("cell_metadata", {}).get("tags", []) or only_checks(source)
            if is_check and output is None and not cell.get("hide_mode"):
                cell["hide_mode"] = "all"
            if not (hidden := cell.get("hide_mode")):
                continue
            draws = output is not None and any(True for _ in output.findall(nodes.image))
            tabulates = output is not None and "<table" in output.astext()
            if hidden == "all" and asserts(source):
                cell["classes"].append("checks")
            if draws and hidden == "input":
                cell["classes"].append("drawn")
            says = prompt(source, hidden, draws, tabulates)
            cell["prompt_show"] = says
            cell["prompt_hide"] = says if hidden == "all" and asserts(source) else "Hide the code"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_post_transform(Folds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
