"""Column generation: the best private channel on a path too long to list all its columns.

The best design of the columns at hand (the master problem) comes with a tangent of the criterion.
If no column of the path scores more on this tangent than those of the design, the design is the
best of all. If some do, they join the columns, and the dual bound says how much can still be
gained.
"""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.design.optimal.column_weights import Criterion, spread_design
from ibukit.design.optimal.path_pricing import Path
from ibukit.fisher_information import contrasts

# Limit of the rounds; beyond it the bound tells how far the design is from the best.
MAX_ROUNDS = 100
# Rounds end where no other columns can lower the criterion by more than this share of it.
GAP_TOLERANCE = 1e-9
# Each round is solved to this share of the gap that the round before left: a rough tangent finds
# more new columns than a sharp one. The first round has no round before it: its tolerance is the
# second number.
ROUND_SHARE, FIRST_ROUND_TOLERANCE = 0.2, 1e-3
# Columns of the round before are kept if their weight is above this share of the mean weight.
MIN_WEIGHT_KEPT = 1e-7
# Phases of each square wave among the first columns.
PHASES = 8


def generated_columns(steps: Floats, theta: Floats, criterion: Criterion) -> tuple[Floats, float]:
    """Logs of columns on a path that hold an optimal design, and a bound on every design."""
    k = len(theta)
    path, basis = Path(steps, theta), contrasts(k)
    logs, bound, tolerance = first_columns(steps), 0.0, FIRST_ROUND_TOLERANCE
    for _ in range(MAX_ROUNDS):
        points, sizes = deviations(logs, theta)
        weights, dual = spread_design(points @ basis, sizes / sizes.sum(), criterion, tolerance)
        # A design matches k (k + 1) / 2 moments; half as many new columns a round are enough.
        highest, new = path.best(
            basis @ dual.quadratic @ basis.T, basis @ dual.linear, k * (k + 1) // 4 + 1
        )
        bound = max(bound, dual.bound(highest))
        gap = 1 - bound / dual.value
        if gap <= GAP_TOLERANCE:
            break
        tolerance = min(tolerance, max(ROUND_SHARE * gap, GAP_TOLERANCE / 10))
        logs = distinct(np.vstack([logs[weights > MIN_WEIGHT_KEPT * weights.mean()], new]))
    return logs, bound


def deviations(logs: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """Return the points w / (theta w) - 1 of columns w = exp(logs), and their sizes theta w.

    The points have shape (columns, k) and are relatively exact even for a small epsilon. The sizes
    belong to columns whose largest entry is 1.
    """
    logs = logs - logs.max(axis=1, keepdims=True)
    excess = np.expm1(logs)
    mean = excess @ theta
    return np.asarray((excess - mean[:, None]) / (1 + mean)[:, None]), np.exp(logs) @ theta


def first_columns(steps: Floats) -> Floats:
    """Logs of columns with one peak or one valley, and of square waves of every length.

    Columns with one peak are the channel of truncated geometric noise, so rows can sum to 1.
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
    """Columns without later copies of a pattern of rises and falls."""
    return logs[np.sort(np.unique(np.diff(logs, axis=1) > 0, axis=0, return_index=True)[1])]
