"""Open tables: frames of any engine, Arrow datasets and streams, Dask partitions, and files."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any

import narwhals as nw

from ibukit.tables.arrow import ArrowBatches, ArrowDataset
from ibukit.tables.frames import Frame, parquet, reader_of
from ibukit.tables.partitions import Partitions
from ibukit.tables.table import ReportTable
from ibukit.tables.text import TextFile, TextFiles

PARQUET = (".parquet", ".pq", ".parq")
DELIMITED = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


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
        return _files([file for path in paths for file in _expand(os.fspath(path))])
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


def _expand(path: str) -> list[str]:
    """Return the files of a path, which may be a file, a folder, a pattern or a URL."""
    if "://" in path or os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        inside = [str(file) for file in sorted(Path(path).rglob("*")) if file.is_file()]
        # In a folder with both formats only the Parquet files count.
        files = [file for file in inside if file.endswith(PARQUET)]
        files = files or [file for file in inside if file.endswith(DELIMITED)]
    else:
        files = sorted(glob.glob(path, recursive=True))
    if not files:
        raise FileNotFoundError(
            f"table {path!r} must be a file, a folder of files or a pattern: there is no file"
        )
    return files


def _files(files: list[str]) -> ReportTable:
    """Return the table of files of one format."""
    for file in files:
        if not file.endswith(PARQUET + DELIMITED):
            raise ValueError(
                f"table {file!r} must be Parquet (.parquet) or text (.csv, .tsv, also .gz); read "
                "other formats with your own library and pass the frame"
            )
    columnar = [file.endswith(PARQUET) for file in files]
    if any(columnar) and not all(columnar):
        raise ValueError(
            "table must be files of one format, got Parquet and text: count each on its own, "
            "tallies add"
        )
    return parquet(files) if all(columnar) else TextFiles([TextFile(file) for file in files])
