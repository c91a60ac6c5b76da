"""Plain IBU on a dense matrix, in numpy and in compiled loops.

Plain IBU takes up to tens of millions of steps to a gap of 1e-10. So its steps were counted once
(count_steps.py); the race times a fair number of steps and multiplies.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np

from benchmarks.race import Answer, Contender
from benchmarks.workloads import Workload

COUNTED = Path(__file__).resolve().parents[1] / "results" / "ibu_steps.csv"
STEPS = 500
TINY = 1e-300  # smaller numbers never vanish by themselves, and processors are slow with them


def counted(workload: str) -> dict[float, int]:
    """Tolerance -> steps until the certified gap is below it."""
    if not COUNTED.exists():
        return {}
    with COUNTED.open(newline="") as file:
        return {
            float(row["gap"]): int(row["steps"])
            for row in csv.DictReader(file)
            if row["workload"] == workload
        }


def numpy_steps(columns: np.ndarray, q: np.ndarray, theta: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        theta = theta * (columns @ (q / (theta @ columns)))
    return theta


@numba.njit(cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
def ibu_loops(columns, q, theta, steps, tol):
    """Up to `steps` steps in place, row by row, or to a gap of at most tol: (steps, gap)."""
    k, s = columns.shape
    ratio, g = np.empty(s), np.empty(k)
    gap = np.inf
    for step in range(steps):
        ratio[:] = 0.0
        for x in range(k):
            weight = theta[x]
            for z in range(s):
                ratio[z] += weight * columns[x, z]
        for z in range(s):
            ratio[z] = q[z] / ratio[z]
        for x in range(k):
            total = 0.0
            for z in range(s):
                total += columns[x, z] * ratio[z]
            g[x] = total
        gap = g.max() - 1.0
        if gap <= tol:
            return step, gap
        for x in range(k):
            theta[x] = theta[x] * g[x] if theta[x] > TINY else 0.0
    return steps, gap


def compiled_steps(columns: np.ndarray, q: np.ndarray, theta: np.ndarray, steps: int) -> np.ndarray:
    ibu_loops(columns, q, theta, steps, -1.0)
    return theta


def _contender(name: str, run: Callable[..., np.ndarray], package: str) -> Contender:
    def prepare(workload: Workload) -> Callable[[], Answer]:
        columns, q = workload.seen
        tol = min(counted(workload.name))
        needed = counted(workload.name)[tol]
        start = np.full(len(columns), 1 / len(columns))

        def call() -> Answer:
            run(columns, q, start, STEPS)
            return Answer(
                None, needed, needed / STEPS, tol, note="seconds of a step x steps counted once"
            )

        return call

    suits, compiled = (lambda w: bool(counted(w.name))), package == "numba"
    return Contender(name, prepare, suits, packages=(package,), compiled=compiled)


def contenders() -> list[Contender]:
    return [
        _contender("numpy IBU", numpy_steps, "numpy"),
        _contender("numba IBU", compiled_steps, "numba"),
    ]
