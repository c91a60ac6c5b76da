"""Strict concavity of the log-likelihood of the reports seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.threads import one_thread
from ibukit.channels import facts
from ibukit.identification import _binary_field, _null_spaces
from ibukit.identification.identifiability import (
    ANY_SIZE_OF_REPORTS,
    refuse_if_too_large_to_decompose,
)
from ibukit.tally.tally import Tally, TallyPart, check_tally


@dataclass(frozen=True, eq=False)
class Concavity(arguments.ReadOnlyArrays):
    r"""Answer of `strictly_concave`, with the evidence.

    In an ``if`` statement it counts as true exactly when `strictly_concave` is true.

    Attributes
    ----------
    strictly_concave : bool
        Whether rank = k - 1.
    k : int
        Number of secrets.
    rank : int
        Number of independent directions in which distributions can differ so that the reports seen
        show it; at most k - 1.
    direction : ndarray, shape (k,), or None
        If L is not strictly concave: a w with :math:`\sum w = 0`, :math:`\sum |w| = 2` and w G = 0,
        along which L does not change.
    reason : str

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(4, epsilon=1.0).tally([0, 0, 2])
    >>> print(ik.theory.strictly_concave(tally).reason)
    k-RR: 2 distinct reports, and k - 1 = 3 are needed
    """

    strictly_concave: bool
    k: int
    rank: int
    direction: Floats | None
    reason: str

    def __bool__(self) -> bool:
        return self.strictly_concave

    def __repr__(self) -> str:
        return (
            f"Concavity({self.strictly_concave}: rank {self.rank} of {self.k - 1}; {self.reason})"
        )


def strictly_concave(tally: Tally) -> Concavity:
    r"""Tell whether the log-likelihood of these reports is strictly concave.

    It is strictly concave if w = 0 is the only w with :math:`\sum w = 0` and w G = 0, where G has a
    column for every report seen. Where L is finite, this condition is sufficient and necessary,
    because :math:`L(\theta + t\,w)` is constant in t if w G = 0, and strictly concave in t
    otherwise. Equivalently, the matrix of G and the ones vector has rank k. The matrix G is not
    needed for k-RR and for geometric noise on a line, where the test is whether there are at least
    k - 1 distinct reports (those beyond an end count as that end). Nor is it needed for unary
    encodings, where the test is on the bit rows, first over the field with two elements, then over
    the reals.

    Parameters
    ----------
    tally : Tally
        Of one mechanism, or pooled over several.

    Returns
    -------
    Concavity
        It counts as True or False in an ``if`` statement, and has `rank`, `direction` and `reason`.

    Raises
    ------
    LikelihoodUnknown
        If the tally holds sums of bits only.
    ValueError
        If the tally needs a matrix of more than 5,000 secrets, or if reports get lost.

    Notes
    -----
    Where a secret cannot produce a report that was seen, L is minus infinity for the distributions
    that rule the report out, and no function is strictly concave there: the paper's theorem holds
    for a finite L.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 4.1, theorem on strict
       concavity; section 4.4 for RAPPOR.

    Examples
    --------
    The paper's matrix (4): one report leaves a whole edge of the triangle equally likely, two do
    not.

    >>> import ibukit as ik
    >>> mechanism = ik.MatrixMechanism([[0.1, 0.45, 0.45], [0.45, 0.1, 0.45], [0.45, 0.45, 0.1]])
    >>> bool(ik.theory.strictly_concave(mechanism.tally([1, 0])))
    True
    >>> answer = ik.theory.strictly_concave(mechanism.tally([1]))
    >>> bool(answer), abs(answer.direction)
    (False, array([1., 0., 1.]))
    """
    k = check_tally(tally, weighted=True).k
    if k == 1:
        return Concavity(True, 1, 0, None, "a single secret: there is only one distribution")
    for part in tally.parts:
        answer = _by_structure(part, k)
        if answer is not None and (answer or len(tally.parts) == 1):
            return answer if len(tally.parts) == 1 else _with_others(answer)
    refuse_if_too_large_to_decompose(k, ANY_SIZE_OF_REPORTS)
    with one_thread():
        # No structure: the rank of the columns seen and the ones vector, by singular values.
        spanned = _null_spaces.span(_null_spaces.seen_columns(tally, np.arange(k)), k)
        return _by_rank(spanned, k, _finite_only(tally))


def _by_structure(part: TallyPart, k: int) -> Concavity | None:
    """Answer by the structure of one mechanism; None if it has none, or bits do not decide."""
    if (krr := facts.as_response(part.channel)) is not None:
        return _by_count("k-RR", krr.reports, k, None)
    if (line := facts.as_line(part.channel)) is not None:
        return _by_count("geometric noise", np.unique(line.positions), k, line.decay)
    if (bits := facts.as_bits(part.channel)) is not None:
        # A column is a multiple of constant + bits, so the columns and the vector of ones span what
        # the bits and the vector of ones span.
        ones = np.packbits(np.ones((1, k), dtype=bool), axis=1)
        enough = _binary_field.rank(np.concatenate([ones, bits.packed]), k) == k
        why = (
            f"bits: {k - 1} of the rows seen are independent beside the row of ones, where "
            "1 + 1 = 0"
        )
        return Concavity(True, k, k - 1, None, why) if enough else None
    return None


def _by_count(name: str, distinct: Ints, k: int, decay: float | None) -> Concavity:
    """Answer for an invertible square channel by its number of distinct reports.

    Any k - 1 of its columns are independent of the ones vector, any k - 2 are not enough. For its
    columns are independent and add up to the ones vector with every coefficient 1, so ones lies
    outside the span of any k - 1 of them.
    """
    rank = min(len(distinct), k - 1)
    if rank == k - 1:
        return Concavity(True, k, rank, None, f"{name}: at least k - 1 = {k - 1} distinct reports")
    # Take two reports that nobody made: a change that only these two could show is invisible.
    one, two = np.setdiff1d(np.arange(k), distinct)[:2]
    direction = np.zeros(k)
    if decay is None:
        direction[[one, two]] = 1, -1
    else:
        # For geometric noise the two invisible bumps are columns of the inverse kernel.
        for place, sign in ((one, 1), (two, -1)):
            around, weights = _inverse_column(int(place), k, decay)
            direction[around] += sign * weights
        direction *= 2 / np.abs(direction).sum()
    seen = "1 distinct report" if rank == 1 else f"{rank} distinct reports"
    return Concavity(
        False,
        k,
        rank,
        arguments.frozen(direction),
        f"{name}: {seen}, and k - 1 = {k - 1} are needed",
    )


def _inverse_column(place: int, k: int, decay: float) -> tuple[Ints, Floats]:
    """Column of the tridiagonal inverse of decay^|x - z|, sum 1: only report `place` sees it."""
    around = np.arange(max(place - 1, 0), min(place + 2, k))
    own, total = (1.0, 1 - decay) if place in (0, k - 1) else (1 + decay**2, (1 - decay) ** 2)
    # Dividing by the weights' own sum would cancel near decay = 1.
    return around, np.where(around == place, own, -decay) / total


def _with_others(answer: Concavity) -> Concavity:
    return Concavity(
        True, answer.k, answer.rank, None, f"one of the mechanisms alone suffices: {answer.reason}"
    )


def _by_rank(spanned: _null_spaces.Span, k: int, finite_only: str) -> Concavity:
    rank = spanned.rank - 1
    if rank == k - 1:
        least = spanned.singular_values[-1] / spanned.singular_values[0]
        return Concavity(
            True,
            k,
            rank,
            None,
            f"rank {rank} = k - 1, the least singular value {least:.2g}{finite_only}",
        )
    why = f"rank {rank} where k - 1 = {k - 1} is needed{finite_only}"
    return Concavity(False, k, rank, arguments.frozen(_null_spaces.witness(spanned)), why)


def _finite_only(tally: Tally) -> str:
    dense = [
        matrix.columns
        for part in tally.parts
        if (matrix := facts.as_dense(part.channel)) is not None
    ]
    # A zero in a seen column rules a report out for some secret, where L is minus infinity.
    zeros = any((columns == 0).any() for columns in dense)
    return "; where L is finite: some secret cannot produce some report seen" if zeros else ""
