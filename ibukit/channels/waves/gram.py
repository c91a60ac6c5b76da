"""M diag(w) M^T of a planar channel in single precision, for inner loops whose result is judged in double precision.

Half the memory and less than half the time of the same product in double precision: besides shorter numbers, kernels
may end where they fall below the rounding of single precision, so that less has to be padded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ibukit._threads import one_thread
from ibukit._validate import Floats, Ints
from ibukit.channels.waves import fourier

Singles = NDArray[np.float32]
# e^-19 = 6e-9: with all that lies beyond, still below the rounding of single precision, 6e-8
NATS_IN_SINGLE = 19.0


@dataclass(frozen=True, eq=False)
class Piece:
    """Reports of one kind: which, the spectrum of their kernel, and how to read a field at their cells."""

    index: Ints | slice
    spectrum: Singles
    reader: fourier.Reader


class Gram:
    """Products with M diag(w) M^T, each with an error of about 1e-7 of its largest entry.

    Parameters
    ----------
    shape : (n_rows, n_cols) of the secrets
    factor, kernels, kinds, cells, scale
        As `PlaneChannel` has them; reports of no kind (negative) are left out.
    """

    def __init__(
        self, shape: tuple[int, int], factor: Floats, kernels: Floats, kinds: Ints, cells: Ints, scale: Floats
    ):
        self._shape = shape
        self._factor = None if (factor == 1).all() else factor
        self._square = None if (scale == 1).all() else scale**2
        near = kinds >= 0
        low, high = cells[near].min(axis=0), cells[near].max(axis=0)
        farthest = [max(int(high[i]), shape[i] - 1 - int(low[i])) for i in (0, 1)]
        seen = (kernels > math.exp(-NATS_IN_SINGLE) * kernels.max(axis=(1, 2), keepdims=True)).any(axis=0)
        reach = [min(int(np.flatnonzero(seen.any(axis=1 - i))[-1]), farthest[i]) for i in (0, 1)]
        rows, cols = (fft.next_fast_len(max(farthest[i] + reach[i] + 1, shape[i]), real=True) for i in (0, 1))
        self._lengths = (rows, cols)
        self._pieces = []
        for kind, kernel in enumerate(kernels):
            index = np.flatnonzero(kinds == kind)
            if len(index):
                spectrum = fourier.kernel_spectrum(kernel[: reach[0] + 1, : reach[1] + 1], self._lengths)
                reader = fourier.reader(cells[index], self._lengths, np.float32)
                every = slice(None) if len(index) == len(kinds) else index
                self._pieces.append(Piece(every, spectrum.astype(np.float32), reader))

    def times(self, w: Floats, x: Floats) -> Floats:
        """M diag(w) M^T x, up to reports of no kind."""
        mass = x if self._factor is None else x * self._factor
        # units in which nothing leaves the range of single precision
        largest, heaviest = float(np.abs(mass).max(initial=0.0)), float(w.max(initial=0.0))
        if not (0 < largest < np.inf and 0 < heaviest < np.inf):
            return np.zeros_like(x) if largest == 0 or heaviest == 0 else np.full_like(x, np.nan)
        waves = fourier.spectrum_of((mass / largest).astype(np.float32).reshape(self._shape), self._lengths)
        weights = ((w if self._square is None else w * self._square) / heaviest).astype(np.float32)

        def seen(piece: Piece) -> fourier.Spectrum:
            fitted = piece.reader.read(waves * piece.spectrum)
            fitted *= weights[piece.index]
            dropped = piece.reader.drop(fitted)
            dropped *= piece.spectrum
            return dropped

        with one_thread():
            total = fourier.added(map(seen, self._pieces), self._lengths)
        back = fourier.field_of(total, self._lengths, self._shape).ravel().astype(np.float64)
        back *= largest * heaviest
        return back if self._factor is None else back * self._factor
