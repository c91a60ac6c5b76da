"""Squared error of matrix inversion: exact values, and the papers' bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.domain.distributions import project_to_simplex
from ibukit.domain.vectors import VectorLike, distribution_over
from ibukit.mechanisms import average_mechanism
from ibukit.mechanisms.base import FiniteMechanism, Mechanism, require_mechanism
from ibukit.mechanisms.categorical.independent_bits import is_bits
from ibukit.mechanisms.inversion_error import inverse_contrast, inversion_error
from ibukit.theory._overflow import number_of_secrets, refuse_overflow


def inv_squared_error(mechanism: Mechanism, theta: VectorLike) -> float:
    r"""The exact squared error of raw INV, times n.

    .. math::

        n\,\mathbb E\lVert v-\theta\rVert_2^2=\sum_z(\theta M)_z\,\lVert
        r_z\rVert_2^2-\lVert\theta\rVert_2^2.

    Here :math:`v=q\,M^{-1}`, which is unbiased, is the mean of :math:`r_{z}` over the reports z,
    with :math:`r_{z}` the row of :math:`M^{-1}` that belongs to z. The n secrets are drawn
    independently from :math:`\theta`, and the expectation is over them and the noise. For unary
    encodings and subset selection v is each bit's debiased frequency, and the error is
    :math:`\sum_y\frac{m_y(1-m_y)}{(p-q)^2}` with :math:`m_{y}` the probability that bit y is set.
    Computing it takes O(k) for these, for k-RR and for truncated geometric noise.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism whose matrix has full row rank; if it has more columns than rows, INV uses the
        pseudo-inverse.
    theta : array_like or labelled, shape (k,)
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
        If `theta` does not have one probability for each secret.
    ValueError
        If reports get lost.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.6, whose propositions
       bound this number.

    Examples
    --------
    The squared error to expect of INV for the ages of 48,842 people reported with geometric noise,
    although no two distributions have a squared distance above 2:

    >>> import ibukit as ik
    >>> ages = ik.datasets.load_adult_ages()
    >>> mechanism = ik.TruncatedGeometric(ages.alphabet, epsilon=0.05)
    >>> round(ik.theory.inv_squared_error(mechanism, ages.distribution) / ages.n, 1)
    17.2
    """
    p = distribution_over("theta", theta, require_mechanism(mechanism).alphabet)
    return inversion_error(mechanism).at(p)


def inv_squared_error_range(mechanism: Mechanism) -> tuple[float, float]:
    r"""The least and the greatest of `inv_squared_error`.

    Both are taken over all distributions of the secrets. The error is
    :math:`c \cdot \theta - \lVert \theta\rVert ^{2}` with
    :math:`c_x=\sum_z M_{xz}\lVert r_z\rVert^2` (plus a constant for unary encodings), and concave
    in :math:`\theta`. So the least is at a single secret, and the greatest at the point of the
    simplex nearest to c / 2.

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
    NotInvertible, ValueError
        As for `inv_squared_error`.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(100, epsilon=2.0)
    >>> [round(end, 2) for end in ik.theory.inv_squared_error_range(mechanism)]
    [273.52, 274.51]
    """
    error = inversion_error(mechanism)
    # The error is concave in theta: its minimum is at a vertex, its maximum where the slope c is
    # projected on the simplex.
    return error.constant + float(error.slope.min()) - 1, error.at(
        project_to_simplex(error.slope / 2)
    )


def compound_squared_error(
    mechanisms: Sequence[Mechanism], theta: VectorLike, weights: ArrayLike | None = None
) -> float:
    r"""The exact squared error of combined mechanisms, times n.

    This is :math:`n\,\mathbb E\lVert v-\theta\rVert_2^2` of the raw estimates
    :math:`[\mathrm{INV}]_{M}` and :math:`[\mathrm{RAP}]_{M}`: what pooling the mechanisms' reports
    costs. The estimate is v = q[n] B, where q[n] holds the frequencies of the pooled reports, and
    :math:`B = A[n]^{-1}` is the inverse of the average :math:`A[n]=\sum_A w_A A`. Let e be the
    error `inv_squared_error` of a single mechanism A[n] shared by all users. The error of the
    combination is

    .. math:: e(A[n],\theta)-\sum_A w_A\lVert\theta AB-\theta\rVert_2^2.

    The paper proves that :math:`e(A[n], \theta)` is an upper bound for k-RRs and for RAPPORs. By
    Jensen's inequality it is an upper bound for all mechanisms with an invertible average, with
    equality exactly if :math:`\theta` A :math:`B = \theta` for every A. For k-RRs the difference is
    :math:`a^{2}\,k\,(k\,\lVert \theta\rVert ^{2} - 1)` times the variance of
    :math:`1 / (k - 1 + e^{\varepsilon})` over the users, with a the factor
    :math:`(e^{\varepsilon[n]} + k - 1) / (e^{\varepsilon[n]} - 1)`; for RAPPORs it is
    :math:`b^{2}\,(k - 4 + 4\,\lVert \theta\rVert ^{2})` times the variance of
    :math:`1 / (1 + e^{\varepsilon / 2})`, with
    :math:`b = (e^{\varepsilon[n] / 2} + 1) / (e^{\varepsilon[n] / 2} - 1)`.

    Parameters
    ----------
    mechanisms : sequence of Mechanism
        One for each group of users, as `average_mechanism` takes them.
    theta : array_like or labelled, shape (k,)
        Distribution of the secrets.
    weights : array_like, shape (len(mechanisms),), optional
        The groups' shares of the users, summing to 1; equal by default.

    Returns
    -------
    float
        n times the expected squared error, for n users of whom each group has its share.

    Raises
    ------
    NotInvertible
        If the rows of the average are numerically dependent.
    AlphabetMismatch
        If the mechanisms cannot be averaged, or `theta` does not have one probability for each
        secret.
    InvalidDistribution
        If `theta` or `weights` is not on the simplex.

    References
    ----------
    .. [freewill] ElSalamouny and Palamidessi, arXiv:2208.11268, sections 5.2 and 5.4.

    Examples
    --------
    >>> import ibukit as ik
    >>> careful = ik.RandomizedResponse(3, epsilon=0.5)
    >>> careless = ik.RandomizedResponse(3, epsilon=3.0)
    >>> theta = [0.7, 0.2, 0.1]
    >>> round(compound_squared_error([careful, careless], theta), 4)
    2.1599
    >>> round(inv_squared_error(ik.average_mechanism([careful, careless]), theta), 4)  # the bound
    2.2496
    """
    average = average_mechanism(mechanisms, weights)
    p = distribution_over("theta", theta, average.alphabet)
    shares = (
        np.full(len(mechanisms), 1 / len(mechanisms))
        if weights is None
        else arguments.distribution("weights", weights)
    )
    # Jensen's deficit: each mechanism's expected estimate differs from theta, and only the mean is
    # right.
    shifts = (_expected_inverse(mechanism, average, p) - p for mechanism in mechanisms)
    deficit = sum(
        float(share * (shift @ shift)) for share, shift in zip(shares, shifts, strict=True)
    )
    return inversion_error(average).at(p) - deficit


def _expected_inverse(mechanism: Mechanism, average: FiniteMechanism, theta: Floats) -> Floats:
    """Expected estimate theta A B: the average's inverse applied to one mechanism's reports."""
    if is_bits(average) and is_bits(mechanism):
        return np.asarray(
            (mechanism.p_zero - average.p_zero + mechanism.contrast * theta) / average.contrast
        )
    assert isinstance(mechanism, FiniteMechanism)
    return average.invert(np.arange(average.m), mechanism.forward(theta))


def inv_bound_krr(k: int, epsilon: float) -> float:
    r"""The papers' upper bound on the error of INV under k-RR.

    .. math:: \left(\frac{e^\varepsilon+k-1}{e^\varepsilon-1}\right)^2

    bounds :math:`n\,\mathbb E\lVert v-\theta\rVert_2^2` from above. The exact value is the bound
    times :math:`1-\lVert\theta M\rVert_2^2`.

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
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.6, proposition on INV
       with k-RR.

    Examples
    --------
    >>> round(inv_bound_krr(100, epsilon=2.0), 2)  # printed as 227.28
    277.28
    """
    secrets, eps = number_of_secrets(k, 2), arguments.positive("epsilon", epsilon)
    with refuse_overflow(k=secrets, epsilon=eps):
        return float(inverse_contrast(secrets, eps) ** 2)


def inv_bound_geometric(k: int, epsilon: float) -> float:
    r"""The papers' lower bound on the error of INV under geometric noise.

    .. math:: b^3-2ab^2-2,\qquad a=e^{-\varepsilon},\quad b=\frac1{1-a},

    bounds :math:`n\,\mathbb E\lVert v-\theta\rVert_2^2` from below. It holds under truncated
    geometric noise on a line of :math:`k \ge 3` values, for every :math:`\theta` and every a in (0,
    1). The paper states it for every k, and for a > 1/2; but at k = 2 it fails. It is loose: for
    the ages of `load_adult_ages` the error is a hundred times as large.

    Parameters
    ----------
    k : int
        Number of secrets, at least 3.
    epsilon : float
        Nats per unit of the line.

    Raises
    ------
    ValueError
        If `epsilon` is out of range, or if k < 3, for which the bound does not hold.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.6, proposition on INV
       with linear geometric noise.

    Examples
    --------
    >>> round(inv_bound_geometric(100, epsilon=0.05), 1)  # printed as 7238
    7818.5
    """
    arguments.whole("k", k, 3)
    eps = arguments.positive("epsilon", epsilon)
    with refuse_overflow(epsilon=eps):
        b = -1 / np.expm1(-eps)
        return float(b**3 - 2 * np.exp(-eps) * b**2 - 2)
