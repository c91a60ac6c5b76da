"""Threads: linear algebra runs on one, and large passes are shared among several on request.

BLAS adds in another order for each number of threads, so results would depend on the machine and on
OMP_NUM_THREADS; for the small matrices of this package more threads are also slower. `one_thread`
therefore sets BLAS to one thread. Inside ``scipy.fft.set_workers(n)`` passes over many reports are
cut into pieces for n threads; the results of the pieces are added in a fixed order, so the digits
stay the same.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from functools import partial
from threading import Lock, get_ident
from typing import Any, Generic, Protocol, TypeVar

from threadpoolctl import ThreadpoolController

Piece = TypeVar("Piece")
Result = TypeVar("Result")
Share = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
# Poll interval of idle threads, in seconds: short against a stage of a convolution (about 1 ms),
# long against one poll (below 1 microsecond).
POLL_SECONDS = 2e-5


class Library(Protocol):
    """The part of threadpoolctl's interface to a BLAS library that is used here."""

    @property
    def num_threads(self) -> int: ...

    def set_num_threads(self, num_threads: int) -> None: ...


class _Entry:
    """A thread inside the limit: its depth of nesting, and the numbers of threads to restore."""

    def __init__(self, threads_before: list[int]):
        self.depth = 1
        self.threads_before = threads_before


class OneThread:
    """A reentrant limit of one BLAS thread, which several threads may hold at a time.

    Most libraries have one number of threads for the whole process. The thread that enters first
    finds the user's number. If it leaves while others are still inside, it hands the duty to
    restore that number over to them. (The limit of threadpoolctl itself would leave the number at 1
    for ever when two threads overlap.)
    """

    def __init__(self, libraries: Sequence[Library]):
        self._libraries = libraries
        self._inside: dict[int, _Entry] = {}
        self._lock = Lock()
        # Since threadpoolctl 3.8 the first thread that sets OpenBLAS is the only one that can,
        # until control is released; calls of other threads do nothing. So control stays with the
        # thread while the limit is open, and is released before the number has to be set again.
        held = (getattr(library, "clear_controlling_thread", None) for library in libraries)
        self._holders = [release for release in dict.fromkeys(held) if release is not None]

    def _release(self) -> None:
        """Let any thread set the number of threads again."""
        for release in self._holders:
            release(force=True)

    def __enter__(self) -> None:
        with self._lock:
            entry = self._inside.get(get_ident())
            if entry is not None:
                entry.depth += 1
                return
            threads_before = [library.num_threads for library in self._libraries]
            self._inside[get_ident()] = _Entry(threads_before)
            try:
                for library, number in zip(self._libraries, threads_before, strict=True):
                    if number != 1:
                        self._set(library, 1)
            # BaseException includes Ctrl-C. Python calls __exit__ only if __enter__ returned.
            except BaseException:
                self._leave(get_ident())
                raise

    def __exit__(self, *error: object) -> None:
        with self._lock:
            entry = self._inside[get_ident()]
            entry.depth -= 1
            if not entry.depth:
                self._leave(get_ident())

    def _leave(self, thread: int) -> None:
        """Restore the numbers of threads, or leave that to a thread that is still inside."""
        threads_before = self._inside.pop(thread).threads_before
        for other in self._inside.values():
            for i, number in enumerate(threads_before):
                # If the other thread found 1, our limit, both share one number, and it restores
                # ours. If it found another number, as with MKL, each thread restores its own.
                if other.threads_before[i] == 1:
                    other.threads_before[i], threads_before[i] = number, 1
        for library, number in zip(self._libraries, threads_before, strict=True):
            if number != 1:
                self._set(library, number)
        if not self._inside:
            self._release()

    def _set(self, library: Library, number: int) -> None:
        library.set_num_threads(number)
        # If another thread, which may work elsewhere now, is in control, the call did nothing.
        if library.num_threads != number:
            self._release()
            library.set_num_threads(number)

    def before_fork(self) -> None:
        """Wait until no other thread is in the middle of entering or leaving."""
        self._lock.acquire()

    def after_fork(self, child: bool) -> None:
        """Release the lock; in the child process, forget the threads that do not exist there."""
        if child:
            for thread in [thread for thread in self._inside if thread != get_ident()]:
                self._leave(thread)
        self._lock.release()


# The one limit of the process, made at its first use: two limits would not know of each other.
_LIMIT: dict[str, OneThread] = {}


def _limit_of_loaded_libraries() -> OneThread:
    # scipy has a BLAS of its own, which threadpoolctl sees only once it is loaded.
    import scipy.linalg  # noqa: F401

    # Listing the loaded libraries takes 2 ms, so it is done once.
    limit = OneThread(ThreadpoolController().select(user_api="blas").lib_controllers)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=limit.before_fork,
            after_in_parent=lambda: limit.after_fork(child=False),
            after_in_child=lambda: limit.after_fork(child=True),
        )
    return limit


def one_thread() -> AbstractContextManager[None]:
    """Return a context manager in which BLAS runs on one thread and adds in one order."""
    return _LIMIT.get("blas") or _LIMIT.setdefault("blas", _limit_of_loaded_libraries())


