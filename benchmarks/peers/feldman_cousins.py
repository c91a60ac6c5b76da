"""Feldman and Cousins' construction as their paper tabulates it: a belt over a grid of truths."""

from __future__ import annotations

import numpy as np
from scipy.special import xlog1py, xlogy
from scipy.stats import binom

SHARES = np.linspace(0, 1, 2001)


def share(matrix: np.ndarray, counts: np.ndarray, level: float) -> tuple[float, float]:
    """The first secret's interval: all truths of the grid whose belt holds what was seen."""
    positive, negative = matrix[:, 0]
    n = counts.sum()
    x, p = np.arange(n + 1), (negative + (positive - negative) * SHARES)[:, None]

    def fit(p: np.ndarray) -> np.ndarray:
        return xlogy(x, p) + xlog1py(n - x, -p)

    # Outcomes join in the order of their likelihood ratios, until they have the level together.
    ratios = fit(p) - fit(np.clip(x / n, *np.sort(matrix[:, 0])))
    order = np.argsort(-ratios, axis=1, kind="stable")
    chances = np.take_along_axis(binom.pmf(x, n, p), order, axis=1)
    belt = np.empty(order.shape, dtype=bool)
    np.put_along_axis(belt, order, chances.cumsum(axis=1) - chances < level, axis=1)
    inside = SHARES[belt[:, counts[0]]]
    return inside.min(), inside.max()
