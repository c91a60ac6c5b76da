"""Several channels over the same secrets, their reports one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.rounding import gamma
from ibukit._ground.typing import override
from ibukit.channels.base import Channel, Score, sum_scores
from ibukit.channels.pools import bit_pools, line_pools, response_pools


@dataclass(frozen=True, eq=False)
class StackedChannel(Channel):
    """Channels, or none, over the same secrets, their reports one after the other.

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
    >>> response = ResponseChannel(2, np.arange(2), 0.7, 0.3)
    >>> dense = DenseChannel(np.array([[0.9], [0.3]]))
    >>> StackedChannel((response, dense), k=2, starts=(2,)).forward(np.array([0.5, 0.5]))
    array([0.5, 0.5, 0.6])
    """

    channels: tuple[Channel, ...]
    k: int
    starts: tuple[int, ...]

    @property
    @override
    def size(self) -> int:
        return sum(channel.size for channel in self.channels)

    @cached_property
    def blocks(self) -> tuple[Channel, ...]:
        """The channels in order; small neighbours of one kind are pooled into one."""
        blocks: list[Channel] = []
        for pool, run in groupby(self.channels, _pool_of):
            blocks += pool(list(run))
        return tuple(blocks)

    @override
    def forward(self, theta: Floats) -> Floats:
        # np.concatenate needs at least one array, even for a stack of none.
        return np.concatenate([np.empty(0), *(block.forward(theta) for block in self.blocks)])

    @override
    def adjoint(self, w: Floats) -> Floats:
        total = np.zeros(self.k)
        for block, own in self.split(w):
            total += block.adjoint(own)
        return total

    @override
    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        return sum_scores(block.score(theta, own) for block, own in self.split(counts))

    @override
    def upper_score(self, theta: Floats, counts: Floats | Ints) -> Score:
        scores = (channel.upper_score(theta, own) for channel, own in self.split(counts))
        return sum_scores(scores).raised(gamma(len(self.blocks)))

    @override
    def sharper_score(self, theta: Floats, counts: Floats | Ints) -> Score | None:
        parts = list(self.split(counts))
        sharper = [channel.sharper_score(theta, own) for channel, own in parts]
        if all(score is None for score in sharper):
            return None
        scores = (
            channel.upper_score(theta, own) if score is None else score
            for (channel, own), score in zip(parts, sharper, strict=True)
        )
        return sum_scores(scores).raised(gamma(len(self.blocks)))

    @override
    def rows(self, secrets: Ints) -> Floats:
        none = np.empty((len(secrets), 0))
        return np.concatenate([none, *(block.rows(secrets) for block in self.blocks)], axis=1)

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        for block, own in self.split(weights):
            block.add_gram(total, own)

    def split(self, vector: Floats | Ints) -> Iterator[tuple[Channel, Any]]:
        """Each block with its slice of a vector over all reports."""
        start = 0
        for block in self.blocks:
            yield block, vector[start : start + block.size]
            start += block.size


def _pool_of(channel: Channel) -> Callable[[list[Any]], list[Any]]:
    """Return what pools the channel with neighbours of its kind, where that pays."""
    if bit_pools.can_be_pooled(channel):
        return bit_pools.pooled
    if response_pools.can_be_pooled(channel):
        return response_pools.pooled
    if line_pools.can_be_pooled(channel):
        return line_pools.pooled
    return list
