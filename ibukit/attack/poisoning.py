"""Adversaries: who claim a false place, and who send a false report."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ibukit import _validate
from ibukit._validate import Floats, Ints
from ibukit.mechanisms.base import single_part
from ibukit.tally import Tally, make_part


def poison_inputs(counts: ArrayLike, target: ArrayLike, fraction: float) -> Ints:
    """Add adversaries who claim the secret `target`.

    The counts become counts_x + a [x = target], a = round(f n / (1 - f)). f = a / (n + a) is the adversaries' fraction
    of all who take part, up to rounding to whole people; the n honest people stay as they are. From here on the
    adversaries keep to the protocol, so reports drawn from these counts are distributed exactly as those of honest
    people with the prior `poisoned_distribution`: no test of the reports can tell.

    Parameters
    ----------
    counts : array_like of int, shape (k,)
        Honest people with each secret.
    target : int or array_like of int
        A code, or several different ones among which the adversaries are divided evenly (one more for the first ones,
        where they do not divide).
    fraction : float
        The adversaries' share of all, f: at least 0 and below 1.

    Returns
    -------
    ndarray of int, shape (k,)

    Raises
    ------
    AlphabetMismatch
        If `target` is no code 0..k-1.
    ValueError
        If a count is not whole or negative, all are 0, or `fraction` is out of range.

    References
    ----------
    .. [privic] Biswas and Palamidessi, arXiv:2206.10525, Section 7.

    Examples
    --------
    >>> import ibukit as ik
    >>> ik.attack.poison_inputs([500, 400, 0], target=2, fraction=0.1)
    array([500, 400, 100])
    """
    size = np.size(counts)
    people = _validate.counts("counts", counts, size)  # a copy
    if not people.sum():
        raise ValueError("counts must hold at least one person, they are all 0")
    targets = _targets(target, size)
    adversaries = _adversaries(int(people.sum()), _validate.fraction("fraction", fraction, "[)"))
    people[targets] += adversaries // len(targets)
    people[targets[: adversaries % len(targets)]] += 1
    return people


def poisoned_distribution(distribution: ArrayLike, target: ArrayLike, fraction: float) -> Floats:
    """What a population with adversaries looks like: (1 - f) pi + f delta_target.

    Parameters
    ----------
    distribution : array_like, shape (k,)
        That of the honest people, pi.
    target : int or array_like of int
        The code that the adversaries claim, or several different ones, each claimed by as many.
    fraction : float
        The adversaries' share of all, f: at least 0 and below 1.

    Returns
    -------
    ndarray, shape (k,)

    Raises
    ------
    InvalidDistribution
        If `distribution` is not one.
    AlphabetMismatch
        If `target` is no code 0..k-1.
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
    honest = _validate.distribution("distribution", distribution)
    targets = _targets(target, len(honest))
    share = _validate.fraction("fraction", fraction, "[)")
    mixed = (1 - share) * honest
    mixed[targets] += share / len(targets)
    return mixed


def poison_outputs(tally: Tally, report: ArrayLike, fraction: float) -> Tally:
    """Add the reports of adversaries who skip the mechanism.

    They send a = round(f n / (1 - f)) times the report y. f = a / (n + a) is their fraction of all reports, up to
    rounding. Who claims the place x but keeps to the mechanism sends y with probability M_xy only: it takes 1 / M_xy of
    them to add as many reports y as one of these does.

    Parameters
    ----------
    tally : Tally
        The n honest reports, of one mechanism.
    report : int or array_like
        In the form of the mechanism's reports, in which `robust_mle` and `detect_poisoning` tell what they found: a
        code, a pair of coordinates, a row of bits; or several of them, among which the adversaries are divided evenly
        (one more for the first ones, where they do not divide).
    fraction : float
        The adversaries' share of all, f: at least 0 and below 1.

    Returns
    -------
    Tally

    Raises
    ------
    AlphabetMismatch
        If `report` is not in the alphabet of reports.
    ImpossibleReport
        If no secret can produce it: such a report would be refused at the door.
    ValueError
        If the tally pools several mechanisms, or `fraction` is out of range.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([500, 300, 100])
    >>> ik.attack.poison_outputs(tally, report=2, fraction=0.1).counts
    array([500, 300, 200])
    """
    part = single_part(tally)
    flat = part.mechanism.restore_reports(part.reports[:1]).ndim == 1
    sent = part.mechanism.check_reports(np.atleast_1d(report) if flat else np.atleast_2d(report))
    if not len(sent):
        raise ValueError("report must hold at least one report, it is empty")
    adversaries = _adversaries(tally.n, _validate.fraction("fraction", fraction, "[)"))
    each = np.full(len(sent), adversaries // len(sent))
    each[: adversaries % len(sent)] += 1
    make_part(part.mechanism, sent)  # refuses an impossible report even where nobody sends it
    return tally + Tally((make_part(part.mechanism, sent, each),)) if adversaries else tally


def _adversaries(honest: int, fraction: float) -> int:
    return round(fraction / (1 - fraction) * honest)


def _targets(target: ArrayLike, k: int) -> Ints:
    codes = _validate.codes("target", np.atleast_1d(target), k)
    if not len(codes) or len(set(codes.tolist())) != len(codes):
        raise ValueError(f"target must be a code or several different ones, got {target!r}")
    return codes
