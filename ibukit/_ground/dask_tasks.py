"""Run tasks on Dask workers: a window of them at a time, one at a time in each process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client

# The threads of a worker process run one task at a time. The limit of threads of linear algebra is
# one number for the whole process: a second task that sets it would change the last bits of the
# first one's sums. CPU time is also measured for the whole process.
LINALG_LOCK = threading.Lock()

# Tasks in flight for each thread of the workers: one that runs and one that waits. More would fill
# the scheduler's memory, fewer would leave threads idle between tasks.
TASKS_PER_THREAD = 2


def check_client(client: Any) -> Client:
    """Return a client of dask.distributed; TypeError if it is not one."""
    if not all(
        callable(getattr(client, name, None)) for name in ("submit", "map", "gather", "compute")
    ):
        raise TypeError(f"client must be a dask.distributed.Client, got {client!r}")
    return client


def run_on(
    client: Client, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]
) -> Generator[Any, None, None]:
    """Yield function(*task) of each task in the order of completion."""
    from distributed import as_completed

    waiting = iter(tasks)
    window = TASKS_PER_THREAD * max(1, sum(client.nthreads().values()))
    running = as_completed([_submit(client, function, task) for task in islice(waiting, window)])
    for future in running:
        # Each finished task lets the next one in, so the window stays full.
        for task in islice(waiting, 1):
            running.add(_submit(client, function, task))
        yield future.result()


def _submit(client: Client, function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    # pure=False: Dask would otherwise reuse the result of an equal call.
    return client.submit(_exclusively, function, task, pure=False)


def _exclusively(function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    with LINALG_LOCK:
        return function(*task)
