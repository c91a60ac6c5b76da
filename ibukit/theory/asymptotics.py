"""Asymptotic squared error of the maximum likelihood estimate: trace of the inverse information."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.vectors import VectorLike, positive_distribution_over
from ibukit.errors import NotInvertible
from ibukit.fisher_information import contrasts
from ibukit.fisher_information.bits import BitInformation
from ibukit.identification.identifiability import refuse_if_too_large_to_decompose
from ibukit.mechanisms import FiniteMechanism, Mechanism, SubsetSelection
from ibukit.mechanisms.categorical.independent_bits import IndependentBits, is_bits, is_unary
from ibukit.mechanisms.inversion_error import inversion_error
from ibukit.mechanisms.matrix import as_mechanism


def asymptotic_mse(mechanism: Mechanism | ArrayLike, theta: VectorLike) -> float:
    r"""The limiting mean squared error of the MLE, times n.

    The limit of :math:`n\,\mathbb E\lVert\mathrm{MLE}-\theta\rVert_2^2` as n grows is
    :math:`\operatorname{tr} C`, where C is the inverse of J on the directions that keep the sum.
    Here :math:`J=M\,\operatorname{diag}(\theta M)^{-1}M^\top` is the Fisher information of one
    report, :math:`C=Z\,(Z^\top JZ)^{-1}Z^\top` with Z an orthonormal basis of {v :
    :math:`\sum v = 0`}, and
    :math:`\operatorname{tr}C=\operatorname{tr}J^{-1}-\lVert\theta\rVert_2^2`. No regular estimator
    has a smaller limit at every :math:`\theta`. The expectation is over the secrets, drawn
    independently from :math:`\theta`, and the noise; if the goal is the secrets' own frequencies,
    the limit is smaller by :math:`1 - \lVert \theta\rVert _{2}^{2}`.

    If there are as many reports as secrets, the limit is the error of matrix inversion,
    `inv_squared_error`, at every n. Computing it takes O(k) for k-RR and geometric noise on a line,
    and for unary encodings and subset selection at uniform :math:`\theta`; :math:`O(k^{3})` for
    unary encodings at any other :math:`\theta`; and, for subset selection at any other
    :math:`\theta`, :math:`O(k^{3})` for each of about k / 4 roots of unity (see the notes). For
    everything else it is computed from the matrix.

    Parameters
    ----------
    mechanism : Mechanism or array_like, shape (k, m)
        A row-stochastic matrix is taken as a `MatrixMechanism`.
    theta : array_like or labelled, shape (k,)
        Distribution of the secrets, without zeros.

    Returns
    -------
    float
        The limit, which has no unit; divided by n, it is the squared error to expect of the maximum
        likelihood estimate.

    Raises
    ------
    InvalidDistribution
        If `theta` is not on the simplex, or has a zero: at the boundary the estimate is not
        asymptotically normal.
    AlphabetMismatch
        If `theta` does not have one probability for each secret.
    NotInvertible
        If the reports do not identify :math:`\theta`, so that some direction has no information at
        all.
    ValueError
        If the reports cannot be listed and no structure replaces the list, if they get lost, or if
        a matrix of more than 5,000 secrets would be needed.

    Notes
    -----
    Under k-RR, J on the directions that keep the sum is
    :math:`\operatorname{diag} (d^{2} / (\theta\,M))` with d = truth - lie, so C is
    :math:`(\operatorname{diag} (\theta\,M) - (\theta\,M)^{\top}\,(\theta\,M)) / d^{2}`. Two-sided
    geometric noise on all integers has the information of truncated noise, as the columns beyond an
    end are multiples of the column at the end. For a unary encoding the column of a row b is a
    common factor times :math:`1 + c\,(b_{x} - q)`, with q the chance that noise alone sets a bit
    and :math:`c=\frac{p-q}{q(1-q)}`, so on those directions :math:`J=c^2\,\mathbb E[b_xb_y/s]`,
    :math:`s=1+c\sum_x\theta_x(b_x-q)`, with independent :math:`b_{x}` of chance q;
    :math:`1/s=\int e^{-st}\,dt` turns the expectation over :math:`2^{k}` rows into products,
    integrated to the rounding of doubles. The sets of subset selection are such rows, conditioned
    on their number of ones; a discrete Fourier transform (a sum over roots of unity) picks out this
    number. For subset selection at uniform :math:`\theta` the result is :math:`(k -
    1)^{2}\,(w\,e^{\varepsilon} + k - w)^{2} / (k\,w\,(k - w)\,(e^{\varepsilon} - 1)^{2})` with w
    the size of the sets.

    References
    ----------
    .. [frequency] Lopuhaä-Zwakenberg, Li and Škorić, arXiv:1911.10499, (36): J in k - 1
       coordinates.
    .. [vaart1998] A. W. van der Vaart, "Asymptotic Statistics", Cambridge University Press, 1998,
       section 5.5.

    Examples
    --------
    >>> import ibukit as ik
    >>> theta = ik.uniform(10)
    >>> for kind in (ik.RandomizedResponse, ik.OptimizedUnaryEncoding, ik.SubsetSelection):
    ...     print(kind.__name__, round(ik.theory.asymptotic_mse(kind(10, epsilon=1.0), theta), 2))
    RandomizedResponse 41.86
    OptimizedUnaryEncoding 34.27
    SubsetSelection 30.0
    """
    mechanism = as_mechanism(mechanism)
    p = interior_distribution("theta", theta, mechanism.alphabet)
    if mechanism.k == 1:
        return 0.0
    mechanism = mechanism.as_finite()
    uniform = bool((p == p[0]).all())
    # By the exact type: a class that inherits from it may have another law.
    if type(mechanism) is SubsetSelection and uniform:
        return inversion_error(mechanism).at(p)
    with one_thread():
        if is_unary(mechanism) and uniform:
            return _unary_uniform(mechanism)
        if is_bits(mechanism) and mechanism.m > mechanism.k:
            return float(np.trace(BitInformation(mechanism).covariance(p)))
        if mechanism.m == mechanism.k:
            return inversion_error(mechanism).at(p)
        return _from_matrix(mechanism, p)


def interior_distribution(name: str, values: VectorLike, alphabet: Alphabet) -> Floats:
    """Check a distribution without zeros."""
    why = "and at the boundary the error has another limit; leave out secrets that nobody has"
    return positive_distribution_over(name, values, alphabet, why)


def _from_matrix(mechanism: FiniteMechanism, theta: Floats) -> float:
    _, values = principal_axes(mechanism, theta)
    return float((1 / values**2).sum())


def principal_axes(mechanism: FiniteMechanism, theta: Floats) -> tuple[Floats, Floats]:
    """Axes U, (k - 1, k - 1), and values s with Z^T J Z = U diag(s^2) U^T.

    Hence C = (Z U) diag(1 / s^2) (Z U)^T.
    """
    # They are singular vectors and values of Z^T M diag(theta M)^-1/2: forming J would square the
    # range of the values.
    refuse_if_too_large_to_decompose(mechanism.k, "take a coarser alphabet")
    matrix = mechanism.matrix()
    possible = matrix[:, matrix.any(axis=0)]
    columns = possible / np.sqrt(theta @ possible)
    axes, values, _ = np.linalg.svd(contrasts(mechanism.k).T @ columns, full_matrices=False)
    # The contrasts may be small, but they carry the rounding of the columns, which sets the floor.
    floor = np.linalg.norm(columns) * max(columns.shape) * np.finfo(float).eps
    if len(values) < mechanism.k - 1 or values[-1] <= floor:
        raise NotInvertible(
            f"the reports of {mechanism} do not identify theta: different distributions give the "
            "same reports, so some differences are never learned, see theory.identifiable"
        )
    return axes, values


def _unary_uniform(encoding: IndependentBits) -> float:
    """Value for a unary encoding at uniform theta, where J has a single eigenvalue.

    It is c^2 / 2 E[(b_x - b_y)^2 / s]: only rows with b_x != b_y count, by the number of their
    other ones.
    """
    # Imported late: it is slow to load and seldom needed.
    from scipy.stats import binom

    k, q = encoding.k, encoding.p_zero
    c = encoding.contrast / (q * (1 - q))
    ones = np.arange(k - 1)
    # The sum s = 1 + c ((ones + 1) / k - q) without cancellation.
    s = encoding.p_hidden / (1 - q) + c * (ones + 1) / k
    information = c * encoding.contrast * (binom.pmf(ones, k - 2, q) / s).sum()
    return float((k - 1) / information)
