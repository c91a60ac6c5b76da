"""Tallies whose possible reports can be listed, and the channel on all that are possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit._validate import Ints, readable
from ibukit.errors import TooLarge
from ibukit.mechanisms import FiniteMechanism
from ibukit.tally import Part, Tally

# numbers in the matrix of a programme
MOST_BOXED = 2**22


def finite(mechanism: Any) -> FiniteMechanism:
    """The mechanism itself; ValueError if its reports cannot be listed, TooLarge if they are too many."""
    if not isinstance(mechanism, FiniteMechanism):
        raise ValueError(
            f"guaranteed intervals need reports that can be listed, which those of {type(mechanism).__name__} "
            'cannot: take method="profile", or by="split"'
        )
    if mechanism.k * mechanism.m > MOST_BOXED:
        raise TooLarge(
            f"guaranteed intervals would list {readable(mechanism.m)} reports of {readable(mechanism.k)} "
            f'secrets, and at most {MOST_BOXED} probabilities are accepted: take method="profile", or by="split"'
        )
    return mechanism


def counted(part: Part) -> Ints:
    """How often each of all reports 0..m-1 was seen, shape (m,)."""
    return np.bincount(part.reports, part.counts, minlength=finite(part.mechanism).m)


def possible(tally: Tally) -> Tally:
    """Each mechanism with all reports that some secret can produce, once each, for the channel on them."""
    parts = []
    for part in tally.parts:
        mechanism = finite(part.mechanism)
        codes = np.arange(mechanism.m)
        codes = codes[mechanism.matrix().any(axis=0) | (counted(part) > 0)]
        parts.append(Part(mechanism, codes, np.ones(len(codes), dtype=np.int64)))
    return Tally(tuple(parts))
