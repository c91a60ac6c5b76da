"""Mechanisms whose matrix was measured in trials, and so must not be taken for the true one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ibukit._ground.arguments import Ints
from ibukit.errors import MatrixUncertain
from ibukit.tally.tally import Tally


def trials_of(mechanism: Any) -> Ints | None:
    """Return the counts of trials of a measured matrix, shape (k, m); None if it is known."""
    return getattr(mechanism, "trials", None)


def has_trials(tally: Tally) -> bool:
    """Return whether the matrix of a mechanism of the tally was measured."""
    return any(trials_of(part.mechanism) is not None for part in tally.parts)


def refuse_trials(mechanisms: Iterable[Any], what: str, instead: str) -> None:
    """Raise MatrixUncertain if a matrix was measured, which `what` would take for the true one."""
    for mechanism in mechanisms:
        if trials_of(mechanism) is not None:
            raise MatrixUncertain(
                f"mechanism must have a matrix that is known, got {mechanism}, whose matrix was "
                f"measured: {what} would take it for the true one; {instead}"
            )
