"""The small faults that can be planted into a source: operators, constants, conditions, lines.

A fault is a stretch of the text and its replacement, so that a faulty file differs from the right
one in that stretch alone. Docstrings, annotations, decorators and the text of a `raise` have no
faults, because a change there only changes a word.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

SWAPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+"}
SWAPPED |= {"*": "/", "/": "*", "//": "/", "and": "or", "or": "and"}
OPPOSITE = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
}
OPPOSITE |= {"argmax": "argmin", "floor": "ceil", "ceil": "floor", "any": "all", "all": "any"}
DROPPED = (ast.AugAssign, ast.Raise, ast.Break, ast.Continue)
SAID = ("stacklevel",)  # arguments that no result depends on


@dataclass(frozen=True)
class Fault:
    """`old`, which stands at `start` of the text and on `line`, becomes `new`."""

    line: int
    start: int
    old: str
    new: str

    def planted(self, text: str) -> str:
        """The faulty text."""
        end = self.start + len(self.old)
        if text[self.start : end] != self.old:
            raise ValueError(f"line {self.line} does not hold {self.old!r}: the text has changed")
        return text[: self.start] + self.new + text[end:]


class Text:
    """A source text and where in it each node stands."""

    def __init__(self, source: str) -> None:
        self.source = source
        lengths = (len(line) for line in source.splitlines(keepends=True))
        self.begins = list(itertools.accumulate(lengths, initial=0))
        self.lines = source.splitlines()

    def place(self, line: int, column: int) -> int:
        """The position in the text of a place that ast counts in bytes of UTF-8."""
        return self.begins[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def start(self, node: ast.expr | ast.stmt) -> int:
        """The offset at which a node begins."""
        return self.place(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        """The offset at which a node ends."""
        return self.place(node.end_lineno or 0, node.end_col_offset or 0)

    def change(self, start: int, end: int, new: str) -> Fault:
        """Another text from `start` to `end`."""
        return Fault(self.source.count("\n", 0, start) + 1, start, self.source[start:end], new)

    def whole(self, node: ast.expr | ast.stmt, new: str) -> Fault:
        """Another text for a node."""
        return self.change(self.start(node), self.end(node), new)

    def code(self, node: ast.expr) -> str:
        """The text of a node."""
        return self.source[self.start(node) : self.end(node)]

    def operator(self, left: ast.expr, right: ast.expr) -> Iterator[Fault]:
        """The operator between two operands becomes its neighbour, unless a comment is there."""
        begin, gap = self.end(left), self.source[self.end(left) : self.start(right)]
        hit = re.fullmatch(r"[\s)]*(\S+?)[\s(]*", gap)
        if hit and hit[1] in SWAPPED:
            yield self.change(begin + hit.start(1), begin + hit.end(1), SWAPPED[hit[1]])


def is_text(node: ast.AST) -> bool:
    """True if a node is certainly a text."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def is_equation(node: ast.expr) -> bool:
    """True if a condition is one == or !=, whose swap is its negation."""
    return (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and isinstance(node.ops[0], (ast.Eq, ast.NotEq))
    )


def children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node in which a fault changes what is computed."""
    if isinstance(node, ast.Raise) or (isinstance(node, ast.keyword) and node.arg in SAID):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        if (
            name == "keywords"
            and isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "zip"
        ):
            continue  # strict=True asserts
        yield from (
            part
            for part in (value if isinstance(value, list) else [value])
            if isinstance(part, ast.AST)
        )


def of_expression(node: ast.AST, text: Text) -> Iterator[Fault]:
    """The faults of one expression, not of its parts."""
    match node:
        case ast.Compare():
            for left, right in itertools.pairwise([node.left, *node.comparators]):
                yield from text.operator(left, right)
        case ast.BinOp() if not (is_text(node.left) or is_text(node.right)):
            yield from text.operator(node.left, node.right)
        case ast.BoolOp():
            for left, right in itertools.pairwise(node.values):
                yield from text.operator(left, right)
        case ast.UnaryOp(op=ast.USub()) if not isinstance(node.operand, ast.Constant):
            yield text.whole(node, f"({text.code(node.operand)})")
        case ast.Constant(value=bool()):
            yield text.whole(node, str(not node.value))
        case ast.Constant(value=int()):
            yield from (
                text.whole(node, f"{node.value + 1}"),
                text.whole(node, f"({node.value - 1})"),
            )
        case ast.Constant(value=float()):
            yield text.whole(node, f"({text.code(node)} * 2)" if node.value else "1.0")
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in OPPOSITE:
            yield text.change(text.end(node) - len(name), text.end(node), OPPOSITE[name])
        case ast.Slice():
            for bound, change in ((node.lower, "+ 1"), (node.upper, "- 1")):
                if bound and not isinstance(bound, ast.Constant):
                    yield text.whole(bound, f"({text.code(bound)} {change})")
        case ast.If() | ast.While() | ast.IfExp() if not is_equation(node.test):
            yield text.whole(node.test, f"(not ({text.code(node.test)}))")


def of_line(node: ast.AST, text: Text) -> Iterator[Fault]:
    """The fault of leaving a line out: a call, an update, an error, an early return."""
    for name in ("body", "orelse"):
        for line in block if isinstance(block := getattr(node, name, None), list) else []:
            called = isinstance(line, ast.Expr) and not is_text(line.value)
            entry = isinstance(line, ast.Assign) and isinstance(
                line.targets[0], (ast.Subscript, ast.Attribute)
            )
            early = isinstance(line, ast.Return) and not isinstance(
                node, (ast.FunctionDef, ast.AsyncFunctionDef)
            )
            if called or entry or early or isinstance(line, DROPPED):
                yield text.whole(line, "pass")


def faults(source: str) -> list[Fault]:
    """All faults of a text, in the order of their places."""
    text, found, todo = Text(source), [], [ast.parse(source)]
    while todo:
        node = todo.pop()
        aside = (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        )
        if not (aside or isinstance(node, ast.JoinedStr)):
            found += [*of_expression(node, text), *of_line(node, text)]
            todo += children(node)
    return sorted(set(found), key=lambda fault: (fault.start, fault.old, fault.new))
