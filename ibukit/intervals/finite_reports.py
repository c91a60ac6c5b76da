"""Tallies whose possible reports can be listed, and the channel on all possible reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit._ground.arguments import Ints, readable
from ibukit.errors import TooLarge
from ibukit.mechanisms import FiniteMechanism, LinearGeometric
from ibukit.mechanisms.report_columns import columns_of
from ibukit.tally.likelihood_rows import require_law
from ibukit.tally.tally import Tally, TallyPart

# Entries of the matrix of a linear programme, 32 MB of doubles; a larger one is refused with
# TooLarge, because its solution would take too long.
MAX_PROGRAMME_ENTRIES = 2**22


def require_finite(mechanism: Any) -> FiniteMechanism:
    """Return the mechanism; ValueError if reports cannot be listed, TooLarge if they are many."""
    require_law([mechanism], 'a guaranteed interval without by="split"')
    if not isinstance(mechanism, FiniteMechanism):
        raise ValueError(
            "guaranteed intervals by boxes or betting need reports that can be listed, which "
            "those of "
            f'{type(mechanism).__name__} cannot: take by="cross-fitted", or method="profile"'
        )
    refuse_programme(mechanism.k, mechanism.m, "reports")
    return mechanism


def refuse_programme(k: int, events: int, kind: str) -> None:
    """Raise TooLarge if a linear programme of `k` secrets and `events` would take too long."""
    if k * events > MAX_PROGRAMME_ENTRIES:
        raise TooLarge(
            f"guaranteed intervals by boxes or betting would list {readable(events)} {kind} of "
            f"{readable(k)} secrets, and at most {MAX_PROGRAMME_ENTRIES} probabilities are "
            'accepted: take by="cross-fitted", or method="profile"'
        )


def with_listed_reports(tally: Tally) -> Tally:
    """Return the tally with reports of geometric noise beyond an end of the line merged into it.

    Reports beyond an end give the secrets probabilities in the same ratios as the end does, and
    when they are merged, the reports can be listed.
    """
    parts: list[TallyPart] = []
    for part in tally.parts:
        mechanism: Any = part.mechanism
        # A class that inherits may have another law.
        if type(mechanism) is LinearGeometric and mechanism.k > 1:
            ends = (mechanism.alphabet.first, mechanism.alphabet.last)
            at_ends = mechanism.as_finite().tally(part.reports.clip(*ends), counts=part.counts)
            parts += at_ends.parts
        else:
            parts.append(part)
    return Tally(tuple(parts))


def codes_of(part: TallyPart) -> Ints:
    """Return the column of the mechanism's matrix that belongs to each report, shape (s,)."""
    return columns_of(require_finite(part.mechanism), part.reports)


def counts_of_all_reports(part: TallyPart) -> Ints:
    """Return how often each possible report was seen, shape (m,), mostly zeros."""
    return np.bincount(codes_of(part), part.counts, minlength=require_finite(part.mechanism).m)


def all_possible_reports(tally: Tally) -> Tally:
    """Return a tally, for its channel, with each possible report of each mechanism once."""
    parts: list[TallyPart] = []
    for part in tally.parts:
        mechanism = require_finite(part.mechanism)
        # Columns of zeros, which no secret produces, are left out.
        possible = mechanism.matrix().any(axis=0) | (counts_of_all_reports(part) > 0)
        parts += mechanism.tally_counts(possible.astype(np.int64)).parts
    return Tally(tuple(parts))
