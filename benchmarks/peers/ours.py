"""`ibukit.mle` from a fresh tally to a certified estimate, and the yardsticks of the bars."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import ibukit as ik
from benchmarks.race import Answer, Contender
from benchmarks.workloads import Workload

STEPS = {"W6-plane": 20, "W6-remapped": 20, "W6-line-1e7": 3, "W4-100": 20}


def _mle(tally: ik.Tally, tol: float) -> Callable[[], Answer]:
    _ = tally.operator  # a user's tally has it: making a tally checks that each report is possible

    def call() -> Answer:
        estimate = ik.mle(tally, tol=tol)
        return Answer(estimate.distribution, estimate.n_iter, note=estimate.method)

    return call


def _steps(workload: Workload) -> Callable[[], Answer]:
    """Steps of IBU by the channel's own forward and adjoint, which use its structure."""
    tally, steps = workload.tally(), STEPS.get(workload.name, 100)
    operator, q = tally.operator, tally.frequencies

    def call() -> Answer:
        theta = np.full(tally.k, 1 / tally.k)
        for _ in range(steps):
            theta = theta * operator.adjoint(q / operator.forward(theta))
        return Answer(theta, steps, note="a yardstick: so many steps, to no gap in particular")

    return call


def _vector_pass(workload: Workload) -> Callable[[], Answer]:
    """One vector of length k times another, into a third."""
    theta, g = np.random.default_rng(1).random((2, workload.tally().k))

    def call() -> Answer:
        np.multiply(theta, g)
        return Answer()

    return call


def _sort(workload: Workload) -> Callable[[], Answer]:
    q = workload.tally().frequencies

    def call() -> Answer:
        np.argsort(q)
        return Answer()

    return call


def contenders() -> list[Contender]:
    return [
        Contender(
            "ibukit",
            lambda w: _mle(w.tally(), w.tol),
            lambda w: True,
            packages=("ibukit",),
            compiled=True,
        ),
        Contender(
            "ibukit, as a matrix",
            lambda w: _mle(w.as_matrix(), w.tol),
            suits=lambda w: w.name.startswith(("W1", "W2", "W5")),
            compiled=True,
        ),
        Contender(
            "ibukit, to 1e-6",
            lambda w: _mle(w.as_matrix() if w.name == "W1" else w.tally(), 1e-6),
            suits=lambda w: w.name.startswith(("W1", "W2", "W5")),
            compiled=True,
        ),
        Contender(
            "ibukit, IBU steps", _steps, suits=lambda w: w.name[:2] in ("W4", "W6"), compiled=True
        ),
        Contender("a pass over a vector", _vector_pass, suits=lambda w: w.name == "W3-1e6"),
        Contender("a sort", _sort, suits=lambda w: w.name == "W3-1e6"),
    ]
