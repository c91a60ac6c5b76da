"""Find the mechanism of a report: one for all, or by the value of a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any, Protocol

from ibukit.tables.report_codes import number_in


class MechanismChoice(Protocol):
    """The mechanisms of a table's rows, and their order."""

    def __call__(self, value: Any, column: str | None, textual: bool) -> Any:
        """Return the mechanism of a value of the column, or None if it has none."""

    def order(self, mechanism: Any) -> float:
        """Return the place of a mechanism that was chosen: of its key, or its epsilon."""


def mechanism_finder(mechanism: Any, epsilon: str | None, by: str | None) -> MechanismChoice:
    """Return what finds the mechanism of a value of the column."""
    if epsilon is not None and by is not None:
        raise ValueError(f"epsilon and by must not both be given, got {epsilon!r} and {by!r}")
    if by is not None:
        if not isinstance(mechanism, Mapping):
            raise TypeError(
                f"mechanism must be a mapping from values of {by!r} to mechanisms, got "
                f"{mechanism!r}"
            )
        return _MechanismOfValue(mechanism)
    if epsilon is not None:
        if _is_mechanism(mechanism) or not callable(mechanism):
            raise TypeError(
                f"mechanism must be called with each epsilon of {epsilon!r}, as in lambda eps: "
                f"RandomizedResponse(labels, eps), got {mechanism!r}"
            )
        return _MechanismOfEpsilon(mechanism)
    if not _is_mechanism(mechanism):
        needs = "epsilon" if callable(mechanism) else "by" if isinstance(mechanism, Mapping) else ""
        other = (
            f"; with it, {needs} must name the column that says which mechanism" if needs else ""
        )
        raise TypeError(f"mechanism must be a mechanism, got {mechanism!r}{other}")
    return _OneMechanism(mechanism)


class _OneMechanism:
    def __init__(self, mechanism: Any) -> None:
        self._mechanism = mechanism

    def __call__(self, value: Any, column: str | None, textual: bool) -> Any:
        return self._mechanism

    def order(self, mechanism: Any) -> float:
        return 0


class _MechanismOfValue:
    """Mechanisms of a mapping, by the value of a column."""

    def __init__(self, mechanisms: Mapping[Any, Any]) -> None:
        for value, mechanism in mechanisms.items():
            if not _is_mechanism(mechanism):
                raise TypeError(
                    f"mechanism must map to mechanisms, got {mechanism!r} for {value!r}"
                )
        # In text files values match the keys that are written so.
        self._of = dict(mechanisms)
        self._of_text = {str(value): mechanism for value, mechanism in mechanisms.items()}
        self._order = {id(each): place for place, each in enumerate(mechanisms.values())}

    def __call__(self, value: Any, column: str | None, textual: bool) -> Any:
        return (self._of_text if textual else self._of).get(value)

    def order(self, mechanism: Any) -> float:
        return self._order[id(mechanism)]


class _MechanismOfEpsilon:
    """Mechanisms by their epsilon; each is made once."""

    def __init__(self, make: Callable[[float], Any]) -> None:
        self._make, self._made = make, dict[float, Any]()
        self._order: dict[int, float] = {}

    def __call__(self, value: Any, column: str | None, textual: bool) -> Any:
        number = number_in(value) if textual and isinstance(value, str) else value
        if isinstance(number, (bool, str)) or not isinstance(number, (Real, Decimal)):
            raise ValueError(
                f"column {column!r} must hold numbers, epsilons, it contains {value!r}"
            )
        # Equal epsilons of different types give one mechanism, so their reports are counted
        # together.
        epsilon = float(number)
        if epsilon not in self._made:
            try:
                made = self._make(epsilon)
            except (ValueError, OverflowError) as error:
                raise ValueError(
                    f"column {column!r} contains {value!r}, which is refused: {error}"
                ) from error
            if not _is_mechanism(made):
                raise TypeError(
                    f"mechanism must return a mechanism for epsilon={epsilon}, got {made!r}"
                )
            self._made[epsilon] = made
            # One object may serve for several epsilons, of which the least counts.
            self._order[id(made)] = min(self._order.get(id(made), epsilon), epsilon)
        return self._made[epsilon]

    def order(self, mechanism: Any) -> float:
        return self._order[id(mechanism)]


def _is_mechanism(thing: Any) -> bool:
    return not isinstance(thing, type) and hasattr(thing, "tally") and hasattr(thing, "alphabet")
