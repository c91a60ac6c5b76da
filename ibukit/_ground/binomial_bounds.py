"""Clopper and Pearson's bounds on a binomial probability."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from ibukit._ground.arguments import Floats


def binomial_bounds(
    seen: NDArray[Any], n: NDArray[Any] | int, error: float
) -> tuple[Floats, Floats]:
    """Return bounds on the probabilities of `seen` of `n`, each wrong with at most this chance.

    Examples
    --------
    >>> low, high = binomial_bounds(np.array([0, 5]), 10, 0.025)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.187]), array([0.308, 0.813]))
    """
    n = np.broadcast_to(n, seen.shape)
    low, high = np.zeros(seen.shape), np.ones(seen.shape)
    some, rest = seen > 0, seen < n
    low[some] = betaincinv(seen[some], (n - seen + 1)[some], error)
    high[rest] = betaincinv((seen + 1)[rest], (n - seen)[rest], 1 - error)
    # Among more than 10^15 scipy may find none. Hoeffding's bounds hold as well, and are near then.
    margin = np.sqrt(-np.log(error) / (2.0 * n))
    low = np.where(np.isnan(low), np.maximum(seen / n - margin, 0.0), low)
    return low, np.where(np.isnan(high), np.minimum(seen / n + margin, 1.0), high)
