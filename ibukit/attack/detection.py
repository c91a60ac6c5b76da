"""Test for adversaries who skip the mechanism.

The level of the test is proven for every honest population and every number of reports.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.special import xlogy

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.attack._adversary import scan
from ibukit.attack.robust import Report, label_of_report
from ibukit.errors import ConvergenceError
from ibukit.estimators import mle
from ibukit.solvers import interior_point
from ibukit.tally.tally import Tally, TallyPart, make_tally_part, single_part
from ibukit.tally.trials import refuse_trials

# Gap in nats per report within which each maximum is certified.
MLE_TOL = 1e-9
# With this many reports or more, numpy cannot draw a half of exact size; each report then goes to
# one half or the other by the toss of a coin.
MAX_DIVIDED = 10**9
# What can be done with a pool of several mechanisms.
OF_POOLS = (
    "test each mechanism's tally by itself, with false_alarms divided by their number, or ask "
    "mle(tally).pool_test() whether they agree"
)
# Smallest probability that a ratio is divided by, so that the ratio fits into a double.
MIN_PROBABILITY = np.finfo(float).tiny


@dataclass(frozen=True)
class Detection:
    r"""Result of `detect_poisoning`.

    Attributes
    ----------
    attacked : bool
        Whether the evidence reached :math:`1/\mathrm{false\_alarms}`. False does not mean that
        nobody attacked: under k-RR, for instance, few attacks can be seen at all, see the notes of
        `detect_poisoning`.
    p_value : float
        :math:`\min(1,1/\mathrm{evidence})`. If everybody is honest, it is at most :math:`\alpha`
        with probability at most :math:`\alpha`.
    log_evidence : float
        Logarithm of the e-value, whose expectation is at most 1 if everybody is honest.
    report : label, integer, tuple of int or None
        The report most suspected, in the form in which `RobustEstimate` gives it; None if there is
        no suspicion at all.
    share : float
        The adversaries' share of the reports, as estimated from one half of them.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([500, 300, 200])
    >>> ik.attack.detect_poisoning(tally, rng=np.random.default_rng(1)).attacked
    False
    """

    attacked: bool
    p_value: float
    log_evidence: float
    report: Report | None
    share: float


def detect_poisoning(
    tally: Tally, false_alarms: float = 0.01, *, rng: Generator, strict: bool = True
) -> Detection:
    r"""Test whether all reports came through the mechanism.

    The alternative is adversaries who all send the same report. The reports are divided at random
    into two halves; if there are a billion or more, each goes to one half or the other by the toss
    of a coin. From the first half, :math:`Q_{z} = (1 - \gamma)\,(\theta\,M)_{z} + \gamma\,[z = y]`
    is estimated, with the report y of the adversaries who explain this half best. Then the honest
    distribution :math:`P = \theta'\,M` nearest to Q is found, the one that maximises
    :math:`\sum_{z} Q_{z}\,\log (\theta'\,M)_{z}`. The second half then gives the evidence

        :math:`E=\prod_i\frac{r(z_i)}{\max_x\sum_z M_{xz}\,r(z)}`, r = Q / P,

    with a factor for each report i. The two halves then change places, and the evidence is the mean
    of both values. An attack is announced where this mean reaches :math:`1/\mathrm{false\_alarms}`.

    Parameters
    ----------
    tally : Tally
        At least two reports, all of one mechanism.
    false_alarms : float
        The level: an honest population is called attacked with at most this probability. Strictly
        between 0 and 1.
    rng : numpy.random.Generator
        Divides the reports.
    strict : bool
        Raise where a maximum is not certified within 1e-9 nats per report. False returns the
        result, whose level is proven all the same: only its power may be less.

    Returns
    -------
    Detection

    Raises
    ------
    ConvergenceError
        If `strict` and a maximum was not certified; carries the `Detection` as ``.estimate``.
    MatrixUncertain
        If the matrix of the mechanism was measured (`MatrixMechanism.from_trials`).
    WeightsRefused, LikelihoodUnknown
        If the tally is weighted, or holds sums of bits only.
    ValueError
        If the tally has fewer than two reports or pools several mechanisms, if reports get lost, or
        if `false_alarms` is out of range.

    Notes
    -----
    The level is exact, not asymptotic. Given the first half, each factor :math:`r(z)/\max_x g_x`,
    :math:`g_x=\sum_z M_{xz}\,r(z)`, has an expectation of at most 1, whatever the person's secret x
    is. So has the product of these factors, whatever the secrets of all honest people are; and by
    Markov's inequality the product reaches :math:`1 / \alpha` with probability at most
    :math:`\alpha`. That is also why adversaries who lie about their secret but keep to the
    mechanism are not detected: to any test they are honest people with another secret, so the power
    of a test against them is at most its level. If P is the maximiser, :math:`\max g` is 1 up to
    the gap of P, so it is the certificate of the estimate that turns the estimate into a test.

    Adversaries who spread over many reports are found only as far as one of these reports stands
    out.

    Nor can any test find adversaries whose reports look like those of other honest people. Where
    there are as many reports as secrets and the matrix can be inverted, as for k-RR, some
    distribution explains every vector of report frequencies near the observed one. Adversaries are
    then found only once they push the estimated share of another secret below 0, and until then a
    p-value of 1 says nothing about them. If people report at several levels of epsilon,
    `Estimate.pool_test` finds adversaries who send the same report at each of them.

    References
    ----------
    .. [grunwald] Grunwald, de Heide and Koolen, "Safe testing", J. R. Statist. Soc. B 86, 2024.
    .. [universal] Wasserman, Ramdas and Balakrishnan, "Universal inference", PNAS 117, 2020.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> rng = np.random.default_rng(1)
    >>> mechanism = ik.TruncatedGeometric(ik.Line(0, 9), epsilon=0.5)
    >>> honest = mechanism.simulate([1000] * 5 + [0] * 5, rng)
    >>> ik.attack.detect_poisoning(honest, rng=rng).attacked
    False
    >>> attacked = ik.attack.poison_outputs(honest, report=8, fraction=0.05)
    >>> ik.attack.detect_poisoning(attacked, rng=rng).report
    8
    """
    part = single_part(tally, OF_POOLS)
    refuse_trials(
        [part.mechanism],
        "a test with a proven level",
        "measure the matrix more exactly, and test with the MatrixMechanism of a matrix that you "
        "take responsibility for",
    )
    rng = arguments.generator(rng)
    level = arguments.fraction("false_alarms", false_alarms, "()")
    if tally.n < 2:
        raise ValueError(
            "tally must hold at least two reports: one half suggests what the other half is tested "
            "for"
        )
    first = _half(part.counts, rng)
    # Each half is tested for what the other half suggests. The mean of two e-values is an e-value.
    halves = _evidence(part, first), _evidence(part, part.counts - first)
    best = max(halves, key=lambda half: half.log_evidence)
    log_evidence = float(np.logaddexp(halves[0].log_evidence, halves[1].log_evidence)) - math.log(2)
    report = None if best.report is None else label_of_report(part, best.report)
    detection = Detection(
        attacked=log_evidence >= -math.log(level),
        p_value=math.exp(min(0.0, -log_evidence)),
        log_evidence=log_evidence,
        report=report,
        share=best.share,
    )
    gap = max(half.gap for half in halves)
    if arguments.flag("strict", strict) and gap > MLE_TOL:
        raise ConvergenceError(
            f"a maximum was not certified within {MLE_TOL:g}: its gap is {gap:.3g}; strict=False "
            "returns the result, whose level holds all the same",
            detection,
        )
    return detection


@dataclass(frozen=True)
class _HalfResult:
    log_evidence: float
    report: int | None
    share: float
    gap: float
    """Largest gap of the computed maxima."""


def _half(counts: Ints, rng: Generator) -> Ints:
    """Draw a random half of the reports, of exact size if numpy can draw it."""
    n = int(counts.sum())
    if n < MAX_DIVIDED:
        return rng.multivariate_hypergeometric(counts, n // 2)
    return rng.binomial(counts, 0.5)


def _evidence(part: TallyPart, counts: Ints) -> _HalfResult:
    """Return the evidence of the other reports for the alternative fitted to these `counts`."""
    # The alternative Q and the nearest honest law P are fitted to these reports alone; the others
    # are independent of them, so each of their factors r / max_x g_x has an expectation of at most
    # 1.
    here = make_tally_part(part.mechanism, part.reports, counts)
    alone = mle(Tally((here,)), MLE_TOL, strict=False)
    suspect, _, gap = scan(here, alone, MLE_TOL)
    gap = max(gap, alone.gap)
    if suspect is None:
        return _HalfResult(0.0, None, 0.0, gap)
    seen = np.flatnonzero(counts)
    others = part.counts - counts
    channel = _with_unseen_reports(here)
    # Q, the fitted law with adversaries, on the reports seen and the rest.
    theta, share = suspect.estimate.distribution[:-1], float(suspect.estimate.distribution[-1])
    attacked = theta @ channel
    attacked[suspect.report] += share
    honest = _nearest_honest(channel, attacked)
    # A report that neither law makes has the ratio 1. If the honest probability underflows, it is
    # at most 5e-324, and with a divisor of MIN_PROBABILITY its term of g stays below rounding.
    r = np.divide(
        attacked,
        np.maximum(honest, MIN_PROBABILITY),
        out=np.ones_like(attacked),
        where=(honest > 0) | (attacked > 0),
    )
    # Counts in the other half: of each report seen in this half, and of all the rest together.
    n = np.append(others[seen], others.sum() - others[seen].sum())
    log_evidence = float(xlogy(n, r).sum()) - float(n.sum()) * math.log((channel @ r).max())
    return _HalfResult(log_evidence, int(seen[suspect.report]), share, gap)


def _with_unseen_reports(part: TallyPart) -> Floats:
    """Return the matrix on the reports seen, with one more column for all other reports."""
    seen = Tally((part,)).matrix() * np.exp(part.log_scale)
    return np.column_stack([seen, np.maximum(1 - seen.sum(axis=1), 0.0)])


def _nearest_honest(channel: Floats, q: Floats) -> Floats:
    """Return the honest distribution of reports nearest to q in relative entropy."""
    made = (q > 0) & channel.any(axis=0)
    theta = interior_point.maximise(np.ascontiguousarray(channel[:, made]), q[made], MLE_TOL)[0]
    return theta @ channel
