"""Helpers of frozen dataclasses: read-only arrays, and arguments named differently from fields."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

P = ParamSpec("P")


class ReadOnlyArrays:
    """Mixin that keeps arrays read-only after unpickling or deep-copying."""

    def _keep(self, **values: Any) -> None:
        """Set attributes during construction, or cached ones that can be recomputed."""
        # A frozen dataclass forbids plain assignment even in its own __init__.
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes; numpy unpickles every array as a writable one."""
        for name, value in state.items():
            object.__setattr__(
                self, name, frozen(value) if isinstance(value, np.ndarray) else value
            )


def field_is(field: str, argument: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Let an ``__init__`` also accept one of its arguments by the name of its field.

    `dataclasses.replace` passes fields by their names. A field cannot bear the argument's name if a
    method has it already; the public signature shows the argument only.
    """

    def decorate(init: Callable[P, None]) -> Callable[P, None]:
        @wraps(init)
        def renamed(*args: P.args, **kwargs: P.kwargs) -> None:
            if field in kwargs and argument not in kwargs:
                kwargs[argument] = kwargs.pop(field)
            init(*args, **kwargs)

        return renamed

    return decorate


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only and return it, so that nobody can change a frozen object."""
    array.setflags(write=False)
    return array
