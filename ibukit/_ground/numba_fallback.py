"""Compiled loops that run as plain Python first, where that takes less time than to compile them.

To compile the loops of the line takes seconds, as often as numba's cache is empty; to run them once
as plain Python, on a hundred secrets, some hundredths of a second. They are the same functions, so
the answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np


class PlainFirst:
    """The loops of a module: plain until so much was worked on, or `entry` has been compiled, here or in the cache.

    Sizes add up over the process, and what has been worked on plainly stays far below the time that
    compiling takes: a session of many small problems, or a large one, is compiled for.
    """

    def __init__(self, loops: ModuleType, entry: str, most: int):
        self._loops = loops
        self._entry = entry
        self._left = most
        self._compiled = False

    def for_size(self, size: int) -> Any:
        """What has the loops as attributes, for a problem of this size."""
        if self._compiled or size > self._left or is_at_hand(getattr(self._loops, self._entry)):
            self._compiled = True
            return self._loops
        self._left -= size
        return plain(self._loops)


def is_at_hand(loop: Any) -> bool:
    """Whether a call takes no compiling: in this process or an earlier one it was compiled, or it is no numba loop."""
    if not hasattr(loop, "signatures") or loop.signatures:
        return True
    # the index of a loop's file: MODULE.NAME-LINE.VERSION.nbi
    name = f"{loop.py_func.__module__.rpartition('.')[2]}.{loop.__name__}-*.nbi"
    return any(Path(loop.stats.cache_path).glob(name))


def plain(loops: ModuleType) -> SimpleNamespace:
    """The loops of a module as Python runs them, calling one another; 1 / 0 is infinite there too."""
    inside = dict(vars(loops))
    found: dict[str, Callable[..., Any]] = {}
    for name, loop in vars(loops).items():
        if hasattr(loop, "py_func"):
            inside[name] = FunctionType(loop.py_func.__code__, inside, name)
            found[name] = np.errstate(all="ignore")(inside[name])
    return SimpleNamespace(**found)
