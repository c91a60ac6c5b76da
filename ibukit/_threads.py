"""One thread for linear algebra: the same digits whatever the setting, and no threads that fight over small work."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    # scipy has a BLAS of its own, which must be loaded to be seen
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()  # looks at the loaded libraries once, in 2 ms; a limit then takes 10 microseconds


def one_thread() -> AbstractContextManager[object]:
    """While this is open BLAS runs on one thread, and its sums are in the same order whatever OMP_NUM_THREADS says."""
    limit: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limit
