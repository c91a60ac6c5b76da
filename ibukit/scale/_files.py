"""Rows in arrays or .npy files of this machine: mapped, and read block by block in each pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from ibukit._ground.typing import override
from ibukit.channels.partitioned import Fold, Partitions, Piece, folded
from ibukit.mechanisms.base import Mechanism
from ibukit.scale._blocks import Block, computed, counted, kept, pooled, summary
from ibukit.tally.tally import Tally


@dataclass(frozen=True, eq=False)
class InBlocks(Partitions):
    """Partitions that are blocks of arrays or files."""

    mechanism: Mechanism
    blocks: tuple[Block, ...]
    sizes: tuple[int, ...]
    packed: bool

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets."""
        return self.mechanism.k

    @override
    def each(self, function: Piece, shared: Any, weights: Sequence[Any]) -> list[Any]:
        return list(self._results(function, shared, weights))

    @override
    def total(self, function: Piece, shared: Any, weights: Sequence[Any], fold: Fold) -> Any:
        return folded(self._results(function, shared, weights), fold)

    def _results(self, function: Piece, shared: Any, weights: Sequence[Any]) -> Iterator[Any]:
        for block, some in zip(watched(self.blocks, "pass over the rows"), weights, strict=True):
            # packed rows were checked when the tally was made, and are the same file
            rows = block.read() if self.packed else kept(self.mechanism, block.read(), False)
            yield computed(rows, some, self.mechanism, function, shared)


def watched(blocks: Sequence[Block], what: str) -> Iterator[Block]:
    """The blocks, with a bar in a terminal that goes when they have passed."""
    yield from tqdm(blocks, desc=what, unit=" blocks", leave=False, disable=None)


def count_here(mechanism: Mechanism, blocks: Sequence[Block], packed: bool) -> Tally | None:
    """The tally of all blocks."""
    found: Tally | None = folded(
        (
            counted(mechanism, block.read(), packed)
            for block in watched(blocks, "count the reports")
        ),
        pooled,
    )
    return found


def keep_here(
    mechanism: Mechanism, blocks: Sequence[Block], packed: bool
) -> tuple[InBlocks, float]:
    """Check all blocks, and leave them where they are; what their channels leave out of the log-likelihood."""
    sizes, log_offset = [], 0.0
    for place, block in enumerate(watched(blocks, "check the reports")):
        found = summary(mechanism, kept(mechanism, block.read(), packed), place)
        sizes.append(found.size)
        log_offset += found.log_offset
    return InBlocks(mechanism, tuple(blocks), tuple(sizes), packed), log_offset
