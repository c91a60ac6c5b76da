"""Convolution of a field with one kernel at scattered cells, by transforms along both axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels.fourier.padded_transforms import (
    PaddedGrid,
    Spectrum,
    fft_columns,
    ifft_columns,
)


class RowBlock(NamedTuple):
    """A slice of the rows that have cells, the reports there, and their flat places in it."""

    rows: slice
    reports: Ints | slice
    places: Ints


@dataclass(frozen=True, eq=False)
class ScatteredCells:
    """Reports of one kind: the rows of their cells, in blocks, and the kernel's spectrum in strips.

    A strip of the field's spectrum is multiplied by the kernel's and transformed back along the
    first axis. Only rows that have cells are then transformed back along the second.
    """

    kind: int
    padded: PaddedGrid
    rows: Ints | slice
    blocks: tuple[RowBlock, ...]
    are_distinct: bool
    """True if no two reports of a block have the same cell, so that weights need not be summed."""
    spectrum: Sequence[NDArray[Any]]

    @classmethod
    def of(
        cls,
        kind: int,
        padded: PaddedGrid,
        reports: Ints,
        cells: Ints,
        table: Floats,
        precision: Any,
    ) -> ScatteredCells:
        """Build the piece from the indices and cells of its reports, and a kernel's table.

        Cells are counted modulo the padded lengths.
        """
        width = padded.lengths[1]
        rows, row = np.unique(cells[:, 0] % padded.lengths[0], return_inverse=True)
        # Sorted by row, the reports of a block of rows are consecutive.
        order = np.argsort(row, kind="stable")
        reports, row, col = reports[order], row[order], cells[order, 1] % width
        blocks = []
        for block in padded.row_blocks(len(rows)):
            start, stop = np.searchsorted(row, (block.start, block.stop))
            places = (row[start:stop] - block.start) * width + col[start:stop]
            blocks.append(RowBlock(block, _as_slice(reports[start:stop]), places))
        distinct = all(len(np.unique(block.places)) == len(block.places) for block in blocks)
        # Rows 0, 1, ... are a slice, which needs no copy.
        all_rows = slice(0, len(rows)) if len(rows) == rows[-1] + 1 else rows
        spectrum = padded.kernel_strips(table, precision)
        return cls(kind, padded, all_rows, tuple(blocks), distinct, spectrum)

    def with_kernel(self, table: Floats) -> ScatteredCells:
        """Replace the kernel."""
        return replace(self, spectrum=self.padded.kernel_strips(table, self.spectrum[0].dtype))

    def empty_strips(self, precision: Any) -> list[Spectrum]:
        """Strips that `scatter` is to fill."""
        return self.padded.empty_strips(self.rows, precision)

    def forward_strip(self, number: int, spectrum: Spectrum) -> Spectrum:
        """Multiply a strip of a field's spectrum by the kernel's; transform it back to the rows."""
        return ifft_columns(spectrum * self.spectrum[number])[self.rows]

    def gather(self, strips: Sequence[Spectrum], block: RowBlock) -> Floats:
        """Values at a block's cells, from the strips of `forward_strip`."""
        return self.padded.inverse_rows(strips, block.rows).ravel()[block.places]

    def scatter(self, weights: Floats, block: RowBlock, into: Sequence[Spectrum]) -> None:
        """Transform weights at a block's cells along the second axis: the transpose of `gather`."""
        field: NDArray[Any] = np.zeros(
            (block.rows.stop - block.rows.start, self.padded.lengths[1]), weights.dtype
        )
        if self.are_distinct:
            field.ravel()[block.places] = weights
        else:
            np.add.at(field.ravel(), block.places, weights)
        rows = block.rows if isinstance(self.rows, slice) else self.rows[block.rows]
        self.padded.transform_rows(field, rows, into)

    def adjoint_strip(self, number: int, strip: Spectrum) -> Spectrum:
        """Multiply a scattered strip, transformed along the first axis, by the kernel's spectrum.

        This is the transpose of `forward_strip`, except for the inverse transform along the first
        axis, which all kinds share. The strip is overwritten.
        """
        product = fft_columns(strip)
        product *= self.spectrum[number]
        return product


def _as_slice(places: Ints) -> Ints | slice:
    """Consecutive places as a slice, which needs no copy."""
    if len(places) and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places
