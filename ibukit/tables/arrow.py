"""Arrow streams and datasets, which may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import narwhals as nw

from ibukit._ground.typing import override
from ibukit.errors import MissingExtra
from ibukit.tables.arrow_views import has_whole_views
from ibukit.tables.columns import Columns, Piece
from ibukit.tables.frames import ByDuckDB, as_frame
from ibukit.tables.parquet import ParquetFiles
from ibukit.tables.paths import DataFile
from ibukit.tables.table import ReportTable

# Rows of partial counts that are collected before they are added up, which bounds the memory.
MAX_PARTIAL = 2**20
# Batches and files that Arrow reads ahead; its default settings take four times the memory.
READ_AHEAD = {"batch_readahead": 4, "fragment_readahead": 1}


class ArrowBatches(ReportTable):
    """A stream of Arrow batches."""

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
            # Adding up takes time proportional to the distinct reports so far, so it is done when
            # as many partial counts have arrived.
            if sum(map(len, parts[1:])) > MAX_PARTIAL + len(parts[0]):
                parts = [columns.added(parts)]
        if parts:
            yield columns.piece(columns.added(parts))


class ArrowDataset(ArrowBatches):
    """An Arrow dataset, which DuckDB counts if it can.

    DuckDB reads plain Parquet files itself, and other datasets through an Arrow scanner.
    """

    def __init__(self, dataset: Any) -> None:
        super().__init__(
            dataset.schema, lambda names: dataset.to_batches(columns=names, **READ_AHEAD)
        )
        self._dataset = dataset

    @override
    def pieces(self, columns: Columns) -> Iterator[Piece]:
        frame = self._by_duckdb(columns)
        yield from super().pieces(columns) if frame is None else frame.pieces(columns)

    def _by_duckdb(self, columns: Columns) -> ByDuckDB | None:
        wanted = columns.wanted
        # The types of the columns decide whether grouping pays; no row is read for that.
        empty = nw.from_native(self._schema.empty_table().select(wanted))
        if not columns.worth_grouping(columns.named(empty)) or not _same_in_duckdb(
            self._schema, wanted
        ):
            return None
        try:
            files = _files(self._dataset, wanted)
            if files:
                return ParquetFiles([DataFile(file, {}) for file in files])
            # Otherwise Arrow reads, with its filters and partitions, and DuckDB counts.
            scanner = self._dataset.scanner(columns=wanted, **READ_AHEAD)
            return ByDuckDB("of Arrow", lambda duckdb: duckdb.from_arrow(scanner))
        except MissingExtra:
            return None


def _same_in_duckdb(schema: Any, wanted: list[str]) -> bool:
    """Return whether DuckDB reads the columns with the same values as Arrow."""
    import pyarrow.types as types

    # DuckDB does not distinguish capital letters from small ones in names.
    if len({name.lower() for name in schema.names}) < len(schema.names):
        return False
    alike = (
        types.is_integer,
        types.is_float32,
        types.is_float64,
        types.is_boolean,
        types.is_string,
        types.is_large_string,
        types.is_date32,
        *([types.is_string_view] if has_whole_views() else []),
    )
    kinds = [schema.field(name).type for name in wanted]
    # Dictionaries are encodings of their values.
    kinds = [kind.value_type if types.is_dictionary(kind) else kind for kind in kinds]
    return all(any(is_one(kind) for is_one in alike) for kind in kinds)


def _files(dataset: Any, wanted: list[str]) -> list[str]:
    """Return a dataset's local Parquet files; none if Arrow adds to their content or changes it.

    DuckDB reads strings in an eighth of Arrow's time, because it does not expand dictionaries.
    """
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    is_local = isinstance(dataset, ds.FileSystemDataset) and isinstance(
        dataset.filesystem, LocalFileSystem
    )
    # The dataset's filter has no public name. If the private name is gone, assume a filter.
    filtered = getattr(dataset, "_scan_options", True)
    if not is_local or filtered or not isinstance(dataset.format, ds.ParquetFileFormat):
        return []
    # DuckDB would expand a file name with these characters as a pattern.
    pattern = any(sign in file for file in dataset.files for sign in "*?[")
    unchanged = not pattern and all(
        _unchanged(part, dataset.schema, wanted) for part in dataset.get_fragments()
    )
    return dataset.files if unchanged else []


def _unchanged(part: Any, schema: Any, wanted: list[str]) -> bool:
    """Return whether the dataset has all rows of a file, and its columns from the file itself."""
    # A column may also come from the name of the folder, or have been cast to another type.
    import pyarrow.dataset as ds

    own = part.physical_schema
    return (
        part.partition_expression.equals(ds.scalar(True))
        and all(
            name in own.names and own.field(name).type == schema.field(name).type for name in wanted
        )
        and part.num_row_groups == part.metadata.num_row_groups
    )
