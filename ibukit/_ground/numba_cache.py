"""The decorator of compiled loops, which decides whether they are kept on the disk.

Compiling takes seconds, so loops are kept in numba's cache: beside the package, in the user's own
folder, or in `NUMBA_CACHE_DIR`. Where none of these can be written to, as in a read-only container
or for a service without a home, every process compiles the loops that it calls.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

import numba

Loop = TypeVar("Loop", bound=Callable[..., Any])

# Errors of files that cannot be read or written, and of those that were cut short.
DAMAGED = (OSError, EOFError, pickle.UnpicklingError)


def njit(**options: Any) -> Callable[[Loop], Loop]:
    """Return numba's decorator with these options, and with its cache where there can be one."""

    def compiled(loop: Loop) -> Loop:
        try:
            dispatcher: Any = numba.njit(cache=True, **options)(loop)
        # numba found no folder that it may write to.
        except RuntimeError:
            return numba.njit(**options)(loop)
        # With NUMBA_DISABLE_JIT=1 this is the function itself.
        if hasattr(dispatcher, "_cache"):
            _forgive(dispatcher._cache)
        return dispatcher

    return compiled


def _forgive(cache: Any) -> None:
    """Let a cache go without a file that it can no longer read or write.

    The disk may be full by now, the process may have become another user, or a file was cut short
    when the power failed.
    """
    load, save = cache.load_overload, cache.save_overload

    def load_overload(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except DAMAGED:
            return None

    def save_overload(*arguments: Any) -> None:
        try:
            save(*arguments)
        except DAMAGED:
            return

    cache.load_overload, cache.save_overload = load_overload, save_overload
