"""A text for each object that is the same in every process, to tie files to a question."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit.domain.alphabet import Alphabet


def fingerprint(thing: Any) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of the canonical text."""
    return hashlib.sha256(CanonicalText().of(thing).encode()).hexdigest()[:16]


class CanonicalText:
    """The type and the content of an object, recursively, to the last bit of every number.

    The text says nothing of where an object lies in memory.
    """

    def __init__(self) -> None:
        # The functions that are being described, because a function may close over itself.
        self._open: list[int] = []

    def of(self, thing: Any) -> str:
        """Return the text of any object."""
        # The order matters: an Enum may be a str or an int as well, and numpy's float64 is a float.
        match thing:
            case Enum():
                return f"{type(thing).__qualname__}.{thing.name}"
            case np.generic():
                return self.of(thing.item())
            case bool() | str() | bytes() | int() | None:
                return repr(thing)
            case float():
                return self.number(thing)
            case list() | tuple():
                return f"({','.join(map(self.of, thing))})"
            case np.ndarray():
                return self.array(thing)
            case Alphabet():
                return self.alphabet(thing)
            case Mapping():
                return self.named("mapping", thing.items())
            # The order of a set of strings differs in the next process.
            case set() | frozenset():
                return f"{{{','.join(sorted(map(self.of, thing)))}}}"
            case partial():
                return f"partial{self.of((thing.func, thing.args, thing.keywords))}"
            case MethodType():
                return f"method{self.of((thing.__func__, thing.__self__))}"
            # Neither the file nor the line belongs to what a function does.
            case CodeType():
                return f"code{self.of((thing.co_code, thing.co_names, thing.co_consts))}"
            case FunctionType():
                return self._function(thing)
        return self.record(thing)

    def number(self, value: float) -> str:
        """Return the text of a float."""
        return repr(value)

    def array(self, array: NDArray[Any]) -> str:
        """Return the shape of an array and a hash of its entries."""
        if array.dtype.kind not in "biuf":
            return self.of(array.tolist())
        # The bytes are those of 64 bits in one byte order, whatever the machine has.
        content = array.astype("<f8" if array.dtype.kind == "f" else "<i8")
        return f"array{array.shape}:{hashlib.sha256(content.tobytes()).hexdigest()}"

    def alphabet(self, alphabet: Alphabet) -> str:
        """Return the text of what == compares, hence without the unit, which is a label."""
        return f"{type(alphabet).__qualname__}{self.of(alphabet._key())}"

    def record(self, thing: Any) -> str:
        """Return the class and the fields of a dataclass; the repr of anything else."""
        name = type(thing).__qualname__
        if is_dataclass(thing) and not isinstance(thing, type):
            return self.named(name, ((f.name, getattr(thing, f.name)) for f in fields(thing)))
        shown = repr(thing)
        # The default repr has the address, which differs in the next process.
        return name if " at 0x" in shown else shown

    def named(self, name: str, items: Iterable[tuple[Any, Any]]) -> str:
        """Return a name with named values in brackets."""
        return f"{name}({','.join(f'{key}={self.of(value)}' for key, value in items)})"

    def _function(self, function: FunctionType) -> str:
        """Return the text of a function's code, of its defaults, and of what it closes over."""
        if id(function) in self._open:
            return f"{function.__name__} again"
        self._open.append(id(function))
        # Globals are left out, so a change of a function that this one calls goes unnoticed.
        free = inspect.getclosurevars(function).nonlocals
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__, free)
        text = f"{function.__name__}{self.of(parts)}"
        self._open.pop()
        return text
