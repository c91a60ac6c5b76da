"""`TableShare`: the units of a weighted table, of which a tally has those of one part."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import ReadOnlyArrays
from ibukit.files.json_values import storable

# Number in the place of a part for reports that are all of other tables.
NOBODY = -1


@storable
@dataclass(frozen=True)
class TableShare(ReadOnlyArrays):
    """Units of a weighted table, and those of them that are in one of its parts.

    A part is a group of people, or those of a group whose reports are of one mechanism.

    Parameters
    ----------
    table : str
        Digest of the table's content, by which the parts of one table know each other.
    part : int
        Number of the part, or `NOBODY`.
    own : tuple of (str, int)
        Stratum, and number of people of the part without a cluster.
    units : ndarray of uint8
        The people of each stratum of the table, and its clusters, as the text of `text_of_units`.
        A file has it once for all parts.
    """

    table: str
    part: int
    own: tuple[tuple[str, int], ...]
    units: NDArray[np.uint8] = field(compare=False)

    @property
    def whole(self) -> _Units:
        """The units of the whole table."""
        return _units_in(self.units.tobytes())

    def _refuse_other_content(self) -> None:
        """Raise ValueError for units that a file may hold, but no table has."""
        if self.units.dtype != np.uint8 or self.units.ndim != 1:
            raise ValueError("units of a table must be a text")
        kinds = [type(value) for value in (self.table, self.part)]
        if kinds != [str, int] or self.part < NOBODY:
            raise ValueError("a table must have a digest, and its parts numbers")
        sizes, own = self.whole.people, dict(self.own)
        if not all(type(n) is int and 0 <= n <= sizes.get(name, 0) for name, n in own.items()):
            raise ValueError("a part of a table must not have more people than the table")


@dataclass(frozen=True, eq=False)
class _Units:
    """Units of a table: people without a cluster in each stratum, and clusters of strata."""

    people: dict[str, int]
    clusters: frozenset[tuple[str, str]]
    n_clusters: Counter[str]


def text_of_units(
    people: Sequence[tuple[str, int]], clusters: Sequence[tuple[str, str]]
) -> NDArray[np.uint8]:
    """Return the units of a table as a text of JSON, in bytes."""
    return np.frombuffer(json.dumps([people, clusters]).encode(), dtype=np.uint8)


# All groups of a table share the units, and a sum may be of many tables.
@lru_cache(maxsize=64)
def _units_in(text: bytes) -> _Units:
    # The text may come from a file that anybody wrote.
    people, pairs = json.loads(text)
    sizes, clusters = dict(people), frozenset((stratum, name) for stratum, name in pairs)
    names = (*sizes, *(name for pair in clusters for name in pair))
    if not all(isinstance(name, str) for name in names):
        raise ValueError("strata and clusters of a table must have names")
    if not all(type(size) is int and size >= 0 for size in sizes.values()):
        raise ValueError("people of a table must be counted by numbers from 0 on")
    return _Units(sizes, clusters, Counter(stratum for stratum, _ in clusters))


def units_elsewhere(shares: Sequence[TableShare], clusters: set[tuple[str, str]]) -> Counter[str]:
    """Return the number of units of each stratum of the tables that are in none of the parts.

    The parts have these `clusters`.
    """
    # A part that occurs twice is of two tables of the same content.
    times = Counter((share.table, share.part) for share in shares)
    tables: dict[str, tuple[int, TableShare]] = {}
    people: Counter[str] = Counter()
    for share in shares:
        people.subtract(dict(share.own))
        n = 1 if share.part == NOBODY else times[share.table, share.part]
        if n > tables.get(share.table, (0, share))[0]:
            tables[share.table] = n, share
    wholes = [(n, share.whole) for n, share in tables.values()]
    for n, whole in wholes:
        people.update({stratum: n * size for stratum, size in whole.people.items()})
    known, n_clusters = _clusters_of(tuple(whole for _, whole in wholes))
    return people + (n_clusters - Counter(stratum for stratum, _ in clusters & known))


@lru_cache(maxsize=16)
def _clusters_of(tables: tuple[_Units, ...]) -> tuple[frozenset[tuple[str, str]], Counter[str]]:
    """Return the clusters of some tables, of which those of the same name are one."""
    if len(tables) == 1:
        return tables[0].clusters, tables[0].n_clusters
    known: frozenset[tuple[str, str]] = frozenset().union(*(each.clusters for each in tables))
    return known, Counter(stratum for stratum, _ in known)
