"""The data files of a path, which may be a file, a folder, a pattern or a URL.

Spark, Arrow, DuckDB and Jupyter put things into a folder that are not data: files and folders whose
names begin with a dot (`.ipynb_checkpoints`), or with an underscore (`_temporary`, `_SUCCESS`).
Folders that are named `version=1` are hive partitions: the value is a column of the files below
them.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

PARQUET = (".parquet", ".pq", ".parq")
DELIMITED = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
# Folders of formats with a log, which says which files are valid: the others are old versions.
LOGS = {"_delta_log": "Delta Lake", ".hoodie": "Apache Hudi"}
# Hive's name of a partition whose value is missing.
MISSING_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class DataFile(NamedTuple):
    """A file with the values of its hive partitions, by the name of the column."""

    path: str
    partition: dict[str, str | None]

    @property
    def columnar(self) -> bool:
        """True if the file is Parquet, by its name."""
        return self.path.lower().endswith(PARQUET)


def data_files(paths: list[str]) -> list[DataFile]:
    """Return the files of one format that the paths mean.

    Raises
    ------
    FileNotFoundError
        If a path has no file.
    ValueError
        If a file is neither Parquet nor text, if some files are Parquet and others text, or if a
        file occurs twice.
    """
    files = [file for path in paths for file in _expand(path)]
    seen: set[str] = set()
    for file in files:
        place = file.path if is_url(file.path) else os.path.abspath(file.path)
        if place in seen:
            raise ValueError(
                f"table must name each file once, got {file.path!r} twice: its reports would count "
                "twice"
            )
        seen.add(place)
        if file.columnar and not is_url(file.path) and not os.path.isfile(file.path):
            raise ValueError(f"table {file.path!r} must be a file, but it is a pipe or a device")
        if not file.path.lower().endswith(PARQUET + DELIMITED):
            raise ValueError(
                f"table {file.path!r} must be Parquet (.parquet) or text (.csv, .tsv, also .gz); "
                "if it is no table, name the others by a pattern such as 'folder/*.csv'; read "
                "other formats with your own library and pass the frame"
            )
    if len({file.columnar for file in files}) > 1:
        raise ValueError(
            "table must be files of one format, got Parquet and text: count each on its own, as "
            "by the patterns 'folder/*.parquet' and 'folder/*.csv', if they do not hold the same "
            "reports; their tallies can be added"
        )
    # A partition's value that some files lack is no column of the table.
    common = set.intersection(*(set(file.partition) for file in files))
    return [
        DataFile(file.path, {key: file.partition[key] for key in file.partition if key in common})
        for file in files
    ]


def is_url(path: str) -> bool:
    """Return whether a path is a URL of another machine, and not the name of a local file."""
    return "://" in path and not os.path.isfile(path)


def _expand(path: str) -> list[DataFile]:
    if os.path.isfile(path) or is_url(path):
        return [DataFile(path, {})]
    if os.path.isdir(path):
        _refuse_logs(Path(path))
        root, found = Path(path), _files_below(Path(path))
    else:
        # A folder that a pattern names before its first sign is meant, whatever its name is.
        root = Path(path.split("*")[0].split("?")[0].split("[")[0]).parent
        found = [
            Path(file)
            for file in sorted(glob.glob(path, recursive=True))
            if not os.path.isdir(file)
        ]
    files = [
        DataFile(str(file), _partition(file.relative_to(root).parts[:-1]))
        for file in found
        if not any(map(_is_hidden, file.relative_to(root).parts))
    ]
    if not files:
        raise FileNotFoundError(
            f"table {path!r} must be a file, a folder of files or a pattern, but no file was found"
            + (" except hidden ones (names with _ or . first), which are not read" if found else "")
        )
    return files


def _files_below(folder: Path) -> list[Path]:
    """Return all files in a folder; raise OSError where there may be files that cannot be seen."""

    def refuse(error: OSError) -> None:
        if not any(map(_is_hidden, Path(error.filename).relative_to(folder).parts)):
            raise error

    found = []
    for parent, _, names in os.walk(folder, onerror=refuse):
        for file in (Path(parent, name) for name in names):
            if file.is_file():
                found.append(file)
            elif file.is_symlink() and not _is_hidden(file.name) and not file.exists():
                raise FileNotFoundError(f"table {str(folder)!r} has a link to no file, {file}")
    return sorted(found)


def _refuse_logs(folder: Path) -> None:
    """Raise ValueError for a folder whose log says which of its files are valid."""
    for log, writer in LOGS.items():
        if (folder / log).is_dir():
            raise ValueError(
                f"table {str(folder)!r} must be read by a library of {writer}, whose log says "
                "which of its files are valid: pass the frame"
            )


def _is_hidden(name: str) -> bool:
    # A partition of a column whose name begins with an underscore is data.
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _partition(folders: tuple[str, ...]) -> dict[str, str | None]:
    values = {}
    for folder in folders:
        name, equals, value = folder.partition("=")
        if equals and name:
            values[unquote(name)] = None if value == MISSING_PARTITION else unquote(value)
    return values
