"""Frames that narwhals knows, and relations of DuckDB as frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import narwhals as nw

from ibukit._ground.extras import missing_extra
from ibukit._ground.typing import override
from ibukit.tables.columns import Columns, Piece, collected
from ibukit.tables.table import ReportTable


class Frame(ReportTable):
    """A frame that narwhals knows: pandas, Polars, Arrow tables, DuckDB, Spark and others."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    @override
    def names(self) -> list[str]:
        return list(self.frame.collect_schema().names())

    @override
    def pieces(self, columns: Columns) -> Iterator[Piece]:
        named = columns.named(self.frame)
        if columns.worth_grouping(named):
            yield columns.piece(columns.grouped(named))
        # Reports that hardly repeat are read in batches, which need little memory.
        elif isinstance(named, nw.LazyFrame) and named.implementation.is_duckdb():
            for batch in reader_of(named.to_native()):
                yield columns.piece(as_frame(batch))
        else:
            yield columns.piece(collected(named))


class ByDuckDB(Frame):
    """A DuckDB relation over files or over an Arrow scanner."""

    def __init__(self, shown: str, relation: Callable[[Any], Any]) -> None:
        self._shown, self._duckdb = shown, _duckdb()
        # Our own connection leaves the settings of the user's connection as they are.
        self._connection = self._duckdb.connect()
        # Counts do not depend on the order of rows, and keeping it takes memory.
        self._connection.execute("SET preserve_insertion_order = false")
        try:
            super().__init__(nw.from_native(relation(self._connection)))
        except self._duckdb.Error as error:
            raise self._unreadable(error) from None

    @override
    def pieces(self, columns: Columns) -> Iterator[Piece]:
        if columns.weighted:
            # A sum of floats depends on the order of its terms, and threads change that.
            self._connection.execute("SET threads = 1")
        try:
            yield from super().pieces(columns)
        except self._duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except self._duckdb.Error as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> ValueError:
        # Messages of DuckDB have several lines and may be long.
        message = " ".join(str(error).split())
        return ValueError(f"table {self._shown} cannot be read: {message[:500]}")


def reader_of(stream: Any) -> Any:
    """Return a reader of the batches of any object with the Arrow stream interface."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise missing_extra("this table", "pyarrow") from error
    # An older Arrow ends the process when it hands views over, even to itself.
    if isinstance(stream, pa.RecordBatchReader):
        return stream
    if isinstance(stream, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(stream.schema, [stream])
    return pa.RecordBatchReader.from_stream(stream)


def as_frame(batch: Any) -> Any:
    """Return an Arrow batch as a narwhals frame."""
    import pyarrow as pa

    return nw.from_native(pa.Table.from_batches([batch]), eager_only=True)


def _duckdb() -> Any:
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise missing_extra("this table", "duckdb") from error
    return duckdb
