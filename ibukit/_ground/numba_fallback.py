"""Loops that run as plain Python or by numpy until compiling them pays.

Compiling the loops of the line takes seconds whenever numba's cache is empty; running them once as
plain Python, on a hundred secrets, takes a few hundredths of a second. Both are the same functions,
so the results are equal to the last bit.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np


class InterpretUntilWorthCompiling:
    """The loops of a module, interpreted until `budget` is used up or `entry` has been compiled.

    The budget is the sum of the sizes of problems that are solved by interpreted loops; it is kept
    so small that their time stays far below that of compiling. Many small problems, or a large one,
    use it up, and then the loops are compiled. A compiled `entry` may come from this process or
    from numba's cache on disk, where it is looked for once.
    """

    def __init__(self, loops: ModuleType, entry: str, budget: int):
        self._loops = loops
        self._entry = entry
        self._budget = budget

    def for_size(self, size: int) -> Any:
        """Return a namespace with the loops to use for a problem of this size."""
        if size <= self._budget and not self._is_compiled:
            self._budget -= size
            return self._interpreted
        # Once compiled, the loops serve small problems as well.
        self._budget = -1
        return self._loops

    @cached_property
    def _is_compiled(self) -> bool:
        return is_compiled_or_cached(getattr(self._loops, self._entry))

    @cached_property
    def _interpreted(self) -> SimpleNamespace:
        return plain(self._loops)


class NumpyUntilWorthCompiling:
    """A count of calls that numpy answers before equivalent loops are compiled.

    A call that numpy answers takes some 20 microseconds more than a compiled loop. Importing numba
    and compiling a few loops take a second, which a process with few calls saves.
    """

    def __init__(self, calls: int = 10_000):
        self._calls = calls

    def takes_one(self) -> bool:
        """Return whether numpy answers this call."""
        self._calls -= 1
        return self._calls >= 0


def is_compiled_or_cached(loop: Any) -> bool:
    """Return whether a call needs no compiling.

    True if the loop was compiled in this process or an earlier one; or if it is not a numba loop
    (as with NUMBA_DISABLE_JIT=1), which is only found out once numba has been imported.
    """
    # numba's index file of a cached loop is called MODULE.NAME-LINE.VERSION.nbi.
    name = f"{loop.__module__.rpartition('.')[2]}.{loop.__name__}-*.nbi"
    if "numba" not in sys.modules and _is_surely_not_cached(loop, name):
        return False
    if not hasattr(loop, "signatures") or loop.signatures:
        return True
    # Where nothing can be written there is no cache.
    if loop.stats.cache_path is None:
        return False
    return any(Path(loop.stats.cache_path).glob(name))


def _is_surely_not_cached(loop: Any, name: str) -> bool:
    """Return whether numba, which takes half a second to import, would find no such file.

    Numba looks in a folder of `NUMBA_CACHE_DIR`, or else beside the module. Where it may not write
    there, it uses other places, and has to be asked itself.
    """
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return not any(Path(given).glob(f"*/{name}"))
    folder = Path(inspect.getfile(inspect.unwrap(loop))).parent
    return os.access(folder, os.W_OK) and not any((folder / "__pycache__").glob(name))


def plain(loops: ModuleType) -> SimpleNamespace:
    """Return the uncompiled loops of a module, which also call one another uncompiled."""
    # The copies get a global namespace of their own, in which each loop's name is its Python
    # function. As in compiled code, 1 / 0 is infinite without a warning.
    namespace = dict(vars(loops))
    functions: dict[str, Callable[..., Any]] = {}
    for name, loop in vars(loops).items():
        if hasattr(loop, "py_func"):
            namespace[name] = FunctionType(loop.py_func.__code__, namespace, name)
            functions[name] = np.errstate(all="ignore")(namespace[name])
    return SimpleNamespace(**functions)
