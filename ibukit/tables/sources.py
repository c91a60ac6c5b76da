"""What a table can be: a frame of any engine, a dataset or reader of Arrow, partitions of Dask, files."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narwhals as nw

from ibukit.errors import MissingExtra
from ibukit.tables.columns import Columns, Piece, collected
from ibukit.tables.partitions import Partitions
from ibukit.tables.source import Source
from ibukit.tables.text import TextFile, TextFiles

# rows of partial counts that are added up at once
MOST_PARTIAL = 2**20


PARQUET = (".parquet", ".pq", ".parq")
DELIMITED = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


class Frame(Source):
    """A frame that narwhals knows: pandas, Polars, Arrow tables, DuckDB, Spark and others."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def names(self) -> list[str]:
        """The columns there are."""
        return list(self.frame.collect_schema().names())

    def pieces(self, columns: Columns) -> Iterator[Piece]:
        """One, counted where the frame lives; rows that hardly repeat come in batches, where the engine has them."""
        named = columns.named(self.frame)
        if columns.worth_grouping(named):
            yield columns.piece(columns.grouped(named))
        elif isinstance(named, nw.LazyFrame) and named.implementation.is_duckdb():
            for batch in _reader(named.to_native()):
                yield columns.piece(_as_frame(batch))
        else:
            yield columns.piece(collected(named))


class Batches(Source):
    """Batches of Arrow, one after the other: a dataset that is larger than memory, a reader of a stream."""

    def __init__(self, schema: Any, batches: Any) -> None:
        self._schema, self._batches = schema, batches

    @property
    def names(self) -> list[str]:
        """The columns there are."""
        return list(self._schema.names)

    def pieces(self, columns: Columns) -> Iterator[Piece]:
        """Batches are counted one by one, and their counts added up when they are many."""
        parts: list[Any] = []
        for batch in self._batches(columns.wanted):
            named = columns.named(_as_frame(batch))
            if not columns.worth_grouping(named):
                yield columns.piece(named)
                continue
            parts.append(columns.grouped(named))
            if sum(map(len, parts[1:])) > MOST_PARTIAL + len(parts[0]):
                parts = [columns.added(parts)]
        if parts:
            yield columns.piece(columns.added(parts))


class Parquet(Frame):
    """Files of Parquet, read by DuckDB in a stream."""

    def __init__(self, files: list[str]) -> None:
        self._files, self._duckdb = files, _duckdb()
        self._connection = self._duckdb.connect()
        # the order of the rows does not matter, and keeping it takes memory
        self._connection.execute("SET preserve_insertion_order = false")
        try:
            super().__init__(nw.from_native(self._connection.read_parquet(files, union_by_name=True)))
        except self._duckdb.Error as error:
            raise self._unreadable(error) from None

    def pieces(self, columns: Columns) -> Iterator[Piece]:
        """One that DuckDB has counted, or batches where the reports are rows."""
        try:
            yield from super().pieces(columns)
        except self._duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except self._duckdb.Error as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> ValueError:
        said = " ".join(str(error).split())
        return ValueError(f"table {', '.join(self._files[:3])} cannot be read: {said[:500]}")


def open_table(table: Any) -> Source:
    """What can be asked for its columns and counted, from what people have; TypeError for anything else."""
    if isinstance(table, Source):
        return table
    if isinstance(table, (str, os.PathLike)) or (
        isinstance(table, (list, tuple)) and table and all(isinstance(path, (str, os.PathLike)) for path in table)
    ):
        many = table if isinstance(table, (list, tuple)) else [table]
        return _files([file for path in many for file in _found(os.fspath(path))])
    home = type(table).__module__.split(".")[0]
    if home in ("dask", "dask_expr") and hasattr(table, "to_delayed") and hasattr(table, "columns"):
        return Partitions(table)
    if home == "pyarrow" and hasattr(table, "to_batches") and not hasattr(table, "column_names"):
        schema = table.schema if hasattr(table, "schema") else table.projected_schema
        scanner = not hasattr(table, "schema")
        few = {"batch_readahead": 4, "fragment_readahead": 2}  # Arrow's own take four times the memory
        return Batches(schema, lambda names: table.to_batches() if scanner else table.to_batches(columns=names, **few))
    try:
        frame = nw.from_native(table, allow_series=True)
        if not isinstance(frame, nw.Series):
            return Frame(frame)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"table must have columns of different names: {' '.join(str(error).split())}") from None
    except TypeError:
        if hasattr(table, "__arrow_c_stream__"):
            reader = _reader(table)
            return Batches(reader.schema, lambda names: reader)
    raise TypeError(
        "table must be a frame (pandas, Polars, Arrow, DuckDB, Dask, Spark) or the path of Parquet or CSV files, got "
        f"{type(table).__name__}; mechanism.tally(reports) counts a single sequence"
    )


def _reader(stream: Any) -> Any:
    """Batches of whatever speaks Arrow."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise _missing("pyarrow") from error
    return pa.RecordBatchReader.from_stream(stream)


def _as_frame(batch: Any) -> Any:
    import pyarrow as pa

    return nw.from_native(pa.Table.from_batches([batch]), eager_only=True)


def _duckdb() -> Any:
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise _missing("duckdb") from error
    return duckdb


def _missing(package: str) -> MissingExtra:
    return MissingExtra(f'this table needs {package}, which is not installed: pip install "ibukit[tables]"')


def _found(path: str) -> list[str]:
    """The files that a path stands for: a file, a folder of files, a pattern; what is no path on this machine."""
    if "://" in path or os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        inside = [str(file) for file in sorted(Path(path).rglob("*")) if file.is_file()]
        files = [file for file in inside if file.endswith(PARQUET)]
        files = files or [file for file in inside if file.endswith(DELIMITED)]
    else:
        files = sorted(glob.glob(path, recursive=True))
    if not files:
        raise FileNotFoundError(f"table {path!r} must be a file, a folder of files or a pattern: there is no file")
    return files


def _files(files: list[str]) -> Source:
    for file in files:
        if not file.endswith(PARQUET + DELIMITED):
            raise ValueError(
                f"table {file!r} must be Parquet (.parquet) or text (.csv, .tsv, also .gz); read other formats with "
                "your own library and pass the frame"
            )
    parquet = [file.endswith(PARQUET) for file in files]
    if any(parquet) and not all(parquet):
        raise ValueError("table must be files of one format, got Parquet and text: count each on its own, tallies add")
    return Parquet(files) if all(parquet) else TextFiles([TextFile(file) for file in files])
