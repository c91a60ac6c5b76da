"""A field's convolution with one kernel read at a few cells: sums over what the kernel reaches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints


class All(NamedTuple):
    """The places of all reports of one kind."""

    reports: Ints


@dataclass(frozen=True, eq=False)
class FewCells:
    """Reports of one kind at a few cells, and the kernel's table of absolute offsets."""

    kind: int
    blocks: tuple[All]
    cells: Ints
    table: NDArray[Any]

    @classmethod
    def of(cls, kind: int, reports: Ints, cells: Ints, table: Floats, precision: Any) -> FewCells:
        """Of the reports at these places, and a kernel."""
        return cls(kind, (All(reports),), cells, table.astype(precision))

    def with_kernel(self, table: Floats) -> FewCells:
        """The same reports with another kernel."""
        return replace(self, table=table.astype(self.table.dtype))

    def read(self, field: NDArray[Any]) -> Floats:
        """The values at the cells."""
        reaches = self._reaches(slice(0, len(field)), field.shape[1])
        return np.array(
            [np.einsum("ij,ij", field[here], entries) for here, entries in reaches], field.dtype
        )

    def add(self, weights: Floats, rows: slice, field: NDArray[Any]) -> None:
        """The transpose: add to some rows of a field what weights at the cells bring to them, in place."""
        for weight, (here, entries) in zip(
            weights, self._reaches(rows, field.shape[1]), strict=True
        ):
            field[here] += weight * entries

    def _reaches(
        self, rows: slice, width: int
    ) -> Iterator[tuple[tuple[slice, slice], NDArray[Any]]]:
        """For each cell the part of some rows within its reach, counted from their first, and the entries there."""
        for row, column in self.cells.tolist():
            tall, wide = self.table.shape
            down = slice(max(rows.start, row - tall + 1), min(rows.stop, row + tall))
            along = slice(max(0, column - wide + 1), min(width, column + wide))
            if down.start >= down.stop or along.start >= along.stop:
                yield (slice(0, 0), slice(0, 0)), self.table[:0, :0]
                continue
            here = slice(down.start - rows.start, down.stop - rows.start), along
            yield here, _away(_away(self.table, down, row).T, along, column).T


def _away(table: NDArray[Any], lines: slice, at: int) -> NDArray[Any]:
    """The rows of a table for the distances of these lines from one; no copy where it is not among them."""
    if at <= lines.start:
        return table[lines.start - at : lines.stop - at]
    if at >= lines.stop - 1:
        return table[at - lines.stop + 1 : at - lines.start + 1][::-1]
    return np.asarray(table[np.abs(np.arange(lines.start, lines.stop) - at)])
