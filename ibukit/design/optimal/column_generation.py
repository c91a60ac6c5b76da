"""The best private channel on a path too long for a list of its columns: those that matter are found by their price.

A design of some columns comes with a tangent of the criterion. Where no column at all scores more
on it than those of the design, no design of all columns is better; where one does, it joins them,
and the bound says how much is left.
"""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.design.optimal.column_weights import Criterion, spread_design
from ibukit.design.optimal.path_pricing import Path
from ibukit.fisher_information import contrasts

MAX_ROUNDS = 100
# the rounds end where no columns left out can lower the criterion by more than this share of it
LEFT_TO_LOWER = 1e-9
# a round is solved to this share of what the last one left open: rough tangents find more than
# sharp ones
ENOUGH, FIRST = 0.2, 1e-3
# old columns stay if their weight is above this share of the mean
MIN_WEIGHT_KEPT = 1e-7
# phases of each wave among the first columns
PHASES = 8


def generated_columns(steps: Floats, theta: Floats, criterion: Criterion) -> tuple[Floats, float]:
    """Logs of columns on a path with the given steps, of which a design is best, and a bound on every design of all."""
    k = len(theta)
    path, basis = Path(steps, theta), contrasts(k)
    logs, bound, near = first_columns(steps), 0.0, FIRST
    for _ in range(MAX_ROUNDS):
        points, sizes = deviations(logs, theta)
        weights, dual = spread_design(points @ basis, sizes / sizes.sum(), criterion, near)
        # as many new columns as half of the moments of a design
        highest, new = path.best(
            basis @ dual.quadratic @ basis.T, basis @ dual.linear, k * (k + 1) // 4 + 1
        )
        bound = max(bound, dual.bound(highest))
        left = 1 - bound / dual.value
        if left <= LEFT_TO_LOWER:
            break
        near = min(near, max(ENOUGH * left, LEFT_TO_LOWER / 10))
        logs = distinct(np.vstack([logs[weights > MIN_WEIGHT_KEPT * weights.mean()], new]))
    return logs, bound


def deviations(logs: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """W / (theta w) - 1 of columns w = exp(logs), shape (columns, k), and theta w with the largest entry of each 1.

    The first is relatively exact for a small epsilon too.
    """
    logs = logs - logs.max(axis=1, keepdims=True)
    excess = np.expm1(logs)
    mean = excess @ theta
    return np.asarray((excess - mean[:, None]) / (1 + mean)[:, None]), np.exp(logs) @ theta


def first_columns(steps: Floats) -> Floats:
    """Logs of one peak or one valley each, and of waves of every length.

    Those with one peak are the channel of truncated geometric noise, so that rows can sum to 1.
    """
    n = len(steps)
    peaks = np.where(np.arange(n) < np.arange(n + 1)[:, None], 1.0, -1.0)
    turns = (
        np.arange(1, n + 1)[:, None, None] * (np.arange(n) + 0.5) / (2 * n)
        + (np.arange(PHASES) / PHASES)[:, None]
    )
    waves = np.where(np.sin(2 * np.pi * turns.reshape(-1, n) + 0.1) > 0, 1.0, -1.0)
    signs = np.vstack([peaks, -peaks[1:-1], waves])
    return distinct(np.column_stack([np.zeros(len(signs)), np.cumsum(signs * steps, axis=1)]))


def distinct(logs: Floats) -> Floats:
    """Columns without those whose pattern of rises and falls stood before."""
    return logs[np.sort(np.unique(np.diff(logs, axis=1) > 0, axis=0, return_index=True)[1])]
