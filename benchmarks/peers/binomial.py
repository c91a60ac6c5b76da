"""Intervals of a binomial proportion by statsmodels, carried through the matrix of two reports.

They are Clopper and Pearson's ("beta", what R's binom has as "exact") and Wilson's.
"""

from __future__ import annotations

import numpy as np
from statsmodels.stats.proportion import proportion_confint


def share(method: str, matrix: np.ndarray, counts: np.ndarray, level: float) -> tuple[float, float]:
    """The interval of the first secret's share, cut at 0 and 1."""
    p = proportion_confint(counts[0], counts.sum(), 1 - level, method=method)
    positive, negative = matrix[:, 0]
    lower, upper = np.sort(np.clip((np.array(p) - negative) / (positive - negative), 0, 1))
    return lower, upper
