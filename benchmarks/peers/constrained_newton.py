"""Constrained Newton steps by scipy's nnls (Wang 2007, J. R. Statist. Soc. B 69, 185-198).

Each step maximises a parabola, whose candidates are the secrets with mass and the local maxima of
the gradient.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import nnls

from benchmarks.race import Answer, Contender
from benchmarks.workloads import Workload

MAX_STEPS = 200
NO_MASS = 1e-12
SHORTEST = 1e-10


def maximise(columns: np.ndarray, q: np.ndarray, tol: float) -> tuple[np.ndarray, int]:
    """The distribution, and the number of steps."""
    k, s = columns.shape
    theta = np.full(k, NO_MASS)
    theta[np.argsort(columns @ (q / columns.mean(axis=0)))[-max(2, s // 8) :]] += 1
    theta /= theta.sum()
    weight = 1e3 * np.sqrt(q.max())  # of the row that holds the sum at one
    step = 0
    while step < MAX_STEPS:
        p = theta @ columns
        g = columns @ (q / p)
        if g.max() - 1 <= tol:
            break
        peaks = (g >= np.roll(g, 1)) & (g >= np.roll(g, -1)) & (g > 1)
        atoms = np.union1d(np.flatnonzero(peaks | (theta > NO_MASS)), g.argmax())
        rows = np.vstack(
            [(columns[atoms] / p).T * np.sqrt(q)[:, None], np.full(len(atoms), weight)]
        )
        found, _ = nnls(rows, np.append(2 * np.sqrt(q), weight), maxiter=30 * len(atoms) + 100)
        aim = np.zeros(k)
        aim[atoms] = found / found.sum()
        slope, before, length = g @ (aim - theta), q @ np.log(p), 1.0
        fit = aim @ columns
        while length > SHORTEST:
            between = (1 - length) * p + length * fit
            if between.min() > 0 and q @ np.log(between) >= before + length * slope / 3:
                break
            length /= 2
        theta = (1 - length) * theta + length * aim
        step += 1
    return theta, step


def _prepare(workload: Workload) -> Callable[[], Answer]:
    columns, q = workload.seen
    return lambda: Answer(*maximise(columns, q, float(np.expm1(workload.tol))))


def contenders() -> list[Contender]:
    return [Contender("constrained Newton by nnls", _prepare, packages=("scipy",))]
