"""Tallies whose possible reports can be listed, and the channel on all that are possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit._ground.arguments import Ints, readable
from ibukit.errors import TooLarge
from ibukit.mechanisms import FiniteMechanism
from ibukit.tally.tally import Tally, TallyPart

# numbers in the matrix of a programme
MAX_BOXED = 2**22


def finite(mechanism: Any) -> FiniteMechanism:
    """The mechanism itself; ValueError if its reports cannot be listed, TooLarge if they are too many."""
    if not isinstance(mechanism, FiniteMechanism):
        raise ValueError(
            f"guaranteed intervals need reports that can be listed, which those of {type(mechanism).__name__} "
            'cannot: take method="profile", or by="split"'
        )
    if mechanism.k * mechanism.m > MAX_BOXED:
        raise TooLarge(
            f"guaranteed intervals would list {readable(mechanism.m)} reports of {readable(mechanism.k)} "
            f'secrets, and at most {MAX_BOXED} probabilities are accepted: take method="profile", or by="split"'
        )
    return mechanism


def codes_of(part: TallyPart) -> Ints:
    """The place of each report of a part among all reports, in the order of the matrix's columns, shape (s,)."""
    mechanism, reports = finite(part.mechanism), part.reports
    if reports.ndim == 1:
        return np.asarray(reports, dtype=np.int64)
    # rows of bits: the tally of all of them, each as often as its place says, from 1 on
    (every,) = mechanism.tally_counts(np.arange(1, mechanism.m + 1)).parts
    place = {
        row.tobytes(): code
        for row, code in zip(every.reports, (every.counts - 1).tolist(), strict=True)
    }
    return np.array([place[row.tobytes()] for row in reports], dtype=np.int64)


def counted(part: TallyPart) -> Ints:
    """How often each of all reports was seen, shape (m,)."""
    return np.bincount(codes_of(part), part.counts, minlength=finite(part.mechanism).m)


def possible(tally: Tally) -> Tally:
    """Each mechanism with all reports that some secret can produce, once each, for the channel on them."""
    parts: list[TallyPart] = []
    for part in tally.parts:
        mechanism = finite(part.mechanism)
        there = mechanism.matrix().any(axis=0) | (counted(part) > 0)
        parts += mechanism.tally_counts(there.astype(np.int64)).parts
    return Tally(tuple(parts))
