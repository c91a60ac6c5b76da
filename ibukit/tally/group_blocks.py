"""Counts of many tallies over one set of reports, as blocks that fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.tally.part import TallyPart
from ibukit.tally.tally import Tally
from ibukit.tally.tally_groups import TallyGroups

# Number of secrets up to which systems of order k for many groups are solved together; above it
# the solvers of single tallies use the structure of their mechanisms.
MAX_SECRETS_TOGETHER = 64
# Number of distinct reports, over all groups and mechanisms, up to which counts are a dense table.
MAX_REPORTS_TOGETHER = 4096
# Numbers in the largest array of a block: 32 MB.
BLOCK_ENTRIES = 2**22


class GroupBlock(NamedTuple):
    """Consecutive groups, the matrix (k, s) of all reports, and the counts (t, s) of each group."""

    groups: slice
    matrix: Floats
    counts: Floats
    log_scale: Floats


def blocks(groups: TallyGroups) -> Iterator[GroupBlock] | None:
    """Return the blocks of the groups; None if they must be estimated one by one."""
    tallies = list(groups.values())
    k = tallies[0].k
    if k > MAX_SECRETS_TOGETHER or not all(map(_is_simple, tallies)):
        return None
    seen: dict[Any, list[Any]] = {}
    for part in (part for tally in tallies for part in tally.parts):
        seen.setdefault(part.mechanism, []).append(part.reports)
    reports = {mechanism: np.unique(np.concatenate(each)) for mechanism, each in seen.items()}
    width = sum(map(len, reports.values()))
    if width > MAX_REPORTS_TOGETHER:
        return None
    return _blocks(tallies, reports, width)


def _is_simple(tally: Tally) -> bool:
    return (
        tally.full_alphabet is None
        and tally.efficiency is None
        and all(type(part) is TallyPart and part.reports.ndim == 1 for part in tally.parts)
    )


def _blocks(tallies: list[Tally], reports: dict[Any, Any], width: int) -> Iterator[GroupBlock]:
    k = tallies[0].k
    starts = dict(zip(reports, np.cumsum([0, *map(len, reports.values())]).tolist(), strict=False))
    matrix = np.hstack(
        [mechanism.channel(seen).rows(np.arange(k)) for mechanism, seen in reports.items()]
    )
    scales = [
        np.broadcast_to(0.0 if (scale := mechanism.log_scale(seen)) is None else scale, len(seen))
        for mechanism, seen in reports.items()
    ]
    size = max(1, BLOCK_ENTRIES // max(width, k * k))
    for start in range(0, len(tallies), size):
        some = tallies[start : start + size]
        counts = np.zeros((len(some), width))
        for row, tally in zip(counts, some, strict=True):
            for part in tally.parts:
                at = np.searchsorted(reports[part.mechanism], part.reports)
                row[starts[part.mechanism] + at] = part.counts
        yield GroupBlock(slice(start, start + len(some)), matrix, counts, np.concatenate(scales))
