"""A field's convolution with one kernel read at cells all over the place, by fast transforms along both axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels.fourier.padded_transforms import PaddedGrid, Spectrum, down, up


class Block(NamedTuple):
    """Some of the rows that have cells, the places of these cells' reports, and where in the rows they are."""

    lines: slice
    reports: Ints | slice
    at: Ints


@dataclass(frozen=True, eq=False)
class ScatteredCells:
    """Reports of one kind: the rows of their cells, in blocks, and their kernel's spectrum in strips."""

    kind: int
    padded: PaddedGrid
    rows: Ints | slice
    blocks: tuple[Block, ...]
    are_distinct: bool
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
        """Of the reports at these places, whose cells are counted modulo the lengths, and a kernel's table."""
        width = padded.lengths[1]
        rows, row = np.unique(cells[:, 0] % padded.lengths[0], return_inverse=True)
        order = np.argsort(row, kind="stable")
        reports, row, col = reports[order], row[order], cells[order, 1] % width
        blocks = []
        for lines in padded.blocks_of(len(rows)):
            start, stop = np.searchsorted(row, (lines.start, lines.stop))
            at = (row[start:stop] - lines.start) * width + col[start:stop]
            blocks.append(Block(lines, _as_slice(reports[start:stop]), at))
        distinct = all(len(np.unique(block.at)) == len(block.at) for block in blocks)
        first = len(rows) == rows[-1] + 1
        spectrum = padded.kernel_strips(table, precision)
        return cls(
            kind, padded, slice(0, len(rows)) if first else rows, tuple(blocks), distinct, spectrum
        )

    def with_kernel(self, table: Floats) -> ScatteredCells:
        """The same reports with another kernel."""
        return replace(self, spectrum=self.padded.kernel_strips(table, self.spectrum[0].dtype))

    def blank(self, precision: Any) -> list[Spectrum]:
        """Strips for what `drop` is to fill."""
        return self.padded.blank(self.rows, precision)

    def pass_on(self, number: int, waves: Spectrum) -> Spectrum:
        """A strip of a field's spectrum through the kernel, and back along the first axis where there are cells."""
        return up(waves * self.spectrum[number])[self.rows]

    def read(self, strips: Sequence[Spectrum], block: Block) -> Floats:
        """The values at a block's cells, of strips that were passed on."""
        return np.asarray(self.padded.rows_of(strips, block.lines).ravel()[block.at])

    def drop(self, weights: Floats, block: Block, into: Sequence[Spectrum]) -> None:
        """The transpose of `read`: weights at the block's cells, 0 elsewhere, transformed along the second axis."""
        field: NDArray[Any] = np.zeros(
            (block.lines.stop - block.lines.start, self.padded.lengths[1]), weights.dtype
        )
        if self.are_distinct:
            field.ravel()[block.at] = weights
        else:
            np.add.at(field.ravel(), block.at, weights)
        rows = block.lines if isinstance(self.rows, slice) else self.rows[block.lines]
        self.padded.transform_rows(field, rows, into)

    def pass_back(self, number: int, strip: Spectrum) -> Spectrum:
        """The transpose of `pass_on`, but for the way back along the first axis; the strip is used up."""
        spread = down(strip)
        spread *= self.spectrum[number]
        return spread


def _as_slice(places: Ints) -> Ints | slice:
    """Places one after the other as a slice, which takes no copy."""
    if len(places) and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places
