"""How far matrix inversion is from the truth, exactly and as the papers bound it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ibukit import _validate
from ibukit._validate import Floats
from ibukit.distributions import project_to_simplex
from ibukit.errors import NotInvertible
from ibukit.mechanisms import RandomizedResponse, TruncatedGeometric
from ibukit.mechanisms.base import FiniteMechanism, Mechanism
from ibukit.mechanisms.unary import UnaryEncoding


def inv_squared_error(mechanism: Mechanism, theta: ArrayLike) -> float:
    """The exact n E ||v - theta||_2^2 of raw INV: sum_z (theta M)_z ||r_z||_2^2 - ||theta||_2^2.

    v = q M^-1 is the mean of r_z over the reports, with r_z the row of M^-1 that belongs to the report z, and unbiased;
    the n secrets are drawn independently from theta and the expectation is over them and the noise. For unary encodings
    v is each bit's debiased frequency, and the error sum_y m_y (1 - m_y) / (p - q)^2 with m_y the probability that bit
    y is set. O(k) for k-RR, unary encodings and truncated geometric noise.

    Parameters
    ----------
    mechanism : Mechanism
        With a matrix of full row rank; where it has more columns than rows, INV uses the pseudo-inverse.
    theta : array_like, shape (k,)
        Distribution of the secrets.

    Returns
    -------
    float
        n times the expected squared error, the same for every n.

    Raises
    ------
    NotInvertible
        If the rows of the matrix are numerically dependent, or the reports cannot be listed.
    InvalidDistribution
        If `theta` is not on the simplex.
    AlphabetMismatch
        If it does not have one probability for each secret.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.6, whose propositions bound this number.

    Examples
    --------
    The ages of 48,842 people through geometric noise: the squared error that INV is to expect, where no two
    distributions have a squared distance above 2.

    >>> import ibukit as ik
    >>> ages = ik.datasets.load_adult_ages()
    >>> mechanism = ik.TruncatedGeometric(ages.alphabet, epsilon=0.05)
    >>> round(ik.theory.inv_squared_error(mechanism, ages.distribution) / ages.n, 1)
    17.2
    """
    p = _validate.distribution("theta", theta, mechanism.k)
    return _error_of(mechanism).at(p)


def inv_squared_error_range(mechanism: Mechanism) -> tuple[float, float]:
    """The least and the greatest of `inv_squared_error` over all distributions of the secrets.

    It is c . theta - ||theta||^2 with c_x = sum_z M_xz ||r_z||^2 (unary encodings: plus a constant), concave in theta:
    the least is at a single secret, the greatest at the point of the simplex nearest to c / 2.

    Parameters
    ----------
    mechanism : Mechanism
        As for `inv_squared_error`.

    Returns
    -------
    (least, greatest) : floats
        n times the expected squared error.

    Raises
    ------
    NotInvertible
        As for `inv_squared_error`.

    Examples
    --------
    >>> import ibukit as ik
    >>> [round(end, 2) for end in ik.theory.inv_squared_error_range(ik.RandomizedResponse(100, epsilon=2.0))]
    [273.52, 274.51]
    """
    error = _error_of(mechanism)
    return error.constant + float(error.slope.min()) - 1, error.at(project_to_simplex(error.slope / 2))


def inv_bound_krr(k: int, epsilon: float) -> float:
    """The papers' upper bound ((e^eps + k - 1) / (e^eps - 1))^2 on n E ||v - theta||_2^2 of INV under k-RR.

    The exact value is the bound times 1 - ||theta M||_2^2.

    Parameters
    ----------
    k : int
        Number of secrets, at least 2.
    epsilon : float
        Nats.

    Raises
    ------
    ValueError
        If `k` or `epsilon` is out of range.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.6, proposition on INV with k-RR.

    Examples
    --------
    >>> round(inv_bound_krr(100, epsilon=2.0), 2)  # printed as 227.28
    277.28
    """
    return float((_inverse_contrast(_validate.whole("k", k, 2), _validate.positive("epsilon", epsilon))) ** 2)


def inv_bound_geometric(k: int, epsilon: float) -> float:
    """The papers' lower bound b^3 - 2 a b^2 - 2, a = e^-eps, b = 1 / (1 - a), on n E ||v - theta||_2^2 of INV.

    Under truncated geometric noise on a line of k >= 3, for every theta and every a in (0, 1). The paper states it for
    every k, and for a > 1/2; at k = 2 it fails. It is loose: on the ages the error is a hundred times as large.

    Parameters
    ----------
    k : int
        Number of secrets, at least 3.
    epsilon : float
        Nats per unit of the line.

    Raises
    ------
    ValueError
        If `epsilon` is out of range, or k < 3, where the bound does not hold.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.6, proposition on INV with linear
       geometric noise.

    Examples
    --------
    >>> round(inv_bound_geometric(100, epsilon=0.05), 1)  # printed as 7238
    7818.5
    """
    _validate.whole("k", k, 3)
    eps = _validate.positive("epsilon", epsilon)
    b = -1 / np.expm1(-eps)
    return float(b**3 - 2 * np.exp(-eps) * b**2 - 2)


@dataclass(frozen=True)
class _Error:
    """constant + slope . theta - ||theta||^2."""

    constant: float
    slope: Floats

    def at(self, theta: Floats) -> float:
        return self.constant + float(self.slope @ theta - theta @ theta)


def _error_of(mechanism: Mechanism) -> _Error:
    if isinstance(mechanism, UnaryEncoding):
        # m_y = q + d theta_y: sum m (1 - m) / d^2 = k q (1 - q) / d^2 + (1 - 2 q) / d - ||theta||^2
        q, d = mechanism.p_zero, mechanism.contrast
        slope = np.full(mechanism.k, (1 - 2 * q) / d)
        return _Error(mechanism.k * q * (1 - q) / d**2, slope)
    if not isinstance(mechanism, FiniteMechanism):
        raise NotInvertible(f"{mechanism} has no square channel matrix, so matrix inversion does not apply")
    if isinstance(mechanism, RandomizedResponse):
        a = _inverse_contrast(mechanism.k, mechanism.epsilon)
        # a^2 (1 - ||theta M||^2) with (theta M)_z = lie + theta_z / a
        lie = mechanism.lie
        constant = a**2 * (1 - mechanism.k * lie**2)
        return _Error(constant, np.full(mechanism.k, -2 * a * lie))
    norms = _geometric_norms(mechanism) if isinstance(mechanism, TruncatedGeometric) else _norms(mechanism)
    return _Error(0.0, mechanism.adjoint(norms))


def _inverse_contrast(k: int, epsilon: float) -> float:
    """(e^eps + k - 1) / (e^eps - 1), what INV under k-RR multiplies deviations by."""
    return float((1 + (k - 1) * np.exp(-epsilon)) / -np.expm1(-epsilon))


def _norms(mechanism: FiniteMechanism) -> Floats:
    rows = mechanism._right_inverse
    return np.asarray((rows**2).sum(axis=1))


def _geometric_norms(mechanism: TruncatedGeometric) -> Floats:
    """||r_z||^2 from the tridiagonal inverse: (1 - a^2) c_z r_z has 1 + a^2 (1 at the ends) between -a and -a."""
    a = mechanism.decay
    own = np.full(mechanism.k, 1 + a * a)
    own[[0, -1]] = 1
    beside = np.full(mechanism.k, 2 * a * a)
    beside[[0, -1]] = a * a
    return np.asarray((own**2 + beside) / (-np.expm1(-2 * mechanism.epsilon) * mechanism._factors) ** 2)
