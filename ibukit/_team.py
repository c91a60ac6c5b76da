"""Threads that stay awake from one stage of some work to the next.

The stages of a convolution take a millisecond or two. A thread that is woken for each of them may begin on the core of
the one that woke it, where it waits for as long until the system moves it; one that looks up again and again is on a
core of its own.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from typing import Any, TypeVar

from ibukit._threads import POOLS, in_a_copy

# seconds between two looks for work: a share of a stage, and many times what a look takes
NAP = 2e-5
Piece = TypeVar("Piece")
Result = TypeVar("Result")


class Team:
    """The calling thread and some companions, who look for the next piece until all is done."""

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

        self._pieces.extend(in_a_copy(one, number) for number in range(len(pieces)))
        while left:
            if not self._one():
                time.sleep(NAP)
        if errors:
            raise errors[min(errors)]
        return found


@contextmanager
def team(worth_sharing: bool) -> Iterator[Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]]:
    """share(work, pieces) for stages one after the other, by the threads of `scipy.fft.set_workers`, or by one."""
    from scipy import fft

    threads = fft.get_workers()
    if threads == 1 or not worth_sharing:
        yield lambda work, pieces: list(map(work, pieces))
        return
    own, pool = Team(), POOLS.of(threads - 1)
    companions = [pool.submit(own.accompany) for _ in range(threads - 1)]
    try:
        with fft.set_workers(1):  # as in the companions' threads
            yield own.share
    finally:
        own.is_done = True
        # those that have begun: others wait for a thread that may be with the team of another caller
        wait([companion for companion in companions if not companion.cancel()])
