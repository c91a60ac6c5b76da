"""A digest of the code that stands in a chapter, whatever its layout."""

from __future__ import annotations

import ast
import dis
import hashlib
import inspect
import linecache
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
BY_VALUE = (bool, int, float, str, bytes, type(None))
# parts of a node that only the printed form has, or only some versions of Python
LEFT_OUT = {"ctx", "kind", "type_comment", "type_params", "returns", "annotation"}


def code_of(thing: Any) -> str:
    """Digest of a callable: 12 hexadecimal digits, the same in every process.

    Of a function of a notebook or a script, the digest takes the syntax tree (without comments,
    docstrings, annotations and layout) and, in turn, the functions that it calls by a name of the
    chapter. It takes the numbers and texts that the function reads by name, numbers to six digits,
    and any object that holds nothing else, such as ``Steps(n=10)``. Of a function of a package it
    takes the name, of an array the shape, and of any other object the type: the package's own code
    is not part of the digest.

    Examples
    --------
    >>> import ibukit as ik
    >>> ten, again, eleven = (partial(ik.ibu, stop=ik.Steps(n)) for n in (10, 10, 11))
    >>> code_of(ten) == code_of(again), code_of(ten) == code_of(eleven)
    (True, False)
    """
    return hashlib.sha256(_Reader().text(thing).encode()).hexdigest()[:12]


class _Reader:
    """The text of which the digest is made."""

    def __init__(self) -> None:
        self.within: set[CodeType] = set()  # functions may call themselves and one another

    def text(self, thing: Any) -> str:
        if isinstance(thing, float):
            return f"{thing:.6g}"
        if isinstance(thing, BY_VALUE):
            return repr(thing)
        if isinstance(thing, partial):
            return f"partial{self.text((thing.func, thing.args, thing.keywords))}"
        if isinstance(thing, MethodType):
            return f"method{self.text((thing.__func__, thing.__self__))}"
        if isinstance(thing, Mapping):
            pairs = (f"{self.text(key)}:{self.text(value)}" for key, value in thing.items())
            return f"{{{','.join(pairs)}}}"
        if isinstance(thing, (list, tuple)):
            return f"({','.join(map(self.text, thing))})"
        if isinstance(inspect.unwrap(thing) if callable(thing) else thing, FunctionType):
            return self.function(inspect.unwrap(thing))
        name = str(getattr(thing, "__name__", type(thing).__qualname__))
        if is_dataclass(thing) and not isinstance(thing, type):
            held = {field.name: getattr(thing, field.name) for field in fields(thing)}
            # an object that holds only values is a setting, such as a rule for when to stop; an
            # object that holds more is data, whose last digits may vary, so its name goes in alone
            return (
                f"{name}{self.text(held)}"
                if all(isinstance(value, BY_VALUE) for value in held.values())
                else name
            )
        shape = getattr(thing, "shape", None)
        return f"{name}{shape}" if isinstance(shape, tuple) else name

    def function(self, function: FunctionType) -> str:
        # a function of a notebook or a script is in no package
        if function.__globals__.get("__package__") or function.__code__ in self.within:
            return function.__qualname__
        self.within.add(function.__code__)
        node = _node(function.__code__)
        body = f"{function.__qualname__} without source" if node is None else _shape(node)
        defaults = (function.__defaults__, function.__kwdefaults__)
        return f"{body}{self.text(defaults)}{self.text(dict(_read_by_name(function)))}"


def _read_by_name(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The names that a function closes over or reads from the chapter, with their values."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    # the function's own name may be among them, and is empty while the function is being made
    found = {name: cell.cell_contents for name, cell in cells if not _is_empty(cell)}
    codes = [function.__code__]
    for code in codes:
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
        names = {
            one.argval
            for one in dis.get_instructions(code)
            if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        }
        found |= {name: function.__globals__[name] for name in names & function.__globals__.keys()}
    yield from sorted(found.items())


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def _node(code: CodeType) -> Function | None:
    """A function's node in the syntax tree of its cell or file; None where that is not kept."""
    lines = linecache.getlines(code.co_filename)
    try:
        nodes = [node for node in ast.walk(ast.parse("".join(lines))) if isinstance(node, Function)]
    except SyntaxError:
        return None
    first = code.co_firstlineno
    if code.co_name != "<lambda>":
        named = [node for node in nodes if getattr(node, "name", None) == code.co_name]
        return next((node for node in named if first in (node.lineno, *_decorated(node))), None)
    # of several lambdas on one line, the one whose body the code covers
    places = [
        (line, column) for line, _, column, _ in code.co_positions() if line and column is not None
    ]
    start = min((place for place in places if place > (first, 0)), default=(first, 0))
    lambdas = [node for node in nodes if isinstance(node, ast.Lambda) and node.lineno == first]
    about = [
        node
        for node in lambdas
        if _begin(node) < start <= (node.end_lineno or 0, node.end_col_offset or 0)
    ]
    return max(about or lambdas, key=_begin, default=None)


def _begin(node: Function) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _decorated(node: Function) -> list[int]:
    return [one.lineno for one in getattr(node, "decorator_list", ())]


def _shape(node: Any) -> str:
    """A syntax tree as a text: kinds of nodes and what they hold, without docstrings and layout."""
    if isinstance(node, list):
        return f"[{','.join(map(_shape, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = {
        name: value
        for name, value in ast.iter_fields(node)
        if name not in LEFT_OUT and value not in (None, [])
    }
    if (
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and ast.get_docstring(node) is not None
    ):
        parts["body"] = node.body[1:]
    inside = ",".join(f"{name}={_shape(value)}" for name, value in parts.items())
    return f"{type(node).__name__}({inside})"
