"""Reports of several mechanisms as one model: each channel adds its own M diag(w) M^T."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ibukit.channels import (
    Channel,
    DenseChannel,
    HadamardChannel,
    LineChannel,
    ResponseChannel,
    ResponsePoolChannel,
    StackedChannel,
)
from ibukit.solvers._normal_equations import NormalEquations

# Channels that form M diag(w) M^T without a matrix of all their entries, or are that matrix.
STRUCTURED = (DenseChannel, ResponseChannel, ResponsePoolChannel, LineChannel, HadamardChannel)


@dataclass(frozen=True, eq=False)
class PooledModel(NormalEquations):
    """Dense, line, k-RR and Hadamard channels over the same secrets, stacked."""

    channels: tuple[Channel, ...]
    k: int

    @classmethod
    def of(cls, channels: tuple[Channel, ...], k: int) -> PooledModel:
        """Build the model with each report scaled, which changes neither theta nor g."""
        return cls(tuple(channel.unit_columns() for channel in channels), k)

    @cached_property
    def channel(self) -> StackedChannel:  # type: ignore[override]
        """The channels one after the other."""
        sizes = [channel.size for channel in self.channels]
        return StackedChannel(self.channels, self.k, tuple(np.cumsum(sizes)[:-1].tolist()))
