"""Delimited text as a table, read in a stream; every error names its line."""

from __future__ import annotations

import csv
import gzip
import io
import os
import shutil
import sys
import tempfile
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import narwhals as nw

from ibukit._ground.typing import override
from ibukit.tables.bounded_lines import BoundedLines, bounded_lines
from ibukit.tables.columns import Columns, Piece
from ibukit.tables.table import ReportTable

# Lines that are read and counted at a time: some 20 MB of text.
CHUNK_LINES = 2**18
# Signs that other programs write between columns; a semicolon, where numbers have a comma.
OTHER_DELIMITERS = (";", "\t", "|")
# A gzip file begins with these two bytes, whatever its name is.
GZIP = b"\x1f\x8b"
# Errors of a gzip file that is damaged or cut short.
GZIP_ERRORS = (gzip.BadGzipFile, EOFError, zlib.error)


class TextFile(ReportTable):
    """A file of delimited text, also gzipped, or standard input as "-"."""

    textual = True

    def __init__(
        self, path: str, delimiter: str | None = None, partition: Mapping[str, str | None] = {}
    ) -> None:
        self.shown = "standard input" if path == "-" else path
        self._path = self._readable_twice(path)
        name = self._path.name.lower().removesuffix(".gz")
        usual = "\t" if name.endswith(".tsv") else ","
        self.delimiter = usual if delimiter is None else delimiter
        if len(self.delimiter) != 1:
            raise ValueError(f"delimiter must be one character, got {self.delimiter!r}")
        with self._bytes() as file:
            self._zipped = file.read(len(GZIP)) == GZIP
        self.headless = False
        self._header = next(self._rows(), (0, []))[1]
        if not self._header:
            raise ValueError(f"{self.shown} must begin with a line of column names, but is empty")
        if delimiter is None:
            self._refuse_other_delimiters()
        # Hive partitions are columns, unless the file has one of that name.
        self._partition = {
            name: value for name, value in partition.items() if name not in self._header
        }
        self._chunk: Any = None
        self._start = 0

    def _refuse_other_delimiters(self) -> None:
        """Raise ValueError if the columns are separated by another character than the usual one."""
        first, second = ([*(row for _, row in islice(self._rows(), 2)), [], []])[:2]
        for sign in OTHER_DELIMITERS:
            # The sign stands in both lines equally often, and makes several columns of one.
            n = first[0].count(sign)
            if len(first) == 1 and n and (not second or second[0].count(sign) == n):
                raise ValueError(
                    f"line 1 of {self.shown} has one column, {first[0]!r}, with {sign!r} between "
                    f"names: say --delimiter {sign!r} on the command line, or pass the frame "
                    f"pandas.read_csv(path, sep={sign!r}, dtype=str); if it is one name, say "
                    "--delimiter ','"
                )

    @property
    @override
    def names(self) -> list[str]:
        return [*(["report"] if self.headless else self._header), *self._partition]

    @override
    def pieces(self, columns: Columns) -> Iterator[Piece]:
        for name in columns.wanted:
            if self.names.count(name) > 1:
                raise ValueError(
                    f"{self.shown} must have one column {name!r}, but has "
                    f"{self.names.count(name)}: give each column a name of its own"
                )
        # The current chunk is kept, so that `find` can search it for the row of an error.
        for chunk in self._chunks():
            chunk.columns = self.names[: chunk.shape[1]]
            self._chunk = chunk.assign(**self._partition)[columns.wanted]
            yield self._piece(columns, self._chunk)
            self._start += len(chunk)
        self._chunk = None

    def _piece(self, columns: Columns, chunk: Any) -> Piece:
        if columns.count is not None:
            numbers = dict.fromkeys([columns.count, *columns.survey.replicates])
            chunk = chunk.assign(
                **{name: self._numbers(chunk[name], columns.wanted_counts) for name in numbers}
            )
        named = columns.named(nw.from_native(chunk, eager_only=True))
        return columns.piece(columns.grouped(named) if columns.worth_grouping(named) else named)

    def _numbers(self, texts: Any, wanted: str) -> Any:
        import pandas as pd

        # Everything is read as text; a count that is not a number is an error, an empty one is
        # missing.
        numbers = pd.to_numeric(texts, errors="coerce")
        bad = numbers.isna() & texts.notna()
        if bad.any():
            wrong = texts[bad].iloc[0]
            raise ValueError(f"column {texts.name!r} must hold {wanted}, but contains {wrong!r}")
        return numbers

    @override
    def find(
        self, columns: Columns, check: Callable[[Piece], None]
    ) -> tuple[str, Exception] | None:
        def error_of(rows: Any) -> Exception | None:
            try:
                check(self._piece(columns, rows))
            # Whatever error these rows raise, it is the one that is looked for.
            except Exception as error:
                return error
            return None

        # No line is at fault where the columns or the options alone are refused.
        if (
            self._chunk is None
            or error_of(self._chunk) is None
            or error_of(self._chunk.iloc[:0]) is not None
        ):
            return None
        # Bisection for the first row that fails: the rows before `low` pass, those before `high`
        # fail.
        low, high = 0, len(self._chunk)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if error_of(self._chunk.iloc[low:middle]) else (middle, high)
        error = error_of(self._chunk.iloc[low:high])
        # The number of the row in the file, counting the line of column names.
        row = self._start + low + (not self.headless)
        line = next(islice(self._rows(), row, None), (0, []))[0]
        return None if error is None else (f"line {line} of {self.shown}", error)

    def _chunks(self) -> Iterator[Any]:
        import pandas as pd
        from tqdm import tqdm

        size = self._path.stat().st_size
        bar = tqdm(
            total=size, unit="B", unit_scale=True, desc=self.shown, disable=None, leave=False
        )
        with bar, self._named_errors(), self._bytes() as raw, warnings.catch_warnings():
            # A line with too many fields is an error here; pandas alone would drop the extra
            # fields.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            unzipped: Any = gzip.GzipFile(fileobj=raw) if self._zipped else raw
            file = io.BufferedReader(BoundedLines(unzipped, self.shown))
            # Values stay text, and only an empty field is missing: "NA" may be a label.
            options: dict[str, Any] = {
                "dtype": str,
                "keep_default_na": False,
                "na_values": [""],
                "index_col": False,
            }
            options |= {"skip_blank_lines": False, "sep": self.delimiter, "encoding": "utf-8-sig"}
            options |= {
                "header": None,
                "names": range(len(self._header)),
                "skiprows": 0 if self.headless else 1,
            }
            with pd.read_csv(file, chunksize=CHUNK_LINES, **options) as chunks:
                for chunk in chunks:
                    # The position in the compressed file measures the progress.
                    bar.update(raw.tell() - bar.n)
                    yield chunk

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn errors that occur in reading into ValueErrors with file and line."""
        import pandas as pd

        try:
            yield
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            raise ValueError(
                self._too_many_fields() or f"{self.shown} cannot be read: {error}"
            ) from None
        except pd.errors.EmptyDataError:
            return
        except UnicodeDecodeError:
            raise ValueError(self._undecodable()) from None
        except GZIP_ERRORS as error:
            raise ValueError(self._damaged(error)) from None

    def _too_many_fields(self) -> str | None:
        wide = len(self._header)
        for line, row in self._rows():
            if len(row) > wide:
                return f"line {line} of {self.shown} must have {wide} field(s), but has {len(row)}"
        return None

    def _undecodable(self) -> str:
        with self._content() as file:
            for line, content in enumerate(bounded_lines(file, self.shown), 1):
                try:
                    content.decode("utf-8")
                except UnicodeDecodeError as error:
                    byte = content[error.start]
                    place = f"line {line} of {self.shown}"
                    return f"{place} must be UTF-8, byte {error.start + 1} is 0x{byte:02x}"
        return f"{self.shown} must be UTF-8"

    def _damaged(self, error: Exception) -> str:
        line = 1
        try:
            with self._content() as file:
                # The number of the last line that could be read is the answer.
                for line, _ in enumerate(bounded_lines(file, self.shown), 2):  # noqa: B007
                    pass
        except GZIP_ERRORS:
            pass
        return f"line {line} of {self.shown} cannot be unzipped: {error}"

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each row with the number of the line on which it ends."""
        try:
            with self._content() as file:
                lines = csv.reader(
                    (line.decode("utf-8") for line in bounded_lines(file, self.shown)),
                    delimiter=self.delimiter,
                )
                for row in lines:
                    if lines.line_num == 1 and row:
                        # Spreadsheet programs begin UTF-8 files with a byte order mark.
                        row[0] = row[0].removeprefix("\ufeff")
                    yield lines.line_num, row
        except UnicodeDecodeError:
            raise ValueError(self._undecodable()) from None
        except GZIP_ERRORS as error:
            raise ValueError(self._damaged(error)) from None
        except csv.Error as error:
            raise ValueError(f"{self.shown} cannot be read: {error}") from None

    @contextmanager
    def _content(self) -> Iterator[IO[bytes]]:
        with self._bytes() as raw:
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if self._zipped else raw

    def _bytes(self) -> IO[bytes]:
        return self._path.open("rb")

    def _readable_twice(self, path: str) -> Path:
        """Return the path of a file that holds the text, also of standard input and of pipes."""
        if path == "-":
            return self._spooled(sys.stdin.buffer)
        # A pipe gives its content only once, so the content goes to a file.
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            with open(path, "rb") as pipe:
                return self._spooled(pipe)
        return Path(path)

    def _spooled(self, source: IO[bytes]) -> Path:
        """Copy a stream to a file: it is read a second time to locate an error."""
        # The temporary file lives as long as the table.
        spool = tempfile.NamedTemporaryFile(prefix="ibukit-")  # noqa: SIM115
        weakref.finalize(self, spool.close)
        try:
            beginning = source.read(len(GZIP))
            spool.write(beginning)
            # A stream without an end, as /dev/zero, does not fill the disk.
            rest: Any = source if beginning == GZIP else BoundedLines(source, self.shown)
            shutil.copyfileobj(rest, spool)
            spool.flush()
        except BaseException:
            # The traceback holds the table, and with it the file.
            spool.close()
            raise
        return Path(spool.name)


class TextFiles(ReportTable):
    """Several files of delimited text with the same columns, in any order."""

    textual = True

    def __init__(self, files: list[TextFile]) -> None:
        self._files, self._current = files, files[0]
        for file in files:
            # Files may have their columns in different orders.
            if set(file.names) != set(self.names):
                raise ValueError(
                    f"files must have the same columns, {files[0].shown} has {self.names} and "
                    f"{file.shown} {file.names}"
                )

    @property
    @override
    def names(self) -> list[str]:
        return self._files[0].names

    @override
    def pieces(self, columns: Columns) -> Iterator[Piece]:
        for file in self._files:
            self._current = file
            yield from file.pieces(columns)

    @override
    def find(
        self, columns: Columns, check: Callable[[Piece], None]
    ) -> tuple[str, Exception] | None:
        return self._current.find(columns, check)
