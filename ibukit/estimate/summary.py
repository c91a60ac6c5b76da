"""`Summary`: an estimate as a table with intervals, and warnings in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit.estimate.weights_in_words import about_weights, reports_in_words
from ibukit.intervals.credible import monte_carlo_errors
from ibukit.intervals.methods import WALD
from ibukit.intervals.request import Ends, IntervalRequest
from ibukit.model_checks import findings

if TYPE_CHECKING:
    import pandas as pd

# Labels that a warning names; beyond it their number is given.
MAX_NAMED = 5
# Nats of all reports together by which an estimate may fall short of the maximum likelihood without
# a warning: far below what any interval notices.
AT_THE_MAXIMUM = 1e-3
# Methods whose level is a limit without zeros; from this share of zeros on, a warning says so.
ASYMPTOTIC_METHODS = ("wald", "profile", "bootstrap")
MANY_ZEROS = 0.2
# Significant digits of the printed table.
DIGITS = 4


@dataclass(frozen=True, eq=False)
class Summary:
    """Table and warnings, returned by `Estimate.summary`.

    Attributes
    ----------
    head : str
        Number of reports, estimator, level and method of the intervals.
    table : DataFrame
        Columns ``estimate``, ``lower`` and ``upper``; a row for each label or question.
    warnings : tuple of str
        Sentences about what to be careful with; often none.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(["a", "b", "c"], epsilon=2.0).tally_counts([500, 300, 200])
    >>> found = ik.mle(tally).summary(of={"b": 1, "c": 1})
    >>> found.table.round(3).to_dict("records"), found.warnings
    ([{'estimate': 0.422, 'lower': 0.376, 'upper': 0.467}], ())
    """

    head: str
    table: pd.DataFrame
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        table = self.table.to_string(float_format=lambda number: f"{number:.{DIGITS}g}").split("\n")
        return "\n".join(
            [self.head, *map(str.rstrip, table), *(f"- {warning}" for warning in self.warnings)]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(warning)}</li>" for warning in self.warnings)
        table = self.table.to_html(float_format="{:.4g}".format)
        return f"<p>{escape(self.head)}</p>{table}<ul>{notes}</ul>"


def summarise(
    request: IntervalRequest,
    ends: Ends,
    *,
    interval_methods: NDArray[Any],
    estimator: str,
    n: float,
    gap: float,
    labels: pd.Index | list[Any],
    identified: NDArray[np.bool_] | None,
) -> Summary:
    """Return the table of estimates and intervals, and the warnings that they give rise to.

    `n` is the number of reports, which an estimate without a tally knows, too. `labels` name the
    rows; `identified` says which probabilities are identified, and is None for other functionals.
    """
    # pandas takes a second to import.
    import pandas as pd

    lower, upper = ends
    values = request.functionals.values(request.theta)
    table = pd.DataFrame({"estimate": values, "lower": lower, "upper": upper}, index=labels)
    names = [str(row) for row in table.index]
    # There are several methods only if Wald's took the place of profiles that would take too long.
    by_wald = [method for method in interval_methods if method in WALD]
    interval_method = "wald" if by_wald else str(interval_methods[0])
    warnings = [
        *_about_the_tally(request, n, gap, interval_method),
        *about_weights(request.tally),
        *_about_determination(names, identified),
        *_about_the_boundary(request, ends, names, interval_method),
        *_about_draws(request, interval_method),
        *_about_estimates_outside(values, ends, names),
    ]
    head = (
        f"{reports_in_words(request.tally, n)}; {estimator}; "
        f"intervals of level {request.level:g} by method "
        + " and ".join(f'"{method}"' for method in dict.fromkeys(interval_methods))
    )
    return Summary(head, table, tuple(warnings))


def _about_the_tally(request: IntervalRequest, n: float, gap: float, method: str) -> Iterator[str]:
    tally = request.tally
    if tally is not None:
        if tally.dropped:
            reasons = (f"{number:,g} {why}" for why, number in tally.dropped.items())
            yield f"Reports left out: {', '.join(reasons)}."
        yield from findings(tally)
    # The gap bounds the mean log-likelihood; n times that is in nats of all reports together.
    if gap * n > AT_THE_MAXIMUM:
        yield (
            "The estimate is not the maximum of the likelihood, of which it falls short by up to "
            f"{gap * n:.2g} nats; the intervals are of the reports and need not contain it."
            if method != "wald"
            else "The estimate is not the maximum of the likelihood, and Wald's intervals do not "
            "know its bias."
        ) + (
            ' Its own spread, no interval for the truth, is that of method="bootstrap" with '
            "estimator=..."
        )


def _about_determination(names: list[str], identified: NDArray[np.bool_] | None) -> Iterator[str]:
    if identified is not None and not identified.all():
        some = _some(names, ~identified)
        yield f"The reports do not determine {some}: more of them would not help."


def _about_the_boundary(
    request: IntervalRequest, ends: Ends, names: list[str], method: str
) -> Iterator[str]:
    functionals, theta = request.functionals, request.theta
    lower, upper = ends
    at_bound = (lower <= functionals.least) | (upper >= functionals.most)
    # A functional that has one value only is always at its bounds.
    at_bound &= functionals.ranges > 0
    consequence = {
        "wald": "Wald's interval is void there",
        "profile": f"there its level is not exactly {request.level:g}",
    }
    if at_bound.any() and method in consequence:
        count = f"{int(at_bound.sum())} interval{'s end' if at_bound.sum() > 1 else ' ends'}"
        yield f"{count} at a bound, for {_some(names, at_bound)}: {consequence[method]}."
    zeros = int((theta == 0).sum())
    weighted = request.tally is not None and request.tally.weighted
    if method in ASYMPTOTIC_METHODS and zeros > MANY_ZEROS * len(theta):
        yield (
            f"{zeros:,} of {len(theta):,} probabilities are estimated as 0, where likelihood "
            "ratios have another limit: intervals may cover more or less often than they say"
            + ("." if weighted else '; method="auto" of few questions and "guaranteed" know it.')
        )


def _about_draws(request: IntervalRequest, method: str) -> Iterator[str]:
    if method != "credible":
        return
    # The seed is that of the intervals, so these are the errors of the intervals' own draws.
    errors = np.max(monte_carlo_errors(request), axis=0)
    if errors.any():
        yield (
            f"{int((errors > 0).sum())} of {len(errors)} intervals are quantiles of Gibbs draws: "
            f"their ends have Monte-Carlo standard errors of up to {errors.max():.2g}."
        )


def _about_estimates_outside(values: Floats, ends: Ends, names: list[str]) -> Iterator[str]:
    outside = (values < ends[0]) | (values > ends[1])
    if outside.any():
        yield f"The estimate is outside of its interval for {_some(names, outside)}."


def _some(names: list[str], which: NDArray[np.bool_]) -> str:
    """List the names that are marked: a few of them, and how many more there are."""
    # `which` marks rows of the table.
    chosen = [name for name, marked in zip(names, which, strict=True) if marked]
    more = f" and {len(chosen) - MAX_NAMED} more" if len(chosen) > MAX_NAMED else ""
    return ", ".join(chosen[:MAX_NAMED]) + more
