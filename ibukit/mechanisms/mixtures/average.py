"""The average of several mechanisms: the law of a report when nobody knows its mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms.base import FiniteMechanism, Mechanism, require_same_alphabet
from ibukit.mechanisms.categorical.bit_reports import BitReports
from ibukit.mechanisms.categorical.independent_bits import IndependentBits
from ibukit.mechanisms.categorical.optimized_unary_encoding import OptimizedUnaryEncoding
from ibukit.mechanisms.categorical.randomized_response import RandomizedResponse
from ibukit.mechanisms.categorical.rappor import Rappor
from ibukit.mechanisms.categorical.subset_selection import SubsetSelection
from ibukit.mechanisms.categorical.unary_encoding import UnaryEncoding
from ibukit.mechanisms.matrix import MatrixMechanism
from ibukit.tally.trials import refuse_trials


def average_mechanism(
    mechanisms: Sequence[Mechanism], weights: ArrayLike | None = None
) -> FiniteMechanism:
    r"""The average of mechanisms with the same secrets and the same reports.

    It is :math:`A[n]=\sum_A w_A A`. For some mechanisms it has a closed form, and takes time linear
    in their number:

    - k-RRs average to a k-RR, with
      :math:`\frac1{k-1+e^{\varepsilon[n]}}=\sum_A\frac{w_A}{k-1+e^{\varepsilon_A}}`;
    - subset selections of one size average to one of the same size: :math:`e^{\varepsilon[n]}` is
      the average probability of a set that holds the secret, divided by the average probability of
      a set that does not;
    - RAPPORs average to a RAPPOR, with
      :math:`\frac1{1+e^{\varepsilon[n]/2}}=\sum_A\frac{w_A}{1+e^{\varepsilon_A/2}}`, and OUEs to an
      OUE, but *bit by bit only*: each bit has the law of the average, but the bits together do not,
      because all bits of a report came through the same mechanism. That is enough for matrix
      inversion, but wrong as a likelihood;
    - all other mechanisms are averaged as matrices; so are classes that inherit from those above,
      because they may have another law.

    Parameters
    ----------
    mechanisms : sequence of Mechanism
        At least one, all over the same alphabet. Unless reports are rows of bits, report z of one
        mechanism is taken for report z of all.
    weights : array_like, shape (len(mechanisms),), optional
        The share of each mechanism, summing to 1; equal by default. For n users in groups of sizes
        `counts`: ``counts / n``.

    Returns
    -------
    FiniteMechanism
        RandomizedResponse, SubsetSelection, Rappor, OptimizedUnaryEncoding, UnaryEncoding, or
        MatrixMechanism. If all mechanisms are equal, the first itself (if its reports can be
        listed).

    Raises
    ------
    AlphabetMismatch
        If the mechanisms differ in their secrets, or in the number or kind of their reports (bits
        and codes; RAPPOR and OUE; sets of different sizes), or if they have reports that cannot be
        listed.
    InvalidDistribution
        If `weights` is not on the simplex.
    MatrixUncertain
        If the mechanisms differ and the matrix of one of them was measured
        (`MatrixMechanism.from_trials`).
    ValueError
        If there is no mechanism.

    References
    ----------
    .. [freewill] ElSalamouny and Palamidessi, arXiv:2208.11268, eqs. (10), (11) and (16).

    Examples
    --------
    The ten k-RRs of the paper's Table V average to a k-RR whose level is below the mean of their
    levels, because small levels weigh more:

    >>> import ibukit as ik
    >>> levels = [3.00, 3.54, 3.96, 4.34, 4.69, 5.06, 5.46, 5.93, 6.60, 8.08]
    >>> responses = [ik.RandomizedResponse(100, epsilon) for epsilon in levels]
    >>> round(average_mechanism(responses).epsilon, 3)
    4.875

    Each of these two mechanisms tells something, but their average tells nothing (the paper's
    (14)):

    >>> honest = ik.MatrixMechanism([[0.75, 0.25], [0.25, 0.75]])
    >>> contrary = ik.MatrixMechanism([[0.25, 0.75], [0.75, 0.25]])
    >>> average_mechanism([honest, contrary]).matrix()
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    finite = _with_same_reports(mechanisms)
    w = (
        np.full(len(finite), 1 / len(finite))
        if weights is None
        else arguments.distribution("weights", weights, len(finite))
    )
    first = finite[0]
    # Equal mechanisms need no average, whatever the kind of their reports.
    if all(mechanism == first for mechanism in finite):
        return first
    refuse_trials(
        finite,
        "an average of mechanisms",
        "pool the tallies with + and use ibu or mle, whose intervals know the trials",
    )
    # Closed forms hold for the exact types: a class that inherits may have another law.
    kinds = {type(mechanism) for mechanism in finite}
    if kinds == {RandomizedResponse}:
        return RandomizedResponse(
            first.alphabet, _average_response(cast("list[RandomizedResponse]", finite), w)
        )
    if kinds == {Rappor}:
        return Rappor(
            first.alphabet, 2 * _average_bits(cast("list[IndependentBits]", finite), w, 1)
        )
    if kinds == {OptimizedUnaryEncoding}:
        return OptimizedUnaryEncoding(
            first.alphabet, _average_bits(cast("list[IndependentBits]", finite), w, 2)
        )
    if kinds == {UnaryEncoding}:
        encodings = cast("list[UnaryEncoding]", finite)
        # The probabilities of single bits average.
        p, q = (w / w.sum() @ [[encoding.p, encoding.q] for encoding in encodings]).tolist()
        return UnaryEncoding(first.alphabet, p, q)
    if kinds == {SubsetSelection}:
        sets = cast("list[SubsetSelection]", finite)
        return SubsetSelection(first.alphabet, _average_sets(sets, w), sets[0].size)
    if isinstance(first, BitReports):
        raise AlphabetMismatch(
            "mechanisms whose reports are rows of bits must be RAPPORs, OUEs or subset selections, "
            f"or unary encodings with any p and q, got {first}; pool the tallies with + and use "
            "ibu or mle"
        )
    # Mechanisms of all other kinds are averaged by their matrices.
    matrices = [mechanism.matrix() for mechanism in finite]
    matrix = np.zeros((first.k, first.m))
    for share, entries in zip(w / w.sum(), matrices, strict=True):
        matrix += share * entries
    return MatrixMechanism(matrix, first.alphabet)


