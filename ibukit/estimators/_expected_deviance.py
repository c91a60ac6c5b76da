"""What chance alone makes of the deviance, where few reports are expected as well as where many are."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, xlogy

from ibukit._ground.arguments import Floats

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

# expected numbers between which the expectation is tabulated; outside its two expansions are exact
# to 1e-5
MIN_TABULATED, MAX_TABULATED = 1e-9, 100.0


def expected_deviance_term(log_mean: Floats) -> Floats:
    """E[2 C log(C / mu) given C >= 1], C Poisson with mean mu = exp(log_mean).

    What a report that was seen at all adds to the deviance on average: 1 where it is expected
    often, 1.8 where once, about 2 log(1 / mu) where hardly ever. So the sum of these over the
    reports seen has the mean of the deviance, whatever the reports that were not seen.
    """
    few, many = math.log(MIN_TABULATED), math.log(MAX_TABULATED)
    if log_mean.min() >= many:  # mostly, and this is asked at every step
        inverse = np.exp(-log_mean)
        return np.asarray(1 + inverse * (1 + inverse) / 6)
    seldom = float(_table()(few)) - 2 * (log_mean - few)
    between = _table()(np.clip(log_mean, few, many))
    inverse = np.exp(-np.maximum(log_mean, many))
    often = 1 + inverse * (1 + inverse) / 6
    return np.where(log_mean < few, seldom, np.where(log_mean < many, between, often))


@cache
def _table() -> CubicSpline:
    from scipy.interpolate import CubicSpline  # slow to load, and needed here alone

    at = np.linspace(math.log(MIN_TABULATED), math.log(MAX_TABULATED), 200)
    count = np.arange(300)  # a Poisson variable of mean 100 is never as large
    mean = np.exp(at)[:, None]
    probability = np.exp(xlogy(count, mean) - mean - gammaln(count + 1))
    # E[C] = mu makes the two forms equal, and every term of this one is at least 0
    terms = 2 * (xlogy(count, count / mean) - count + mean)
    return CubicSpline(at, (probability * terms).sum(axis=1) / -np.expm1(-mean[:, 0]))
