"""Reports in partitions, which may lie elsewhere: each sum over the reports is a map and a fold in a fixed order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels.base import Channel, Score, sum_scores
from ibukit.errors import TooLarge

# results that are folded at once; what is folded with what depends on the partitions alone
FOLDED_AT_ONCE = 16
# reports up to which a vector as long as they are is made: a gigabyte
MAX_GATHERED = 2**27

# what is computed where the reports are: from their channel, what all partitions share, and the
# reports' weights
Piece = Callable[[Channel, Any, Any], Any]
Fold = Callable[[list[Any]], Any]


class Partitions(ABC):
    """Where the reports of a `PartitionedChannel` are, and how something is computed there.

    A subclass knows `k`, the number of secrets, and `sizes`, how many reports each partition has;
    no partition is empty.
    """

    k: int
    sizes: tuple[int, ...]

    @abstractmethod
    def each(self, function: Piece, shared: Any, weights: Sequence[Any]) -> list[Any]:
        """function(channel, shared, weights) of each partition, in their order."""

    @abstractmethod
    def total(self, function: Piece, shared: Any, weights: Sequence[Any], fold: Fold) -> Any:
        """The same, folded as `folded` does it."""


def folded(results: Iterable[Any], fold: Fold) -> Any:
    """Fold results as they come, never keeping many: by a tree that depends on their number alone.

    Sixteen neighbours make one of the next level. As sums of doubles depend on the order of adding,
    this is what gives the same bits wherever, and in whatever order, the results were computed.
    """
    levels: list[list[Any]] = [[]]

    def lift(level: int) -> None:
        if level + 1 == len(levels):
            levels.append([])
        levels[level + 1].append(fold(levels[level]))
        levels[level].clear()
        if len(levels[level + 1]) == FOLDED_AT_ONCE:
            lift(level + 1)

    for result in results:
        levels[0].append(result)
        if len(levels[0]) == FOLDED_AT_ONCE:
            lift(0)
    level = 0
    while level < len(levels) - 1 or len(levels[level]) > 1:
        if levels[level]:
            lift(level)
        level += 1
    return levels[level][0]


def sum_arrays(arrays: list[Any]) -> Any:
    """One after the other: stacked, large matrices would take their memory several times."""
    return reduce(np.add, arrays)


@dataclass(frozen=True, eq=False)
class PartitionedChannel(Channel):
    """Channels over the same secrets whose reports lie in partitions, here or on other machines.

    `score` and `gram` are computed where the reports are, and their sums alone travel. `forward`
    and `adjoint` carry one number for each report, as they do everywhere.

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

    def total(self, function: Piece, shared: Any, weights: Floats | Ints, fold: Fold) -> Any:
        """function(channel, shared, weights) of each partition, folded in the partitions' order."""
        return self.partitions.total(function, shared, self._pieces(weights), fold)

    @override
    def forward(self, theta: Floats) -> Floats:
        """Each report's probability, gathered from the partitions.

        Raises
        ------
        TooLarge
            If there are more than 2^27 reports.
        """
        if self.size > MAX_GATHERED:
            raise TooLarge(
                f"{self.size} reports in partitions are too many for a vector as long as they are, which this needs; "
                f"at most {MAX_GATHERED}. What mle needs, sums over the reports, is not limited"
            )
        pieces = self.partitions.each(_forward, theta, [None] * len(self.partitions.sizes))
        return np.concatenate(pieces)

    @override
    def adjoint(self, w: Floats) -> Floats:
        return np.asarray(self.total(_adjoint, None, w, sum_arrays))

    @override
    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        found: Score = self.total(_score, theta, counts, sum_scores)
        return found

    @override
    def gram(self, weights: Floats) -> Floats:
        return np.asarray(self.total(_gram, None, weights, sum_arrays))

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        total += self.gram(weights)

    def _pieces(self, weights: Floats | Ints) -> list[Any]:
        """Each partition's weights; a single number where all are equal, as the counts of 1 mostly are."""
        if len(weights) and (weights.strides == (0,) or (weights == weights[0]).all()):
            return [weights[0].item()] * len(self.partitions.sizes)
        bounds = accumulate(self.partitions.sizes, initial=0)
        return [np.asarray(weights[start:stop]) for start, stop in pairwise(bounds)]


def spread(weights: Any, channel: Channel) -> Any:
    """A piece of weights as a vector; a single number takes no more memory than it did."""
    return np.broadcast_to(weights, channel.size)


def _forward(channel: Channel, theta: Floats, _: None) -> Floats:
    return channel.forward(theta)


def _adjoint(channel: Channel, _: None, w: Any) -> Floats:
    return channel.adjoint(spread(w, channel))


def _score(channel: Channel, theta: Floats, counts: Any) -> Score:
    return channel.score(theta, spread(counts, channel))


def _gram(channel: Channel, _: None, weights: Any) -> Floats:
    return channel.gram(spread(weights, channel))
