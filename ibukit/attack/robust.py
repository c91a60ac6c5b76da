"""Robust maximum likelihood: estimates that set aside what no honest population explains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.attack._adversary import chosen_threshold, scan, with_adversaries
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.distributions import uniform
from ibukit.domain.grid import Grid
from ibukit.domain.report_kind import ReportKind
from ibukit.domain.vectors import VectorLike, distribution_over
from ibukit.errors import ConvergenceError
from ibukit.estimate import Estimate
from ibukit.estimators import Change, Discrepancy, Gap, Steps, ibu, mle
from ibukit.tally.likelihood_rows import require_law
from ibukit.tally.tally import Tally, TallyPart, single_part

Report = Any
"""A label, an integer, a pair of coordinates, or a row of bits."""


@dataclass(frozen=True)
class RobustEstimate:
    r"""Result of `robust_mle`.

    Attributes
    ----------
    estimate : Estimate
        Estimate of the honest people. Its `log_likelihood` and `gap` are those of the model with
        adversaries, if there are any: with the same `reports`, no :math:`\theta` and shares
        together fit better by more than `gap` nats per report. If adversaries were found, the
        estimate has no tally, hence no standard errors.
    share : float
        The adversaries' share of the reports, the sum of `shares`; 0 if none were found.
    report : label, integer, tuple of int or None
        The report of the first adversaries that were found, in the form in which the mechanism and
        `poison_outputs` take it: a label, an integer, a pair of coordinates or a row of bits; on a
        grid, the code of a cell. None if no adversaries were found.
    likelihood_ratio : float
        2 (log-likelihood with adversaries who send one report - without), in nats, for the report
        with the largest value. If no adversaries were found, an upper bound of it for all reports.
    threshold : float
        The value that the ratio has to exceed.
    reports : tuple of reports
        Every report that adversaries were found to send, in the order found.
    shares : tuple of float
        The share of the reports that comes from the adversaries of each of `reports`.

    Examples
    --------
    >>> import ibukit as ik
    >>> ik.attack.robust_mle(ik.RandomizedResponse(3, epsilon=1.0).tally_counts([500, 300, 200]))
    RobustEstimate(no adversaries: no likelihood ratio above 15)
    """

    estimate: Estimate
    share: float
    report: Report | None
    likelihood_ratio: float
    threshold: float
    reports: tuple[Report, ...] = ()
    shares: tuple[float, ...] = ()

    def __repr__(self) -> str:
        if self.report is None:
            ratio = f"no likelihood ratio above {self.likelihood_ratio:.3g}"
            return f"RobustEstimate(no adversaries: {ratio})"
        return (
            f"RobustEstimate(a share of {self.share:.3g} sends "
            f"{', '.join(map(str, self.reports))}: likelihood ratio {self.likelihood_ratio:.3g} > "
            f"{self.threshold:g}; gap {self.estimate.gap:.2g})"
        )


def robust_mle(
    tally: Tally,
    threshold: float | None = None,
    tol: float = 1e-9,
    stop: Gap | Change | Steps | Discrepancy | None = None,
    start: VectorLike | None = None,
    most: int | None = None,
    *,
    strict: bool = True,
) -> RobustEstimate:
    r"""Estimate the distribution together with the adversaries who send a few reports.

    Maximise

    .. math::

        L(\theta,\gamma)=\sum_z\mathrm{counts}_z\,\log\Bigl(\bigl(1-\sum_y\gamma_y\bigr)(\theta
        M)_z+\gamma_z\Bigr)

    over few y. A share :math:`\gamma_{y}` of the reports comes from adversaries who skip the
    mechanism and all send the report y; y is not known. The report whose adversaries explain most
    is found first. It is included only if they explain the reports much better than honest people
    alone: if the likelihood ratio 2 (:math:`\max L` with y - :math:`\max L` without) exceeds
    `threshold`. Then the next report is sought in the same way, in addition to those found, until
    no ratio exceeds the threshold or adversaries would be half of all. If the first ratio does not
    exceed it, the estimate is that of `mle`.

    Parameters
    ----------
    tally : Tally
        Reports of one mechanism.
    threshold : float, optional
        At least 0. If :math:`\theta` were known, the ratio of honest people would exceed it with
        probability at most m exp(-threshold / 2), for m possible reports, by Chernoff's bound. By
        default the threshold is the one at which this bound is 1 %, and at least 20: 20 up to 220
        possible reports, and 65 for rows of 40 bits. Where the possible reports are no finite list,
        m is estimated by the mean of :math:`1/p_z` over the likelier half of the reports, p being
        their probabilities for honest people. As :math:`\theta` is estimated, the threshold is only
        a rule of thumb; `detect_poisoning` has a level that is proven. With 0 and ``most=1`` the
        largest ratio itself is found, however small. A threshold far below the default finds one
        report after another among honest ones, which may take hours.
    tol : float
        Each maximum is certified to within `tol` nats per report.
    stop : Gap, Change, Steps or Discrepancy, optional
        A rule of `ibu`, for a design that relies on early stopping: shares and reports are found by
        maximisation as always, and the estimate is then that of IBU on :math:`\theta` and the
        shares together, begun at those shares. By default None: the estimate is the maximiser.
    start : array_like or labelled, shape (k,), optional
        The distribution from which IBU starts, by default the uniform one; only with `stop`.
    most : int, optional
        How many different reports adversaries may be found to send, at least 1. None, the default:
        no bound.
    strict : bool
        Raise where a maximum misses `tol`. False returns what was found, and ``estimate.gap`` says
        how good it is. In either case ``estimate.status`` says whether `stop` was met, as for
        `ibu`.

    Returns
    -------
    RobustEstimate
        ``.estimate``, ``.share``, ``.report``, ``.likelihood_ratio``, and for several reports
        ``.reports`` and ``.shares``.

    Raises
    ------
    ConvergenceError
        If `strict` and a maximum was not certified to `tol`; carries the `RobustEstimate` as
        ``.estimate``.
    WeightsRefused, LikelihoodUnknown
        If the tally is weighted, or holds sums of bits only.
    ValueError
        If the tally pools several mechanisms, if reports get lost, if a parameter is out of range,
        if `start` comes without `stop`, or if the best explanation leaves nobody honest.

    Notes
    -----
    For given reports :math:`y_{1}`, ..., :math:`y_{j}` the model is a mixture of k + j secrets, and
    each of the last j secrets always sends one of these reports. L is concave in the probabilities
    of the secrets, so the solvers and the gap of `mle` apply as they are. Not every y is tried: the
    dual of the problem without y bounds each ratio, and the search ends when the best ratio found
    exceeds the bounds of all others. The reports are found one by one, and there is no proof that
    no other reports would together fit better.

    Three kinds of adversaries are not found. Those of the first kind spread over so many reports
    that none of these stands out by itself (in the book's experiment, 1 % of 10,000 reports divided
    among nine neighbouring places of 165). Those of the second kind, whom no other method finds
    either, keep to the mechanism and lie about their secret: their reports are those of an honest
    population (`poison_inputs`). Those of the third kind send reports that another honest
    population would send. Where there are as many reports as secrets and the matrix can be
    inverted, as for k-RR, some distribution explains every vector of report frequencies near the
    observed one: adversaries are then found only once they push the estimated share of another
    secret below 0. If people report at several levels of epsilon, `Estimate.pool_test` finds those
    who send the same report at each of them.

    References
    ----------
    .. [privic] Biswas and Palamidessi, arXiv:2206.10525, Section 7 (the attack).

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> mechanism = ik.TruncatedGeometric(ik.Line(0, 9), epsilon=0.5)
    >>> honest = mechanism.simulate([1000] * 5 + [0] * 5, np.random.default_rng(1))
    >>> attacked = ik.attack.poison_outputs(honest, report=8, fraction=0.05)
    >>> found = ik.attack.robust_mle(attacked)
    >>> found.report, round(found.share, 3), found.estimate.distribution[6:].sum().round(3)
    (8, 0.052, np.float64(0.0))
    >>> ik.mle(attacked).distribution[6:].sum().round(3)
    np.float64(0.074)
    """
    part = single_part(
        tally,
        "take each mechanism's tally by itself, or ask mle(tally).pool_test() whether they agree",
    )
    require_law([part.mechanism], "what adversaries would gain by a report")
    given = None if threshold is None else arguments.from_zero("threshold", threshold)
    bound = len(part.reports) if most is None else arguments.whole("most", most, 1)
    if start is not None and stop is None:
        raise ValueError(
            "start needs a rule to stop by, as stop=ik.Steps(10): the maximiser does not depend on "
            "it"
        )
    honest = mle(tally, tol, strict=False)
    limit = chosen_threshold(part, honest) if given is None else given
    suspect, ratio, gap = scan(part, honest, tol, above=limit)
    gap = max(gap, honest.gap)
    if suspect is None:
        estimate = honest if stop is None else ibu(tally, start, stop)
        return _checked(RobustEstimate(estimate, 0.0, None, ratio, limit), gap, tol, strict)
    k = len(part.mechanism.alphabet)
    suspects, joined = [suspect.report], with_adversaries(part, suspect.report)
    fitted = suspect.estimate
    # Each round adds the adversaries of one more report as a further secret.
    while len(suspects) < bound:
        suspect, _, missed = scan(single_part(joined), fitted, tol, above=limit, but=suspects)
        gap = max(gap, missed)
        if suspect is None or suspect.estimate.distribution[k:].sum() >= 1 / 2:
            break
        suspects.append(suspect.report)
        joined, fitted = with_adversaries(single_part(joined), suspect.report), suspect.estimate
    # With a stopping rule IBU starts from the shares that maximisation has found.
    joint = (
        fitted
        if stop is None
        else _early_stopped_ibu(joined, tally.alphabet, fitted.distribution[k:], stop, start)
    )
    reports = tuple(label_of_report(part, report) for report in suspects)
    shares = tuple(joint.distribution[k:].tolist())
    share = float(joint.distribution[k:].sum())
    if share >= 1:
        raise ValueError(
            f"tally has no honest report left: adversaries who send {reports[0]} account for all "
            "of its reports"
        )
    # The estimate of the honest people: their part of the joint distribution, normalised.
    estimate = replace(
        joint,
        distribution=arguments.frozen(joint.distribution[:k] / joint.distribution[:k].sum()),
        method=f"robust {joint.method}",
        alphabet=tally.alphabet,
        tally=None,
    )
    return _checked(
        RobustEstimate(estimate, share, reports[0], ratio, limit, reports, shares), gap, tol, strict
    )


def _checked(result: RobustEstimate, gap: float, tol: float, strict: bool) -> RobustEstimate:
    """Return the result; if a gap on the way exceeds `tol`, raise the error that carries it."""
    if arguments.flag("strict", strict) and gap > tol:
        raise ConvergenceError(
            f"tol={tol:g} was not certified: a maximum has a gap of {gap:.3g}; take a larger tol, "
            "or strict=False for what was found",
            result,
        )
    return result


def _early_stopped_ibu(
    joined: Tally,
    secrets: Alphabet,
    shares: Floats,
    stop: Gap | Change | Steps | Discrepancy,
    start: VectorLike | None,
) -> Estimate:
    """Run IBU on theta and the adversaries' shares together."""
    k = len(secrets)
    first = uniform(k) if start is None else distribution_over("start", start, secrets)
    return ibu(joined, np.append((1 - shares.sum()) * first, shares), stop)


def label_of_report(part: TallyPart, report: int) -> Report:
    """Return the label of the report at an index, in a form that the mechanism accepts.

    On a grid this is the code of the cell.
    """
    mechanism: Any = part.mechanism
    restored = mechanism.restore_reports(part.reports[[report]])
    # Other kinds stand for themselves, and their list may be far too long.
    listed = mechanism.report_kind is ReportKind.LABELS
    if not (listed and isinstance(mechanism.report_alphabet, Grid)):
        restored = mechanism.label_reports(restored)
    (name,) = restored.tolist()
    return tuple(name) if isinstance(name, list) else name
