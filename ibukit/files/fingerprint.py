"""A text for each object that is the same in every process, so that files can be tied to what was asked."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial, singledispatchmethod
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from ibukit.domain.alphabet import Alphabet


def digest(thing: Any) -> str:
    """SHA-256 of the canonical text, its first 16 hexadecimal digits: to the last bit of every number."""
    return hashlib.sha256(_Writer().text(thing).encode()).hexdigest()[:16]


def stop_of(estimator: Callable[..., Any]) -> str:
    """The value that a parameter called `stop` has unless one is given, "" where there is no such parameter."""
    try:
        stop = inspect.signature(estimator).parameters["stop"].default
    except (
        KeyError,
        TypeError,
        ValueError,
    ):  # the last two: some callables written in C have no signature
        return ""
    return "" if stop in (inspect.Parameter.empty, None) else str(stop)


class _Writer:
    """Type and content, recursively; nothing of where an object lies in memory."""

    def __init__(self) -> None:
        self.within: list[int] = []  # the functions being described: one may close over itself

    @singledispatchmethod
    def text(self, thing: Any) -> str:
        if is_dataclass(thing) and not isinstance(thing, type):
            return self.named(
                type(thing).__qualname__, ((f.name, getattr(thing, f.name)) for f in fields(thing))
            )
        shown = repr(thing)
        # the default repr tells the address, which is another one in the next session
        return type(thing).__qualname__ if " at 0x" in shown else shown

    @text.register
    def _(self, thing: bool | str | bytes | int | float | None) -> str:
        return repr(thing)

    @text.register
    def _(self, thing: np.generic) -> str:
        return self.text(thing.item())

    @text.register
    def _(self, thing: Enum) -> str:
        return f"{type(thing).__qualname__}.{thing.name}"

    @text.register
    def _(self, thing: Mapping) -> str:  # type: ignore[type-arg]
        return self.named("mapping", thing.items())

    @text.register
    def _(self, thing: set | frozenset) -> str:  # type: ignore[type-arg]
        return f"{{{','.join(sorted(map(self.text, thing)))}}}"

    @text.register
    def _(self, thing: list | tuple) -> str:  # type: ignore[type-arg]
        return f"({','.join(map(self.text, thing))})"

    @text.register
    def _(self, array: np.ndarray) -> str:
        if array.dtype.kind not in "biuf":
            return self.text(array.tolist())
        content = array.astype("<f8" if array.dtype.kind == "f" else "<i8")
        return f"array{array.shape}:{hashlib.sha256(content.tobytes()).hexdigest()}"

    @text.register
    def _(
        self, thing: Alphabet
    ) -> str:  # by what == compares, so without the unit, which is a label
        return f"{type(thing).__qualname__}{self.text(thing._key())}"

    @text.register
    def _(self, thing: partial) -> str:  # type: ignore[type-arg]
        return f"partial{self.text((thing.func, thing.args, thing.keywords))}"

    @text.register
    def _(self, thing: MethodType) -> str:
        return f"method{self.text((thing.__func__, thing.__self__))}"

    @text.register
    def _(self, thing: CodeType) -> str:
        return f"code{self.text((thing.co_code, thing.co_names, thing.co_consts))}"

    @text.register
    def _(self, function: FunctionType) -> str:
        """What it does as far as it says so itself: its code, its defaults and what it closes over."""
        if id(function) in self.within:
            return f"{function.__name__} again"
        self.within.append(id(function))
        free = inspect.getclosurevars(function).nonlocals
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__, free)
        described = f"{function.__name__}{self.text(parts)}"
        self.within.pop()
        return described

    def named(self, name: str, items: Iterable[tuple[Any, Any]]) -> str:
        return f"{name}({','.join(f'{key}={self.text(value)}' for key, value in items)})"
