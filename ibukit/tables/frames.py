"""Frames that narwhals knows, and files and Arrow's datasets as frames of DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import narwhals as nw

from ibukit._ground.typing import override
from ibukit.errors import MissingExtra
from ibukit.tables.columns import Columns, Piece, collected
from ibukit.tables.table import Source


class Frame(Source):
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
        elif isinstance(named, nw.LazyFrame) and named.implementation.is_duckdb():
            for batch in reader_of(named.to_native()):
                yield columns.piece(as_frame(batch))
        else:
            yield columns.piece(collected(named))


class ByDuckDB(Frame):
    """A relation of DuckDB's over files, or over what Arrow reads."""

    def __init__(self, shown: str, relation: Callable[[Any], Any]) -> None:
        self._shown, self._duckdb = shown, _duckdb()
        self._connection = self._duckdb.connect()
        # the order of the rows does not matter, and keeping it takes memory
        self._connection.execute("SET preserve_insertion_order = false")
        try:
            super().__init__(nw.from_native(relation(self._connection)))
        except self._duckdb.Error as error:
            raise self._unreadable(error) from None

    @override
    def pieces(self, columns: Columns) -> Iterator[Piece]:
        try:
            yield from super().pieces(columns)
        except self._duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except self._duckdb.Error as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> ValueError:
        said = " ".join(str(error).split())
        return ValueError(f"table {self._shown} cannot be read: {said[:500]}")


def parquet(files: list[str]) -> ByDuckDB:
    """Files of Parquet, read by DuckDB in a stream."""
    by_name = not _alike(files)  # which takes a third more time
    return ByDuckDB(
        ", ".join(files[:3]), lambda duckdb: duckdb.read_parquet(files, union_by_name=by_name)
    )


def _alike(files: list[str]) -> bool:
    """Whether it is certain that the files have the same columns in the same order."""
    if len(files) == 1:
        return True
    try:
        from pyarrow.parquet import read_schema

        first, *others = (read_schema(file) for file in files)
    except (
        ModuleNotFoundError,
        OSError,
        ValueError,
    ):  # not here, elsewhere, or no Parquet: that is for DuckDB to say
        return False
    return all(first.equals(other) for other in others)


def reader_of(stream: Any) -> Any:
    """Batches of whatever speaks Arrow."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise missing_extra("pyarrow") from error
    return pa.RecordBatchReader.from_stream(stream)


def as_frame(batch: Any) -> Any:
    """A batch of Arrow as narwhals has it."""
    import pyarrow as pa

    return nw.from_native(pa.Table.from_batches([batch]), eager_only=True)


def _duckdb() -> Any:
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise missing_extra("duckdb") from error
    return duckdb


def missing_extra(package: str) -> MissingExtra:
    """The error that says what to install."""
    return MissingExtra(
        f'this table needs {package}, which is not installed: pip install "ibukit[tables]"'
    )
