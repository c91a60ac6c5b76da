"""Probability vectors: make one, check one, round one, project onto the simplex."""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.alphabet import MAX_ON_A_LINE, Alphabet
from ibukit.errors import InvalidDistribution, TooLarge


class Population(Protocol):
    """Counts of people with each secret; a `datasets.Dataset` is one."""

    @property
    def counts(self) -> Ints:
        """Number of users with each secret, shape (k,)."""

    @property
    def distribution(self) -> Floats:
        """The truth that estimates are compared with, shape (k,)."""

    @property
    def alphabet(self) -> Alphabet:
        """The secrets."""


@runtime_checkable
class EstimatedDistribution(Protocol):
    """An `Estimate` as lower layers of the package see it: probabilities, secrets and method."""

    @property
    def distribution(self) -> Floats:
        """Probabilities in the alphabet's order, shape (k,)."""

    @property
    def alphabet(self) -> Alphabet:
        """The secrets."""

    @property
    def method(self) -> str:
        """Estimator and stopping rule, in words."""

    @property
    def n_iter(self) -> int:
        """Number of iterations."""

    @property
    def gap(self) -> float:
        """Nats per report by which the likelihood may be below its maximum."""


def is_estimate(values: Any) -> TypeGuard[EstimatedDistribution]:
    """Return whether the value is an estimate, or has all that one has."""
    # To look for a protocol's members takes longer than a whole step of a loop over arrays.
    return not isinstance(values, np.ndarray) and isinstance(values, EstimatedDistribution)


def _probabilities(p: Any) -> Any:
    """Return an estimate's probabilities, in the order of its secrets; anything else as it is."""
    return p.distribution if is_estimate(p) else p


def uniform(k: int) -> Floats:
    r"""The uniform distribution, :math:`\theta_x=1/k`.

    Parameters
    ----------
    k : int
        Number of elements.

    Returns
    -------
    ndarray, shape (k,)

    Raises
    ------
    ValueError
        If `k` is not a whole number of at least 1.
    TooLarge
        If `k` is more than :math:`2^{28}`.

    Examples
    --------
    >>> uniform(4)
    array([0.25, 0.25, 0.25, 0.25])
    """
    size = arguments.whole("k", k, 1)
    if size > MAX_ON_A_LINE:
        raise TooLarge(
            f"k must be at most {MAX_ON_A_LINE}, got {arguments.readable(size)}: merge elements"
        )
    return np.full(size, 1 / size)


def check_distribution(p: ArrayLike, name: str = "p") -> Floats:
    r"""Check that a vector is a probability distribution, and return it.

    That is :math:`p_x\ge0,\ \textstyle\sum_x p_x=1` (within 1e-9); nothing is clipped or
    renormalised.

    Parameters
    ----------
    p : array_like, shape (k,)
        The vector to check.
    name : str
        Name of the vector in error messages.

    Returns
    -------
    ndarray, shape (k,)
        The same numbers as float64.

    Raises
    ------
    InvalidDistribution
        If an entry is negative or NaN, or the sum is not 1.

    Examples
    --------
    >>> check_distribution([0.25, 0.75])
    array([0.25, 0.75])
    """
    return arguments.distribution(name, _probabilities(p))


