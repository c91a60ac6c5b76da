"""The weights of a table's rows, attached to the tally of their reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit.files.canonical_text import fingerprint
from ibukit.tally.survey import Survey
from ibukit.tally.table_share import NOBODY, TableShare, text_of_units


def with_rows(tally: Any, group: Any) -> Any:
    """Return the tally of a `Group` of a table with the weights of its rows, if it has some."""
    if group.survey is None:
        return tally
    return _attached(tally, reports_of(group), group.counts, group.survey)


def with_weights(tally: Any, reports: NDArray[Any], weights: Ints | Floats) -> Any:
    """Return the tally with the weights of its reports, which are in the form of the tally."""
    return _attached(tally, reports, weights, None)


def within_table(tallies: dict[Any, Any], unweighted: Any) -> dict[Any, Any]:
    """Return the tallies of the groups of a table, which know the units of its strata.

    A group is a domain of the survey, so units without a person of the group belong to its strata,
    too, and people without weight; `unweighted` are the `SurveyRows` of these, or None.
    """
    parts = [part for tally in tallies.values() for part in tally.parts]
    surveys = [part.survey for part in parts if part.counts.dtype.kind == "f"]
    known = [survey for survey in surveys if survey is not None]
    if not known or len(known) < len(parts):
        return tallies
    nobody = None if unweighted is None else _survey_of_nobody(unweighted)
    shared = iter(within(known, nobody, [part.reports for part in parts]))
    return {
        group: type(tally)(
            tuple(part.with_survey(next(shared)) for part in tally.parts), tally.full_alphabet
        )
        for group, tally in tallies.items()
    }


def within(
    parts: list[Survey], unweighted: Survey | None, reports: Sequence[NDArray[Any]] = ()
) -> list[Survey]:
    """Return the surveys of the parts of a table, each with its share of all people and clusters.

    `unweighted` are people without weight, who are in none of the parts. Two tables are told apart
    by these and by the `reports` of each part.
    """
    listed = [*parts]
    # Replicate weights express the design without the number of people.
    if unweighted is not None and not any(len(part.replicates) for part in parts):
        listed.append(unweighted)
    # The number of units does not depend on the reports, so all reports may be 0.
    table = Survey.joined(listed, [np.zeros(each.at.max() + 1, dtype=np.int64) for each in listed])
    units = text_of_units(table.people, sorted(table.named_clusters))
    with np.errstate(over="ignore"):
        # Sums of weights that are added in another order differ in their last digits.
        content = [(each.at, each.rows, each.weights.astype(np.float32)) for each in listed]
    names = [(each.stratum, each.strata, each.cluster, each.clusters) for each in listed]
    digest = fingerprint((content, names, reports))
    return [
        part.sharing(TableShare(digest, number, part.people, units))
        for number, part in enumerate(parts)
    ]


def beside(tally: Any, groups: Mapping[Any, Any]) -> Any:
    """Return the tally of a group of one table as that of a group of a sum with other tables.

    None of its people are in `groups`, the tallies of these other tables.
    """
    other = next(iter(groups.values()), None)
    # The reports of a sum are pooled only if they are asked for.
    if other is None or not tally._runs[0].weighted or other.survey is None:
        return tally
    survey, absent = tally.parts[0].survey, {each.table: each for each in other.survey.shares}
    if survey is None or not absent:
        return tally
    shares = [replace(share, part=NOBODY, own=()) for share in absent.values()]
    parts = (tally.parts[0].with_survey(survey.sharing(*shares)), *tally.parts[1:])
    return type(tally)(parts, tally.full_alphabet)._after_dropping(tally.dropped)


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
        if not seen.all():
            none = np.zeros(np.count_nonzero(~seen), dtype=np.int64)
            (survey,) = within([survey], Survey.of_rows(none, none.astype(float)), [part.reports])
    else:
        survey = _survey(rows.take(np.flatnonzero(seen)), at, weights[seen])
    return type(tally)((part.with_survey(survey), *tally.parts[1:]), tally.full_alphabet)


def _survey(rows: Any, at: Ints, weights: Floats) -> Survey:
    """Return the survey of `SurveyRows` of the distinct reports `at`."""
    n_reports, squares, deviations, _, *replicates = rows.sums
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


def _survey_of_nobody(rows: Any) -> Survey:
    """Return the survey of the people without weight in `SurveyRows`."""
    people = rows.sums[3] - rows.sums[0]
    return Survey.of_rows(
        np.zeros(len(people), dtype=np.int64),
        np.zeros(len(people)),
        rows=people,
        stratum=None if rows.strata is None else rows.strata.tolist(),
        cluster=None if rows.clusters is None else rows.clusters.tolist(),
    )
