"""One thread for linear algebra: the same digits whatever the setting, and no threads that fight over small work.

Passes over many reports share their pieces among threads where the user asks for that, with the
same digits.
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
# seconds between two looks for work: a share of a stage, and many times what a look takes
NAP = 2e-5


class Library(Protocol):
    """What threadpoolctl offers for each library of linear algebra."""

    @property
    def num_threads(self) -> int: ...

    def set_num_threads(self, num_threads: int) -> None: ...


class _Visit:
    """A thread that is inside: how deep, and to how many threads each library is set when it has left."""

    def __init__(self, found: list[int]):
        self.depth = 1
        self.found = found


class OneThread:
    """A limit of one thread that may be open any number of times, in one thread and in several.

    Most libraries have one number of threads for the whole process. Whoever came in first has found
    the number of the user; if others are still inside when that thread leaves, the number is theirs
    to restore.
    """

    def __init__(self, libraries: Sequence[Library]):
        self._libraries = libraries
        self._inside: dict[int, _Visit] = {}
        self._lock = Lock()
        # since threadpoolctl 3.8 the first thread to set OpenBLAS is the only one that can, until
        # it is released: calls of others do nothing. So it stays while the limit is open, and goes
        # where the number has to be set again
        held = (getattr(library, "clear_controlling_thread", None) for library in libraries)
        self._holders = [release for release in dict.fromkeys(held) if release is not None]

    def _release(self) -> None:
        for release in self._holders:
            release(force=True)

    def __enter__(self) -> None:
        with self._lock:
            visit = self._inside.get(get_ident())
            if visit is not None:
                visit.depth += 1
                return
            found = [library.num_threads for library in self._libraries]
            self._inside[get_ident()] = _Visit(found)
            try:
                for library, number in zip(self._libraries, found, strict=True):
                    if number != 1:
                        self._set(library, 1)
            except BaseException:  # as by Ctrl-C: without an entry there is no exit
                self._leave(get_ident())
                raise

    def __exit__(self, *error: object) -> None:
        with self._lock:
            visit = self._inside[get_ident()]
            visit.depth -= 1
            if not visit.depth:
                self._leave(get_ident())

    def _leave(self, thread: int) -> None:
        found = self._inside.pop(thread).found
        for other in self._inside.values():
            for i, number in enumerate(found):
                # it found the limit that had been set before it came: they share the number. Where
                # it found another, as with MKL, each thread has a number of its own and restores
                # that
                if other.found[i] == 1:
                    other.found[i], found[i] = number, 1
        for library, number in zip(self._libraries, found, strict=True):
            if number != 1:
                self._set(library, number)
        if not self._inside:
            self._release()

    def _set(self, library: Library, number: int) -> None:
        library.set_num_threads(number)
        if (
            library.num_threads != number
        ):  # another thread set it last, which may be at work elsewhere now
            self._release()
            library.set_num_threads(number)

    def before_fork(self) -> None:
        """Let no other thread be half way in or out."""
        self._lock.acquire()

    def after_fork(self, child: bool) -> None:
        """Go on; in the child the other threads are gone."""
        if child:
            for thread in [thread for thread in self._inside if thread != get_ident()]:
                self._leave(thread)
        self._lock.release()


_LIMIT: dict[str, OneThread] = {}  # one for the process: two would not know of each other


def _found() -> OneThread:
    # scipy has a BLAS of its own, which must be loaded to be seen
    import scipy.linalg  # noqa: F401

    # looks at the loaded libraries once, in 2 ms
    limit = OneThread(ThreadpoolController().select(user_api="blas").lib_controllers)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=limit.before_fork,
            after_in_parent=lambda: limit.after_fork(child=False),
            after_in_child=lambda: limit.after_fork(child=True),
        )
    return limit


def one_thread() -> AbstractContextManager[None]:
    """While this is open BLAS runs on one thread, and its sums are in the same order whatever OMP_NUM_THREADS says."""
    return _LIMIT.get("blas") or _LIMIT.setdefault("blas", _found())


class _Pools:
    """A pool for each number of threads that was asked for, which stays.

    New threads begin on the core of the thread that made them, and it takes the system some
    milliseconds to move them: as long as a pass over a million reports.
    """

    def __init__(self) -> None:
        self._pools: dict[int, ThreadPoolExecutor] = {}
        self._lock = Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._pools, self._lock = {}, Lock()  # of a pool's threads none is in a child

    def of(self, threads: int) -> ThreadPoolExecutor:
        with self._lock:
            if threads not in self._pools:
                self._pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="ibukit")
            return self._pools[threads]


_POOLS = _Pools()


def _in_a_copy(work: Callable[[Piece], Result], piece: Piece) -> Callable[[], Result]:
    """The call in a context of its own: what numpy does about a division by 0 is the caller's decision."""
    return partial(copy_context().run, work, piece)


