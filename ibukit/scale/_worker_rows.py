"""Rows on Dask workers: what is lost with a worker is computed again, and is found out where it is not the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from numpy.typing import NDArray
from tqdm import tqdm

from ibukit._ground.typing import override
from ibukit.channels.partitioned import FOLDED_AT_ONCE, Fold, Partitions, Piece
from ibukit.errors import DataChanged
from ibukit.mechanisms.base import Mechanism
from ibukit.scale._blocks import Summary, computed, counted, digest, kept, pooled, summary
from ibukit.tally.tally import Tally

if TYPE_CHECKING:
    from distributed import Client, Future


@dataclass(frozen=True, eq=False)
class OnWorkers(Partitions):
    """Partitions that are arrays in the memory of Dask workers.

    Nothing is scattered: the mechanism, the rows and what each pass shares are results of tasks,
    which the scheduler knows how to repeat.
    """

    client: Client
    k: int
    mechanism: Future
    rows: tuple[Future, ...]
    sizes: tuple[int, ...]

    @override
    def each(self, function: Piece, shared: Any, weights: Sequence[Any]) -> list[Any]:
        found: list[Any] = self.client.gather(self._results(function, shared, weights))
        return found

    @override
    def total(self, function: Piece, shared: Any, weights: Sequence[Any], fold: Fold) -> Any:
        return fold_there(
            self.client, self._results(function, shared, weights), fold, "pass over the rows"
        )

    def _results(self, function: Piece, shared: Any, weights: Sequence[Any]) -> list[Future]:
        given = self.client.submit(_itself, shared, pure=False)
        found: list[Future] = self.client.map(
            computed,
            self.rows,
            weights,
            mechanism=self.mechanism,
            function=function,
            shared=given,
            pure=False,
        )
        return found

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a tally whose reports are on Dask workers stays with its client; of an estimate, "
            "dataclasses.replace(estimate, tally=None) can be pickled"
        )


def fold_there(client: Client, leaves: list[Future], fold: Fold, what: str) -> Any:
    """The tree of `folded`, level by level, on the workers."""
    level = leaves
    while len(level) > 1:
        groups = [
            level[start : start + FOLDED_AT_ONCE] for start in range(0, len(level), FOLDED_AT_ONCE)
        ]
        level = [client.submit(_folded, fold, group, pure=False) for group in groups]
    watch(leaves, what)
    return level[0].result()


def watch(futures: list[Future], what: str) -> None:
    """Wait, with a bar in a terminal."""
    from distributed import as_completed

    with tqdm(desc=what, unit=" partitions", total=len(futures), leave=False, disable=None) as bar:
        for _ in as_completed(futures) if not bar.disable else ():
            bar.update()


def count_there(
    client: Client, mechanism: Mechanism, blocks: Sequence[Any], packed: bool
) -> Tally | None:
    """The tally of all blocks, counted on the workers."""
    from dask import delayed

    given = client.submit(_itself, mechanism, pure=False)
    leaves = client.compute(
        [
            delayed(_counted, pure=False)(given, block, packed, place)
            for place, block in enumerate(blocks)
        ]
    )
    found: Tally | None = fold_there(client, leaves, pooled, "count the reports")
    return found


def keep_there(
    client: Client, mechanism: Mechanism, blocks: Sequence[Any], packed: bool
) -> tuple[OnWorkers, float]:
    """Blocks checked, packed and kept by the workers; what their channels leave out of the log-likelihood."""
    from dask import delayed

    given = client.submit(_itself, mechanism, pure=False)
    rows = client.compute(
        [
            delayed(_kept, pure=False)(given, block, packed, place)
            for place, block in enumerate(blocks)
        ]
    )
    said = client.map(_summary, rows, range(len(rows)), mechanism=given, pure=False)
    watch(said, "keep the reports")
    summaries: list[Summary] = client.gather(said)
    # passes read these: whatever is computed again goes by the check
    same = client.map(
        _same, rows, [found.digest for found in summaries], range(len(rows)), pure=False
    )
    there = [(one, found.size) for one, found in zip(same, summaries, strict=True) if found.size]
    partitions = OnWorkers(client, mechanism.k, given, *_columns(there))
    return partitions, sum(found.log_offset for found in summaries)


def _columns(pairs: list[tuple[Future, int]]) -> tuple[tuple[Future, ...], tuple[int, ...]]:
    return tuple(one for one, _ in pairs), tuple(size for _, size in pairs)


def _itself(thing: Any) -> Any:
    return thing


def _folded(fold: Fold, results: list[Any]) -> Any:
    return fold(results)


@contextmanager
def _partition(place: int) -> Iterator[None]:
    """An error says where it happened."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in partition {place} of rows")
        raise


def _kept(mechanism: Mechanism, block: Any, packed: bool, place: int) -> NDArray[Any]:
    with _partition(place):
        return kept(mechanism, block, packed)


def _counted(mechanism: Mechanism, block: Any, packed: bool, place: int) -> Tally | None:
    with _partition(place):
        return counted(mechanism, block, packed)


def _summary(rows: NDArray[Any], place: int, mechanism: Mechanism) -> Summary:
    return summary(mechanism, rows, place)


def _same(rows: NDArray[Any], known: str, place: int) -> NDArray[Any]:
    if len(rows) and digest(rows) != known:
        raise DataChanged(
            f"partition {place} of rows was lost with its worker, and came out differently when it "
            "was computed again; "
            "rows must be the same whenever they are computed: random ones from a seed of their "
            "own in each partition"
        )
    return rows
