"""multi-freq-ldpy: its IBU, which is right for symmetric matrices only.

It uses the matrix where the transpose belongs.
"""

from __future__ import annotations

from collections.abc import Callable

from multi_freq_ldpy.estimators.Histogram_estimator import IBU

from benchmarks.race import Answer, Contender, with_matrix
from benchmarks.workloads import Workload

STEPS = 10_000  # its default; the tolerance, also its default, is never met before


def _prepare(workload: Workload) -> Callable[[], Answer]:
    matrix, q = workload.matrix, workload.counts / workload.counts.sum()

    def call() -> Answer:
        theta = IBU(len(matrix), matrix, q, STEPS, 1e-12, "max_abs")
        return Answer(theta, STEPS, note="default settings; right only for a symmetric matrix")

    return call


def contenders() -> list[Contender]:
    return [
        Contender(
            "multi-freq-ldpy IBU",
            _prepare,
            with_matrix(square=True),
            slow=lambda w: True,
            packages=("multi-freq-ldpy",),
        )
    ]
