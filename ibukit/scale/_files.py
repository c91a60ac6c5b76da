"""Rows in arrays or .npy files of this machine, read block by block in each pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from ibukit._ground.typing import override
from ibukit.channels.partitioned import Fold, PartitionFunction, Partitions, tree_fold
from ibukit.mechanisms.base import Mechanism
from ibukit.scale._blocks import Block, checked_rows, evaluate, pool_blocks, summary, tally_of_block
from ibukit.tally.tally import Tally


@dataclass(frozen=True, eq=False)
class BlockPartitions(Partitions):
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
    def each(self, function: PartitionFunction, shared: Any, weights: Sequence[Any]) -> list[Any]:
        return list(self._results(function, shared, weights))

    @override
    def total(
        self, function: PartitionFunction, shared: Any, weights: Sequence[Any], fold: Fold
    ) -> Any:
        return tree_fold(self._results(function, shared, weights), fold)

    def _results(
        self, function: PartitionFunction, shared: Any, weights: Sequence[Any]
    ) -> Iterator[Any]:
        for block, some in zip(
            with_progress(self.blocks, "pass over the rows"), weights, strict=True
        ):
            # Packed rows were checked when the tally was made, and the stamp says that they are the
            # same.
            rows = (
                block.read() if self.packed else checked_rows(self.mechanism, block.read(), False)
            )
            yield evaluate(rows, some, self.mechanism, function, shared)


def with_progress(blocks: Sequence[Block], what: str) -> Iterator[Block]:
    """Yield the blocks, with a progress bar in a terminal that vanishes at the end."""
    yield from tqdm(blocks, desc=what, unit=" blocks", leave=False, disable=None)


def count_locally(mechanism: Mechanism, blocks: Sequence[Block], packed: bool) -> Tally | None:
    """Return the tally of all blocks, or None if they are empty."""
    found: Tally | None = tree_fold(
        (
            tally_of_block(mechanism, block.read(), packed)
            for block in with_progress(blocks, "count the reports")
        ),
        pool_blocks,
    )
    return found


def keep_locally(
    mechanism: Mechanism, blocks: Sequence[Block], packed: bool
) -> tuple[BlockPartitions, float]:
    """Check all blocks; return partitions that refer to them, and their `log_offset`."""
    # One block is in memory at a time.
    sizes, log_offset = [], 0.0
    for number, block in enumerate(with_progress(blocks, "check the reports")):
        facts = summary(mechanism, checked_rows(mechanism, block.read(), packed), number)
        sizes.append(facts.size)
        log_offset += facts.log_offset
    return BlockPartitions(mechanism, tuple(blocks), tuple(sizes), packed), log_offset