def _with_same_reports(mechanisms: Sequence[Mechanism]) -> list[FiniteMechanism]:
    """Return the mechanisms, if report z of one can be taken for report z of all."""
    finite: list[FiniteMechanism] = []
    for mechanism in require_same_alphabet(mechanisms):
        if not isinstance(mechanism, FiniteMechanism):
            raise AlphabetMismatch(
                f"mechanisms must have reports that can be listed, but {mechanism} does not; pool "
                "the tallies with + and use ibu or mle"
            )
        finite.append(mechanism)
    first = finite[0]
    for mechanism in finite:
        if _kind_of_reports(mechanism) != _kind_of_reports(first):
            raise AlphabetMismatch(
                "mechanisms must have the same reports to be averaged, got "
                f"{_describe_reports(first)} of {first} and {_describe_reports(mechanism)} of "
                f"{mechanism}; pool the tallies with + and use ibu or mle, which take different "
                "reports as well"
            )
    return finite


def _describe_reports(mechanism: FiniteMechanism) -> str:
    kind = _kind_of_reports(mechanism)
    return kind if isinstance(kind, str) else f"{arguments.shown(kind)} reports"


def _kind_of_reports(mechanism: FiniteMechanism) -> str | int:
    """Number or kind of the reports, equal for mechanisms that can be averaged."""
    if isinstance(mechanism, SubsetSelection):
        return f"sets of {mechanism.size} secrets"
    if isinstance(mechanism, BitReports):
        return f"the bits of a {type(mechanism).__name__}"
    return mechanism.m


def _average_response(responses: list[RandomizedResponse], weights: Floats) -> float:
    """The level eps[n] of the average of k-RRs, eq. (11) of the paper."""
    # e^eps[n] is 1 + contrast / lie, with the averages of the contrast (truth - lie) and of the
    # lie, so nothing cancels for the smallest levels. Lies are counted in units of e^-least, so
    # that the lies of the largest levels are not 0.
    used = [
        (share, response) for share, response in zip(weights, responses, strict=True) if share > 0
    ]
    least = min(response.epsilon for _, response in used)
    # All of them release the truth, and so does their average.
    if least == np.inf:
        return least
    contrast = sum(
        share * response.truth * -np.expm1(-response.epsilon) for share, response in used
    )
    lie = sum(share * response.truth * np.exp(least - response.epsilon) for share, response in used)
    odds = contrast / lie
    return float(np.log1p(np.exp(least) * odds) if least < 700 else least + np.log(odds))


def _average_sets(selections: list[SubsetSelection], weights: Floats) -> float:
    """The level from the average odds that a set holds the secret."""
    # e^eps - 1 = (k - 1) / size contrast / p_hidden, with the averages of both.
    first = selections[0]
    contrast = weights @ [selection.contrast for selection in selections]
    hidden = weights @ [selection.p_hidden for selection in selections]
    return float(np.log1p((first.k - 1) / first.size * contrast / hidden))


def _average_bits(encodings: list[IndependentBits], weights: Floats, factor: int) -> float:
    """The level of the unary encoding whose p_zero and contrast are the averages."""
    # RAPPOR has e^(eps/2) = 1 + contrast / p_zero, OUE e^eps = 1 + 2 contrast / p_zero.
    contrast = weights @ [encoding.contrast for encoding in encodings]
    return float(
        np.log1p(factor * contrast / (weights @ [encoding.p_zero for encoding in encodings]))
    )
