"""PyUnfold: D'Agostini's unfolding, which is IBU.

It also computes a covariance of (k s)^2 entries at every step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from pyunfold import iterative_unfold

from benchmarks.race import Answer, Contender, with_matrix
from benchmarks.workloads import Workload

MAX_ENTRIES = 100 * 100  # entries of the matrix; 280 x 280 would need 46 GiB


def _prepare(workload: Workload) -> Callable[[], Answer]:
    columns, q = workload.seen
    counts, k = q * workload.counts.sum(), len(columns)
    response = columns.T  # rows are effects, columns are causes
    arguments = {
        "data": counts,
        "data_err": np.sqrt(counts),
        "response": response,
        "response_err": np.sqrt(response / counts.sum()),
        "efficiencies": np.ones(k),
        "efficiencies_err": np.zeros(k),
    }

    def call() -> Answer:
        found = iterative_unfold(**arguments)
        return Answer(found["unfolded"], found["num_iterations"], note="stops by its default rule")

    return call


def contenders() -> list[Contender]:
    return [
        Contender(
            "PyUnfold",
            _prepare,
            with_matrix(MAX_ENTRIES),
            slow=lambda w: True,
            packages=("pyunfold",),
        )
    ]
