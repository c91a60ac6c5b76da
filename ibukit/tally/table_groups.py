"""Tallies of the groups of a table, made from all of its reports at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit.tally.dropped_reports import none_left
from ibukit.tally.part import TallyPart
from ibukit.tally.survey_rows import with_rows, within_table
from ibukit.tally.tally_groups import TallyGroups, sorted_groups


def tally_groups(rows: Any, more: dict[str, Any], pool: Callable[[list[Any]], Any]) -> TallyGroups:
    """Return the tallies of the groups of a `TableReports`; `pool` adds tallies."""
    parts: dict[int, list[tuple[Any, Any]]] = {}
    for index, group in enumerate(rows.groups()):
        order = (rows.order(group.mechanism), index)
        for owner, tally in _by_owner(group, more):
            parts.setdefault(owner, []).append((order, tally))
    tallies: dict[Any, Any] = {}
    numbers: dict[Any, int] = {}
    for owner in sorted_groups(list(rows.owners)):
        # Engines of several threads read in any order, so the parts are sorted.
        listed = sorted(parts.get(rows.owners[owner], []), key=lambda pair: pair[0])
        if listed:
            group = owner[0] if len(owner) == 1 else owner
            tallies[group] = _joined([tally for _, tally in listed], pool)
            numbers[group] = rows.owners[owner]
    if not tallies:
        raise none_left(rows.dropped)
    counted = {
        group: tally._after_dropping(rows.dropped_of.get(numbers[group], {}))
        for group, tally in within_table(tallies, rows.unweighted).items()
    }
    return TallyGroups(rows.columns.groups, counted, rows.dropped)


def _by_owner(group: Any, more: dict[str, Any]) -> list[tuple[int, Any]]:
    """Return the tally of the reports of each owner, all of one mechanism."""
    seen = group.counts > 0
    reports, counts, owners = group.reports[seen], group.counts[seen], group.owners[seen]
    rows = None if group.survey is None else group.survey.take(seen)
    order = np.argsort(owners, kind="stable")
    # Points also pass as codes, but cannot be listed.
    listed = group.codes and reports.ndim == 1
    if listed:
        order = np.lexsort((reports, owners))
    reports, counts, owners = reports[order], counts[order], owners[order]
    if rows is not None:
        # Weights are attached to the tally of each group.
        rows = rows.take(order)
        parts = [
            group._replace(
                reports=reports[here],
                counts=counts[here],
                owners=owners[here],
                survey=rows.take(here),
            )
            for here in (slice(start, end) for start, end in _stretches(owners))
        ]
        return [
            (
                int(part.owners[0]),
                with_rows(
                    part.mechanism.tally(
                        part.reports, counts=part.counts, codes=part.codes, **more
                    ),
                    part,
                ),
            )
            for part in parts
        ]
    # Reports are checked once, as one tally of all groups.
    whole = group.mechanism.tally(reports, counts=counts, codes=group.codes, **more)
    part = whole.parts[0]
    distinct = (
        np.unique(reports)
        if listed and len(whole.parts) == 1 and whole.full_alphabet is None
        else None
    )
    if distinct is not None and type(part) is TallyPart and np.array_equal(part.reports, distinct):
        # The tally keeps codes as they are, so the parts are slices of the sorted arrays.
        new = np.r_[True, (owners[1:] != owners[:-1]) | (reports[1:] != reports[:-1])]
        at = np.flatnonzero(new)
        counts = np.add.reduceat(counts, at).astype(part.counts.dtype)
        reports, owners = reports[at].astype(part.reports.dtype), owners[at]
        reports, counts = arguments.frozen(reports), arguments.frozen(counts)
        return [
            (
                int(owners[start]),
                type(whole)((TallyPart(part.mechanism, reports[start:end], counts[start:end]),)),
            )
            for start, end in _stretches(owners)
        ]
    return [
        (
            int(owners[start]),
            group.mechanism.tally(
                reports[start:end], counts=counts[start:end], codes=group.codes, **more
            ),
        )
        for start, end in _stretches(owners)
    ]


def _stretches(owners: arguments.Ints) -> list[tuple[int, int]]:
    """Return where each owner begins and ends in a sorted array."""
    starts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(owners)], strict=True))


def _joined(tallies: list[Any], pool: Callable[[list[Any]], Any]) -> Any:
    """Return the sum of the tallies of one group."""
    first = tallies[0]
    mechanisms = [tally.parts[0].mechanism for tally in tallies]
    # Different mechanisms over one alphabet object need none of the checks of `pool`.
    simple = all(
        len(tally.parts) == 1 and tally.full_alphabet is None and tally.alphabet is first.alphabet
        for tally in tallies
    ) and all(getattr(each, "efficiency", None) is None for each in mechanisms)
    if simple and len({id(each) for each in mechanisms}) == len(mechanisms) == len(set(mechanisms)):
        return type(first)(tuple(tally.parts[0] for tally in tallies))
    return pool(tallies)