def quantize(p: ArrayLike, bits: int = 20) -> Floats:
    r"""Round probabilities to a grid of binary fractions.

    .. math:: q_x=\frac{m_x}{\sum_u m_u},\qquad m_x=\operatorname{round}(2^{\mathrm{bits}}\,p_x).

    This is for numbers on which random draws depend. Two computers agree on an estimate only up to
    its last digits. If a mechanism is made from the estimate, these digits now and then decide how
    a draw falls, and from there on two simulations have nothing in common. If the estimates are
    rounded first, they are the same numbers, to the last bit, unless an entry lies within its error
    of the midpoint between two steps of the grid; with an error of 1e-13 this happens to one entry
    in five million.

    Parameters
    ----------
    p : array_like, shape (k,)
        A distribution.
    bits : int
        From 1 to 52. The grid's step is :math:`2^{-\mathrm{bits}}`, by default about 1e-6, which is
        far below the statistical error of an estimate from fewer than :math:`10^{10}` reports.

    Returns
    -------
    ndarray, shape (k,)
        Within :math:`2^{-\mathrm{bits}}` of p in the mean over the entries; 0 where :math:`p_{x}`
        is below half a step.

    Raises
    ------
    InvalidDistribution
        If `p` is not a distribution.
    ValueError
        If `bits` is not a whole number from 1 to 52, or so small that every probability would be
        rounded to 0.

    Examples
    --------
    >>> quantize([0.7, 0.2, 0.1], bits=3)
    array([0.66666667, 0.22222222, 0.11111111])
    >>> third = 1 / 3
    >>> one, other = quantize([third, 1 - third]), quantize([third + 1e-14, 1 - third - 1e-14])
    >>> bool((one == other).all())
    True
    """
    # ldexp multiplies by a power of 2 without rounding.
    exact = arguments.distribution("p", _probabilities(p))
    steps = arguments.whole("bits", bits, 1)
    if steps > 52:
        raise ValueError(f"bits must be at most 52, which is what a double has, got {bits}")
    # The numerators are integers below 2^53, so their sum is exact in any order.
    numerators = np.rint(np.ldexp(exact, steps))
    if not numerators.any():
        raise ValueError(
            f"bits must be larger, got {bits}: each of the {len(exact)} probabilities is below "
            "half a step"
        )
    return numerators / numerators.sum()


def normalize(weights: ArrayLike) -> Floats:
    r"""Divide by the sum: :math:`p_x=\frac{w_x}{\sum_u w_u}`.

    Parameters
    ----------
    weights : array_like, shape (k,)
        Finite, not negative, not all zero.

    Returns
    -------
    ndarray, shape (k,)

    Raises
    ------
    InvalidDistribution
        If a weight is negative or not finite, or all are zero.

    Examples
    --------
    >>> normalize([1, 3])
    array([0.25, 0.75])
    """
    arguments.refuse_labels("weights", weights)
    w = arguments.numbers("weights", _probabilities(weights), error=InvalidDistribution)
    if w.ndim != 1 or not (np.isfinite(w) & (w >= 0)).all() or not w.any():
        raise InvalidDistribution(
            f"weights must be finite, not negative and not all zero, got {weights!r}"
        )
    # Scaled to a maximum of 1, neither tiny nor huge weights underflow or overflow in the sum.
    w = w / w.max()
    return w / w.sum()


def project_to_simplex(v: ArrayLike) -> Floats:
    r"""Project onto the simplex: the nearest distribution in Euclidean distance.

    It is :math:`\arg\min_p\lVert p-v\rVert_2` over :math:`p \ge 0`, :math:`\sum_x p_x = 1`.

    Parameters
    ----------
    v : array_like, shape (k,)
        Any finite vector.

    Returns
    -------
    ndarray, shape (k,)
        :math:`\max(v-\tau,0)` with the tau that makes it sum to 1.

    Raises
    ------
    ValueError
        If `v` is not a non-empty vector of finite numbers.

    Notes
    -----
    Solved by sorting, :math:`O(k\,\log k)` [wang2013projection]_; the sort is POT's.

    References
    ----------
    .. [wang2013projection] W. Wang and M. A. Carreira-Perpinan, "Projection onto the probability
       simplex: an efficient algorithm with a simple proof, and an application", arXiv:1309.1541,
       2013.

    Examples
    --------
    >>> project_to_simplex([0.75, 0.5, -0.25])
    array([0.625, 0.375, 0.   ])
    """
    arguments.refuse_labels("v", v)
    array = arguments.numbers("v", _probabilities(v))
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"v must be a non-empty vector of finite numbers, got {v!r}")
    # Importing ot takes longer than importing ibukit, so it is done at the first call.
    from ot.utils import proj_simplex

    # Adding a constant to the array does not change its projection; with a maximum of 0 fewer
    # digits cancel. What lies 1 or more below it becomes 0, however far; cut at 2, no difference
    # is infinite. POT's result sums to 1 up to rounding, which the division removes.
    with np.errstate(over="ignore"):
        below = np.maximum(array - array.max(), -2.0)
    p: Floats = np.asarray(proj_simplex(below), dtype=np.float64)
    return p / p.sum()
