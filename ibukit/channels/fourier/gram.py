"""M diag(w) M^T of a planar channel in single precision, for inner loops.

Their result is checked in double precision. The product takes half the memory and less than half
the time of that in double precision: numbers are shorter, and kernels may end where they fall below
the rounding of single precision, so that less padding is needed. Where a library's transforms in
single precision are wrong, the same products are computed in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels.fourier.convolution import Convolutions
from ibukit.channels.fourier.padded_transforms import PaddedGrid

# A kernel is cut off where it has fallen by 19 nats, to e^-19 = 6e-9. Even the sum of all that lies
# beyond is below the rounding of single precision, 6e-8.
MAX_NATS_IN_SINGLE = 19.0


class Gram:
    """Products with M diag(w) M^T, each with an error of about 1e-7 of its largest entry.

    Parameters
    ----------
    shape : (n_rows, n_cols) of the secrets
    factor, kernels, kinds, cells, scale, columns
        The fields of `PlaneChannel`; reports of a negative kind have the columns.
    precision : numpy's single precision, or its double precision in its place
    """

    def __init__(
        self,
        shape: tuple[int, int],
        factor: Floats,
        kernels: Floats,
        kinds: Ints,
        cells: Ints,
        scale: Floats,
        columns: Floats,
        precision: Any = np.float32,
    ):
        self._shape, self._precision = shape, precision
        self._has_column, self._columns = kinds < 0, columns.astype(precision)
        # Factors of 1, the usual case, are not multiplied.
        self._factor = None if (factor == 1).all() else factor
        self._square = None if (scale == 1).all() else scale**2
        has_kernel = kinds >= 0
        low, high = cells[has_kernel].min(axis=0), cells[has_kernel].max(axis=0)
        farthest = [max(int(high[i]), shape[i] - 1 - int(low[i])) for i in (0, 1)]
        # Offsets beyond `reach` are left out; the padding keeps those within from wrapping round.
        reached = (
            kernels > math.exp(-MAX_NATS_IN_SINGLE) * kernels.max(axis=(1, 2), keepdims=True)
        ).any(axis=0)
        reach = [min(int(np.flatnonzero(reached.any(axis=1 - i))[-1]), farthest[i]) for i in (0, 1)]
        rows, cols = (
            fft.next_fast_len(max(farthest[i] + reach[i] + 1, shape[i]), real=True) for i in (0, 1)
        )
        tables = kernels[:, : reach[0] + 1, : reach[1] + 1]
        self._convolutions = Convolutions.of(
            PaddedGrid(shape, (rows, cols)), tables, kinds, cells, precision
        )

    def of(self, w: Floats) -> Callable[[Floats], Floats]:
        """The product x -> M diag(w) M^T x."""
        # Weights are divided by the largest, so that none leaves the range of single precision.
        heaviest = float(w.max(initial=0.0))
        weights: NDArray[Any] = np.empty(0, self._precision)
        if 0 < heaviest < np.inf:
            weights = ((w if self._square is None else w * self._square) / heaviest).astype(
                self._precision
            )
        near = partial(self._times, weights, heaviest)
        if not self._columns.size:
            return near
        return lambda x: near(x) + self._times_columns(w[self._has_column], x)

    def _times_columns(self, w: Floats, x: Floats) -> Floats:
        heaviest, largest = (float(np.abs(values).max(initial=0.0)) for values in (w, x))
        if not (0 < largest < np.inf and 0 < heaviest < np.inf):
            return np.zeros_like(x)
        seen = (x / largest).astype(self._precision) @ self._columns
        back = self._columns @ (seen * (w / heaviest).astype(self._precision))
        return back.astype(np.float64) * (largest * heaviest)

    def _times(self, weights: NDArray[Any], heaviest: float, x: Floats) -> Floats:
        # x is divided by its largest entry, too; the product is scaled back in double precision.
        mass = x if self._factor is None else x * self._factor
        largest = max(float(mass.max(initial=0.0)), -float(mass.min(initial=0.0)))
        if not (0 < largest < np.inf and 0 < heaviest < np.inf):
            return np.zeros_like(x) if largest == 0 or heaviest == 0 else np.full_like(x, np.nan)
        back, field, unit = np.empty(self._shape), mass.reshape(self._shape), largest * heaviest

        def store(rows: slice, block: NDArray[Any]) -> None:
            np.multiply(block, unit, out=back[rows], dtype=np.float64)

        self._convolutions.forward_adjoint(
            lambda rows: (field[rows] / largest).astype(self._precision),
            lambda job, values: values * weights[job.reports],
            store,
            self._precision,
        )
        return back.ravel() if self._factor is None else back.ravel() * self._factor
