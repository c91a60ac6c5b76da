"""What keeps frozen classes frozen: arrays that cannot be written, and fields that `dataclasses.replace` finds."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

P = ParamSpec("P")


class ReadOnlyArrays:
    """Of frozen classes: arrays come out of a pickle or a deep copy writable, these make them read-only again."""

    def _keep(self, **values: Any) -> None:
        """Set attributes: only while the object is made, and of what can be computed again."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes."""
        for name, value in state.items():
            object.__setattr__(
                self, name, frozen(value) if isinstance(value, np.ndarray) else value
            )


def field_is(field: str, argument: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Let an ``__init__`` take one of its arguments by the name of the field that keeps it, too.

    `dataclasses.replace` passes fields by their names. Where a method bears the argument's name the
    field cannot, and the signature that people read has the argument alone.
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
    """The same array, read-only: what a frozen object hands out must not change under it."""
    array.setflags(write=False)
    return array
