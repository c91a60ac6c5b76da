"""Convolution of a field with one kernel at cells in a few rows or columns.

Reports on the border of a grid have kernels of their own. Along the border a Fourier transform
serves. Across it a few lines need none. For rows, the rows of the field within the kernel's reach,
which are transformed along the second axis already, are multiplied by the kernel's spectrum at
their distance and summed. For columns, the inverse transform along the second axis is evaluated at
these columns alone: a sum over the frequencies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels.fourier.padded_transforms import PaddedGrid, Spectrum


class LineBlock(NamedTuple):
    """All reports of one kind: their indices, the number of their line, and the place along it."""

    reports: Ints
    line: Ints
    place: Ints


@dataclass(frozen=True, eq=False)
class FewRows:
    """Reports of one kind in a few rows.

    `spectrum` is the kernel's spectrum along the rows, with one row for each distance across them.
    """

    kind: int
    padded: PaddedGrid
    rows: tuple[int, ...]
    blocks: tuple[LineBlock]
    spectrum: NDArray[Any]

    @classmethod
    def of(
        cls,
        kind: int,
        padded: PaddedGrid,
        reports: Ints,
        cells: Ints,
        table: Floats,
        precision: Any,
    ) -> FewRows:
        """Build the piece from the indices and cells of its reports, and a kernel's table.

        Rows are numbered as those of the field are, and may lie outside it.
        """
        rows, row = np.unique(cells[:, 0], return_inverse=True)
        block = LineBlock(reports, row, cells[:, 1] % padded.lengths[1])
        few = cls(kind, padded, tuple(rows.tolist()), (block,), np.empty((0, 0), precision))
        return few.with_kernel(table)

    def with_kernel(self, table: Floats) -> FewRows:
        """Replace the kernel."""
        # The kernel is even along the rows: negative offsets stand at the end of the periodic axis.
        even = np.zeros((len(table), self.padded.lengths[1]))
        even[:, : table.shape[1]] = table
        even[:, self.padded.lengths[1] - table.shape[1] + 1 :] = table[:, :0:-1]
        return replace(self, spectrum=fft.rfft(even, axis=1).real.astype(self.spectrum.dtype))

    def forward_strip(self, number: int, strip: Spectrum) -> Spectrum:
        """A strip of the few rows from that of the field, both transformed along axis 1."""
        sums = np.zeros((len(self.rows), strip.shape[1]), strip.dtype)
        for row, reached, spectrum in self._overlaps:
            # The kernel's spectrum is real, so real and imaginary parts are two real sums.
            parts = strip[reached].view(spectrum.dtype).reshape(len(spectrum), -1, 2)
            sums[row] += (
                np.einsum("rwc,rw->wc", parts, spectrum[:, self.padded.strips[number]])
                .ravel()
                .view(sums.dtype)
            )
        return sums

    def gather(self, strips: Sequence[Spectrum], block: LineBlock) -> Floats:
        """Values at the cells, from the strips of `forward_strip`."""
        rows = fft.irfft(np.concatenate(strips, axis=1), self.padded.lengths[1], axis=1)
        return rows[block.line, block.place]

    def scatter(self, weights: NDArray[Any], block: LineBlock) -> Spectrum:
        """The few rows with weights at the cells, transformed along the second axis."""
        return fft.rfft(_sums_in_lines(weights, block, len(self.rows), self.padded.lengths[1]))

    def adjoint_strip(self, number: int, scattered: Spectrum, strip: Spectrum) -> None:
        """Add what the few rows contribute to a strip of the field, in place."""
        own = scattered[:, self.padded.strips[number]]
        for row, reached, spectrum in self._overlaps:
            strip[reached] += spectrum[:, self.padded.strips[number]] * own[row]

    @cached_property
    def _overlaps(self) -> list[tuple[int, slice, NDArray[Any]]]:
        """For each of the few rows: rows of the field within reach, and the kernel's spectra there.

        The field's rows before that row and those from it onwards come separately, so that both are
        slices of the spectrum.
        """
        return list(self._iterate_overlaps())

    def _iterate_overlaps(self) -> Iterator[tuple[int, slice, NDArray[Any]]]:
        reach, height = len(self.spectrum), self.padded.shape[0]
        for number, row in enumerate(self.rows):
            # The field has rows 0..height - 1; the few rows may be outside.
            start, stop = max(0, row - reach + 1), min(height, row + reach)
            middle = min(max(row, start), stop)
            if start < middle:
                before = self.spectrum[row - middle + 1 : row - start + 1][::-1]
                yield number, slice(start, middle), before
            if middle < stop:
                yield number, slice(middle, stop), self.spectrum[middle - row : stop - row]


@dataclass(frozen=True, eq=False)
class FewColumns:
    """Reports of one kind in a few columns, and the kernel's spectrum in strips.

    `waves` has a row for each column: exp(2 pi i column frequency / length).
    """

    kind: int
    padded: PaddedGrid
    blocks: tuple[LineBlock]
    waves: Spectrum
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
    ) -> FewColumns:
        """Build the piece from the indices and cells of its reports, and a kernel's table.

        Cells are counted modulo the padded lengths.
        """
        columns, column = np.unique(cells[:, 1], return_inverse=True)
        block = LineBlock(reports, column, cells[:, 0] % padded.lengths[0])
        # Whole numbers are reduced before they become an angle, so that each wave is exact to
        # rounding.
        turns = np.outer(columns, np.arange(padded.width)) % padded.lengths[1] / padded.lengths[1]
        waves = np.exp(2j * np.pi * turns).astype(np.result_type(precision, np.complex64))
        return cls(kind, padded, (block,), waves, padded.kernel_strips(table, precision))

    def with_kernel(self, table: Floats) -> FewColumns:
        """Replace the kernel."""
        return replace(self, spectrum=self.padded.kernel_strips(table, self.spectrum[0].dtype))

    def forward_strip(self, number: int, spectrum: Spectrum) -> Spectrum:
        """Contribution of a strip of a field's spectrum to the few columns' transforms."""
        return (spectrum * self.spectrum[number]) @ self._inverse[self.padded.strips[number]]

    def gather(self, strips: Sequence[Spectrum], block: LineBlock) -> Floats:
        """Values at the cells, from the strips of `forward_strip`."""
        return fft.ifft(np.sum(strips, axis=0), axis=0).real[block.place, block.line]

    def scatter(self, weights: NDArray[Any], block: LineBlock) -> Spectrum:
        """The few columns with weights at the cells, transformed along the first axis."""
        return fft.fft(_sums_in_lines(weights, block, len(self.waves), self.padded.lengths[0])).T

    def adjoint_strip(self, number: int, scattered: Spectrum) -> Spectrum:
        """A strip of what the few columns contribute to the spectrum of the field."""
        # The forward transform at a few columns: a sum over them for each frequency.
        product = scattered @ self.waves[:, self.padded.strips[number]].conj()
        product *= self.spectrum[number]
        return product

    @cached_property
    def _inverse(self) -> Spectrum:
        """Matrix of the inverse real transform along axis 1 at the few columns.

        Each frequency also stands for its mirror image, but the constant and, if the length is
        even, the highest frequency have none.
        """
        length = self.padded.lengths[1]
        weight = np.full(self.padded.width, 2 / length, self.waves.real.dtype)
        weight[0] /= 2
        if length % 2 == 0:
            weight[-1] /= 2
        return np.ascontiguousarray((self.waves * weight).T)


def _sums_in_lines(
    weights: NDArray[Any], block: LineBlock, n_lines: int, length: int
) -> NDArray[Any]:
    """Weights added up at their places in lines of padded length, shape (n_lines, length)."""
    sums = np.bincount(block.line * length + block.place, weights, n_lines * length)
    return sums.astype(weights.dtype).reshape(n_lines, length)
