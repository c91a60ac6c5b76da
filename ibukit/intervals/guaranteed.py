"""Intervals that hold at every number of reports, by name of the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ibukit._ground import arguments
from ibukit._ground.threads import one_thread
from ibukit.intervals.betting import betting
from ibukit.intervals.clopper_pearson import boxes
from ibukit.intervals.request import Asked, Ends
from ibukit.intervals.universal import averaged, cross_fitted, halved

# those that split the reports at random
SPLITTING: dict[str, Callable[..., Ends]] = {
    "betting": betting,
    "split": halved,
    "cross-fitted": cross_fitted,
    "averaged": averaged,
}


def guaranteed(asked: Asked, by: str = "boxes", seed: int = 0, **options: Any) -> Ends:
    """The ends by one of the ways, with its options; `seed` is of the random splits, where there are any."""
    if not arguments.is_one_of(by, {"boxes", *SPLITTING}):
        raise ValueError(
            f"by must be one of {', '.join(map(repr, ['boxes', *SPLITTING]))}, got {by!r}"
        )
    with one_thread():
        return boxes(asked, **options) if by == "boxes" else SPLITTING[by](asked, seed, **options)
