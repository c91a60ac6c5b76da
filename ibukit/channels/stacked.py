"""Several channels over the same secrets, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ibukit._validate import Floats, Ints
from ibukit.channels.base import Channel, Score, sum_of


@dataclass(frozen=True, eq=False)
class StackedChannel(Channel):
    """Several channels over the same secrets, their reports one after the other.

    Parameters
    ----------
    channels : tuple of Channel
        All over `k` secrets.
    k : int
        Number of secrets.
    starts : tuple of int
        Where the reports of the second and each further channel begin, as `numpy.split` takes them.

    Examples
    --------
    >>> import numpy as np
    >>> from ibukit.channels import DenseChannel, ResponseChannel
    >>> response, dense = ResponseChannel(2, np.arange(2), 0.7, 0.3), DenseChannel(np.array([[0.9], [0.3]]))
    >>> StackedChannel((response, dense), k=2, starts=(2,)).forward(np.array([0.5, 0.5]))
    array([0.5, 0.5, 0.6])
    """

    channels: tuple[Channel, ...]
    k: int
    starts: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of reports, of all channels."""
        return sum(channel.size for channel in self.channels)

    def forward(self, theta: Floats) -> Floats:
        """Each report's probability under its own channel."""
        return np.concatenate([channel.forward(theta) for channel in self.channels])

    def adjoint(self, w: Floats) -> Floats:
        """Sum of the channels' adjoints."""
        total = np.zeros(self.k)
        for channel, weights in zip(self.channels, np.split(w, self.starts), strict=True):
            total += channel.adjoint(weights)
        return total

    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        """The channels' own added up."""
        pieces: list[Any] = np.split(counts, self.starts)
        return sum_of(channel.score(theta, own) for channel, own in zip(self.channels, pieces, strict=True))

    def rows(self, secrets: Ints) -> Floats:
        """The channels' rows side by side."""
        return np.concatenate([channel.rows(secrets) for channel in self.channels], axis=1)

    def add_gram(self, total: Floats, weights: Floats) -> None:
        """Sum of the channels' own."""
        for channel, own in zip(self.channels, np.split(weights, self.starts), strict=True):
            channel.add_gram(total, own)
