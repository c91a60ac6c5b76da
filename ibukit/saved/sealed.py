"""A file that is replaced as a whole, by one writer at a time, and refuses to be read if a bit of it changed.

The first line says who wrote it, its version, and the SHA-256 of all that follows. The second is JSON with what is not
an array and the arrays' names; then come the arrays themselves, one .npy after the other. None of this can hold code.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ibukit.errors import DataChanged, ForeignFile

# not on Windows: there the checksum of the file that is replaced has to do
LOCKS = os.name == "posix"
HEAD = re.compile(rb"ibukit ([A-Za-z]+) ([0-9]+) sha256 ([0-9a-f]{64})")
ANYTHING = "anything"
# what reading a file can fail with that has the right checksum and is nonsense all the same
NONSENSE = (EOFError, LookupError, TypeError, ValueError, AttributeError, MemoryError, OverflowError)

Arrays = dict[str, NDArray[Any]]


def write(
    path: Path, kind: str, version: int, values: dict[str, Any], arrays: Arrays, over: str | None = ANYTHING
) -> str:
    """Put new content in the place of the old, and return its checksum: readers meet the one or the other.

    Parameters
    ----------
    path : Path
    kind : str
        Who writes it.
    version : int
    values : dict
        What JSON can hold.
    arrays : dict of arrays
        Of numbers.
    over : str or None
        The checksum of what is replaced, as this writer knows it; None for no file. By default whatever it is.
    """
    body = io.BytesIO()
    # json writes floats by repr, so they come back to the last bit
    body.write(json.dumps(values | {"arrays": list(arrays)}).encode() + b"\n")
    for array in arrays.values():
        np.save(body, array, allow_pickle=False)
    content = body.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    _replace(path.resolve(), f"ibukit {kind} {version} sha256 {digest}\n".encode(), content, over)
    return digest


def _replace(path: Path, head: bytes, content: bytes, over: str | None) -> None:
    # always of the same name: what a killed process left of it is overwritten by the next
    part = path.with_name(f"{path.name}.part")
    with _alone(part) as file:
        try:
            _refuse_other(path, over)
            file.truncate()
            file.write(head)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if LOCKS:  # while nobody else can write the part
                os.replace(part, path)
        except BaseException:
            if LOCKS:
                part.unlink(missing_ok=True)
            raise
    if not LOCKS:  # Windows renames no open file
        os.replace(part, path)
    _sync(path.parent)


@contextmanager
def _alone(part: Path) -> Iterator[BinaryIO]:
    """Open a file that no other writer has open; a lock ends with its process, however that ends."""
    while True:
        with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b") as file:
            if LOCKS:
                import fcntl

                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise DataChanged(
                        f"path must be written by one at a time, another is writing {part} now: give each its own file"
                    ) from None
                try:
                    mine = os.path.samestat(os.fstat(file.fileno()), os.stat(part))
                except FileNotFoundError:
                    mine = False
                if not mine:  # the one before has just given it its name
                    continue
            yield file
            return


def _refuse_other(path: Path, over: str | None) -> None:
    if over == ANYTHING or not path.exists():  # who took the file away has lost nothing by a new one
        return
    with path.open("rb") as file:
        said = HEAD.fullmatch(file.readline().rstrip(b"\n"))
    if said is None or said[3].decode() != over:
        raise DataChanged(
            f"path must be as this object left it, but {path} was written by another since: begin again from the file, "
            "and let one object write it"
        )


def _sync(folder: Path) -> None:
    """Make the new name last: on POSIX it is the folder that holds it."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path, kind: str, version: int) -> tuple[dict[str, Any], Arrays, str]:
    """What `write` wrote: the values, the arrays, and the checksum.

    Raises
    ------
    ForeignFile
        If it is no such file, or of another version.
    DataChanged
        If it was changed or cut short.
    """
    head, _, content = path.read_bytes().partition(b"\n")
    said = HEAD.fullmatch(head)
    if said is None or said[1].decode() != kind:
        other = "" if said is None else f": {said[1].decode()} wrote it"
        raise ForeignFile(f"path must be a file that {kind} wrote, {path} is not; name another file{other}")
    if int(said[2]) != version:
        raise ForeignFile(
            f"path must be a file of version {version}, {path} is of version {int(said[2])}; "
            "read it with the release of ibukit that wrote it"
        )
    digest = hashlib.sha256(content).hexdigest()
    if digest.encode() != said[3]:
        raise DataChanged(
            f"path must be as {kind} wrote it, but {path} does not have the SHA-256 of its first line: it was changed "
            "or cut short; restore it from a copy"
        )
    with sensible(path, kind):
        body = io.BytesIO(content)
        values = json.loads(body.readline())
        return values, {name: np.load(body, allow_pickle=False) for name in values["arrays"]}, digest


@contextmanager
def sensible(path: Path, kind: str) -> Iterator[None]:
    """While the content is made sense of: where it has the right checksum and makes none, another program wrote it."""
    try:
        yield
    except NONSENSE as error:
        raise ForeignFile(f"path must be a file that {kind} wrote, the content of {path} is not: {error!r}") from error
