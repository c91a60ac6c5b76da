"""A field's convolution with one kernel read in a few of its rows or columns: along them by a Fourier transform.

Reports on the border of a grid have kernels of their own. Across the border a few lines take no
transform: rows add up the rows of the field that their kernel reaches, which are transformed along
the other axis already, and columns add up waves.
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


class Cells(NamedTuple):
    """All reports of one kind: their places, which of the few lines each is in, and where along it."""

    reports: Ints
    line: Ints
    at: Ints


@dataclass(frozen=True, eq=False)
class FewRows:
    """Reports of one kind in a few rows; `waves` is the kernel's spectrum along them, for each distance across."""

    kind: int
    padded: PaddedGrid
    rows: tuple[int, ...]
    blocks: tuple[Cells]
    waves: NDArray[Any]

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
        """Of the reports at these places, whose rows are those of the field and need not be inside."""
        rows, row = np.unique(cells[:, 0], return_inverse=True)
        own = Cells(reports, row, cells[:, 1] % padded.lengths[1])
        few = cls(kind, padded, tuple(rows.tolist()), (own,), np.empty((0, 0), precision))
        return few.with_kernel(table)

    def with_kernel(self, table: Floats) -> FewRows:
        """The same reports with another kernel."""
        even = np.zeros((len(table), self.padded.lengths[1]))
        even[:, : table.shape[1]] = table
        even[:, self.padded.lengths[1] - table.shape[1] + 1 :] = table[:, :0:-1]
        return replace(self, waves=fft.rfft(even, axis=1).real.astype(self.waves.dtype))

    def take(self, number: int, lines: Spectrum) -> Spectrum:
        """A strip of the few, transformed along the second axis only, from that of the field."""
        sums = np.zeros((len(self.rows), lines.shape[1]), lines.dtype)
        for row, reached, waves in self._meetings:
            # real and imaginary parts apart: the kernel has none of the latter
            parts = lines[reached].view(waves.dtype).reshape(len(waves), -1, 2)
            sums[row] += (
                np.einsum("rwc,rw->wc", parts, waves[:, self.padded.strips[number]])
                .ravel()
                .view(sums.dtype)
            )
        return sums

    def read(self, strips: Sequence[Spectrum], cells: Cells) -> Floats:
        """The values at the cells, of strips that were taken."""
        return np.asarray(
            fft.irfft(np.concatenate(strips, axis=1), self.padded.lengths[1], axis=1)[
                cells.line, cells.at
            ]
        )

    def drop(self, weights: NDArray[Any], cells: Cells) -> Spectrum:
        """The few rows with weights at the cells, transformed along the second axis."""
        return np.asarray(
            fft.rfft(_dropped(weights, cells, (len(self.rows), self.padded.lengths[1])), axis=1)
        )

    def give(self, number: int, dropped: Spectrum, lines: Spectrum) -> None:
        """The transpose of `take`: added to a strip of the field, in place."""
        own = dropped[:, self.padded.strips[number]]
        for row, reached, waves in self._meetings:
            lines[reached] += waves[:, self.padded.strips[number]] * own[row]

    @cached_property
    def _meetings(self) -> list[tuple[int, slice, NDArray[Any]]]:
        """Which of the few meets which rows of the field with which waves: those before it, and those after it."""
        return list(self._met())

    def _met(self) -> Iterator[tuple[int, slice, NDArray[Any]]]:
        reach, height = len(self.waves), self.padded.shape[0]
        for number, row in enumerate(self.rows):
            start, stop = max(0, row - reach + 1), min(height, row + reach)
            here = min(max(row, start), stop)
            if start < here:
                yield number, slice(start, here), self.waves[row - here + 1 : row - start + 1][::-1]
            if here < stop:
                yield number, slice(here, stop), self.waves[here - row : stop - row]


@dataclass(frozen=True, eq=False)
class FewColumns:
    """Reports of one kind in a few columns, whose waves have a row for each; and the kernel's spectrum in strips."""

    kind: int
    padded: PaddedGrid
    blocks: tuple[Cells]
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
        """Of the reports at these places, whose cells are counted modulo the lengths."""
        columns, column = np.unique(cells[:, 1], return_inverse=True)
        own = Cells(reports, column, cells[:, 0] % padded.lengths[0])
        # whole numbers are reduced before they become an angle, so that every wave is exact to
        # rounding
        turns = np.outer(columns, np.arange(padded.width)) % padded.lengths[1] / padded.lengths[1]
        waves = np.exp(2j * np.pi * turns).astype(np.result_type(precision, np.complex64))
        return cls(kind, padded, (own,), waves, padded.kernel_strips(table, precision))

    def with_kernel(self, table: Floats) -> FewColumns:
        """The same reports with another kernel."""
        return replace(self, spectrum=self.padded.kernel_strips(table, self.spectrum[0].dtype))

    def pass_on(self, number: int, waves: Spectrum) -> Spectrum:
        """What a strip of a field's spectrum adds to the few, still transformed along the first axis."""
        return np.asarray(
            (waves * self.spectrum[number]) @ self._weighted[self.padded.strips[number]]
        )

    def read(self, strips: Sequence[Spectrum], cells: Cells) -> Floats:
        """The values at the cells, of strips that were passed on."""
        return np.asarray(fft.ifft(np.sum(strips, axis=0), axis=0).real[cells.at, cells.line])

    def drop(self, weights: NDArray[Any], cells: Cells) -> Spectrum:
        """The few columns with weights at the cells, transformed along the first axis."""
        return np.asarray(
            fft.fft(_dropped(weights, cells, (len(self.waves), self.padded.lengths[0])), axis=1).T
        )

    def pass_back(self, number: int, dropped: Spectrum) -> Spectrum:
        """A strip of what they bring to the spectrum of the field."""
        spread = dropped @ self.waves[:, self.padded.strips[number]].conj()
        spread *= self.spectrum[number]
        return np.asarray(spread)

    @cached_property
    def _weighted(self) -> Spectrum:
        """Each wave stands for its mirror image, too, but the constant and the fastest one are their own."""
        length = self.padded.lengths[1]
        weight = np.full(self.padded.width, 2 / length, self.waves.real.dtype)
        weight[0] /= 2
        if length % 2 == 0:
            weight[-1] /= 2
        return np.ascontiguousarray((self.waves * weight).T)


def _dropped(weights: NDArray[Any], cells: Cells, shape: tuple[int, int]) -> NDArray[Any]:
    """Weights added up in lines of that length."""
    sums = np.bincount(cells.line * shape[1] + cells.at, weights, shape[0] * shape[1])
    return np.asarray(sums.astype(weights.dtype).reshape(shape))
