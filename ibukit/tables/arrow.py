"""Streams and datasets of Arrow, which may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import narwhals as nw

from ibukit._ground.typing import override
from ibukit.errors import MissingExtra
from ibukit.tables.columns import Columns, Piece
from ibukit.tables.frames import ByDuckDB, as_frame, parquet
from ibukit.tables.table import Source

# rows of partial counts that are added up at once
MAX_PARTIAL = 2**20
# how far Arrow reads ahead: its own settings take four times the memory
FEW = {"batch_readahead": 4, "fragment_readahead": 1}


class Batches(Source):
    """Batches of Arrow, one after the other."""

    def __init__(self, schema: Any, batches: Any) -> None:
        self._schema, self._batches = schema, batches

    @property
    @override
    def names(self) -> list[str]:
        return list(self._schema.names)

    @override
    def pieces(self, columns: Columns) -> Iterator[Piece]:
        parts: list[Any] = []
        for batch in self._batches(columns.wanted):
            named = columns.named(as_frame(batch))
            if not columns.worth_grouping(named):
                yield columns.piece(named)
                continue
            parts.append(columns.grouped(named))
            if sum(map(len, parts[1:])) > MAX_PARTIAL + len(parts[0]):
                parts = [columns.added(parts)]
        if parts:
            yield columns.piece(columns.added(parts))


class Dataset(Batches):
    """A dataset of Arrow: DuckDB counts what Arrow reads, or reads the files itself if they are all there is to it."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset.schema, lambda names: dataset.to_batches(columns=names, **FEW))
        self._dataset = dataset

    @override
    def pieces(self, columns: Columns) -> Iterator[Piece]:
        frame = self._by_duckdb(columns)
        yield from super().pieces(columns) if frame is None else frame.pieces(columns)

    def _by_duckdb(self, columns: Columns) -> ByDuckDB | None:
        wanted = columns.wanted
        empty = nw.from_native(self._schema.empty_table().select(wanted))
        if not columns.worth_grouping(columns.named(empty)) or not _same_in_duckdb(
            self._schema, wanted
        ):
            return None
        try:
            files = _files(self._dataset, wanted)
            if files:
                return parquet(files)
            scanner = self._dataset.scanner(columns=wanted, **FEW)
            return ByDuckDB("of Arrow", lambda duckdb: duckdb.from_arrow(scanner))
        except MissingExtra:
            return None


def _same_in_duckdb(schema: Any, wanted: list[str]) -> bool:
    """Whether DuckDB has these columns as Arrow does: it does not tell capital letters from small ones in names."""
    import pyarrow.types as types

    if len({name.lower() for name in schema.names}) < len(schema.names):
        return False
    alike = (
        types.is_integer,
        types.is_float32,
        types.is_float64,
        types.is_boolean,
        types.is_string,
        types.is_date32,
    )
    kinds = [schema.field(name).type for name in wanted]
    kinds = [kind.value_type if types.is_dictionary(kind) else kind for kind in kinds]
    return all(any(is_one(kind) for is_one in alike) for kind in kinds)


def _files(dataset: Any, wanted: list[str]) -> list[str]:
    """The Parquet files of this machine whose columns are those of a dataset; none if Arrow adds or changes anything.

    Reading strings takes DuckDB an eighth of Arrow's time, because it does not write out what is
    stored once.
    """
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    there = isinstance(dataset, ds.FileSystemDataset) and isinstance(
        dataset.filesystem, LocalFileSystem
    )
    filtered = getattr(dataset, "_scan_options", True)  # it has no public name
    if not there or filtered or not isinstance(dataset.format, ds.ParquetFileFormat):
        return []
    pattern = any(sign in file for file in dataset.files for sign in "*?[")
    whole = not pattern and all(
        _unchanged(part, dataset.schema, wanted) for part in dataset.get_fragments()
    )
    return dataset.files if whole else []


def _unchanged(part: Any, schema: Any, wanted: list[str]) -> bool:
    """Whether a file's columns are the dataset's: not of its folder's name, not of other types, not of some rows."""
    import pyarrow.dataset as ds

    own = part.physical_schema
    return (
        part.partition_expression.equals(ds.scalar(True))
        and all(
            name in own.names and own.field(name).type == schema.field(name).type for name in wanted
        )
        and part.num_row_groups == part.metadata.num_row_groups
    )
