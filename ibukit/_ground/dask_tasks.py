"""Tasks on Dask workers: a window of them at a time, each alone in its process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client

# The threads of a worker take turns. Linear algebra has the same bits only while nobody changes its
# threads, and CPU time is the process's.
TURNS = threading.Lock()

# tasks handed over for each thread of the workers: one that runs and one that waits
TASKS_A_THREAD = 2


def check_client(client: Any) -> Client:
    """A client of dask.distributed, or TypeError."""
    if not all(
        callable(getattr(client, name, None)) for name in ("submit", "map", "gather", "compute")
    ):
        raise TypeError(f"client must be a dask.distributed.Client, got {client!r}")
    found: Client = client
    return found


def run_on(
    client: Client, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]
) -> Generator[Any, None, None]:
    """function(*task) of each task as soon as it is there, whichever comes first."""
    from distributed import as_completed

    waiting = iter(tasks)
    window = TASKS_A_THREAD * max(1, sum(client.nthreads().values()))
    running = as_completed([_submit(client, function, task) for task in islice(waiting, window)])
    for future in running:
        for task in islice(waiting, 1):
            running.add(_submit(client, function, task))
        yield future.result()


def _submit(client: Client, function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    return client.submit(_alone, function, task, pure=False)


def _alone(function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    with TURNS:
        return function(*task)
