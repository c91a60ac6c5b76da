"""SQUAREM, extrapolated steps of IBU (Varadhan and Roland 2008, Scand. J. Statist. 35, 335-353)."""

from __future__ import annotations

import numpy as np

MAX_STEPS = 1_000_000


def maximise(columns: np.ndarray, q: np.ndarray, tol: float) -> tuple[np.ndarray, int]:
    """The distribution, and the number of steps of IBU."""
    theta, steps = np.full(len(columns), 1 / len(columns)), 0
    while steps < MAX_STEPS:
        g = columns @ (q / (theta @ columns))
        if g.max() - 1 <= tol:
            break
        first = theta * g
        second = first * (columns @ (q / (first @ columns)))
        change, bend = first - theta, second - 2 * first + theta
        length = -np.sqrt(change @ change / max(bend @ bend, 1e-300))
        steps += 3
        while True:
            ahead = theta - 2 * length * change + length**2 * bend
            if length > -1.01 or ahead.min() >= 0:
                break
            length = (length - 1) / 2
        if length > -1.01:
            theta = second
            continue
        # A step of IBU brings what was extrapolated back towards the likelihood's ridge.
        ahead = ahead / ahead.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = ahead * (columns @ (q / (ahead @ columns)))
            better = q @ np.log(ahead @ columns) >= q @ np.log(second @ columns)
        theta = ahead if better else second
    return theta, steps
