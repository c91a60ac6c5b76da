"""Parquet files as one table, which DuckDB reads in a stream."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from typing import Any

from ibukit._ground.typing import override
from ibukit.tables.columns import Columns, Piece
from ibukit.tables.frames import ByDuckDB
from ibukit.tables.paths import DataFile, is_url

# The column in which DuckDB says which file a row is from; no file has a column of this name.
FILE = "\x1f file"


class ParquetFiles(ByDuckDB):
    """Parquet files with the same columns; hive partitions are columns that the files lack."""

    def __init__(self, files: list[DataFile]) -> None:
        paths = [file.path for file in files]
        keys = set().union(*(file.partition for file in files))
        # A single file without partitions has nothing that it could be compared with.
        self._schemas = _schemas(paths) if keys or len(paths) > 1 else {}
        # Remote files have no schemas here; the names of folders are then compared with nothing.
        first = next(iter(self._schemas.values()), None)
        own = set() if first is None else keys.intersection(first.names)
        if own and own != keys:
            raise ValueError(
                f"table must have its partitions {sorted(keys)} in the names of its folders or in "
                f"its files, got {sorted(own)} in both: name the files by a pattern of one level"
            )
        # Matching columns by name takes a third more time, so it is done only if it may be needed.
        by_name = len(paths) > 1 and not self._have_equal_schemas()
        # In the name of a file the signs of a pattern would stand for other files, and a tilde at
        # its beginning for a home: names are escaped and absolute. Patterns in URLs are left to
        # DuckDB.
        names = [path if is_url(path) else os.path.abspath(path) for path in paths]
        shown = [
            name if is_url(path) else glob.escape(name)
            for name, path in zip(names, paths, strict=True)
        ]

        def relation(connection: Any) -> Any:
            # Names are literals: with parameters, a DuckDB older than 2 reads all rows at once.
            listed = ", ".join(map(_literal, shown))
            options = f"union_by_name = {by_name}, hive_partitioning = false"
            source = f"FROM read_parquet([{listed}], {options}"
            if not keys - own:
                return connection.sql(f"{source})")
            import pandas as pd

            # DuckDB itself would read columns also from folders above the table's, and prefer them
            # to columns of the files.
            values = {key: [file.partition[key] for file in files] for key in keys - own}
            folders = pd.DataFrame({FILE: names, **values}, dtype="str").drop_duplicates()
            connection.register("folders", folders)
            return connection.sql(f"{source}, filename = '{FILE}') JOIN folders USING (\"{FILE}\")")

        super().__init__(", ".join(paths[:3]), relation)

    @property
    @override
    def names(self) -> list[str]:
        return [name for name in super().names if name != FILE]

    @override
    def pieces(self, columns: Columns) -> Iterator[Piece]:
        # Columns are matched by name: a column that one file lacks would have missing values there.
        # A column that all files lack is a hive partition.
        in_files = set().union(*(schema.names for schema in self._schemas.values()))
        for path, schema in self._schemas.items():
            for name in columns.wanted:
                if name in in_files and name not in schema.names:
                    raise ValueError(
                        f"table must have a column {name!r} in every file, {path} has "
                        f"{', '.join(map(repr, schema.names[:20]))}"
                    )
        yield from super().pieces(columns)

    def _have_equal_schemas(self) -> bool:
        """Return whether the files certainly have the same columns in the same order."""
        if not self._schemas:
            return False
        first, *others = self._schemas.values()
        return all(first.equals(other) for other in others)


def _literal(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def _schemas(paths: list[str]) -> dict[str, Any]:
    """Return the schema of each file, or nothing if not all of them can be read."""
    try:
        from pyarrow.parquet import read_schema

        # Only the footers of the files are read.
        return {path: read_schema(path) for path in paths}
    # If pyarrow is missing, or a file is remote or not Parquet, DuckDB finds out.
    except (ModuleNotFoundError, OSError, ValueError):
        return {}
