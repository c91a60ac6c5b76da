"""Reports of several mechanisms as one model: each channel adds its own M diag(w) M^T."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import (
    Channel,
    DenseChannel,
    HadamardChannel,
    LineChannel,
    LinePoolChannel,
    ResponseChannel,
    ResponsePoolChannel,
    StackedChannel,
)
from ibukit.solvers._normal_equations import NormalEquations, Support

# Channels that form M diag(w) M^T without a matrix of all their entries, or are that matrix.
STRUCTURED = (
    DenseChannel,
    ResponseChannel,
    ResponsePoolChannel,
    LineChannel,
    LinePoolChannel,
    HadamardChannel,
)


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

    @override
    def support(self, which: Ints) -> Support | None:
        if any(isinstance(block, DenseChannel) for block in self.channel.blocks):
            return super().support(which)

        # Without matrices a pass over all secrets takes less time than writing out rows.
        def forward(x: Floats) -> Floats:
            theta = np.zeros(self.k)
            theta[which] = x
            return self.forward(theta)

        return Support(forward, lambda w: self.adjoint(w)[which], lambda w: self.gram(w, which))
