"""Circular convolutions on a padded grid, read off (or dropped) at chosen cells.

Three ways to read a spectrum: everywhere, or, where all the cells lie in a few rows or columns (the border of a grid),
by summing the waves along one axis directly and transforming along the other only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ibukit._validate import Floats, Ints

Spectrum = NDArray[np.complexfloating]
Float = type[np.float64] | type[np.float32]
MOST_LINES_BY_WAVES = 4


class Reader(Protocol):
    """Values of a field at some cells, and the transpose."""

    def read(self, spectrum: Spectrum) -> Floats:
        """The values at the cells of a field given by its spectrum, which may be used up."""

    def drop(self, weights: Floats) -> Spectrum:
        """The spectrum of the field that has these weights at the cells and is 0 elsewhere."""


def spectrum_of(field: NDArray[Any], lengths: tuple[int, int]) -> Spectrum:
    """Half of the spectrum of a real field, padded by zeros."""
    lines = fft.rfft(field, lengths[1], axis=1)
    return _padded(lines, slice(len(lines)), lengths)


def _padded(lines: Spectrum, rows: Ints | slice, lengths: tuple[int, int]) -> Spectrum:
    """Transformed along the second axis already: the rows between these are zeros, and are so afterwards."""
    spectrum = np.zeros((lengths[0], lines.shape[1]), lines.dtype)
    spectrum[rows] = lines
    return np.asarray(fft.fft(spectrum, axis=0, overwrite_x=True))


def added(spectra: Iterable[Spectrum], lengths: tuple[int, int]) -> Spectrum:
    """Their sum, which takes the place of the first; zeros if there are none."""
    total: Spectrum | None = None
    for spectrum in spectra:
        if total is None:
            total = spectrum
        else:
            total += spectrum
        del spectrum  # or it would be held while the next is made
    return np.zeros((lengths[0], lengths[1] // 2 + 1), complex) if total is None else total


def field_of(spectrum: Spectrum, lengths: tuple[int, int], shape: tuple[int, int]) -> Floats:
    """The south-west corner of the field with a given spectrum, which is used up."""
    lines = fft.ifft(spectrum, axis=0, overwrite_x=True)[: shape[0]]
    return np.asarray(fft.irfft(lines, lengths[1], axis=1, overwrite_x=True)[:, : shape[1]])


def kernel_spectrum(table: Floats, lengths: tuple[int, int]) -> Floats:
    """The (real) spectrum of the even kernel with values table[|i|, |j|] at lags |i| < n, |j| < m, 0 beyond."""
    rows, cols = table.shape
    kernel = np.zeros(lengths)
    kernel[:rows, :cols] = table
    kernel[lengths[0] - rows + 1 :, :cols] = table[:0:-1]
    kernel[:, lengths[1] - cols + 1 :] = kernel[:, cols - 1 : 0 : -1]
    return np.ascontiguousarray(fft.rfft2(kernel).real)


def reader(cells: Ints, lengths: tuple[int, int], precision: Float = np.float64) -> Reader:
    """The cheapest way to read a field at given cells (counted modulo the lengths)."""
    rows, row = np.unique(cells[:, 0] % lengths[0], return_inverse=True)
    cols, col = np.unique(cells[:, 1] % lengths[1], return_inverse=True)
    if min(len(rows), len(cols)) > MOST_LINES_BY_WAVES:
        return Everywhere.of(rows, row, cols[col], lengths, precision)
    if len(rows) <= len(cols):
        return FewRows(_waves(rows, lengths[0], lengths[0], precision), row, cols[col], lengths, precision)
    return FewColumns(_waves(cols, lengths[1] // 2 + 1, lengths[1], precision), rows[row], col, lengths, precision)


def _waves(positions: Ints, frequencies: int, length: int, precision: Float) -> Spectrum:
    # whole numbers are reduced before they become an angle, so that every wave is exact to rounding
    turns = np.outer(positions, np.arange(frequencies)) % length / length
    return np.asarray(np.exp(2j * np.pi * turns), dtype=np.result_type(precision, 1j))


@dataclass(frozen=True, eq=False)
class Everywhere:
    """Cells all over the place: `at` counts them along the rows that are asked for, one after the other."""

    rows: Ints | slice
    at: Ints
    is_distinct: bool
    lengths: tuple[int, int]
    precision: Float

    @classmethod
    def of(cls, rows: Ints, row: Ints, col: Ints, lengths: tuple[int, int], precision: Float) -> Everywhere:
        """Of cells (rows[row], col)."""
        at = row * lengths[1] + col
        first = len(rows) == rows[-1] + 1
        return cls(slice(len(rows)) if first else rows, at, len(np.unique(at)) == len(at), lengths, precision)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.rows.stop if isinstance(self.rows, slice) else len(self.rows), self.lengths[1]

    def read(self, spectrum: Spectrum) -> Floats:
        """Both axes by fast transforms; along the second only the rows that are asked for."""
        lines = fft.ifft(spectrum, axis=0, overwrite_x=True)[self.rows]
        return np.asarray(fft.irfft(lines, self.lengths[1], axis=1, overwrite_x=True).ravel()[self.at])

    def drop(self, weights: Floats) -> Spectrum:
        """Add up the weights of each cell, then transform."""
        field: NDArray[Any] = np.zeros(self._shape, self.precision)
        if self.is_distinct:
            field.ravel()[self.at] = weights
        else:
            np.add.at(field.ravel(), self.at, weights)
        return _padded(fft.rfft(field, axis=1), self.rows, self.lengths)


@dataclass(frozen=True, eq=False)
class FewRows:
    """Cells (a row of few, col): `waves` has one row for each of the few."""

    waves: Spectrum
    row: Ints
    col: Ints
    lengths: tuple[int, int]
    precision: Float

    def read(self, spectrum: Spectrum) -> Floats:
        """Sum the waves across the rows, transform along them."""
        lines = fft.irfft(self.waves / self.lengths[0] @ spectrum, self.lengths[1], axis=1)
        return np.asarray(lines[self.row, self.col])

    def drop(self, weights: Floats) -> Spectrum:
        """The transpose."""
        width = self.lengths[1]
        sums = np.bincount(self.row * width + self.col, weights, len(self.waves) * width)
        lines: Any = sums.astype(self.precision).reshape(-1, width)
        return np.asarray(self.waves.conj().T @ fft.rfft(lines, axis=1))


@dataclass(frozen=True, eq=False)
class FewColumns:
    """Cells (row, a column of few): `waves` has one row for each of the few, and half of the frequencies."""

    waves: Spectrum
    row: Ints
    col: Ints
    lengths: tuple[int, int]
    precision: Float

    def read(self, spectrum: Spectrum) -> Floats:
        """Sum the waves across the columns, transform along them."""
        # each wave stands for its mirror image, too, but the constant and the fastest one are their own
        weight = np.full(spectrum.shape[1], 2 / self.lengths[1], self.precision)
        weight[0] /= 2
        if self.lengths[1] % 2 == 0:
            weight[-1] /= 2
        lines = fft.ifft(spectrum @ (self.waves * weight).T, axis=0).real
        return np.asarray(lines[self.row, self.col])

    def drop(self, weights: Floats) -> Spectrum:
        """The transpose."""
        few = len(self.waves)
        sums = np.bincount(self.row * few + self.col, weights, self.lengths[0] * few)
        lines: Any = sums.astype(self.precision).reshape(-1, few)
        return np.asarray(fft.fft(lines, axis=0) @ self.waves.conj())
