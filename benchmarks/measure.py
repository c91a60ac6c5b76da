"""CPU seconds of one process, a limit on them, and the memory that a call takes."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import resource
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


class OverBudget(Exception):
    """A call used more CPU seconds than it was given."""


@contextlib.contextmanager
def budget(seconds: float) -> Iterator[None]:
    """Interrupt after `seconds` of CPU time, as soon as the interpreter is in control again.

    A timer of wall time looks at the CPU seconds twice a second, because Linux counts CPU time in
    whole ticks while a timer of CPU time runs.
    """
    start = time.process_time()

    def look(*_: Any) -> None:
        if time.process_time() - start > seconds:
            raise OverBudget(f"stopped after {seconds:g} CPU seconds")

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def clocked(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and the CPU seconds of all threads of this process."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def limit_memory(n_bytes: int) -> None:
    """Limit the memory, so that a call beyond it raises MemoryError before the machine swaps."""
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))


def peak_bytes(call: Callable[[], Any]) -> int | None:
    """Highest resident memory during the call less that before it; None if Linux does not tell."""
    if not CLEAR.exists():
        return None
    # Garbage that is collected during the call would hide what it takes.
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)  # what earlier calls freed would hide what this one takes
    CLEAR.write_text("5", encoding="utf-8")  # the high-water mark starts again
    before = _resident("VmRSS")
    call()
    return _resident("VmHWM") - before


def _resident(entry: str) -> int:
    (line,) = (
        line for line in STATUS.read_text(encoding="utf-8").splitlines() if line.startswith(entry)
    )
    return 1024 * int(line.split()[1])
