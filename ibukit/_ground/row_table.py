"""Rows of whole numbers looked up in a table of all rows that lie between them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Ints


class RowTable(NamedTuple):
    """All rows between the least and the largest number of each column, in order."""

    low: NDArray[Any]
    """Least number of each column."""
    shape: tuple[int, ...]
    """Number of whole numbers from the least to the largest one of each column."""

    @property
    def size(self) -> int:
        """Number of places."""
        return math.prod(self.shape)

    def places(self, rows: NDArray[Any]) -> Ints:
        """Return the place of each row in the table."""
        if rows.dtype.kind in "iu":
            # Differences of short integers would wrap around.
            above = rows.astype(np.int64) - self.low.astype(np.int64)
        else:
            above = (rows - self.low).astype(np.int64)
        columns = self._varying
        if not columns:
            return np.zeros(len(rows), dtype=np.int64)
        return np.ravel_multi_index(tuple(above[:, column] for column in columns), self._sizes)

    def rows(self, places: Ints) -> NDArray[Any]:
        """Return the rows at these places, in the type of the rows that made the table."""
        rows = np.tile(self.low, (len(places), 1))
        if self._varying:
            columns = np.column_stack(np.unravel_index(places, self._sizes))
            rows[:, self._varying] += columns.astype(rows.dtype)
        return rows

    @property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(self.shape[column] for column in self._varying)

    @property
    def _varying(self) -> list[int]:
        """Columns of more than one number; numpy's own index takes no more than 64 columns."""
        return [column for column, size in enumerate(self.shape) if size > 1]


def row_table(rows: NDArray[Any], most: int) -> RowTable | None:
    """Return the table of these rows of whole numbers; None if it has more than `most` places."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    # Differences are taken between Python's integers, because numpy's may be too narrow for them.
    shape = tuple(int(last) - int(first) + 1 for first, last in zip(low, high, strict=True))
    table = RowTable(low, shape)
    return table if table.size <= most else None