class _Pools:
    """One pool for each number of threads in use, kept for the life of the process.

    A new thread begins on the core of the thread that made it, and the system takes some
    milliseconds to move it: as long as a pass over a million reports.
    """

    def __init__(self) -> None:
        self._pools: dict[int, ThreadPoolExecutor] = {}
        self._lock = Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        # The threads of a pool do not exist in a forked child.
        self._pools, self._lock = {}, Lock()

    def of(self, threads: int) -> ThreadPoolExecutor:
        with self._lock:
            if threads not in self._pools:
                self._pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="ibukit")
            return self._pools[threads]


_POOLS = _Pools()


def _in_context(work: Callable[[Piece], Result], piece: Piece) -> Callable[[], Result]:
    """Bind work(piece) to a copy of the caller's context, which includes `numpy.errstate`."""
    return partial(copy_context().run, work, piece)


def in_order(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], worth_sharing: bool = True
) -> Iterator[Result]:
    """Yield work(piece) of each piece in the order of the pieces.

    The sum of the results is therefore the same to the last bit for any number of threads.

    Inside `scipy.fft.set_workers(n)`, which also sets the threads of Fourier transforms, n threads
    share the pieces; the calling thread is one of them. Otherwise the caller works alone. At most
    2 n results are held at a time. Handing a piece over takes about 50 microseconds.
    """
    from scipy import fft

    threads = fft.get_workers()
    if threads == 1 or not worth_sharing:
        yield from map(work, pieces)
        return
    pool, waiting = _POOLS.of(threads - 1), deque[_Share[Piece, Result]]()
    try:
        for piece in pieces:
            waiting.append(_Share(pool, work, piece))
            if len(waiting) == 2 * threads:
                yield _next(waiting)
        while waiting:
            yield _next(waiting)
    finally:
        # A piece failed, or the caller wants no more. Pieces that have begun are waited for; the
        # others are cancelled, since the pool's threads may be busy with another caller's work.
        wait([share.future for share in waiting if not share.future.cancel()])


class _Share(Generic[Piece, Result]):
    """A piece of work, taken by a thread of the pool or by the caller, whichever is free first."""

    def __init__(self, pool: ThreadPoolExecutor, work: Callable[[Piece], Result], piece: Piece):
        self._work, self._piece = work, piece
        self.future: Future[Result] = pool.submit(_in_context(work, piece))

    def take(self) -> bool:
        """Do the work in this thread and return True; if another has begun it, return False."""
        # cancel() succeeds only for work that no thread of the pool has begun.
        if not self.future.cancel():
            return False
        from scipy import fft

        self.future = Future()
        try:
            # scipy keeps the number of workers for each thread: the pool's threads also need one.
            with fft.set_workers(1):
                self.future.set_result(self._work(self._piece))
        # The future raises this error when the result is due in the order of the pieces.
        except Exception as error:
            self.future.set_exception(error)
        return True


def _next(waiting: deque[_Share[Piece, Result]]) -> Result:
    """Return the result of the first piece; the calling thread works while it waits."""
    for share in list(waiting):
        if waiting[0].future.done():
            break
        share.take()
    return waiting.popleft().future.result()


class Team:
    """The calling thread and some helpers, which poll for the next piece until all is done.

    The stages of a convolution take a millisecond or two. A thread that is woken for each of them
    may begin on the core of the thread that woke it, and wait there for as long until the system
    moves it; a thread that polls keeps a core of its own.
    """

    def __init__(self) -> None:
        self._pieces: deque[Callable[[], None]] = deque()
        self.is_done = False

    def work_until_done(self) -> None:
        """Work on pieces, as a helper, until the team is dissolved."""
        while not self.is_done:
            if not self._work_on_one():
                time.sleep(POLL_SECONDS)

    def _work_on_one(self) -> bool:
        """Work on the next piece; return False if there is none."""
        # popleft is atomic, so each piece goes to one thread.
        try:
            piece = self._pieces.popleft()
        except IndexError:
            return False
        piece()
        return True

    def share(self, work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
        """Return work(piece) of each piece in their order, or raise the first error."""
        results: list[Any] = [None] * len(pieces)
        # One token for each unfinished piece; pop() is atomic, a counter would need a lock.
        unfinished, errors = deque(range(len(pieces))), dict[int, BaseException]()

        def work_on(number: int) -> None:
            try:
                results[number] = work(pieces[number])
            except BaseException as error:
                errors[number] = error
            finally:
                unfinished.pop()

        self._pieces.extend(_in_context(work_on, number) for number in range(len(pieces)))
        while unfinished:
            if not self._work_on_one():
                time.sleep(POLL_SECONDS)
        if errors:
            raise errors[min(errors)]
        return results


@contextmanager
def team(worth_sharing: bool) -> Iterator[Share]:
    """Yield ``share(work, pieces)``, which uses the threads of `scipy.fft.set_workers`."""
    from scipy import fft

    threads = fft.get_workers()
    if threads == 1 or not worth_sharing:
        yield lambda work, pieces: list(map(work, pieces))
        return
    own, pool = Team(), _POOLS.of(threads - 1)
    helpers = [pool.submit(own.work_until_done) for _ in range(threads - 1)]
    try:
        # The helpers' threads also have one worker each.
        with fft.set_workers(1):
            yield own.share
    finally:
        own.is_done = True
        # Helpers that have begun are waited for; the others are cancelled, since their threads may
        # be busy with the team of another caller.
        wait([helper for helper in helpers if not helper.cancel()])
