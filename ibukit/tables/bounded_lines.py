"""Lines of a file of text, none of which may be so long that it fills the memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, Any

from ibukit._ground.typing import override

# Bytes that a line may have. A million columns have room in it; a zipped file of a megabyte can
# hold a line of a gigabyte.
MAX_LINE = 2**24


def bounded_lines(file: IO[bytes], shown: str) -> Iterator[bytes]:
    """Yield the lines of a file; raise ValueError at one that is too long."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise _too_long(shown, f"line {number}")
        yield line


class BoundedLines(io.RawIOBase):
    """A binary file that can be read only while its lines are not too long."""

    def __init__(self, file: IO[bytes], shown: str) -> None:
        self._file, self._shown, self._length = file, shown, 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        end = content.rfind(b"\n") + 1
        self._length = len(content) - end + (0 if end else self._length)
        if self._length > MAX_LINE:
            raise _too_long(self._shown, "a line")
        return len(content)


def _too_long(shown: str, line: str) -> ValueError:
    return ValueError(
        f"{shown} must have lines of at most {MAX_LINE // 2**20} MB, {line} is longer; is it text, "
        "with one report on each line?"
    )
