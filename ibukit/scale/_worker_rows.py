"""Rows on Dask workers; a lost partition is computed again and must be equal to the lost one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from numpy.typing import NDArray
from tqdm import tqdm

from ibukit._ground.typing import override
from ibukit.channels.partitioned import FOLD_ARITY, Fold, PartitionFunction, Partitions
from ibukit.errors import DataChanged
from ibukit.mechanisms.base import Mechanism
from ibukit.scale._blocks import (
    Summary,
    checked_rows,
    digest,
    evaluate,
    pool_blocks,
    summary,
    tally_of_block,
)
from ibukit.tally.tally import Tally

if TYPE_CHECKING:
    from distributed import Client, Future


@dataclass(frozen=True, eq=False)
class WorkerPartitions(Partitions):
    """Partitions that are arrays in the memory of Dask workers.

    Nothing is scattered: the mechanism, the rows and the shared arguments of each pass are results
    of tasks, and the scheduler can repeat these if a worker is lost.
    """

    client: Client
    k: int
    mechanism: Future
    rows: tuple[Future, ...]
    sizes: tuple[int, ...]

    @override
    def each(self, function: PartitionFunction, shared: Any, weights: Sequence[Any]) -> list[Any]:
        return self.client.gather(self._results(function, shared, weights))

    @override
    def total(
        self, function: PartitionFunction, shared: Any, weights: Sequence[Any], fold: Fold
    ) -> Any:
        return fold_on_workers(
            self.client, self._results(function, shared, weights), fold, "pass over the rows"
        )

    def _results(
        self, function: PartitionFunction, shared: Any, weights: Sequence[Any]
    ) -> list[Future]:
        # The shared argument is sent once, as the result of a task; every piece refers to it.
        sent = self.client.submit(_identity, shared, pure=False)
        found: list[Future] = self.client.map(
            evaluate,
            self.rows,
            weights,
            mechanism=self.mechanism,
            function=function,
            shared=sent,
            pure=False,
        )
        return found

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a tally whose reports are on Dask workers cannot be pickled, because it stays with "
            "its client; to pickle an estimate, take dataclasses.replace(estimate, tally=None)"
        )


def fold_on_workers(client: Client, leaves: list[Future], fold: Fold, what: str) -> Any:
    """Fold results in the tree of `tree_fold`, one layer after the other, on the workers."""
    layer = leaves
    while len(layer) > 1:
        # Groups of a fixed size make a tree that depends on the number of partitions alone.
        groups = [layer[start : start + FOLD_ARITY] for start in range(0, len(layer), FOLD_ARITY)]
        layer = [client.submit(_folded, fold, group, pure=False) for group in groups]
    wait_with_progress(leaves, what)
    return layer[0].result()


def wait_with_progress(futures: list[Future], what: str) -> None:
    """Wait for tasks, with a progress bar in a terminal."""
    from distributed import as_completed

    with tqdm(desc=what, unit=" partitions", total=len(futures), leave=False, disable=None) as bar:
        for _ in as_completed(futures) if not bar.disable else ():
            bar.update()


def count_on_workers(
    client: Client, mechanism: Mechanism, blocks: Sequence[Any], packed: bool
) -> Tally | None:
    """Return the tally of all blocks, counted on the workers."""
    from dask import delayed

    sent = client.submit(_identity, mechanism, pure=False)
    leaves = client.compute(
        [
            delayed(_count, pure=False)(sent, block, packed, number)
            for number, block in enumerate(blocks)
        ]
    )
    return fold_on_workers(client, leaves, pool_blocks, "count the reports")


def keep_on_workers(
    client: Client, mechanism: Mechanism, blocks: Sequence[Any], packed: bool
) -> tuple[WorkerPartitions, float]:
    """Let workers check, pack and keep the blocks; return partitions and their `log_offset`."""
    from dask import delayed

    sent = client.submit(_identity, mechanism, pure=False)
    # Checked rows stay on the workers as results of these tasks.
    rows = client.compute(
        [
            delayed(_keep, pure=False)(sent, block, packed, number)
            for number, block in enumerate(blocks)
        ]
    )
    futures = client.map(_summary, rows, range(len(rows)), mechanism=sent, pure=False)
    wait_with_progress(futures, "keep the reports")
    summaries: list[Summary] = client.gather(futures)
    # Passes read the verified rows: a partition that is computed again is compared with its hash.
    same = client.map(
        _verified, rows, [found.digest for found in summaries], range(len(rows)), pure=False
    )
    # Empty partitions are left out.
    present = [(one, found.size) for one, found in zip(same, summaries, strict=True) if found.size]
    partitions = WorkerPartitions(client, mechanism.k, sent, *_columns(present))
    return partitions, sum(found.log_offset for found in summaries)


def _columns(pairs: list[tuple[Future, int]]) -> tuple[tuple[Future, ...], tuple[int, ...]]:
    return tuple(one for one, _ in pairs), tuple(size for _, size in pairs)


def _identity(thing: Any) -> Any:
    return thing


def _folded(fold: Fold, results: list[Any]) -> Any:
    return fold(results)


@contextmanager
def _partition(number: int) -> Iterator[None]:
    """Add the number of the partition to an error."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in partition {number} of rows")
        raise


def _keep(mechanism: Mechanism, block: Any, packed: bool, number: int) -> NDArray[Any]:
    with _partition(number):
        return checked_rows(mechanism, block, packed)


def _count(mechanism: Mechanism, block: Any, packed: bool, number: int) -> Tally | None:
    with _partition(number):
        return tally_of_block(mechanism, block, packed)


def _summary(rows: NDArray[Any], number: int, mechanism: Mechanism) -> Summary:
    return summary(mechanism, rows, number)


def _verified(rows: NDArray[Any], known: str, number: int) -> NDArray[Any]:
    if len(rows) and digest(rows) != known:
        raise DataChanged(
            f"partition {number} of rows was lost with its worker, and came out differently when "
            "it was computed again; rows must be the same whenever they are computed: random ones "
            "from a seed of their own in each partition"
        )
    return rows
