"""Rows that compare a published number with itself, found in the code of a chapter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

PRINTED = {"load_published", "settings"}
# functions that return their argument unchanged; any other call makes something new of it
PASSES_ON = {
    "list",
    "tuple",
    "dict",
    "zip",
    "sorted",
    "reversed",
    "enumerate",
    "float",
    "int",
    "array",
    "asarray",
}


def code_cells(notebook: Any) -> Iterator[Any]:
    """The cells of a notebook that hold code."""
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def parsed(source: str) -> ast.Module:
    """The syntax tree of a cell, with commands of IPython taken out."""
    source = re.sub(r"\\\n", " ", source)  # a command of IPython may go on in the next line
    lines = (
        ("pass  # " if re.match(r"\s*[%!]", line) else "") + line for line in source.splitlines()
    )
    return ast.parse("\n".join(lines))


class Circle:
    """The names of a chapter that hold unchanged numbers of a published table."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.faults: list[str] = []

    def printed(self, node: ast.AST) -> bool:
        """True if an expression is, or contains, a number just as a paper prints it."""
        if isinstance(node, ast.Name):
            return node.id in self.names
        if isinstance(node, ast.Call):
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            if name in PRINTED or name in self.names:
                return True
            of = isinstance(node.func, ast.Attribute) and self.printed(node.func.value)
            return of or (name in PASSES_ON and any(map(self.printed, node.args)))
        if isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp)) and not isinstance(
            getattr(node, "op", None), ast.BitOr
        ):
            return False
        if isinstance(node, (ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.SetComp)):
            before = set(self.names)
            for loop in node.generators:
                self.bind(loop.target, loop.iter)
            parts = [node.value] if isinstance(node, ast.DictComp) else [node.elt]
            found = any(map(self.printed, parts))
            self.names = before
            return found
        if isinstance(node, ast.Dict):
            return any(map(self.printed, node.values))
        return any(map(self.printed, ast.iter_child_nodes(node)))

    def bind(self, target: ast.AST, value: ast.AST) -> None:
        """Carry over what an assignment gives its target; the parts of tuples one by one."""
        if (
            isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
        ):
            for part, of in zip(target.elts, value.elts, strict=True):
                self.bind(part, of)
            return
        held = {
            n.id
            for n in ast.walk(target)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        if isinstance(target, ast.Subscript):
            held |= {n.id for n in ast.walk(target.value) if isinstance(n, ast.Name)}
        if self.printed(value):
            self.names |= held

    def read(self, statements: Sequence[ast.stmt], place: str) -> None:
        """Follow the statements in their order; a function has names of its own."""
        for node in statements:
            if isinstance(node, ast.FunctionDef):
                before = set(self.names)
                self.names -= {argument.arg for argument in node.args.args}
                self.read(node.body, place)
                found = [
                    n.value
                    for n in ast.walk(node)
                    if isinstance(n, (ast.Return, ast.Yield)) and n.value
                ]
                gives = any(map(self.printed, found))
                self.names = before | ({node.name} if gives else set())
                continue
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self.bind(target, node.value)
            elif isinstance(node, ast.AugAssign):
                self.bind(node.target, node.value)
            elif isinstance(node, ast.For):
                self.bind(node.target, node.iter)
            for part in ("body", "orelse"):
                self.read(getattr(node, part, []), place)
            for call in ast.walk(node):
                if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") != "beside":
                    continue
                if any(map(self.printed, call.args[1:])):
                    self.faults.append(
                        f"{place}: sets beside the published table what was read from it"
                    )


def circular_rows(notebook: Any) -> list[str]:
    """Cells that compare what a published table holds with that table."""
    circle = Circle()
    for cell in code_cells(notebook):
        circle.read(parsed(cell.source).body, cell.id)
    return list(dict.fromkeys(circle.faults))
