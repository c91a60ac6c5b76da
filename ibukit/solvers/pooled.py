"""Reports of several mechanisms as one model: each channel brings its own way to M diag(w) M^T."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ibukit._validate import Floats, Ints
from ibukit.channels import Channel, DenseChannel, LineChannel, ResponseChannel, StackedChannel
from ibukit.solvers._normal_equations import Model

STRUCTURED = (DenseChannel, ResponseChannel, LineChannel)


@dataclass(frozen=True, eq=False)
class Pooled(Model):
    """Dense, line and k-RR channels over the same secrets, stacked."""

    channels: tuple[Channel, ...]
    k: int

    @classmethod
    def of(cls, channels: tuple[Channel, ...], k: int) -> Pooled:
        """With each column scaled, which changes neither theta nor g."""
        return cls(tuple(channel.unit_columns() for channel in channels), k)

    @cached_property
    def stacked(self) -> StackedChannel:
        """The channels one after the other."""
        sizes = [channel.size for channel in self.channels]
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
        self.stacked.add_gram(total, w)
        return total if rows is None else np.asfortranarray(total[np.ix_(rows, rows)])

    def diagonal(self, w: Floats) -> Floats:
        """An upper bound, because no entry is above 1."""
        return self.adjoint(w)

    def rows(self, which: Ints) -> Floats:
        """The channels' rows side by side."""
        return self.stacked.rows(which) if self.channels else np.empty((len(which), 0))
