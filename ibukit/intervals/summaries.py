"""An estimate in a table and in words: what is known, by which method, and what to be careful about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit.domain.linear_functionals import Questions, asked
from ibukit.estimate import Estimate
from ibukit.intervals.credible import errors
from ibukit.intervals.methods import usual
from ibukit.intervals.request import Asked

if TYPE_CHECKING:
    import pandas as pd

# labels that a warning names
MAX_NAMED = 5
# nats of all reports together that an estimate may fall short of the maximum, and be called one
AT_THE_MAXIMUM = 1e-3
# methods whose level is that of a limit without zeros, and the share of zeros from which that is
# said
LIMITS, MANY_EMPTY = ("wald", "profile", "bootstrap"), 0.2
# significant digits of the table
DIGITS = 4


@dataclass(frozen=True, eq=False)
class Summary:
    """What `Estimate.summary` returns.

    Attributes
    ----------
    head : str
        How many reports, which estimator, which intervals.
    table : DataFrame
        Columns estimate, lower and upper; a row for each label or question.
    warnings : tuple of str
        What to be careful about, in words; empty where there is nothing.

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
        return f"<p>{escape(self.head)}</p>{self.table.to_html(float_format='{:.4g}'.format)}<ul>{notes}</ul>"


def summary(estimate: Estimate, level: float, of: Any, method: str | None) -> Summary:
    """See `Estimate.summary`."""
    import pandas as pd  # takes a second to import

    method, level = (
        usual(estimate) if method is None else method,
        arguments.fraction("level", level, "()"),
    )
    questions = asked(of, estimate.alphabet)
    lower, upper = (np.atleast_1d(ends) for ends in estimate.interval(level, of, method))
    values = questions.values(estimate.distribution)
    names = _names(estimate, questions)
    table = pd.DataFrame({"estimate": values, "lower": lower, "upper": upper}, index=names)
    return Summary(
        _head(estimate, level, method),
        table,
        tuple(_warnings(estimate, questions, table, level, method)),
    )


def _names(estimate: Estimate, questions: Questions) -> Any:
    if questions.weights is None:
        return estimate.to_series().index
    return [f"question {row}" for row in range(len(questions))]


def _head(estimate: Estimate, level: float, method: str) -> str:
    n = "an unknown number of" if estimate.tally is None else f"{estimate.tally.n:,}"
    return f'{n} reports; {estimate.method}; intervals of level {level:g} by method "{method}"'


def _warnings(
    estimate: Estimate, questions: Questions, table: pd.DataFrame, level: float, method: str
) -> Iterator[str]:
    tally = estimate.tally
    assert tally is not None, "intervals have been found"
    if tally.dropped:
        yield (
            "Reports left out: "
            + ", ".join(f"{number:,g} {why}" for why, number in tally.dropped.items())
            + "."
        )
    if estimate.gap * tally.n > AT_THE_MAXIMUM:
        yield (
            f"The estimate is not the maximum of the likelihood, of which it falls short by up to "
            f"{estimate.gap * tally.n:.2g} nats; the intervals are of the reports and need not contain it."
            if method != "wald"
            else "The estimate is not the maximum of the likelihood, and Wald's intervals do not know its bias."
        )
    values, lower, upper = (table[name].to_numpy() for name in ("estimate", "lower", "upper"))
    names = list(table.index)
    if questions.weights is None and not estimate.identified.all():
        yield f"The reports do not determine {_some(names, ~estimate.identified)}: more of them would not help."
    bound = ((lower <= questions.least) | (upper >= questions.most)) & (questions.ranges > 0)
    if bound.any():
        what = {
            "wald": "Wald's interval is void there",
            "profile": f"there its level is not exactly {level:g}",
        }
        if method in what:
            count = f"{int(bound.sum())} interval{'s end' if bound.sum() > 1 else ' ends'}"
            yield f"{count} at a bound, for {_some(names, bound)}: {what[method]}."
    nothing = int((estimate.distribution == 0).sum())
    if method in LIMITS and nothing > MANY_EMPTY * len(estimate):
        yield (
            f"{nothing:,} of {len(estimate):,} probabilities are estimated as 0, where likelihood ratios have another "
            'limit: intervals may cover more or less often than they say; method="guaranteed" does not depend on it.'
        )
    if method == "credible":
        off = np.max(errors(Asked(estimate, questions, level, "distribution")), axis=0)
        if off.any():
            yield (
                f"{int((off > 0).sum())} of {len(off)} intervals are quantiles of Gibbs draws: their ends have "
                f"Monte-Carlo standard errors of up to {off.max():.2g}."
            )
    outside = (values < lower) | (values > upper)
    if outside.any():
        yield f"The estimate is outside of its interval for {_some(names, outside)}."


def _some(names: list[Any], which: NDArray[np.bool_]) -> str:
    chosen = [str(name) for name, yes in zip(names, which, strict=True) if yes]
    more = f" and {len(chosen) - MAX_NAMED} more" if len(chosen) > MAX_NAMED else ""
    return ", ".join(chosen[:MAX_NAMED]) + more
