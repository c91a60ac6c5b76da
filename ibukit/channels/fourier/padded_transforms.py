"""Real fields on a padded grid and their spectra, in blocks of rows and strips of columns.

The first axis is transformed by strips of columns, the second by blocks of rows. Each piece stays
in the cache while several steps work on it, and threads can share the pieces. The cuts depend on
the sizes alone, so the results are the same to the last bit on every machine and with every number
of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ibukit._ground.arguments import Floats, Ints

Spectrum = NDArray[np.complexfloating]
# Largest number of entries of a block or strip: 2 MB of doubles, which fit into the cache of a
# core.
MAX_SLICE_ENTRIES = 2**18
# Entries below which a field stays in one piece: cutting it costs more than the cache saves.
MIN_ENTRIES_TO_SLICE = 2**17
# Columns that scipy transforms together, by the vector registers of the processor. The edges of
# strips are multiples of it.
COLUMNS_TOGETHER = 8


@dataclass(frozen=True)
class PaddedGrid:
    """A grid of `shape` in the corner of a periodic grid of `lengths`.

    On the periodic grid a convolution is a product of spectra. Offsets that wrap around fall into
    the padding and do not reach the grid.
    """

    shape: tuple[int, int]
    lengths: tuple[int, int]

    @property
    def width(self) -> int:
        """Frequencies along the second axis: a real field needs only the non-negative ones."""
        return self.lengths[1] // 2 + 1

    @cached_property
    def strips(self) -> list[slice]:
        """Slices of the columns of a spectrum."""
        return even_slices(self.width, self.lengths[0] * self.width, COLUMNS_TOGETHER)

    @cached_property
    def blocks(self) -> list[slice]:
        """Slices of the rows of the grid."""
        return self.row_blocks(self.shape[0])

    def row_blocks(self, n_rows: int) -> list[slice]:
        """Slices of `n_rows` rows of padded length."""
        return even_slices(n_rows, n_rows * self.lengths[1])

    def empty_strips(self, rows: Ints | slice, precision: Any) -> list[Spectrum]:
        """Strips of a spectrum whose `rows` the caller is to fill; the other rows are 0."""
        kind = np.result_type(precision, np.complex64)
        strips = [
            np.empty((self.lengths[0], strip.stop - strip.start), kind) for strip in self.strips
        ]
        for strip in strips:
            strip[rows.stop if isinstance(rows, slice) else 0 :] = 0
        return strips

    def transform_rows(
        self, block: NDArray[Any], rows: Ints | slice, into: Sequence[Spectrum]
    ) -> None:
        """Transform a block along the second axis, padded, into `rows` of the strips."""
        # rfft pads the rows with zeros to the length of the periodic grid.
        spectrum = fft.rfft(block, self.lengths[1], axis=1)
        for strip, columns in zip(into, self.strips, strict=True):
            strip[rows] = spectrum[:, columns]

    def inverse_rows(self, strips: Sequence[Spectrum], rows: slice) -> Floats:
        """Transform `rows` of the strips back along the second axis, at padded length."""
        spectrum = (
            strips[0][rows]
            if len(strips) == 1
            else np.concatenate([strip[rows] for strip in strips], axis=1)
        )
        return fft.irfft(spectrum, self.lengths[1], axis=1)

    def kernel_strips(self, table: Floats, precision: Any) -> list[NDArray[Any]]:
        """Strips of a kernel's spectrum, see `kernel_spectrum`."""
        spectrum = kernel_spectrum(table, self.lengths)
        return [np.ascontiguousarray(spectrum[:, strip], dtype=precision) for strip in self.strips]


def even_slices(length: int, entries: int, multiple: int = 1) -> list[slice]:
    """Cut `length` lines with `entries` numbers in all into an even number of slices, or one.

    The number is even so that two threads have equal shares. Edges are multiples of `multiple`.
    """
    if entries < MIN_ENTRIES_TO_SLICE:
        return [slice(0, length)]
    # Edges are rounded to multiples, so slices may differ by one multiple or be empty.
    pieces = 2 * math.ceil(entries / (2 * MAX_SLICE_ENTRIES))
    edges = [
        min(length, multiple * round(i * length / (pieces * multiple))) for i in range(pieces)
    ] + [length]
    return [slice(start, stop) for start, stop in pairwise(edges) if start < stop]


def fft_columns(rows: Spectrum) -> Spectrum:
    """Transform along the first axis; the argument is overwritten."""
    return fft.fft(rows, axis=0, overwrite_x=True)


def ifft_columns(spectrum: Spectrum) -> Spectrum:
    """Transform back along the first axis; the argument is overwritten."""
    return fft.ifft(spectrum, axis=0, overwrite_x=True)


def kernel_spectrum(table: Floats, lengths: tuple[int, int]) -> Floats:
    """Spectrum of the even kernel table[|i|, |j|], which is 0 beyond the table.

    An even kernel has a real spectrum, so the transform of the field keeps its phase.
    """
    rows, cols = table.shape
    kernel = np.zeros(lengths)
    # Negative offsets stand at the end of the periodic axes.
    kernel[:rows, :cols] = table
    kernel[lengths[0] - rows + 1 :, :cols] = table[:0:-1]
    kernel[:, lengths[1] - cols + 1 :] = kernel[:, cols - 1 : 0 : -1]
    return np.ascontiguousarray(fft.rfft2(kernel).real)
