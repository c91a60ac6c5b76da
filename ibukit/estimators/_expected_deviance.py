"""The expected deviance of a perfect model, also for reports that are expected seldom."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, xlogy

from ibukit._ground.arguments import Floats

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

# Expected numbers of reports between which the expectation is tabulated. Outside, its expansions
# for small and for large mu have errors below 1e-5.
MIN_TABULATED, MAX_TABULATED = 1e-9, 100.0


def expected_deviance_term(log_mean: Floats) -> Floats:
    """Return E[2 C log(C / mu) given C >= 1], C Poisson with mean mu = exp(log_mean).

    This is the mean contribution to the deviance of a report that was seen at all: 1 if it is
    expected often, 1.8 if once, about 2 log(1 / mu) if hardly ever. The sum of these over the
    reports seen is therefore an unbiased estimate of the mean deviance, without a term for the
    reports that were not seen.
    """
    few, many = math.log(MIN_TABULATED), math.log(MAX_TABULATED)
    # The usual case has a shortcut, because the rule is evaluated at every step.
    if log_mean.min() >= many:
        inverse = np.exp(-log_mean)
        return 1 + inverse * (1 + inverse) / 6
    seldom = float(_table()(few)) - 2 * (log_mean - few)
    between = _table()(np.clip(log_mean, few, many))
    inverse = np.exp(-np.maximum(log_mean, many))
    often = 1 + inverse * (1 + inverse) / 6
    return np.where(log_mean < few, seldom, np.where(log_mean < many, between, often))


@cache
def _table() -> CubicSpline:
    # This module is slow to load, and only this function needs it.
    from scipy.interpolate import CubicSpline

    at = np.linspace(math.log(MIN_TABULATED), math.log(MAX_TABULATED), 200)
    # A Poisson variable of mean 100 is 300 or more with a probability below 1e-50.
    count = np.arange(300)
    mean = np.exp(at)[:, None]
    probability = np.exp(xlogy(count, mean) - mean - gammaln(count + 1))
    # Adding mu - C, whose mean is 0, makes every term at least 0: no cancellation.
    terms = 2 * (xlogy(count, count / mean) - count + mean)
    return CubicSpline(at, (probability * terms).sum(axis=1) / -np.expm1(-mean[:, 0]))