def in_order(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], worth_sharing: bool = True
) -> Iterator[Result]:
    """work(piece) of each piece, in the order of the pieces: whoever adds them up gets the same bits.

    Inside `scipy.fft.set_workers(n)`, which also sets the threads of Fourier transforms, n threads
    share the pieces, one of which is the caller's. Without it there is one. At most 2 n results are
    kept at a time. To hand a piece over takes some 50 microseconds.
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
    finally:  # where a piece failed or nobody wants the rest
        # those under way: others wait for a thread that may be with another caller, or are what the
        # caller broke off
        wait([share.future for share in waiting if not share.future.cancel()])


class _Share(Generic[Piece, Result]):
    """A piece that whoever is free first takes: a thread of the pool, or the caller, who would wait for it."""

    def __init__(self, pool: ThreadPoolExecutor, work: Callable[[Piece], Result], piece: Piece):
        self._work, self._piece = work, piece
        self.future: Future[Result] = pool.submit(_in_a_copy(work, piece))

    def take(self) -> bool:
        """Work on it here and now, unless somebody does or did."""
        if not self.future.cancel():
            return False
        from scipy import fft

        self.future = Future()
        try:
            with fft.set_workers(1):  # as in the threads of the pool
                self.future.set_result(self._work(self._piece))
        except Exception as error:  # raised where its turn is
            self.future.set_exception(error)
        return True


def _next(waiting: deque[_Share[Piece, Result]]) -> Result:
    """The first one's result. Until it is there the calling thread works, too: to wake one more would take longer."""
    for share in list(waiting):
        if waiting[0].future.done():
            break
        share.take()
    return waiting.popleft().future.result()


class Team:
    """The calling thread and some companions, who look for the next piece until all is done.

    The stages of a convolution take a millisecond or two. A thread that is woken for each of them
    may begin on the core of the one that woke it, where it waits for as long until the system moves
    it; one that looks up again and again is on a core of its own.
    """

    def __init__(self) -> None:
        self._pieces: deque[Callable[[], None]] = deque()
        self.is_done = False

    def accompany(self) -> None:
        """What a companion does."""
        while not self.is_done:
            if not self._one():
                time.sleep(NAP)

    def _one(self) -> bool:
        try:
            piece = self._pieces.popleft()
        except IndexError:
            return False
        piece()
        return True

    def share(self, work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
        """Work on each piece by whoever is free; the results in the order of the pieces, or the first error."""
        found: list[Any] = [None] * len(pieces)
        left, errors = deque(range(len(pieces))), dict[int, BaseException]()

        def one(number: int) -> None:
            try:
                found[number] = work(pieces[number])
            except BaseException as error:
                errors[number] = error
            finally:
                left.pop()

        self._pieces.extend(_in_a_copy(one, number) for number in range(len(pieces)))
        while left:
            if not self._one():
                time.sleep(NAP)
        if errors:
            raise errors[min(errors)]
        return found


@contextmanager
def team(worth_sharing: bool) -> Iterator[Share]:
    """share(work, pieces) for stages one after the other, by the threads of `scipy.fft.set_workers`, or by one."""
    from scipy import fft

    threads = fft.get_workers()
    if threads == 1 or not worth_sharing:
        yield lambda work, pieces: list(map(work, pieces))
        return
    own, pool = Team(), _POOLS.of(threads - 1)
    companions = [pool.submit(own.accompany) for _ in range(threads - 1)]
    try:
        with fft.set_workers(1):  # as in the companions' threads
            yield own.share
    finally:
        own.is_done = True
        # those that have begun: others wait for a thread that may be with the team of another
        # caller
        wait([companion for companion in companions if not companion.cancel()])
