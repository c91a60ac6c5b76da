"""Registry of closed forms: each belongs to one class exactly, and is not inherited.

A class that inherits from a mechanism may have another law, so closed forms are looked up by the
exact type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from ibukit._ground.arguments import Floats

# A prior whose probabilities differ by at most this, relative to 1 / k, is uniform up to rounding.
UNIFORM_TOLERANCE = 1e-9


class ClosedForms(NamedTuple):
    """Functions of a mechanism that take no matrix; None if no closed form is known."""

    epsilon: Callable[[Any, bool], float | None] | None = None
    """Takes a mechanism, and whether the level is per unit of distance; returns the tight level."""
    information: Callable[[Any, Floats], float | None] | None = None
    """Takes a mechanism and a prior; returns the mutual information in nats."""
    log_matrix: Callable[[Any], Floats] | None = None
    """Takes a mechanism; returns logarithms of entries that may be below the smallest double."""


_FORMS: dict[type, ClosedForms] = {}


def register(kind: type, forms: ClosedForms) -> None:
    """Register the closed forms of exactly this class."""
    _FORMS[kind] = forms


def registered(mechanism: Any) -> ClosedForms:
    """Return the closed forms that were registered for exactly this class."""
    forms = _FORMS.get(type(mechanism), ClosedForms())
    # At an infinite level the truth is released, and the logarithms of the formulas are NaN.
    if forms.log_matrix and mechanism.epsilon == np.inf:
        return forms._replace(log_matrix=None)
    return forms


def two_valued_information(high: float, low: float, share: Floats) -> float:
    """Return the mutual information of a matrix with two different entries, in nats.

    Parameters
    ----------
    high, low : float
        The entries.
    share : ndarray, shape (m,)
        Prior probability of the secrets that have the entry `high` for each report.
    """
    # sum_xz prior_x M_xz log(M_xz / r_z), where r_z is the probability of the report z.
    own, other = high * share, low * (1 - share)
    reports = np.where(own + other > 0, own + other, 1.0)
    return max(0.0, float((xlogy(own, high / reports) + xlogy(other, low / reports)).sum()))


def unary_information(k: int, p_one: float, p_zero: float, p_hidden: float) -> float:
    """Return the mutual information of a uniform secret and its unary encoding, in nats.

    Parameters
    ----------
    k : int
        Number of secrets, and of bits.
    p_one, p_zero : float
        Probability of 1 for the secret's own bit, and for every other bit.
    p_hidden : float
        Probability of 0 for the secret's own bit.
    """
    # The ratio of P(bits | x) to the probability of these bits if none is the secret's is `one` if
    # bit x is 1, and `zero` if it is 0. So the law of the bits depends on their number of ones
    # alone; the number among the k - 1 other secrets is binomial.
    one, zero = p_one / p_zero, p_hidden / (1 - p_zero)
    others = np.arange(k)
    logs = (
        -gammaln(others + 1)
        - gammaln(k - others)
        + others * np.log(p_zero)
        + (k - 1 - others) * np.log1p(-p_zero)
    )
    probability = np.exp(logs - logs.max())
    probability /= probability.sum()
    information = 0.0
    for bit, chance, ratio in ((1, p_one, one), (0, p_hidden, zero)):
        ones = others + bit
        mean = (ones * one + (k - ones) * zero) / k
        information += chance * float(probability @ np.log(ratio / mean))
    return max(0.0, information)


def is_uniform(prior: Floats) -> bool:
    """Return whether all secrets are equally probable, but for rounding."""
    return bool(np.ptp(prior) <= UNIFORM_TOLERANCE / len(prior))
