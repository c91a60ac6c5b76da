"""Reports of several mechanisms as one model: each channel brings its own way to M diag(w) M^T."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg.blas import dsyrk

from ibukit._validate import Floats, Ints
from ibukit.estimators import _gram_kernels
from ibukit.estimators._normal_equations import Model
from ibukit.mechanisms.channels import DenseChannel, DiagonalPlusConstantChannel, LineChannel, rows_of
from ibukit.tally import Channel, StackedChannel

STRUCTURED = (DenseChannel, DiagonalPlusConstantChannel, LineChannel)


@dataclass(frozen=True, eq=False)
class Pooled(Model):
    """Dense, line and k-RR channels over the same secrets, stacked."""

    channels: tuple[Channel, ...]
    k: int

    @classmethod
    def of(cls, channels: tuple[Channel, ...], k: int) -> Pooled:
        """With each column scaled, which changes neither theta nor g."""
        return cls(tuple(scaled(channel) for channel in channels), k)

    @cached_property
    def stacked(self) -> StackedChannel:
        """The channels one after the other."""
        sizes = [size(channel) for channel in self.channels]
        return StackedChannel(self.channels, self.k, tuple(np.cumsum(sizes)[:-1].tolist()))

    def forward(self, theta: Floats) -> Floats:
        """Each report's probability."""
        return self.stacked.forward(theta) if self.channels else np.empty(0)

    def adjoint(self, w: Floats) -> Floats:
        """Back to the secrets."""
        return self.stacked.adjoint(w) if self.channels else np.zeros(self.k)

    def gram(self, w: Floats, rows: Ints | None) -> Floats:
        """Sum of the channels' own."""
        total = np.zeros((self.k, self.k), order="F")
        if not self.channels:
            return total if rows is None else total[: len(rows), : len(rows)].copy(order="F")
        for channel, weights in zip(self.channels, np.split(w, self.stacked.starts), strict=True):
            _add_gram(total, channel, weights)
        return total if rows is None else np.asfortranarray(total[np.ix_(rows, rows)])

    def diagonal(self, w: Floats) -> Floats:
        """An upper bound, because no entry is above 1."""
        return self.adjoint(w)

    def rows(self, which: Ints) -> Floats:
        """Forward of one secret at a time."""
        return rows_of(self, which, self.k)


def size(channel: Channel) -> int:
    """Number of reports."""
    if isinstance(channel, DenseChannel):
        return int(channel.columns.shape[1])
    if isinstance(channel, LineChannel):
        return len(channel.positions)
    assert isinstance(channel, DiagonalPlusConstantChannel)
    return len(channel.reports)


def scaled(channel: Channel) -> Channel:
    """The same channel with every column's largest entry 1."""
    if isinstance(channel, DenseChannel):
        return DenseChannel(channel.columns / channel.columns.max(axis=0))
    if isinstance(channel, LineChannel):
        return replace(channel, scale=np.ones_like(channel.scale))
    if isinstance(channel, DiagonalPlusConstantChannel):
        return replace(channel, diagonal=1.0, off=channel.off / channel.diagonal)
    raise TypeError(f"no structure known for {type(channel).__name__}")


def _add_gram(total: Floats, channel: Channel, w: Floats) -> None:
    """Add M diag(w) M^T to the lower triangle of `total` (Fortran order)."""
    if isinstance(channel, DenseChannel):
        half = channel.columns * np.sqrt(w)
        total += dsyrk(1.0, half.T, trans=1, lower=1)
    elif isinstance(channel, LineChannel):
        weights = np.bincount(channel.positions, w * channel.scale**2, channel.k).astype(np.float64)
        _gram_kernels.add_line(total.T, weights, channel.decay)  # upper triangle in C order is the lower in F order
    else:
        assert isinstance(channel, DiagonalPlusConstantChannel)
        contrast = channel.diagonal - channel.off
        own = np.zeros(channel.k)
        own[channel.reports] = contrast * w
        total += channel.off * own + (channel.off * own + channel.off**2 * w.sum())[:, None]
        total.flat[:: channel.k + 1] += contrast * own
