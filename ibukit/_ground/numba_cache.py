"""The decorator of compiled loops, which decides when numba sees them and where they are kept.

Importing numba takes as long as importing all of the package. A loop therefore imports it only when
the loop is called.

Compiling takes seconds, so loops are kept in numba's cache: beside the package, in the user's own
folder, or in `NUMBA_CACHE_DIR`. Where none of these can be written to, as in a read-only container
or for a service without a home, every process compiles the loops that it calls.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import update_wrapper
from threading import RLock
from typing import Any, TypeVar, cast

Loop = TypeVar("Loop", bound=Callable[..., Any])

# Errors of files that cannot be read or written, and of those that were cut short.
DAMAGED = (OSError, EOFError, pickle.UnpicklingError)


def njit(**options: Any) -> Callable[[Loop], Loop]:
    """Return numba's decorator with these options, and with its cache where there can be one."""

    def deferred(loop: Loop) -> Loop:
        return cast(Loop, LoopForNumba(loop, options))

    return deferred


class LoopForNumba:
    """A loop that becomes numba's own object when it is called or one of its attributes is used."""

    # Other threads wait at this lock. It is re-entrant, because numba, while it handles a loop,
    # asks in the same thread for the loops that this loop calls.
    _lock = RLock()
    _dispatcher: Any

    def __init__(self, loop: Callable[..., Any], options: dict[str, Any]):
        update_wrapper(self, loop)
        self.py_func = loop
        self._options = options

    def __call__(self, *arguments: Any) -> Any:
        return self._dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name != "_dispatcher":
            return getattr(self._dispatcher, name)
        with self._lock:
            if name not in vars(self):
                self._dispatcher = _dispatcher(self.py_func, self._options)
        return self._dispatcher


def _dispatcher(loop: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return numba's object for a loop, with its cache where there can be one."""
    import numba
    from numba.extending import typeof_impl

    # A loop finds a loop that it calls as a LoopForNumba: numba has to be told its type.
    if LoopForNumba not in typeof_impl.registry:
        typeof_impl.register(LoopForNumba)(
            lambda value, context: typeof_impl(value._dispatcher, context)
        )
    try:
        dispatcher: Any = numba.njit(cache=True, **options)(loop)
    # numba found no folder that it may write to.
    except RuntimeError:
        return numba.njit(**options)(loop)
    # With NUMBA_DISABLE_JIT=1 this is the function itself.
    if hasattr(dispatcher, "_cache"):
        _forgive(dispatcher._cache)
    return dispatcher


def _forgive(cache: Any) -> None:
    """Let a cache do without a file that it can no longer read or write.

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
