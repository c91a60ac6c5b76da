"""Reports in partitions, here or on other machines: sums over reports are a map and a fold.

The fold has a fixed order, so that the digits do not depend on where or when a partition is done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.rounding import gamma
from ibukit._ground.typing import override
from ibukit.channels.base import Channel, Score, sum_scores
from ibukit.errors import TooLarge

# Results that one call of a fold combines.
FOLD_ARITY = 16
# Reports up to which a vector with one number for each is gathered: a gigabyte. Beyond, TooLarge.
MAX_GATHERED_REPORTS = 2**27

# function(channel, shared, weights) is computed where the reports of a partition are: from their
# channel, an argument that all partitions share, and the weights of the reports.
PartitionFunction = Callable[[Channel, Any, Any], Any]
# Combines a list of results into one.
Fold = Callable[[list[Any]], Any]


class Partitions(ABC):
    """The partitions of a `PartitionedChannel`, and a way to compute functions of each.

    A subclass has `k`, the number of secrets, and `sizes`, the number of reports of each partition.
    No partition is empty.
    """

    k: int
    sizes: tuple[int, ...]

    @abstractmethod
    def each(self, function: PartitionFunction, shared: Any, weights: Sequence[Any]) -> list[Any]:
        """Compute function(channel, shared, weights) of each partition, in their order."""

    @abstractmethod
    def total(
        self, function: PartitionFunction, shared: Any, weights: Sequence[Any], fold: Fold
    ) -> Any:
        """Compute function(channel, shared, weights) of all partitions, combined by `tree_fold`."""


def tree_fold(results: Iterable[Any], fold: Fold) -> Any:
    """Combine results as they come by a tree that depends on their number alone.

    Sixteen neighbours become one result of the next level, so few are in memory at a time. Sums of
    doubles depend on the order of adding: this tree gives the same sum, to the last bit, wherever
    and in whatever order the results were computed.
    """
    levels: list[list[Any]] = [[]]

    # Combine the results of a level into one of the next level; if this fills that level, combine
    # its results, too.
    def lift(level: int) -> None:
        if level + 1 == len(levels):
            levels.append([])
        levels[level + 1].append(fold(levels[level]))
        levels[level].clear()
        if len(levels[level + 1]) == FOLD_ARITY:
            lift(level + 1)

    for result in results:
        levels[0].append(result)
        if len(levels[0]) == FOLD_ARITY:
            lift(0)
    # The last results of each level are fewer than sixteen.
    level = 0
    while level < len(levels) - 1 or len(levels[level]) > 1:
        if levels[level]:
            lift(level)
        level += 1
    return levels[level][0]


def sum_arrays(arrays: list[Any]) -> Any:
    """Sum of arrays, one after the other: stacking large matrices would copy them all."""
    return reduce(np.add, arrays)


@dataclass(frozen=True, eq=False)
class PartitionedChannel(Channel):
    """Channels over the same secrets whose reports are in partitions, here or on other machines.

    `score` and `gram` are computed where the reports are; only the sums travel. `forward` and
    `adjoint` take or return one number for each report, as for every channel.

    Parameters
    ----------
    partitions : Partitions
    """

    partitions: Partitions

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets."""
        return self.partitions.k

    @property
    @override
    def size(self) -> int:
        return sum(self.partitions.sizes)

    def total(
        self, function: PartitionFunction, shared: Any, weights: Floats | Ints, fold: Fold
    ) -> Any:
        """Compute function(channel, shared, weights) of all partitions, combined in their order."""
        return self.partitions.total(function, shared, self._split(weights), fold)

    @override
    def forward(self, theta: Floats) -> Floats:
        """Each report's probability, gathered from the partitions.

        Raises
        ------
        TooLarge
            If there are more than 2^27 reports.
        """
        if self.size > MAX_GATHERED_REPORTS:
            raise TooLarge(
                "this needs a vector with an entry for each report, and the partitions hold "
                f"{self.size} reports, more than {MAX_GATHERED_REPORTS}; take mle, which needs "
                "only sums over the reports, of any number"
            )
        pieces = self.partitions.each(_forward, theta, [None] * len(self.partitions.sizes))
        return np.concatenate(pieces)

    @override
    def adjoint(self, w: Floats) -> Floats:
        return self.total(_adjoint, None, w, sum_arrays)

    @override
    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        return self.total(_score, theta, counts, sum_scores)

    @override
    def upper_score(self, theta: Floats, counts: Floats | Ints) -> Score:
        # The fold adds up fewer than one result for each partition and level.
        score: Score = self.total(_upper_score, theta, counts, sum_scores)
        return score.raised(gamma(2 * len(self.partitions.sizes)))

    @override
    def gram(self, weights: Floats) -> Floats:
        return self.total(_gram, None, weights, sum_arrays)

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        total += self.gram(weights)

    def _split(self, weights: Floats | Ints) -> list[Any]:
        """Weights of each partition: one number if all are equal, as counts mostly are."""
        # An array whose strides are 0 is one number broadcast, so its entries need not be compared.
        if len(weights) and (weights.strides == (0,) or (weights == weights[0]).all()):
            return [weights[0].item()] * len(self.partitions.sizes)
        bounds = accumulate(self.partitions.sizes, initial=0)
        return [np.asarray(weights[start:stop]) for start, stop in pairwise(bounds)]


def broadcast_weights(weights: Any, channel: Channel) -> Any:
    """Weights of a partition as a vector; one number becomes a view without memory."""
    return np.broadcast_to(weights, channel.size)


def _forward(channel: Channel, theta: Floats, _: None) -> Floats:
    return channel.forward(theta)


def _adjoint(channel: Channel, _: None, w: Any) -> Floats:
    return channel.adjoint(broadcast_weights(w, channel))


def _score(channel: Channel, theta: Floats, counts: Any) -> Score:
    return channel.score(theta, broadcast_weights(counts, channel))


def _upper_score(channel: Channel, theta: Floats, counts: Any) -> Score:
    return channel.upper_score(theta, broadcast_weights(counts, channel))


def _gram(channel: Channel, _: None, weights: Any) -> Floats:
    return channel.gram(broadcast_weights(weights, channel))
