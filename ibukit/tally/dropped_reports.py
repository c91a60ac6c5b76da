"""Numbers of reports of a table that were left out, by reason: "missing", "unknown"."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def sum_dropped(numbers: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of several such mappings."""
    total: dict[str, int] = {}
    for reason, number in (pair for each in numbers for pair in each.items()):
        total[reason] = total.get(reason, 0) + number
    return total


def counted(dropped: Mapping[str, int]) -> str:
    """Return the numbers of dropped reports in words."""
    # Sums of weights are floats; the format "g" leaves out digits that are rounding.
    return ", ".join(
        f"{number:{'g' if isinstance(number, float) else ''}} {why}"
        for why, number in dropped.items()
    )


def none_left(dropped: Mapping[str, int]) -> ValueError:
    """Return the error for a table of which no report is left."""
    lost = f": {counted(dropped)} were dropped" if dropped else ""
    return ValueError(f"table must hold at least one report, none is left{lost}")


def refuse_other_dropped(dropped: Sequence[Any]) -> None:
    """Raise ValueError unless these are numbers of dropped reports by reason."""
    reasons = [reason for reason, _ in dropped]
    for reason, number in dropped:
        good = isinstance(number, (int, float)) and not isinstance(number, bool)
        if not isinstance(reason, str) or not good or not 0 <= number < math.inf:
            raise ValueError(f"dropped must be numbers by reason, got {reason!r}: {number!r}")
    if len(set(reasons)) < len(reasons):
        raise ValueError("dropped must name each reason once")
