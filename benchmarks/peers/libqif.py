"""qif, the library of quantitative information flow: its IBU.

Its IBU stops when a step moves theta by less than max_diff.
"""

from __future__ import annotations

from collections.abc import Callable

from qif import channel

from benchmarks.race import SMALL_MATRIX, Answer, Contender
from benchmarks.workloads import Workload


def _prepare(workload: Workload) -> Callable[[], Answer]:
    matrix, q = workload.matrix, workload.counts / workload.counts.sum()

    def call() -> Answer:
        theta, steps = channel.iterative_bayesian_update(matrix, q, max_diff=1e-6)
        return Answer(theta, steps, note="max_diff=1e-6, its default")

    return call


def contenders() -> list[Contender]:
    return [Contender("qif IBU", _prepare, SMALL_MATRIX, packages=("qif",))]
