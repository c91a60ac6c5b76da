"""Frames of Dask: workers count their partitions and add the counts up in a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import narwhals as nw
import numpy as np

from ibukit._ground.typing import override
from ibukit.tables.columns import Columns, Piece
from ibukit.tables.table import ReportTable

# Number of counted partitions that one task adds up: a tree of this width needs few levels, and
# each task holds few tables.
PARTS_PER_SUM = 16


class Partitions(ReportTable):
    """A frame of Dask, whose partitions are frames of pandas.

    narwhals is moving its support for Dask to another package; its support for pandas stays.
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        if not frame.columns.is_unique:
            raise ValueError(f"table must have columns of different names, but has {self.names}")

    @property
    @override
    def names(self) -> list[str]:
        return list(self._frame.columns)

    @override
    def pieces(self, columns: Columns) -> Iterator[Piece]:
        import dask

        # Selecting the columns first lets Dask read only these from files.
        parts = self._frame[columns.wanted].to_delayed()
        if not self._repeat_for_certain(columns):
            # Reports that hardly repeat are fetched as they are, one piece for each partition.
            take = dask.delayed(_piece)
            yield from dask.compute(*(take(part, columns) for part in parts))
            return
        count, add = dask.delayed(_grouped), dask.delayed(_added)
        # Each round adds up groups of counted partitions, until one table is left.
        level = [count(part, columns) for part in parts]
        while len(level) > 1:
            groups = [
                level[start : start + PARTS_PER_SUM]
                for start in range(0, len(level), PARTS_PER_SUM)
            ]
            level = [add(group, columns) for group in groups]
        (rows,) = dask.compute(*level)
        yield columns.piece(_of_pandas(rows))

    def _repeat_for_certain(self, columns: Columns) -> bool:
        """Return whether grouping pays in every partition."""
        # A column of Python objects may hold lists, which only the partitions can tell.
        if len(columns.report) == 1 and isinstance(
            self._frame.dtypes[columns.report[0]], np.dtypes.ObjectDType
        ):
            return False
        # Dask keeps an empty frame with the types of the columns.
        return columns.worth_grouping(columns.named(nw.from_native(self._frame._meta)))


def _of_pandas(rows: Any) -> nw.DataFrame[Any]:
    return nw.from_native(rows, eager_only=True)


def _piece(partition: Any, columns: Columns) -> Piece:
    named = columns.named(_of_pandas(partition))
    return columns.piece(columns.grouped(named) if columns.worth_grouping(named) else named)


def _grouped(partition: Any, columns: Columns) -> Any:
    return columns.grouped(columns.named(_of_pandas(partition))).to_native()


def _added(parts: list[Any], columns: Columns) -> Any:
    """Return the sum of several counts."""
    # Empty partitions are left out, because the types of their columns may differ.
    nonempty = [part for part in parts if len(part)] or parts[:1]
    return columns.added([_of_pandas(part) for part in nonempty]).to_native()
