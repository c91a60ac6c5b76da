"""The weights of a table's rows, attached to the tally of their reports."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit.tally.survey import Survey


def with_rows(tally: Any, group: Any) -> Any:
    """Return the tally of a `Group` of a table with the weights of its rows, if it has some."""
    if group.survey is None:
        return tally
    return _attached(tally, reports_of(group), group.counts, group.survey)


def with_weights(tally: Any, reports: NDArray[Any], weights: Ints | Floats) -> Any:
    """Return the tally with the weights of its reports, which are in the form of the tally."""
    return _attached(tally, reports, weights, None)


def within_table(tallies: dict[Any, Any]) -> dict[Any, Any]:
    """Return the tallies of the groups of a table, which know how many units each stratum has.

    A group is a domain of the survey, so units without a person of the group belong to its strata,
    too.
    """
    parts = [part for tally in tallies.values() for part in tally.parts]
    surveys = [part.survey for part in parts if part.counts.dtype.kind == "f"]
    known = [survey for survey in surveys if survey is not None]
    if not known or len(known) < len(parts):
        return tallies
    # The number of units does not depend on the reports, so all reports may be 0.
    table = Survey.joined(
        known, [np.zeros(survey.at.max() + 1, dtype=np.int64) for survey in known]
    )
    return {
        group: type(tally)(
            tuple(part.with_survey(part.survey.within(table)) for part in tally.parts),
            tally.full_alphabet,
        )
        for group, tally in tallies.items()
    }


def reports_of(group: Any) -> NDArray[Any]:
    """Return the reports of a group in the form that a tally keeps."""
    mechanism, reports = group.mechanism, group.reports
    return mechanism.check_reports(reports if group.codes else mechanism.code_reports(reports))


def _attached(tally: Any, reports: NDArray[Any], weights: Any, rows: Any) -> Any:
    part = tally.parts[0]
    seen = weights > 0
    # Points may have been merged, and foreign mechanisms may keep reports in another form. The
    # weights of single reports then stay unknown, which summaries say.
    at = part.places(reports[seen]) if len(tally.parts) == 1 else None
    if at is None:
        survey = None
    elif rows is None:
        survey = Survey.of_rows(at, weights[seen])
    else:
        survey = _survey(rows.take(np.flatnonzero(seen)), at, weights[seen])
    return type(tally)((part.with_survey(survey), *tally.parts[1:]), tally.full_alphabet)


def _survey(rows: Any, at: Ints, weights: Floats) -> Survey:
    """Return the survey of `SurveyRows` of the distinct reports `at`."""
    n_reports, squares, deviations, *replicates = rows.sums
    return Survey.of_rows(
        at,
        weights,
        squares=squares,
        rows=n_reports,
        stratum=None if rows.strata is None else rows.strata.tolist(),
        cluster=None if rows.clusters is None else rows.clusters.tolist(),
        replicates=np.array(replicates) if replicates else None,
        deviations=deviations,
    )
