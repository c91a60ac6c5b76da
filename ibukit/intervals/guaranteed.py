"""Intervals that cover at every number of reports, and the choice of their construction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.threads import one_thread
from ibukit.intervals.betting import betting
from ibukit.intervals.binomial.one_event import one_event, tally_of_event
from ibukit.intervals.clopper_pearson import clopper_pearson, has_boxes
from ibukit.intervals.finite_reports import with_listed_reports
from ibukit.intervals.request import Ends, IntervalRequest
from ibukit.intervals.universal import averaged, cross_fitted, halved

# The constructions that split the reports at random, and so take a seed.
RANDOM_SPLITS: dict[str, Callable[..., Ends]] = {
    "betting": betting,
    "split": halved,
    "cross-fitted": cross_fitted,
    "averaged": averaged,
}
# Ranges over one region of distributions, which hold for all questions together.
REGIONS = ("region", "boxes", "split", "cross-fitted", "averaged")
CONSTRUCTIONS = ("binomial", "region", "boxes", *RANDOM_SPLITS)


def guaranteed(
    request: IntervalRequest, by: str | None = None, seed: int = 0, **options: Any
) -> Ends:
    """Return ends that cover at every number of reports, by the construction `by`.

    `seed` is that of the random splits of the reports, which "binomial" and "boxes" do not need.
    "region" is "boxes" if the reports can be listed, otherwise "cross-fitted". By default `by` is
    "binomial" for the questions w . theta for which some set of reports has a probability that
    depends on w . theta alone (with one mechanism, shares and sums of shares under k-RR, and single
    shares under unary encodings and subset selection), and "region" for the others; so the choice
    depends on the mechanisms and the questions, and not on the reports that were seen.
    """
    if by is not None and not arguments.is_one_of(by, CONSTRUCTIONS):
        raise ValueError(f"by must be one of {', '.join(map(repr, CONSTRUCTIONS))}, got {by!r}")
    tally = request.checked_tally(lossy=True)
    request = replace(request, tally=with_listed_reports(tally))
    with one_thread():
        if by == "binomial" or (by is None and not options):
            return _by_events(request, by, seed, **options)
        if by in (None, "region"):
            by = _construction(request)
        return (
            clopper_pearson(request, **options)
            if by == "boxes"
            else RANDOM_SPLITS[by](request, seed, **options)
        )


def _by_events(request: IntervalRequest, by: str | None, seed: int) -> Ends:
    """Return the binomial intervals of questions that have one; by default, the region's of others.

    A question has one if the probability of some set of reports (an event) depends on w . theta
    alone.
    """
    request.refuse_if_too_slow("guaranteed")
    tally, functionals = request.checked_tally(lossy=True), request.functionals
    lower, upper, left = np.zeros(len(functionals)), np.zeros(len(functionals)), []
    for row, w in enumerate(functionals.each()):
        event = tally_of_event(tally, w)
        left.append(event is None)
        if event is not None:
            lower[row], upper[row] = one_event(request, w, event)
    others = np.array(left)
    if others.any() and by is not None:
        raise ValueError(
            "with by='binomial' and one mechanism each question in of must depend on a single "
            "event of the reports: a share or a sum of shares under k-RR, a single share under "
            f"unary encodings and subset selection; question {int(np.argmax(others))} does not: "
            "take by='region'"
        )
    if others.any():
        rest = replace(request, functionals=functionals.part(others))
        lower[others], upper[others] = guaranteed(rest, "region", seed)
    return lower, upper


def _construction(request: IntervalRequest) -> str:
    """Return the region of guaranteed intervals that applies to the mechanisms."""
    tally = request.checked_tally(lossy=True)
    # Where reports may be lost, the other constructions do not apply; "boxes" says what is missing.
    if tally.efficiency is not None or all(map(has_boxes, tally.parts)):
        return "boxes"
    if request.target == "frequencies":
        raise ValueError(
            "target must be 'distribution' with method='guaranteed' for reports that cannot be "
            "listed, got 'frequencies': take method='wald' or 'credible' for them"
        )
    return "cross-fitted"
