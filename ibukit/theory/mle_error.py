"""Upper bound on the mean error of the maximum likelihood estimate, for every number of users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import helmert, solve_triangular
from tqdm import tqdm

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.errors import NotInvertible
from ibukit.identification.identifiability import identifiable, refuse_if_too_large_to_decompose
from ibukit.mechanisms import Mechanism, RandomizedResponse, SubsetSelection
from ibukit.mechanisms.categorical.independent_bits import IndependentBits, is_bits
from ibukit.mechanisms.inversion_error import inverse_contrast
from ibukit.mechanisms.matrix import as_mechanism

# Number of times that each report's weight is multiplied by the length of its row.
WEIGHT_UPDATES = 50
# Least weight of a report, as a share of its probability, so that no row is divided by 0.
MIN_SHARE = 1e-6
# Rows whose distances to all others are held in memory at a time.
ROWS_AT_ONCE = 1024


@overload
def mle_error_bound(mechanism: Mechanism | ArrayLike, n: int) -> float: ...
@overload
def mle_error_bound(
    mechanism: Mechanism | ArrayLike, n: Sequence[int] | NDArray[Any]
) -> Floats: ...
@overload
def mle_error_bound(mechanism: Mechanism | ArrayLike, n: ArrayLike) -> float | Floats: ...


def mle_error_bound(mechanism: Mechanism | ArrayLike, n: ArrayLike) -> float | Floats:
    r"""Upper bound on the mean error of the MLE.

    .. math::

        \mathbb E\lVert\mathrm{MLE}-\theta\rVert_2\le
        D\,\sqrt{\frac{m-1}{2n}}\,\left(1+\frac1{\sqrt m}\right),

    for every :math:`\theta` and every n. m is the number of possible reports and
    :math:`D=\max_{y,z}\lVert R_y-R_z\rVert_2` the diameter of the rows of a matrix R with w M R = w
    for all w that sum to 0. It holds for any choice among several maximisers. No two distributions
    are farther apart than :math:`\sqrt{2}`: where the bound is larger, it says nothing.

    Parameters
    ----------
    mechanism : Mechanism or array_like, shape (k, m)
        One that identifies the distribution. A row-stochastic matrix is taken as a
        `MatrixMechanism`. Untruncated geometric noise on a line has as many reports as secrets
        here, since a report beyond an end of the line says the same as a report at that end.
    n : int or array_like of int
        Number of users, at least 1.

    Returns
    -------
    float or ndarray
        One bound for each n, in the shape of `n`; inf where m is too large for a double, as it is
        for RAPPOR if k is 1023 or more.

    Raises
    ------
    NotInvertible
        If the mechanism does not identify the distribution: then no bound tends to 0.
    ValueError
        If `n` is not whole or is below 1; if the reports get lost, or cannot be listed and are not
        those of geometric noise on a line; or if a matrix of more than 5,000 secrets would be
        needed.
    InvalidDistribution
        If a matrix is not row-stochastic.

    Notes
    -----
    The bound is ours. It is a classical result that identification makes the estimate consistent if
    there are finitely many possible reports [rao]_ [birch]_.

    Proof: with p = :math:`\theta M`, q the shares of the reports and :math:`\hat p` = MLE M,

        MLE - :math:`\theta = (\hat p - q)\,R + (q - p)\,R`.

    A vector u that sums to 0 is :math:`\lVert u\rVert _{1} / 2` times the difference of two
    distributions, so :math:`\lVert u\,R\rVert _{2} \le \lVert u\rVert _{1}\,D / 2`. The MLE is no
    farther from the data than the truth is, :math:`D(q\Vert\hat p)\le D(q\Vert p)`, so that by
    Pinsker's inequality :math:`\lVert\hat p-q\rVert_1\le\sqrt{2D(q\Vert p)}`, and
    :math:`D(q\Vert p)\le\sum_z\frac{(q_z-p_z)^2}{p_z}` has a mean of at most (m-1) / n. The second
    term is the error of matrix inversion: :math:`n\,E\,\lVert (q - p)\,R\rVert _{2}^{2}` is the
    variance of one row, which is half the mean square distance of two independent ones, at most
    :math:`D^{2}\,(1 - 1 / m) / 2`. Both roots follow by Jensen's inequality.

    Let :math:`r \ge D / 2` be the greatest distance of a row from any centre c,
    :math:`\max_{z} \lVert R_{z} - c\rVert _{2}`. Then the bound is below the simpler
    :math:`2\,r\,\sqrt{2\,(m - 1) / n}`, which in turn is below the same expression with 1/s in the
    place of r, where s is the smallest singular value of M.

    R is the one of three least-squares solutions that has the smallest D. In the first all reports
    weigh the same (the pseudo-inverse, with :math:`r \le 1 / s`); in the second each weighs as much
    as its probability under the uniform distribution; in the third the weights are such that the
    longest row becomes short. For m = k there is only one D. Unary encodings and subset selection
    have closed forms.

    References
    ----------
    .. [rao] Rao, "Maximum likelihood estimation for the multinomial distribution", Sankhya 18,
       1957.
    .. [birch] Birch, "A new proof of the Pearson-Fisher theorem", Ann. Math. Statist. 35, 1964.

    Examples
    --------
    >>> import ibukit as ik
    >>> mle_error_bound(ik.RandomizedResponse(10, epsilon=1.0), [100, 10_000, 1_000_000]).round(3)
    array([2.693, 0.269, 0.027])
    """
    mechanism = as_mechanism(mechanism)
    users = arguments.users(n, least=1)
    bound = np.asarray(_constant(mechanism) / np.sqrt(users))
    return float(bound) if bound.ndim == 0 else bound


def _constant(mechanism: Mechanism) -> float:
    """Bound on the error times sqrt(n)."""
    if mechanism.k == 1:
        return 0.0
    mechanism = mechanism.as_finite()
    # By the exact type: a class that inherits from it may have another law.
    is_response = type(mechanism) is RandomizedResponse
    if not (is_response or is_bits(mechanism)):
        refuse_if_too_large_to_decompose(
            mechanism.k, "k-RR, unary encodings and subset selection have a bound at any size"
        )
    if not (answer := identifiable(mechanism)):
        raise NotInvertible(
            f"mechanism must identify the distribution, but does not: {answer.reason}"
        )
    if is_bits(mechanism):
        if mechanism.m >= 2**1023:
            return np.inf
        diameter, m = _bits_diameter(mechanism), float(mechanism.m)
    elif is_response:
        diameter, m = (
            np.sqrt(2) * inverse_contrast(mechanism.k, mechanism.epsilon),
            float(mechanism.k),
        )
    else:
        seen = mechanism.matrix()[:, mechanism.matrix().any(axis=0)]
        with one_thread():
            diameter, m = (
                min(_diameter(rows) for rows in right_inverses(seen)),
                float(seen.shape[1]),
            )
    return float(diameter * np.sqrt((m - 1) / 2) * (1 + 1 / np.sqrt(m)))


def right_inverses(matrix: Floats) -> Iterator[Floats]:
    """Generate right inverses R with w M R = w for all w with sum 0, in an orthonormal basis.

    No column of the matrix may be empty.
    """
    # Any orthonormal basis gives the same lengths; Helmert's is a closed form.
    tangent = helmert(len(matrix)) @ matrix
    uniform_law = matrix.sum(axis=0) / len(matrix)
    rows = _least_squares(tangent, uniform_law)
    yield rows
    yield _least_squares(tangent, np.ones_like(uniform_law))
    # If there are as many reports as secrets, R is unique up to its centre.
    if matrix.shape[1] == len(matrix):
        return
    weights, shortest, shortest_rows = uniform_law, np.inf, rows
    for _ in tqdm(range(WEIGHT_UPDATES), desc="weights", disable=None, leave=False):
        lengths = np.sqrt((rows**2).sum(axis=1))
        if lengths.max() < shortest:
            shortest, shortest_rows = lengths.max(), rows
        weights = weights * lengths
        weights = np.maximum(weights / weights.sum(), MIN_SHARE * uniform_law)
        rows = _least_squares(tangent, weights)
    yield shortest_rows


def _least_squares(tangent: Floats, weights: Floats) -> Floats:
    """Right inverse R, tangent R = I, with the least sum_z weights_z ||R_z||^2."""
    root = np.sqrt(weights)
    q, t = np.linalg.qr((tangent / root).T)
    return solve_triangular(t, q.T).T / root[:, None]


def _diameter(rows: Floats) -> float:
    """Largest distance between two rows, by ||a||^2 + ||b||^2 - 2 a . b in blocks."""
    squares, largest = (rows**2).sum(axis=1), 0.0
    for i in range(0, len(rows), ROWS_AT_ONCE):
        block = slice(i, i + ROWS_AT_ONCE)
        apart = squares[block, None] + squares - 2 * rows[block] @ rows.T
        largest = max(largest, float(apart.max()))
    return float(np.sqrt(largest))


def _bits_diameter(mechanism: IndependentBits | SubsetSelection) -> float:
    """Diameter of the rows for bits, where row z is a multiple of M_z / sum_x M_xz.

    Its entries are in the proportion e^epsilon : 1 on the bits that are set and those that are not.
    """
    k, odds = mechanism.k, np.exp(-mechanism.epsilon)
    if isinstance(mechanism, SubsetSelection):
        ones, chance = np.array([mechanism.size]), np.ones(1)
    else:
        # Imported late: it is slow to load and seldom needed.
        from scipy.stats import binom

        # The number of ones: the secret's own bit, and those of the others.
        ones, other = np.arange(1, k), binom(k - 1, mechanism.p_zero)
        chance = mechanism.p_one * other.pmf(ones - 1) + (1 - mechanism.p_one) * other.pmf(ones)
    # Difference of a row's entries between a bit that is set and one that is not.
    step = -k * np.expm1(-mechanism.epsilon) / ((k - ones) * odds + ones)
    squares = step**2 * ones * (k - ones) / k
    scale = chance @ squares / (k - 1)
    # Two reports are farthest apart if they share as few ones as possible.
    shared = np.maximum(0, ones[:, None] + ones - k) - np.outer(ones, ones) / k
    apart = squares[:, None] + squares - 2 * np.outer(step, step) * shared
    # Rows without any bit set, or with all bits set, lie in the centre. No distance from there is
    # the largest: rows that share as few ones as possible have an inner product of at most 0.
    weighted = np.sqrt(apart.max()) / scale
    if isinstance(mechanism, SubsetSelection):
        return float(weighted)
    debiased = np.sqrt(k - (k % 2) / k) / mechanism.contrast
    return float(min(weighted, debiased))
