"""A race: several contenders on one workload, one after the other in every round.

A busy moment of the machine then hits all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

import numpy as np

import ibukit as ik
from benchmarks.measure import budget, clocked, peak_bytes
from benchmarks.workloads import Workload

ENOUGH = 0.01  # CPU seconds that a contender's turn lasts at least
# if a call takes longer, its first run is not a warm-up but a measurement, unless it may have
# compiled
LONG = 5.0


@dataclass(frozen=True)
class Answer:
    """What one call gave."""

    theta: np.ndarray | None = None
    iterations: int | None = None
    times: float = 1.0  # the clock is multiplied by this: steps needed / steps run
    gap: float | None = None  # where it is known beforehand; otherwise it is computed from theta
    seconds: float | None = None  # by a clock of its own, for a program that runs elsewhere
    note: str = ""


def with_matrix(
    entries: float = np.inf, secrets: float = np.inf, square: bool = False
) -> Callable[[Workload], bool]:
    """A test for workloads that have a dense matrix within these limits."""

    def suits(workload: Workload) -> bool:
        if workload.matrix is None:
            return False
        k, m = workload.matrix.shape
        return k * m <= entries and k <= secrets and (k == m or not square)

    return suits


ANY_MATRIX = with_matrix()
# a matrix so small that even the slow contenders take seconds, not minutes
SMALL_MATRIX = with_matrix(entries=10**5)


@dataclass(frozen=True)
class Contender:
    """A solver in the race.

    `prepare` does, off the clock, what the solver's user has done already, and returns the call to
    be timed.
    """

    name: str
    prepare: Callable[[Workload], Callable[[], Answer]]
    suits: Callable[[Workload], bool] = ANY_MATRIX
    slow: Callable[[Workload], bool] = lambda workload: False  # left out of a quick run
    packages: tuple[str, ...] = ()
    compiled: bool = (
        False  # by numba: if nobody called it before, its first call includes compiling
    )


@dataclass
class Row:
    """One contender's line of the table."""

    workload: str
    contender: str
    seconds: float | None = None
    iterations: int | None = None
    gap: float | None = None
    rounds: int = 0
    memory: float | None = None  # in the workload's unit
    note: str = ""


@dataclass
class _Lane:
    contender: Contender
    row: Row
    samples: list[float] = field(default_factory=list)
    answer: Answer = field(default_factory=Answer)
    spent: float = 0.0
    out: bool = False

    def run(self, workload: Workload, limit: float) -> float:
        call = self.contender.prepare(workload)
        with budget(limit):
            self.answer, clock = clocked(call)
        clock = clock if self.answer.seconds is None else self.answer.seconds
        self.spent += clock
        return clock * self.answer.times

    def turn(self, workload: Workload, limit: float) -> None:
        start = self.spent
        while self.spent - start < ENOUGH and len(self.samples) < 10_000:
            self.samples.append(self.run(workload, limit))


def race(workload: Workload, contenders: list[Contender], rounds: int, limit: float) -> list[Row]:
    """Median CPU seconds, iterations and certified gap of each contender.

    Each call may take `limit` CPU seconds.
    """
    lanes = [_Lane(contender, Row(workload.name, contender.name)) for contender in contenders]
    for number in range(-1, rounds):
        for lane in lanes[number % len(lanes) :] + lanes[: number % len(lanes)]:
            if lane.out or (lane.samples and lane.spent > limit / 8):
                continue
            try:
                if number < 0:  # compiles, fills caches
                    first = lane.run(workload, limit)
                    if lane.contender.compiled:
                        lane.spent = 0.0
                    lane.samples = [first] if lane.spent > LONG else []
                else:
                    lane.turn(workload, limit)
            except Exception as error:  # whatever a solver stumbles over is a line of the table
                lane.out = True
                lane.row.note = f"{type(error).__name__}: {error}".splitlines()[0][:100]
    for lane in lanes:
        if not lane.out:
            _finish(lane, workload)
    return [lane.row for lane in lanes]


def _finish(lane: _Lane, workload: Workload) -> None:
    answer, row = lane.answer, lane.row
    row.seconds, row.rounds = median(lane.samples), len(lane.samples)
    row.iterations, row.note = answer.iterations, answer.note
    row.gap = (
        certify(workload, answer.theta)
        if answer.gap is None and answer.theta is not None
        else answer.gap
    )
    if workload.unit and lane.contender.name == "ibukit":
        peak = peak_bytes(lane.contender.prepare(workload))
        row.memory = None if peak is None else peak / workload.unit[1](workload.tally())


def certify(workload: Workload, theta: np.ndarray) -> float:
    """max_x g_x - 1 on the vector made a distribution: no solver's own claim counts."""
    theta = np.maximum(theta, 0)
    theta = theta / theta.sum()
    if workload.matrix is None:
        return float(np.expm1(ik.gap(workload.tally(), theta)))
    columns, q = workload.seen
    with np.errstate(divide="ignore"):
        return float((columns @ (q / (theta @ columns))).max() - 1)
