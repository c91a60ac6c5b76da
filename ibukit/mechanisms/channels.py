"""Operators on the reports seen: theta -> probability of each report, and back. Small frozen classes that pickle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ibukit._validate import Floats, Ints
from ibukit.mechanisms import _line_kernels, _unary_kernels
from ibukit.tally import Channel

# A report whose probability is below e^-460 = 1e-200 under every secret keeps that factor apart, as a logarithm.
SMALLEST_LOG_FACTOR = -460.0


def split_factor(log_factor: Floats) -> tuple[Floats, Floats]:
    """A factor of each report as (what a double can hold, the logarithm of the rest); the rest is mostly 0."""
    rest = np.where(log_factor < SMALLEST_LOG_FACTOR, log_factor, 0.0)
    return np.exp(log_factor - rest), rest


@dataclass(frozen=True, eq=False)
class DenseChannel:
    """Columns of a matrix, shape (k, s)."""

    columns: Floats

    def forward(self, theta: Floats) -> Floats:
        """Theta C."""
        return np.asarray(theta @ self.columns)

    def adjoint(self, w: Floats) -> Floats:
        """C w."""
        return np.asarray(self.columns @ w)


@dataclass(frozen=True, eq=False)
class DiagonalPlusConstantChannel:
    """M_xz = off + (diagonal - off) [x = z]: k-ary randomized response in O(k)."""

    k: int
    reports: Ints
    diagonal: float
    off: float

    @cached_property
    def _all_in_order(self) -> bool:
        return len(self.reports) == self.k and bool((self.reports == np.arange(self.k)).all())

    def forward(self, theta: Floats) -> Floats:
        """The same mass for every report, and more for the secret itself."""
        own = theta if self._all_in_order else theta[self.reports]
        return np.asarray(self.off * theta.sum() + (self.diagonal - self.off) * own)

    def adjoint(self, w: Floats) -> Floats:
        """The transpose."""
        if self._all_in_order:  # no need to gather and scatter, which take longer than the sums
            return np.asarray((self.diagonal - self.off) * w + self.off * w.sum())
        back = np.full(self.k, self.off * w.sum())
        back[self.reports] += (self.diagonal - self.off) * w
        return back


@dataclass(frozen=True, eq=False)
class LineChannel:
    """M_xz = scale_z decay^|x - position_z|: geometric noise on a line by two recursive sweeps, O(k + s)."""

    k: int
    decay: float
    positions: Ints
    scale: Floats

    def forward(self, theta: Floats) -> Floats:
        """Sweep over the secrets, then read off at the reports."""
        return np.asarray(_line_kernels.sweep(theta, self.decay)[self.positions] * self.scale)

    def adjoint(self, w: Floats) -> Floats:
        """Drop the weights at the reports' positions, then sweep."""
        dropped: Floats = np.bincount(self.positions, weights=w * self.scale, minlength=self.k).astype(np.float64)
        return _line_kernels.sweep(dropped, self.decay)


@dataclass(frozen=True, eq=False)
class BitChannel:
    """M_xz = scale_z (one if bit x of z is set else zero): unary encodings from packed bits, k/8 look-ups a report."""

    k: int
    rows: NDArray[np.uint8]
    one: float
    zero: float
    scale: Floats

    def forward(self, theta: Floats) -> Floats:
        """One table look-up per byte of a report."""
        p = _unary_kernels.forward(self.rows, _padded(theta, self.rows.shape[1]))
        # in place: there may be a million rows
        p *= self.one - self.zero
        p += self.zero * theta.sum()
        p *= self.scale
        return p

    def adjoint(self, w: Floats) -> Floats:
        """Weights gathered per byte value, then spread over the bits."""
        weights = w * self.scale
        per_bit = _unary_kernels.adjoint(self.rows, weights)[: self.k]
        return np.asarray(self.zero * weights.sum() + (self.one - self.zero) * per_bit)


def rows_of(channel: Channel, secrets: Ints, k: int) -> Floats:
    """Any channel on the given secrets as a matrix, one row each: through `forward` where it has no columns."""
    if isinstance(channel, DenseChannel):
        return np.asarray(channel.columns[secrets])
    unit = np.zeros(k)
    rows = []
    for x in secrets:
        unit[x] = 1
        rows.append(channel.forward(unit))
        unit[x] = 0
    return np.array(rows)


def _padded(theta: Floats, n_bytes: int) -> Floats:
    return np.concatenate([theta, np.zeros(8 * n_bytes - len(theta))])
