"""Open tables: frames of any engine, Arrow datasets and streams, Dask partitions, and files."""

from __future__ import annotations

import os
from typing import Any

import narwhals as nw

from ibukit.tables.arrow import ArrowBatches, ArrowDataset
from ibukit.tables.frames import Frame, reader_of
from ibukit.tables.parquet import ParquetFiles
from ibukit.tables.partitions import Partitions
from ibukit.tables.paths import DataFile, data_files
from ibukit.tables.table import ReportTable
from ibukit.tables.text import TextFile, TextFiles


def open_table(table: Any) -> ReportTable:
    """Return a `ReportTable` of a frame, dataset or path; TypeError for anything else."""
    if isinstance(table, ReportTable):
        return table
    if isinstance(table, (str, os.PathLike)) or (
        isinstance(table, (list, tuple))
        and table
        and all(isinstance(path, (str, os.PathLike)) for path in table)
    ):
        # One path is treated as a list of one.
        paths = table if isinstance(table, (list, tuple)) else [table]
        return _files(data_files([os.fspath(path) for path in paths]))
    # Dask and Arrow are recognised by the module of the class, so that neither has to be installed.
    home = type(table).__module__.split(".")[0]
    if home in ("dask", "dask_expr") and hasattr(table, "to_delayed") and hasattr(table, "columns"):
        return Partitions(table)
    if home == "pyarrow" and hasattr(table, "to_batches") and not hasattr(table, "column_names"):
        scanner = not hasattr(table, "schema")
        return (
            ArrowBatches(table.projected_schema, lambda names: table.to_batches())
            if scanner
            else ArrowDataset(table)
        )
    try:
        # narwhals recognises the frames of all other engines. A Series is not a table.
        frame = nw.from_native(table, allow_series=True)
        if not isinstance(frame, nw.Series):
            return Frame(frame)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(
            f"table must have columns of different names: {' '.join(str(error).split())}"
        ) from None
    except TypeError:
        if hasattr(table, "__arrow_c_stream__"):
            reader = reader_of(table)
            return ArrowBatches(reader.schema, lambda names: reader)
    raise TypeError(
        "table must be a frame (pandas, Polars, Arrow, DuckDB, Dask, Spark) or the path of "
        f"Parquet or CSV files, got {type(table).__name__}; mechanism.tally(reports) counts a "
        "single sequence"
    )


def _files(files: list[DataFile]) -> ReportTable:
    """Return the table of files of one format."""
    if files[0].columnar:
        return ParquetFiles(files)
    return TextFiles([TextFile(file.path, partition=file.partition) for file in files])
