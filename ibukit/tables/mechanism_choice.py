"""Find the mechanism of a report: one for all reports, or by the values of some columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import Any

from ibukit._ground import arguments
from ibukit.errors import AlphabetMismatch
from ibukit.tables.report_codes import number_in

Values = tuple[Any, ...]
# What a message advises for rows without a mechanism.
DROP = (
    'unknown="drop" to leave such rows out and count them, which is right only if they are like '
    "the others"
)


class MechanismChoice:
    """The mechanism of each row by its values in `columns`, each of which is looked up once.

    Parameters
    ----------
    mechanism, epsilon, by
        As for `Tally.from_table`.
    """

    def __init__(self, mechanism: Any, epsilon: str | None, by: Any) -> None:
        self._by: Values = (
            tuple(arguments.items("by", by, "a column, or several"))
            if isinstance(by, (list, tuple))
            else ()
            if by is None
            else (by,)
        )
        self._has_epsilon = epsilon is not None
        self.columns = (*self._by, epsilon) if self._has_epsilon else self._by
        self._check(mechanism)
        self._mechanism = mechanism
        if self._has_keys:
            self._keys = {self._key(key): place for place, key in enumerate(mechanism)}
            self._given = list(mechanism.values())
            # A text that is no key itself stands for the key that is written in this way.
            self._keys_in_text = {tuple(map(str, key)): key for key in self._keys}
        self._found: dict[Values, Any] = {}
        self._order: dict[int, Values] = {}

    @property
    def _has_keys(self) -> bool:
        return bool(self._by) and isinstance(self._mechanism, Mapping)

    def __call__(self, values: Values) -> Any:
        """Return the mechanism for the values of `columns`; AlphabetMismatch if there is none."""
        given = values
        if self._has_epsilon:
            # Equal epsilons of different types, texts among them, give one mechanism.
            values = (*values[:-1], self._level(values[-1]))
        if values not in self._found:
            self._found[values] = self._look_up(values, given)
        if self._found[values] is None:
            make = "add one to the mapping" if self._has_keys else "let the function return one"
            raise AlphabetMismatch(
                f"{self.shown(given)}, for which there is no mechanism; {make}, or say {DROP}"
            )
        return self._found[values]

    def order(self, mechanism: Any) -> Values:
        """Return the place of a mechanism that was found; the order of the rows does not matter.

        Keys of a mapping keep its order; other values are in ascending order.
        """
        return self._order[id(mechanism)]

    def shown(self, values: Values) -> str:
        """Return the columns and their values for a message."""
        names = ", ".join(map(repr, self.columns))
        return f"column {names} contains {', '.join(map(arguments.brief, values))}"

    def _look_up(self, values: Values, given: Values) -> Any:
        place: Values = ()
        found, rest = self._mechanism, values
        if self._has_keys:
            position = self._position(values[: len(self._by)])
            if position is None:
                return None
            found, place, rest = self._given[position], ((position, ""),), values[len(self._by) :]
        if rest:
            found = self._made(found, rest, given)
        if found is None:
            return None
        place = (*place, *map(_sortable, rest))
        # One object may serve for several values; the first place of these counts.
        self._order[id(found)] = min(self._order.get(id(found), place), place)
        return found

    def _position(self, values: Values) -> int | None:
        """Return the place of a key among those of the mapping, or None if it has none."""
        key = values if values in self._keys else self._keys_in_text.get(tuple(map(str, values)))
        # Only texts stand for other keys: the number 1 is not the text "1".
        alike = key is not None and all(
            isinstance(value, str) or value == part for value, part in zip(values, key, strict=True)
        )
        return self._keys[key] if key is not None and alike else None

    def _made(self, make: Any, rest: Values, given: Values) -> Any:
        try:
            made = make(*rest)
        except (ValueError, TypeError, ArithmeticError, LookupError) as error:
            message = f"{self.shown(given)}, which is refused: {error}"
            # No mechanism has such an epsilon, so the row is at fault and not the function.
            if self._has_epsilon and not 0 < rest[-1] < math.inf:
                raise AlphabetMismatch(f"{message}; say {DROP}") from error
            raise ValueError(message) from error
        if not _is_mechanism(made) and made is not None:
            raise TypeError(
                f"mechanism must return a mechanism for {', '.join(map(repr, rest))}, got {made!r}"
            )
        return made

    def _level(self, value: Any) -> float:
        number = number_in(value) if isinstance(value, str) else value
        if not isinstance(number, bool) and isinstance(number, (Real, Decimal)):
            # A number may be too large for a double.
            with suppress(OverflowError):
                return float(number)
        raise AlphabetMismatch(
            f"column {self.columns[-1]!r} must hold epsilons, numbers, but it has "
            f"{arguments.brief(value)}; say {DROP}"
        )

    def _key(self, key: Any) -> Values:
        if len(self._by) == 1:
            return (key,)
        if not isinstance(key, tuple) or len(key) != len(self._by):
            raise ValueError(
                f"mechanism must have keys of {len(self._by)} values, one for each of "
                f"{list(self._by)}, got {key!r}"
            )
        return key

    def _check(self, mechanism: Any) -> None:
        by = ", ".join(map(repr, self._by))
        if not self.columns:
            if not _is_mechanism(mechanism):
                needs = (
                    "by"
                    if isinstance(mechanism, Mapping)
                    else "epsilon"
                    if callable(mechanism)
                    else ""
                )
                other = (
                    f"; with it, {needs} must name the column that says which mechanism"
                    if needs
                    else ""
                )
                raise TypeError(f"mechanism must be a mechanism, got {mechanism!r}{other}")
        elif self._by and isinstance(mechanism, Mapping):
            for value, each in mechanism.items():
                if self._has_epsilon and (_is_mechanism(each) or not callable(each)):
                    raise TypeError(
                        f"mechanism must map to functions of {self.columns[-1]!r}, as lambda eps: "
                        f"RandomizedResponse(labels, eps), got {each!r} for {value!r}"
                    )
                if not self._has_epsilon and not _is_mechanism(each):
                    hint = "; name the column of its argument by epsilon" if callable(each) else ""
                    raise TypeError(
                        f"mechanism must map to mechanisms, got {each!r} for {value!r}{hint}"
                    )
        elif _is_mechanism(mechanism) or not callable(mechanism):
            expected = (
                f"a mapping from values of {by} to mechanisms, or a function of them"
                if not self._has_epsilon
                else f"a function of the values of {by} and of {self.columns[-1]!r}, or a mapping "
                f"from the former to functions of the latter"
                if self._by
                else f"called with each epsilon of {self.columns[-1]!r}, as in lambda eps: "
                "RandomizedResponse(labels, eps)"
            )
            raise TypeError(f"mechanism must be {expected}, got {mechanism!r}")


def _sortable(value: Any) -> tuple[float, str]:
    """Return a key that sorts values of any types: numbers by size, other values by their text."""
    return (float(value), "") if isinstance(value, (Real, Decimal)) else (0.0, str(value))


def _is_mechanism(thing: Any) -> bool:
    return not isinstance(thing, type) and hasattr(thing, "tally") and hasattr(thing, "alphabet")
