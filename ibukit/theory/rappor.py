"""RAPPOR before any data: how likely the reports of n users are to make the likelihood strictly concave."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from ibukit import _validate
from ibukit._validate import Floats

# From the last factor backwards the subtracted terms halve, so that beyond these many the rest is below rounding.
FACTORS_THAT_COUNT = 64


@overload
def rappor_concavity_bound(n: int, k: int, epsilon: float) -> float: ...
@overload
def rappor_concavity_bound(n: ArrayLike, k: int, epsilon: float) -> float | Floats: ...


def rappor_concavity_bound(n: ArrayLike, k: int, epsilon: float) -> float | Floats:
    """Lower bound prod_{j=1..k} max(0, 1 - p^n 2^(j-1)), p = e^(eps/2) / (1 + e^(eps/2)), on P(L strictly concave).

    The probability is over the noise of basic one-time RAPPOR; the bound holds whatever the n users' secrets are.
    It is the probability that k rows of n bits are linearly independent over the field with two elements, bounded
    from below by letting each row avoid the span of those before it; independent over that field, they are
    independent over the reals, and then no two distributions give all the reports seen the same probabilities.

    Parameters
    ----------
    n : int or array_like of int
        Number of users, at least 0.
    k : int
        Number of secrets, which is the number of bits of a report.
    epsilon : float
        RAPPOR's privacy parameter, nats.

    Returns
    -------
    float or ndarray
        In [0, 1], one bound for each n, in its shape; 0 wherever n < k.

    Raises
    ------
    ValueError
        If `n` is not whole or negative, `k` is not a whole number of at least 1, or `epsilon` is not a finite number
        above 0.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 4.4 (theorem on RAPPOR, and Fig. 4).

    Examples
    --------
    >>> round(rappor_concavity_bound(25, k=10, epsilon=1.0), 4)
    0.9927
    >>> rappor_concavity_bound([5, 15, 25], k=10, epsilon=1.0).round(4)
    array([0.    , 0.3712, 0.9927])
    """
    k = _validate.whole("k", k, 1)
    epsilon = _validate.positive("epsilon", epsilon)
    if np.ndim(n) == 0:
        users = np.array(_validate.whole("n", n, 0))
    else:
        users = _validate.integers("n", n, ndim=np.ndim(n))
        if (users < 0).any():
            raise ValueError(f"n must be at least 0, got {users.min()}")
    # log of the subtracted terms p^n 2^(j-1), the largest (j = k) first: no power overflows
    halvings = np.arange(1, min(k, FACTORS_THAT_COUNT) + 1)
    log_terms = (k - halvings) * np.log(2) - users[..., None] * np.log1p(np.exp(-epsilon / 2))
    with np.errstate(divide="ignore"):  # log 0 where a factor is 0, which makes the product 0
        bound = np.exp(np.log1p(-np.exp(np.minimum(log_terms, 0.0))).sum(axis=-1))
    return float(bound) if bound.ndim == 0 else np.asarray(bound)
