"""`TallyGroups`: a mapping from groups of people to their tallies."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from types import MappingProxyType
from typing import Any, Self

from ibukit._ground.typing import override
from ibukit.files.json_values import storable
from ibukit.files.storage import load, save
from ibukit.tally.dropped_reports import refuse_other_dropped, sum_dropped
from ibukit.tally.survey_rows import beside


@storable
class TallyGroups(Mapping[Any, Any]):
    """A mapping from groups to the tallies of their reports.

    ``Tally.from_table(..., groups=...)`` makes it. ``mle(groups)`` estimates all groups at once;
    ``groups_1 + groups_2`` has the groups of both, and adds the two tallies of a group that is in
    both.

    Parameters
    ----------
    names : sequence of str
        The columns that name a group.
    tallies : mapping
        From a group to its `Tally`. A group is a value, or a tuple with a value for each of
        several columns.
    dropped : mapping, optional
        From a reason to the number of reports that were left out, in all groups together. Each
        tally says how many of its own group were. Reports without a group, and those of a group of
        which no report is left, are in this total alone.

    Examples
    --------
    >>> import ibukit as ik, pandas as pd
    >>> table = pd.DataFrame({"report": ["a", "b", "a"], "country": ["NL", "NL", "DE"]})
    >>> mechanism = ik.RandomizedResponse(["a", "b"], epsilon=1.0)
    >>> groups = ik.Tally.from_table(table, mechanism, groups="country")
    >>> list(groups), groups["NL"].n
    (['DE', 'NL'], 2)
    """

    def __init__(
        self,
        names: Sequence[str],
        tallies: Mapping[Any, Any],
        dropped: Mapping[str, int] | None = None,
    ) -> None:
        self.names = tuple(names)
        self._tallies = dict(tallies)
        self._dropped = dict(dropped or {})

    @override
    def __getitem__(self, group: Any) -> Any:
        try:
            return self._tallies[group]
        except (KeyError, TypeError):
            first = ", ".join(map(repr, list(self._tallies)[:3]))
            raise KeyError(
                f"group {group!r} is not among the {len(self)} groups of {self.names}, which "
                f"begin with {first}"
            ) from None

    @override
    def __iter__(self) -> Iterator[Any]:
        return iter(self._tallies)

    @override
    def __len__(self) -> int:
        return len(self._tallies)

    @override
    def __contains__(self, group: object) -> bool:
        try:
            return group in self._tallies
        except TypeError:
            return False

    @property
    def dropped(self) -> Mapping[str, int]:
        """Numbers of reports of the table that were left out by request, by reason."""
        # A view, made anew each time because it can be neither pickled nor copied.
        return MappingProxyType(self._dropped)

    @property
    def n(self) -> int:
        """Number of reports of all groups."""
        return sum(tally.n for tally in self._tallies.values())

    def __add__(self, other: TallyGroups) -> TallyGroups:
        if not isinstance(other, TallyGroups):
            return NotImplemented
        if self.names != other.names:
            raise ValueError(
                "groups can be added only if the same columns name them, in the same order, got "
                f"{self.names} and {other.names}"
            )
        tallies = {
            group: self[group] + other[group]
            if group in self and group in other
            else beside(self[group], other)
            if group in self
            else beside(other[group], self)
            for group in sorted_groups([*self, *(group for group in other if group not in self)])
        }
        return TallyGroups(self.names, tallies, sum_dropped([self.dropped, other.dropped]))

    def __radd__(self, other: Any) -> TallyGroups:
        # sum() starts from the number 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def save(self, path: str | os.PathLike[str]) -> None:
        """Replace a file with all groups, all at once or not at all; see `Tally.save`."""
        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the groups that `save` wrote; see `Tally.load`."""
        return load(path, cls)[0]

    def _stored(self) -> dict[str, Any]:
        for group in self._tallies:
            for value in group if isinstance(group, tuple) else (group,):
                if not isinstance(value, (str, int, float, bool)):
                    raise TypeError(
                        "groups must be named by strings and numbers to be written to a file, got "
                        f"{value!r}; make the column a text"
                    )
        return {
            "names": self.names,
            "groups": tuple(self._tallies),
            "tallies": tuple(self._tallies.values()),
            "dropped": tuple(self.dropped.items()),
        }

    @classmethod
    def _restored(
        cls,
        names: Sequence[str],
        groups: Sequence[Any],
        tallies: Sequence[Any],
        dropped: Sequence[tuple[str, int]],
    ) -> Self:
        if not names or isinstance(names, str) or not all(isinstance(n, str) for n in names):
            raise ValueError(f"groups must have names of columns, got {names!r}")
        # `Tally` stands above this module; it alone keeps parts.
        if not all(hasattr(tally, "parts") for tally in tallies):
            raise ValueError("each group must have a tally")
        refuse_other_dropped(dropped)
        if len(names) > 1:
            groups = [tuple(group) for group in groups]
        if len(set(groups)) < len(groups):
            raise ValueError("each group must be there once")
        return cls(names, dict(zip(groups, tallies, strict=True)), dict(dropped))

    @override
    def __repr__(self) -> str:
        lost = f", dropped {dict(self.dropped)}" if self.dropped else ""
        return f"TallyGroups({len(self)} groups of {', '.join(self.names)}, n={self.n}{lost})"


def sorted_groups(groups: Sequence[Any]) -> list[Any]:
    """Return the groups in the order of their values; those of several types by type first."""

    def place(group: Any) -> tuple[Any, ...]:
        values = group if isinstance(group, tuple) else (group,)
        return tuple(_place(value) for value in values)

    return sorted(groups, key=place)


def _place(value: Any) -> tuple[str, Any]:
    if isinstance(value, (int, float)):
        return "", value
    kind = type(value).__name__
    return kind, value if isinstance(value, (str, date, datetime)) else str(value)
