"""Identifiability: whether a mechanism's reports tell any two distributions apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.limits import max_factorised_order
from ibukit._ground.threads import one_thread
from ibukit.identification import _null_spaces
from ibukit.mechanisms import (
    DiscreteGaussian,
    FreeWill,
    LinearGaussian,
    LinearGeometric,
    LinearLaplace,
    PlanarGaussian,
    PlanarGeometric,
    PlanarLaplace,
    RandomizedResponse,
    SubsetSelection,
    TruncatedGeometric,
    TruncatedPlanarGeometric,
)
from ibukit.mechanisms.base import Mechanism
from ibukit.mechanisms.categorical.independent_bits import IndependentBits, is_unary
from ibukit.mechanisms.matrix import as_mechanism
from ibukit.mechanisms.points import LinearLaplacePoints, PlanarLaplacePoints, PointReports


@dataclass(frozen=True, eq=False)
class Identifiability(arguments.ReadOnlyArrays):
    r"""Answer of `identifiable`, with the evidence.

    In an ``if`` statement it counts as true exactly when `identifiable` is true.

    Attributes
    ----------
    mechanism : Mechanism or FreeWill
    identifiable : bool
        Whether M has k linearly independent columns.
    rank : int
        How many of its columns are independent.
    null_vector : ndarray, shape (k,), or None
        If the mechanism is not identifiable: a w with w M = 0, :math:`\sum w = 0` and
        :math:`\sum |w| = 2`. Its positive part and minus its negative part are two distributions
        without a common secret under which every report is equally probable. The first of its
        largest entries is positive.
    reason : str

    Examples
    --------
    >>> import ibukit as ik
    >>> print(ik.theory.identifiable(ik.RandomizedResponse(4, epsilon=1.0)).reason)
    k-RR has k independent columns for every epsilon above 0
    """

    mechanism: Mechanism | FreeWill
    identifiable: bool
    rank: int
    null_vector: Floats | None
    reason: str

    def __bool__(self) -> bool:
        return self.identifiable

    @cached_property
    def singular_values(self) -> Floats:
        """Singular values that the answer rests on, shape (k,).

        They are those of the columns used, in descending order. Where reports can be listed, and
        for k-RR, unary encodings and subset selection, they are those of the whole matrix; the
        latter three have them in closed form (which underflows for unary encodings and subset
        selection with k in the thousands). For untruncated noise only the columns of reports inside
        the alphabet's range are used: on a line the columns of the truncated mechanism, in the
        plane those of the grid's own cells, and for reports that are numbers or points the columns
        at the secrets' own places. For `FreeWill` they are the columns of its mechanisms side by
        side, each times its share. The smaller the last value is relative to the first, the more an
        inversion amplifies the noise: identifiable is not the same as well determined.
        """
        with one_thread():
            values: Floats = arguments.frozen(_singular_values(self.mechanism))
            return values

    def __repr__(self) -> str:
        rank = f"rank {self.rank} of {len(self.mechanism.alphabet)}"
        return f"Identifiability({self.identifiable}: {rank}; {self.reason})"


def identifiable(mechanism: Mechanism | FreeWill | ArrayLike) -> Identifiability:
    r"""Tell whether different distributions always give different reports.

    The question is whether :math:`\theta M=\phi M` implies :math:`\theta = \phi` for all
    distributions :math:`\theta`, :math:`\phi`, which is to say whether rank M = k. Without this
    condition no estimator is consistent at every :math:`\theta`; with it the maximum likelihood
    estimate is. For k-RR, unary encodings (RAPPOR, OUE), subset selection, and geometric, Laplace
    and Gaussian noise, theory gives the answer at any size. For other mechanisms the singular
    values of their matrix decide, to the rounding of doubles.

    Parameters
    ----------
    mechanism : Mechanism, FreeWill or array_like, shape (k, m)
        A row-stochastic matrix is taken as a `MatrixMechanism`. With `FreeWill` a report says which
        mechanism it came through, so that M consists, side by side, of the matrices of all
        mechanisms that somebody chooses, each times its share. If reports do not say which, M is
        the average of these matrices: ask for
        ``average_mechanism(users.mechanisms, users.shares)``, which may identify nothing although
        each mechanism does.

    Returns
    -------
    Identifiability
        It counts as True or False in an ``if`` statement, and has `rank`, `singular_values`,
        `null_vector` and `reason`.

    Raises
    ------
    ValueError
        If theory has no answer for the mechanism, and its reports cannot be listed or it has more
        than 5,000 secrets; or if reports get lost.
    InvalidDistribution
        If a matrix is not row-stochastic.

    Notes
    -----
    Theory: k-RR is :math:`(1 - s)\,11^{\top} / k + s` I with s > 0. The columns
    :math:`e^{-\varepsilon\,|x - z|}` of geometric noise on a line have a tridiagonal inverse, on
    whatever integers x; in the plane :math:`e^{-\varepsilon\,|x - z|}` is strictly positive
    definite for distinct points [schoenberg]_. Planar geometric noise and rounded Laplace noise
    have a positive characteristic function; differences of neighbouring cells then turn M into
    positive definite matrices also where reports beyond the border of a rectangle go to its nearest
    cell (the chapter on consistency has the proof). For a unary encoding the columns of the reports
    with one bit set suffice. In subset selection, if two sets differ in one element, which is x in
    the first and y in the second, their columns differ by a multiple of :math:`e_{x} - e_{y}`.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 6.1, theorem on
       identification.
    .. [schoenberg] Schoenberg, "Metric spaces and positive definite functions", Trans. AMS 44,
       1938.

    Examples
    --------
    Three values, of which the collector learns only "first or not":

    >>> import ibukit as ik
    >>> merged = ik.compose(ik.RandomizedResponse(3, epsilon=1.0), [[1, 0], [0, 1], [0, 1]])
    >>> answer = ik.theory.identifiable(merged)
    >>> answer.identifiable, answer.rank, answer.null_vector
    (False, 2, array([ 0.,  1., -1.]))

    Two mechanisms that identify, whose average does not:

    >>> users = ik.FreeWill([ik.MatrixMechanism([[p, 1 - p], [1 - p, p]]) for p in (0.75, 0.25)])
    >>> average = ik.average_mechanism(users.mechanisms, users.shares)
    >>> bool(ik.theory.identifiable(users)), bool(ik.theory.identifiable(average))
    (True, False)
    """
    if not isinstance(mechanism, FreeWill):
        mechanism = as_mechanism(mechanism)
    k = len(mechanism.alphabet)
    used = _used_mechanisms(mechanism)
    for each in used:
        why = OF_UNARY if is_unary(each) else BY_THEORY.get(type(each))
        if why is not None:
            # More columns beside k independent ones change nothing.
            alone = why if each is mechanism else f"one of its mechanisms is enough: {why}"
            return Identifiability(mechanism, True, k, None, alone)
    with one_thread():
        blocks = (block for each in used for block in _all_columns(each))
        spanned = _null_spaces.span(blocks, k)
        null = None if spanned.rank == k else arguments.frozen(_null_spaces.witness(spanned))
    m = sum(getattr(each, "m", 0) for each in used)
    return Identifiability(mechanism, null is None, spanned.rank, null, _reason(spanned, k, m))


def _used_mechanisms(mechanism: Mechanism | FreeWill) -> list[Mechanism]:
    """Return the mechanism itself, or those that somebody chooses."""
    if isinstance(mechanism, FreeWill):
        return [
            each
            for each, share in zip(mechanism.mechanisms, mechanism.shares, strict=True)
            if share > 0
        ]
    return [mechanism]


OF_UNARY = "of a unary encoding the k reports with a single bit set have independent columns"
# By the exact type: a class that inherits from one of these may have another law.
BY_THEORY: dict[type[Mechanism], str] = {
    RandomizedResponse: "k-RR has k independent columns for every epsilon above 0",
    SubsetSelection: "subset selection has two sets for any two secrets that differ in these alone",
    LinearGeometric: "the columns of geometric noise on a line have a tridiagonal inverse",
    TruncatedGeometric: "the columns of geometric noise on a line have a tridiagonal inverse",
    PlanarGeometric: "e^(-eps |x - z|) is strictly positive definite on the cells of a grid",
    **dict.fromkeys(
        (TruncatedPlanarGeometric, LinearLaplace, PlanarLaplace),
        "the noise has a positive characteristic function, and what leaves the rectangle of cells "
        "goes to the nearest one",
    ),
    LinearLaplacePoints: "e^(-eps |x - z|) is strictly positive definite on distinct numbers",
    PlanarLaplacePoints: "e^(-eps |x - z|) is strictly positive definite on distinct points",
    **dict.fromkeys(
        (DiscreteGaussian, LinearGaussian, PlanarGaussian),
        "e^(-|x - z|^2 / (2 sigma^2)) is strictly positive definite on distinct points",
    ),
}


# Advice where a matrix would be too large: what is answered without one.
ANY_SIZE = (
    "k-RR, unary encodings, subset selection, geometric, Laplace and Gaussian noise are answered "
    "at any size"
)
# The same where the question is about the reports seen.
ANY_SIZE_OF_REPORTS = (
    "reports of k-RR alone and of geometric noise on a line are answered at any size"
)


def _all_columns(mechanism: Mechanism) -> Iterator[Floats]:
    listed = mechanism.as_finite()
    refuse_if_too_large_to_decompose(listed.k)
    return _null_spaces.scaled(listed.matrix())


def refuse_if_too_large_to_decompose(k: int, instead: str = ANY_SIZE) -> None:
    """Raise ValueError for a matrix too large to decompose; `instead` is advice, a clause."""
    if k > max_factorised_order():
        raise ValueError(
            f"k must be at most {max_factorised_order()} where a matrix is decomposed, got {k}; "
            f"{instead}"
        )


def _reason(spanned: _null_spaces.Span, k: int, m: int) -> str:
    if spanned.rank == k:
        least = spanned.singular_values[-1] / spanned.singular_values[0]
        return (
            f"k = {k} independent columns: the least singular value is {least:.2g} of the largest"
        )
    if m < k:
        return f"{m} reports cannot tell {k} secrets apart: rank {spanned.rank}"
    return (
        f"rank {spanned.rank} of {k}, to the rounding of doubles: different distributions give the "
        "same reports"
    )


def _singular_values(mechanism: Mechanism | FreeWill) -> Floats:
    if isinstance(mechanism, FreeWill):
        refuse_if_too_large_to_decompose(len(mechanism.alphabet))
        pairs = zip(mechanism.mechanisms, mechanism.shares, strict=True)
        side_by_side = [share * _used_columns(each) for each, share in pairs if share > 0]
        return _values_of(np.hstack(side_by_side))
    closed = _closed_form_values(mechanism)
    if closed is not None:
        return closed
    refuse_if_too_large_to_decompose(mechanism.k)
    return _values_of(_used_columns(mechanism))


def _values_of(columns: Floats) -> Floats:
    values = np.zeros(len(columns))
    values[: min(columns.shape)] = np.linalg.svd(columns, compute_uv=False)
    return values


def _closed_form_values(mechanism: Mechanism) -> Floats | None:
    """Singular values of the families whose M M^T has one value on its diagonal and one off it.

    The first belongs to the ones vector, and all others are equal.
    """
    k = mechanism.k
    if type(mechanism) is RandomizedResponse:
        # k-RR is (1 - s) 11^T / k + s I: the ones vector has singular value 1, all others s.
        contrast = -np.expm1(-mechanism.epsilon) / (1 + (k - 1) * np.exp(-mechanism.epsilon))
        return np.r_[1.0, np.full(k - 1, contrast)]
    if is_unary(mechanism):
        return _unary_singular_values(mechanism)
    if type(mechanism) is SubsetSelection:
        return _subset_singular_values(mechanism)
    return None


def _used_columns(mechanism: Mechanism) -> Floats:
    """Columns that the answer rests on, or as many with the same M M^T."""
    k = mechanism.k
    closed = _closed_form_values(mechanism)
    if closed is not None:
        # The symmetric root of M M^T: bits and sets have far more reports than this has columns.
        return np.asarray(closed[-1] * np.eye(k) + (closed[0] - closed[-1]) / k)
    # For untruncated noise the columns of the reports at the secrets' own places are used.
    if type(mechanism) in (PlanarGeometric, DiscreteGaussian):
        return np.asarray(mechanism.channel(mechanism.alphabet.values).rows(np.arange(k)))
    if isinstance(mechanism, PointReports):
        places = mechanism.check_reports(mechanism.places())
        return np.asarray(mechanism.channel(places).rows(np.arange(k)))
    return mechanism.as_finite().matrix()


def _unary_singular_values(mechanism: IndependentBits) -> Floats:
    # (M M^T)_xy is the product over the bits of the chance that two reports agree: a matrix with
    # two values again, whose eigenvalues are read off.
    p, hidden, q = mechanism.p_one, mechanism.p_hidden, mechanism.p_zero
    neither, one, both = q**2 + (1 - q) ** 2, p * q + hidden * (1 - q), p**2 + hidden**2
    # The value both * neither - one^2 without its cancellation: it is the determinant of the Gram
    # matrix of (p, 1 - p) and (q, 1 - q).
    own = mechanism.contrast**2
    scale = np.exp((mechanism.k - 2) / 2 * np.log(neither))
    first = both * neither + (mechanism.k - 1) * one**2
    return scale * np.sqrt(np.r_[first, np.full(mechanism.k - 1, own)])


def _subset_singular_values(mechanism: SubsetSelection) -> Floats:
    # (M M^T)_xy has two values; the k - 1 equal eigenvalues are (held - other)^2 for each set that
    # holds x and not y.
    k, size = mechanism.k, mechanism.size
    factor, rest = mechanism._held
    held = factor * np.exp(rest)
    # There are C(k-2, size-1) such sets, which is (k - size) / (k - 1) of those that hold x.
    own = -np.expm1(-mechanism.epsilon) * np.sqrt(held * mechanism.p_one * (k - size) / (k - 1))
    first = np.sqrt(held * (size + (k - size) * np.exp(-mechanism.epsilon)))
    return np.r_[first, np.full(k - 1, own)]
