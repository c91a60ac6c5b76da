"""Simulate adversaries who claim a false secret or send a false report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.attack._targets import alphabet_or_codes, parse_targets
from ibukit.domain.alphabet import AlphabetLike
from ibukit.domain.labels import CountsLike, aligned_counts
from ibukit.domain.report_kind import ReportKind
from ibukit.domain.vectors import VectorLike, alphabet_of, distribution_over
from ibukit.tally.part import on_alphabet
from ibukit.tally.tally import Tally, single_part


def poison_inputs(
    counts: CountsLike,
    target: Any,
    fraction: float,
    *,
    alphabet: AlphabetLike | None = None,
) -> Ints:
    r"""Add adversaries who claim the secret `target`.

    The counts become :math:`\mathrm{counts}_{x} + a` [x = target], with a = round(f n / (1 - f)).
    The adversaries' fraction of all who take part is then f = a / (n + a), up to rounding to whole
    people; the n honest people stay as they are. Apart from their false secret the adversaries keep
    to the protocol, so reports drawn from these counts are distributed exactly as those of honest
    people with the prior `poisoned_distribution`: no test of the reports can tell the difference.

    Parameters
    ----------
    counts : array_like of int, shape (k,), or mapping or Series
        Honest people with each secret: in the alphabet's order, or by label.
    target : label or sequence of labels
        A secret, or several different ones among which the adversaries are divided evenly (with one
        more for the first ones if need be). On a grid numbers are the places of cells.
    fraction : float
        The adversaries' share of all, f: at least 0 and below 1.
    alphabet : Alphabet, sequence of labels or int, optional
        The secrets: by default the labels of `counts`, in their order, or else the codes 0..k-1.

    Returns
    -------
    ndarray of int, shape (k,)
        In the order of these secrets.

    Raises
    ------
    AlphabetMismatch
        If `target` is not in the alphabet.
    ValueError
        If a count is negative or not whole, if all counts are 0, or if `fraction` is out of range.

    References
    ----------
    .. [privic] Biswas and Palamidessi, arXiv:2206.10525, Section 7.

    Examples
    --------
    >>> import ibukit as ik
    >>> ik.attack.poison_inputs([500, 400, 0], target=2, fraction=0.1)
    array([500, 400, 100])
    >>> ik.attack.poison_inputs([500, 400, 0], target=19, fraction=0.1, alphabet=ik.Line(17, 19))
    array([500, 400, 100])
    """
    over = alphabet_of("counts", counts) if alphabet is None else alphabet
    size = 0 if over is not None else np.size(arguments.whole_array("counts", counts))
    secrets = alphabet_or_codes(over, size)
    # This is a copy, to which the adversaries are added.
    people: Ints = aligned_counts("counts", counts, secrets)
    if not people.sum():
        raise ValueError("counts must hold at least one person, but they are all 0")
    targets = parse_targets(target, secrets)
    adversaries = _adversaries(int(people.sum()), arguments.fraction("fraction", fraction, "[)"))
    # The adversaries are divided evenly; where they do not divide, the first targets get one more.
    people[targets] += adversaries // len(targets)
    people[targets[: adversaries % len(targets)]] += 1
    return people


def poisoned_distribution(
    distribution: VectorLike,
    target: Any,
    fraction: float,
    *,
    alphabet: AlphabetLike | None = None,
) -> Floats:
    r"""Return the distribution of a population with adversaries.

    It is :math:`(1 - f)\,\pi + f\,\delta_{\mathrm{target}}`.

    Parameters
    ----------
    distribution : array_like or labelled, shape (k,)
        The distribution :math:`\pi` of the honest people.
    target : label or sequence of labels
        The secret that the adversaries claim, or several different ones, each claimed equally
        often. On a grid numbers are the places of cells.
    fraction : float
        The adversaries' share of all, f: at least 0 and below 1.
    alphabet : Alphabet, sequence of labels or int, optional
        The secrets. By default they are those of the estimate, if one is given, or the labels of
        `distribution`, in their order, or else the codes 0..k-1.

    Returns
    -------
    ndarray, shape (k,)

    Raises
    ------
    InvalidDistribution
        If `distribution` is not a distribution.
    AlphabetMismatch
        If `target` is not in the alphabet, or `distribution` is not over it.
    ValueError
        If `fraction` is out of range.

    References
    ----------
    .. [privic] Biswas and Palamidessi, arXiv:2206.10525, Section 7.

    Examples
    --------
    >>> import ibukit as ik
    >>> ik.attack.poisoned_distribution([0.5, 0.5, 0.0], target=2, fraction=0.1)
    array([0.45, 0.45, 0.1 ])
    """
    over = alphabet_of("distribution", distribution) if alphabet is None else alphabet
    size = 0 if over is not None else np.size(arguments.whole_array("distribution", distribution))
    secrets = alphabet_or_codes(over, size)
    honest = distribution_over("distribution", distribution, secrets)
    targets = parse_targets(target, secrets)
    share = arguments.fraction("fraction", fraction, "[)")
    mixed = (1 - share) * honest
    mixed[targets] += share / len(targets)
    return mixed


def poison_outputs(tally: Tally, report: Any, fraction: float, *, codes: bool = False) -> Tally:
    """Add the reports of adversaries who skip the mechanism.

    They send a = round(f n / (1 - f)) copies of the report y. Their fraction of all reports is then
    f = a / (n + a), up to rounding. Somebody who claims the place x but keeps to the mechanism
    sends y only with probability :math:`M_{xy}`, so it takes :math:`1 / M_{xy}` such people to add
    as many reports y as one of these adversaries does.

    Parameters
    ----------
    tally : Tally
        The n honest reports, of one mechanism.
    report : label, row, or sequence of these
        A report as the mechanism's `tally` takes it, and as `robust_mle` and `detect_poisoning`
        return it: a label, a pair of coordinates, a row of bits. Or several of them, among which
        the adversaries are divided evenly (the first ones get one more each if need be). On a grid
        numbers are the places of cells.
    fraction : float
        The adversaries' share of all, f: at least 0 and below 1.
    codes : bool
        If True, reports that can be listed are given as places 0..m-1 in their list, not as labels.

    Returns
    -------
    Tally

    Raises
    ------
    AlphabetMismatch
        If `report` is not in the alphabet of reports.
    ImpossibleReport
        If no secret can produce `report`: the mechanism's `tally` refuses such a report.
    WeightsRefused, LikelihoodUnknown
        If the tally is weighted, or holds sums of bits only.
    ValueError
        If the tally pools several mechanisms, if reports get lost, or if `fraction` is out of
        range.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([500, 300, 100])
    >>> ik.attack.poison_outputs(tally, report=2, fraction=0.1).counts
    array([500, 300, 200])
    """
    part = single_part(tally, "poison the tally of each mechanism, and add the results")
    mechanism: Any = part.mechanism
    if tally.full_alphabet is not None:
        # The part's mechanism covers the span of the reports only.
        mechanism = on_alphabet(mechanism, tally.full_alphabet)
    arguments.flag("codes", codes)
    if arguments.ndim(report) and not len(report):
        raise ValueError("report must hold at least one report, but it is empty")
    depth, of_one = _depths(mechanism, report, part.reports, codes)
    if depth < of_one:
        raise ValueError(
            f"report must be a report or several, as the mechanism makes them, got {report!r}"
        )
    sent = [report] if depth == of_one else report
    adversaries = _adversaries(tally.n, arguments.fraction("fraction", fraction, "[)"))
    each = np.full(len(sent), adversaries // len(sent))
    each[: adversaries % len(sent)] += 1
    # An impossible report is refused even if nobody sends it.
    mechanism.tally(sent, codes=codes)
    return tally + mechanism.tally(sent, counts=each, codes=codes) if adversaries else tally


def _depths(mechanism: Any, report: Any, kept: NDArray[Any], codes: bool) -> tuple[int, int]:
    """Return the depth of `report`, and that of a single report, by which one is told from several.

    The depth is the number of dimensions; -1 for lists of different lengths.
    """
    rows = mechanism.restore_reports(kept[:1])
    if mechanism.report_kind is ReportKind.LABELS and not codes:
        (label,) = mechanism.label_reports(np.zeros(1, int)).tolist()
        if isinstance(label, tuple):
            return _depth_of_tuple(mechanism, report), 1
    return arguments.ndim(report), rows.ndim - 1


def _depth_of_tuple(mechanism: Any, report: Any) -> int:
    """Return 1 for a label and 2 for several, where labels are tuples; 0 for what is neither."""
    if not isinstance(report, (tuple, list)):
        return 2 if arguments.ndim(report) else 0
    if all(isinstance(each, (tuple, list)) for each in report):
        # Several labels, or one that is made of tuples itself.
        try:
            mechanism.code_reports([report])
        except (TypeError, ValueError):
            return 2
    return 1


def _adversaries(honest: int, fraction: float) -> int:
    """Return the number of adversaries that make up this fraction of all."""
    return round(fraction / (1 - fraction) * honest)
