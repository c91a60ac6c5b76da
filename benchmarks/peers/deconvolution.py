"""scikit-image: Richardson-Lucy, which is IBU for noise that is the same everywhere.

It has no stopping rule.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from skimage.restoration import richardson_lucy

from benchmarks.race import Answer, Contender
from benchmarks.workloads import Workload

STEPS = 1000


def _prepare(workload: Workload) -> Callable[[], Answer]:
    # the factors of the columns cancel in IBU, so the truncated geometric is a convolution by
    # decay^|offset|
    mechanism = workload.tally().parts[0].mechanism
    kernel = mechanism.decay ** np.abs(np.arange(1 - mechanism.k, mechanism.k))
    q = workload.counts / workload.counts.sum()

    def call() -> Answer:
        return Answer(
            richardson_lucy(q, kernel, STEPS, clip=False), STEPS, note="steps chosen by hand"
        )

    return call


def contenders() -> list[Contender]:
    return [
        Contender(
            "scikit-image R-L", _prepare, lambda w: w.name == "W1", packages=("scikit-image",)
        )
    ]
