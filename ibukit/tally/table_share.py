"""`TableShare`: the units of a weighted table, of which a tally has those of one part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ibukit.files.json_values import storable

# Number in the place of a part for reports that are all of other tables.
NOBODY = -1


@storable
@dataclass(frozen=True)
class TableShare:
    """Units of a weighted table, and those of them that are in one of its parts.

    A part is a group of people, or those of a group whose reports are of one mechanism.

    Parameters
    ----------
    table : str
        Digest of the table's content, by which the parts of one table know each other.
    part : int
        Number of the part, or `NOBODY`.
    people, own : tuple of (str, int)
        Stratum, and number of people without a cluster in the table and in the part.
    clusters : tuple of (str, str)
        Stratum and name of each cluster of the table.
    """

    table: str
    part: int
    people: tuple[tuple[str, int], ...]
    own: tuple[tuple[str, int], ...]
    clusters: tuple[tuple[str, str], ...]

    def _refuse_other_content(self) -> None:
        """Raise ValueError for units that a file may hold, but no table has."""
        sizes, own = dict(self.people), dict(self.own)
        numbers = [*sizes.values(), *own.values()]
        names = [self.table, *sizes]
        for stratum, name in self.clusters:
            names += [stratum, name]
        if type(self.part) is not int or self.part < NOBODY:
            raise ValueError("parts of a table must be numbered")
        if not all(type(n) is int and n >= 0 for n in numbers):
            raise ValueError("people of a table must be counted by numbers from 0 on")
        if not all(isinstance(name, str) for name in names):
            raise ValueError("strata and clusters of a table must have names")
        if any(n > sizes.get(name, 0) for name, n in own.items()):
            raise ValueError("a part of a table must not have more people than the table")


def units_elsewhere(shares: Sequence[TableShare]) -> tuple[Counter[str], set[tuple[str, str]]]:
    """Return the people of each stratum of the tables who are in none of the parts.

    Beside them are all clusters of the tables, those of the parts as well.
    """
    # A part that is there twice is of two tables of the same content.
    times = Counter((share.table, share.part) for share in shares)
    tables: dict[str, tuple[int, TableShare]] = {}
    people: Counter[str] = Counter()
    for share in shares:
        people.subtract(dict(share.own))
        n = 1 if share.part == NOBODY else times[share.table, share.part]
        if n > tables.get(share.table, (0, share))[0]:
            tables[share.table] = n, share
    for n, share in tables.values():
        people.update({name: n * size for name, size in share.people})
    return people, {cluster for _, share in tables.values() for cluster in share.clusters}
