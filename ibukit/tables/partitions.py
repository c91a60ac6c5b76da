"""Frames of Dask: the workers count, each its partitions, and add the counts up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import narwhals as nw
import numpy as np

from ibukit._ground.typing import override
from ibukit.tables.columns import Columns, Piece
from ibukit.tables.table import Source

# counts of so many partitions are added at once
ADDED_AT_ONCE = 16


class Partitions(Source):
    """A frame of Dask, whose partitions are frames of pandas.

    narwhals is handing Dask over to a package of its own; frames of pandas it keeps.
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        if not frame.columns.is_unique:
            raise ValueError(f"table must have columns of different names, it has {self.names}")

    @property
    @override
    def names(self) -> list[str]:
        return list(self._frame.columns)

    @override
    def pieces(self, columns: Columns) -> Iterator[Piece]:
        import dask

        # only these columns are read, where Dask reads files
        parts = self._frame[columns.wanted].to_delayed()
        if not self._surely_repeat(columns):
            take = dask.delayed(_piece)
            yield from dask.compute(*(take(part, columns) for part in parts))
            return
        count, add = dask.delayed(_grouped), dask.delayed(_added)
        level = [count(part, columns) for part in parts]
        while len(level) > 1:
            groups = [
                level[start : start + ADDED_AT_ONCE]
                for start in range(0, len(level), ADDED_AT_ONCE)
            ]
            level = [add(group, columns) for group in groups]
        (rows,) = dask.compute(*level)
        yield columns.piece(_of_pandas(rows))

    def _surely_repeat(self, columns: Columns) -> bool:
        """Whether reports repeat; Python's objects may be lists, which only a partition can tell."""
        if len(columns.report) == 1 and isinstance(
            self._frame.dtypes[columns.report[0]], np.dtypes.ObjectDType
        ):
            return False
        return columns.worth_grouping(columns.named(nw.from_native(self._frame._meta)))


def _of_pandas(rows: Any) -> nw.DataFrame[Any]:
    return nw.from_native(rows, eager_only=True)


def _piece(partition: Any, columns: Columns) -> Piece:
    named = columns.named(_of_pandas(partition))
    return columns.piece(columns.grouped(named) if columns.worth_grouping(named) else named)


def _grouped(partition: Any, columns: Columns) -> Any:
    return columns.grouped(columns.named(_of_pandas(partition))).to_native()


def _added(parts: list[Any], columns: Columns) -> Any:
    """The sum of several counts; empty ones have types of their own."""
    some = [part for part in parts if len(part)] or parts[:1]
    return columns.added([_of_pandas(part) for part in some]).to_native()
