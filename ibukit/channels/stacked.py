"""Several channels over the same secrets, their reports one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.rounding import gamma
from ibukit._ground.typing import override
from ibukit.channels.base import Channel, Score, sum_scores


@dataclass(frozen=True, eq=False)
class StackedChannel(Channel):
    """Channels over the same secrets, perhaps none, their reports one after the other.

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

    @override
    def forward(self, theta: Floats) -> Floats:
        # np.concatenate needs at least one array, even for a stack of none.
        return np.concatenate([np.empty(0), *(channel.forward(theta) for channel in self.channels)])

    @override
    def adjoint(self, w: Floats) -> Floats:
        total = np.zeros(self.k)
        for channel, own in self._with_slices(w):
            total += channel.adjoint(own)
        return total

    @override
    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        return sum_scores(channel.score(theta, own) for channel, own in self._with_slices(counts))

    @override
    def upper_score(self, theta: Floats, counts: Floats | Ints) -> Score:
        scores = (channel.upper_score(theta, own) for channel, own in self._with_slices(counts))
        return sum_scores(scores).raised(gamma(len(self.channels)))

    @override
    def sharper_score(self, theta: Floats, counts: Floats | Ints) -> Score | None:
        parts = list(self._with_slices(counts))
        sharper = [channel.sharper_score(theta, own) for channel, own in parts]
        if all(score is None for score in sharper):
            return None
        scores = (
            channel.upper_score(theta, own) if score is None else score
            for (channel, own), score in zip(parts, sharper, strict=True)
        )
        return sum_scores(scores).raised(gamma(len(self.channels)))

    @override
    def rows(self, secrets: Ints) -> Floats:
        none = np.empty((len(secrets), 0))
        return np.concatenate([none, *(channel.rows(secrets) for channel in self.channels)], axis=1)

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        for channel, own in self._with_slices(weights):
            channel.add_gram(total, own)

    def _with_slices(self, vector: Floats | Ints) -> Iterator[tuple[Channel, Any]]:
        """Each channel with its slice of a vector over all reports."""
        # np.split returns one empty slice, not none, if there are no channels.
        return zip(
            self.channels, np.split(vector, self.starts) if self.channels else [], strict=True
        )
