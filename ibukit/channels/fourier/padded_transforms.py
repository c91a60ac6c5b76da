"""Real fields on a padded grid and their spectra, in blocks of rows and strips of columns.

The first axis is transformed by strips of columns, the second by blocks of rows: each stays in the
cache while several things are done with it, and threads can share them. How they are cut depends on
sizes alone, so that whoever works on them gets the same bits.
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
# entries of a block or a strip, at most; and how many there must be in all for more than one to be
# cut
MAX_IN_A_CUT, WORTH_CUTTING = 2**18, 2**17
# columns that scipy transforms together
TOGETHER = 8


@dataclass(frozen=True)
class PaddedGrid:
    """A grid of some shape in a corner of a padded one, on which convolutions go round."""

    shape: tuple[int, int]
    lengths: tuple[int, int]

    @property
    def width(self) -> int:
        """Waves along the second axis, of which half are kept."""
        return self.lengths[1] // 2 + 1

    @cached_property
    def strips(self) -> list[slice]:
        """The columns of a spectrum, cut."""
        return cut(self.width, self.lengths[0] * self.width, TOGETHER)

    @cached_property
    def blocks(self) -> list[slice]:
        """The rows of the grid, cut."""
        return self.blocks_of(self.shape[0])

    def blocks_of(self, rows: int) -> list[slice]:
        """So many rows, cut."""
        return cut(rows, rows * self.lengths[1])

    def blank(self, rows: Ints | slice, precision: Any) -> list[Spectrum]:
        """Strips for a field whose second axis is transformed: zeros but for these rows, which are to be filled."""
        kind = np.result_type(precision, np.complex64)
        made = [
            np.empty((self.lengths[0], strip.stop - strip.start), kind) for strip in self.strips
        ]
        for strip in made:
            strip[rows.stop if isinstance(rows, slice) else 0 :] = 0
        return made

    def transform_rows(
        self, block: NDArray[Any], rows: Ints | slice, into: Sequence[Spectrum]
    ) -> None:
        """The second axis of some rows of a field, padded, to their place in the strips."""
        waves = fft.rfft(block, self.lengths[1], axis=1)
        for strip, columns in zip(into, self.strips, strict=True):
            strip[rows] = waves[:, columns]

    def rows_of(self, strips: Sequence[Spectrum], lines: slice) -> Floats:
        """The reverse: some rows of a field in all their length."""
        waves = (
            strips[0][lines]
            if len(strips) == 1
            else np.concatenate([strip[lines] for strip in strips], axis=1)
        )
        return np.asarray(fft.irfft(waves, self.lengths[1], axis=1))

    def kernel_strips(self, table: Floats, precision: Any) -> list[NDArray[Any]]:
        """A kernel's spectrum, see `kernel_spectrum`."""
        spectrum = kernel_spectrum(table, self.lengths)
        return [np.ascontiguousarray(spectrum[:, strip], dtype=precision) for strip in self.strips]


def cut(length: int, entries: int, together: int = 1) -> list[slice]:
    """An even number of slices of a length that stands for so many entries, or one; their edges come in multiples."""
    if entries < WORTH_CUTTING:
        return [slice(0, length)]
    pieces = 2 * math.ceil(entries / (2 * MAX_IN_A_CUT))
    edges = [
        min(length, together * round(i * length / (pieces * together))) for i in range(pieces)
    ] + [length]
    return [slice(start, stop) for start, stop in pairwise(edges) if start < stop]


def down(lines: Spectrum) -> Spectrum:
    """Transformed along the first axis; what is given is used up."""
    return np.asarray(fft.fft(lines, axis=0, overwrite_x=True))


def up(spectrum: Spectrum) -> Spectrum:
    """Transformed back along the first axis; what is given is used up."""
    return np.asarray(fft.ifft(spectrum, axis=0, overwrite_x=True))


def kernel_spectrum(table: Floats, lengths: tuple[int, int]) -> Floats:
    """The (real) spectrum of the even kernel with values table[|i|, |j|] at lags |i| < n, |j| < m, 0 beyond."""
    rows, cols = table.shape
    kernel = np.zeros(lengths)
    kernel[:rows, :cols] = table
    kernel[lengths[0] - rows + 1 :, :cols] = table[:0:-1]
    kernel[:, lengths[1] - cols + 1 :] = kernel[:, cols - 1 : 0 : -1]
    return np.ascontiguousarray(fft.rfft2(kernel).real)
