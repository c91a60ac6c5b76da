"""Profile likelihoods by MINOS of iminuit, for Poisson means mu M + b.

Without a background the likelihood ratio of a share is the multinomial one: all that is added is
that the total is profiled out as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from iminuit import Minuit


def _minos(
    cost: Callable[[np.ndarray], float],
    slope: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    limits: Sequence[Any],
    level: float,
) -> tuple[float, float]:
    """The interval of the first parameter; RuntimeError where iminuit says it is not valid."""
    fit = Minuit(cost, start, grad=slope)
    fit.errordef, fit.print_level, fit.limits = Minuit.LIKELIHOOD, 0, limits
    fit.migrad()
    if not fit.valid:
        fit.strategy = 2
        fit.simplex()
        fit.migrad()
    fit.minos(0, cl=level)
    error, best, (least, most) = fit.merrors[0], fit.values[0], limits[0]
    if not (error.lower_valid or error.at_lower_limit) or not (
        error.upper_valid or error.at_upper_limit
    ):
        raise RuntimeError("not valid")
    lower = least if error.at_lower_limit else best + error.lower
    return lower, most if error.at_upper_limit else best + error.upper


def number(
    matrix: np.ndarray, background: np.ndarray, counts: np.ndarray, level: float
) -> tuple[float, float]:
    """The interval of the first secret's number."""
    k = len(matrix)

    def cost(mu: np.ndarray) -> float:
        nu = mu @ matrix + background
        return float(nu.sum() - counts @ np.log(nu))

    def slope(mu: np.ndarray) -> np.ndarray:
        return matrix @ (1 - counts / (mu @ matrix + background))

    start = np.full(k, max(counts.sum() - background.sum(), 1.0) / k)
    return _minos(cost, slope, start, [(0, None)] * k, level)


def share(matrix: np.ndarray, counts: np.ndarray, level: float) -> tuple[float, float]:
    """The interval of the first secret's share; the other secrets' numbers are profiled out."""
    k = len(matrix)

    def mean(parameters: np.ndarray) -> np.ndarray:
        a, others = parameters[0], parameters[1:]
        return np.r_[a / (1 - a) * others.sum(), others] @ matrix

    def cost(parameters: np.ndarray) -> float:
        nu = mean(parameters)
        return float(nu.sum() - counts @ np.log(nu))

    def slope(parameters: np.ndarray) -> np.ndarray:
        a, others = parameters[0], parameters[1:]
        by_mu = matrix @ (1 - counts / mean(parameters))
        return np.r_[by_mu[0] * others.sum() / (1 - a) ** 2, by_mu[1:] + by_mu[0] * a / (1 - a)]

    start = np.r_[1 / k, np.full(k - 1, counts.sum() / k)]
    # At a share of 1 and with nobody at all the likelihood has no value.
    return _minos(cost, slope, start, [(0, 1 - 1e-6), *[(1e-9, None)] * (k - 1)], level)
