"""Convolution of a field with one kernel at a few cells: direct sums over the kernel's reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints


class CellBlock(NamedTuple):
    """Indices of all reports of one kind."""

    reports: Ints


@dataclass(frozen=True, eq=False)
class FewCells:
    """Reports of one kind at a few cells, and the kernel's table of absolute offsets."""

    kind: int
    blocks: tuple[CellBlock]
    cells: Ints
    table: NDArray[Any]

    @classmethod
    def of(cls, kind: int, reports: Ints, cells: Ints, table: Floats, precision: Any) -> FewCells:
        """Build the piece from the indices and cells of its reports, and a kernel."""
        return cls(kind, (CellBlock(reports),), cells, table.astype(precision))

    def with_kernel(self, table: Floats) -> FewCells:
        """Replace the kernel."""
        return replace(self, table=table.astype(self.table.dtype))

    def gather(self, field: NDArray[Any]) -> Floats:
        """Values of the convolution at the cells."""
        windows = self._windows(slice(0, len(field)), field.shape[1])
        return np.array(
            [np.einsum("ij,ij", field[window], entries) for window, entries in windows], field.dtype
        )

    def scatter(self, weights: Floats, rows: slice, field: NDArray[Any]) -> None:
        """Add weights at the cells, spread by the kernel, to `rows` of a field: the transpose."""
        for weight, (window, entries) in zip(
            weights, self._windows(rows, field.shape[1]), strict=True
        ):
            field[window] += weight * entries

    def _windows(
        self, rows: slice, width: int
    ) -> Iterator[tuple[tuple[slice, slice], NDArray[Any]]]:
        """For each cell the window of the field that its kernel reaches, and the kernel there.

        Windows are cut to `rows` and counted from the first of these.
        """
        for row, column in self.cells.tolist():
            # The table holds offsets 0..tall - 1 and 0..wide - 1 in both directions.
            tall, wide = self.table.shape
            down = slice(max(rows.start, row - tall + 1), min(rows.stop, row + tall))
            along = slice(max(0, column - wide + 1), min(width, column + wide))
            if down.start >= down.stop or along.start >= along.stop:
                yield (slice(0, 0), slice(0, 0)), self.table[:0, :0]
                continue
            window = slice(down.start - rows.start, down.stop - rows.start), along
            yield window, _at_distances(_at_distances(self.table, down, row).T, along, column).T


def _at_distances(table: NDArray[Any], lines: slice, origin: int) -> NDArray[Any]:
    """Rows |line - origin| of a table; a view unless the origin is among the lines."""
    if origin <= lines.start:
        return table[lines.start - origin : lines.stop - origin]
    if origin >= lines.stop - 1:
        return table[origin - lines.stop + 1 : origin - lines.start + 1][::-1]
    return table[np.abs(np.arange(lines.start, lines.stop) - origin)]
