"""Probability that the reports of n users of RAPPOR make the likelihood strictly concave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.theory._overflow import number_of_secrets

# Number of factors of the product that are computed. From the last factor backwards the subtracted
# terms halve, so the other factors are 1 up to rounding.
MAX_FACTORS = 64
# Up to the first number of secrets, sets of every size are counted. Beyond it all 2^(k-1) sets
# count as if they had MAX_SET_SIZE secrets: a sum over a larger set is even nearer to a fair coin,
# and the smaller sets are a share of e^-500 of all.
MAX_K_ALL_SIZES, MAX_SET_SIZE = 4000, 1000

By = Literal["sets", "product"]


@overload
def rappor_concavity_bound(k: int, epsilon: float, *, n: int, by: By = "sets") -> float: ...
@overload
def rappor_concavity_bound(
    k: int, epsilon: float, *, n: Sequence[int] | NDArray[Any], by: By = "sets"
) -> Floats: ...
@overload
def rappor_concavity_bound(
    k: int, epsilon: float, *, n: ArrayLike, by: By = "sets"
) -> float | Floats: ...


def rappor_concavity_bound(
    k: int, epsilon: float, *, n: ArrayLike, by: By = "sets"
) -> float | Floats:
    r"""Lower bound on P(L strictly concave) under RAPPOR.

    It holds whatever the n users' secrets are. The bound by sets, with
    :math:`c = \tanh (\varepsilon / 4)` and the sum over the even s from 2 to k, is

    .. math:: \max\Bigl(0,\;1-\sum_s\binom ks\Bigl(\frac{1+c^s}{2}\Bigr)^{\!n}\Bigr).

    The bound by the paper's product is never larger. With
    :math:`p=\frac{e^{\varepsilon/2}}{1+e^{\varepsilon/2}}` it is

    .. math:: \prod_{j = 1 \ldots k} \max (0, 1 - p^{n}\,2^{j - 1}).

    The probability is over the noise of basic one-time RAPPOR.

    Parameters
    ----------
    k : int
        Number of secrets, which is the number of bits of a report.
    epsilon : float
        RAPPOR's privacy parameter, nats.
    n : int or array_like of int
        Number of users, at least 0.
    by : {"sets", "product"}
        The bound that is returned.

    Returns
    -------
    float or ndarray
        One bound in [0, 1] for each n, in the shape of `n`; the product is 0 wherever n < k.

    Raises
    ------
    ValueError
        If `n` is not whole or is negative, `k` is not a whole number of at least 1, `epsilon` is
        not a finite number above 0, or `by` is unknown.

    Notes
    -----
    The product is the paper's: the probability that k rows of n bits are linearly independent over
    the field with two elements, bounded from below by letting each row avoid the span of those
    before it. If the rows are independent over that field, they are independent over the reals, and
    then no two distributions give all the reports seen the same probabilities.

    The sum is ours. Proof: if L is not strictly concave, some :math:`w \ne 0` of whole numbers, not
    all even, sums to 0 over the secrets and over the bits of every report. The secrets at which w
    is odd are an even number :math:`s \ge 2`, and in every report an even number of their bits is
    set. The bits are independent and E (-1)^bit is c, or -c for the user's own secret, so that this
    happens with probability :math:`(1 \pm c^{s}) / 2` for each user. Add over all sets.

    The sum is never below the product: there are :math:`2^{k - 1} - 1` such sets, and
    :math:`(1 + c^{s}) / 2 \le (1 + c^{2}) / 2 = p^{2} + (1 - p)^{2} \le p`, so that the sum's bound
    is at least :math:`1 - 2^{k - 1}\,p^{n}`, the product's last factor. Where the sum's bound is 0,
    both say nothing.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 4.4 (theorem on RAPPOR,
       and Fig. 4).

    Examples
    --------
    >>> round(rappor_concavity_bound(k=10, epsilon=1.0, n=25, by="product"), 4)
    0.9927
    >>> rappor_concavity_bound(k=10, epsilon=1.0, n=[5, 15, 25]).round(4)
    array([0.    , 0.9821, 1.    ])
    """
    k = number_of_secrets(k, 1)
    epsilon = arguments.positive("epsilon", epsilon)
    users = arguments.users(n, least=0)
    if not arguments.is_one_of(by, ("sets", "product")):
        raise ValueError(f'by must be "sets" or "product", got {by!r}')
    bound = _by_sets(users, k, epsilon) if by == "sets" else _by_product(users, k, epsilon)
    return float(bound) if bound.ndim == 0 else np.asarray(bound)


def _by_product(users: Ints, k: int, epsilon: float) -> Floats:
    # Logarithms of the subtracted terms p^n 2^(j-1), the largest (j = k) first: no power overflows.
    halvings = np.arange(1, min(k, MAX_FACTORS) + 1)
    log_terms = (k - halvings) * np.log(2) - users[..., None] * np.log1p(np.exp(-epsilon / 2))
    # A factor of 0 has the logarithm -inf, which makes the product 0.
    with np.errstate(divide="ignore"):
        return np.exp(np.log1p(-np.exp(np.minimum(log_terms, 0.0))).sum(axis=-1))


def _by_sets(users: Ints, k: int, epsilon: float) -> Floats:
    # With one secret there is only one distribution.
    if k == 1:
        return np.ones(users.shape)
    sizes = np.arange(1, (k if k <= MAX_K_ALL_SIZES else MAX_SET_SIZE) + 1)
    # log C(k, s) for even s as a sum of logarithms: no difference of large ones.
    log_sets = np.cumsum(np.log((k - sizes + 1) / sizes))[1::2]
    sizes = sizes[1::2]
    if k > MAX_K_ALL_SIZES:
        log_sets[-1] = (k - 1) * np.log(2)
    log_c = _log_tanh(epsilon / 4)
    # log((1 + c^s) / 2), relatively exact for c near 1, too.
    log_even = np.log1p(np.expm1(sizes * log_c) / 2)
    log_sum = logsumexp(log_sets + users[..., None] * log_even, axis=-1)
    return 0.0 - np.expm1(np.minimum(log_sum, 0.0))


def _log_tanh(x: float) -> float:
    # tanh x is x for small x, and 1 - 2 e^(-2x) / (1 + e^(-2x)) keeps the digits near 1.
    if x < 1e-9:
        return math.log(max(x, math.ulp(0.0)))
    return (
        math.log(math.tanh(x))
        if x < 1
        else math.log1p(-2 * math.exp(-2 * x) / (1 + math.exp(-2 * x)))
    )
