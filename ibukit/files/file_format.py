"""A file format whose files are refused if even one bit of them has changed.

The first line says which class wrote it, the version of the format, and the SHA-256 of all that
follows. The second line is JSON with all values that are not arrays, and with the arrays' names;
then come the arrays themselves, one .npy after the other. None of this can hold code.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import read_array

from ibukit.errors import DataChanged, ForeignFile
from ibukit.files import atomic
from ibukit.files.json_values import Arrays

VERSION = 1
HEAD = re.compile(rb"ibukit ([A-Za-z]+) ([1-9][0-9]*) sha256 ([0-9a-f]{64})\n")
# Bytes of a first line; none that this package writes is as long.
MAX_HEAD = 200
# Errors of decoding content whose checksum is right: they mean that another program wrote it.
DECODING_ERRORS = (
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    MemoryError,
    OverflowError,
    RecursionError,
)


def write(
    path: Path,
    kind: str,
    values: dict[str, Any],
    arrays: Arrays,
    *,
    overwrite: bool = True,
    checksum: str | None = None,
) -> str:
    """Replace a file and return its checksum: readers find the old content or the new.

    Parameters
    ----------
    path : Path
    kind : str
        Name of the class that writes.
    values : dict
        Values that JSON can hold.
    arrays : dict of arrays
        Arrays of numbers.
    overwrite : bool
        False refuses to replace a file that does not have this checksum.
    checksum : str or None
        Checksum of the file as this writer left it; None if it has not written the file.
    """
    body = io.BytesIO()
    # JSON has floats as `repr` writes them, so they come back to the last bit.
    body.write(json.dumps(values | {"arrays": list(arrays)}).encode() + b"\n")
    for array in arrays.values():
        np.save(body, array, allow_pickle=False)
    content = body.getvalue()
    new_checksum = hashlib.sha256(content).hexdigest()
    head = f"ibukit {kind} {VERSION} sha256 {new_checksum}\n".encode()
    # The old file is looked at while the lock is held, so that no other can come between.
    check = None if overwrite else partial(_refuse_other, checksum)
    atomic.replace(path, head + content, check)
    return new_checksum


def _refuse_other(checksum: str | None, path: Path) -> None:
    # If somebody removed the file, a new one loses nothing.
    if not path.exists():
        return
    with path.open("rb") as file:
        head = HEAD.fullmatch(file.readline(MAX_HEAD))
    if head is None or head[3].decode() != checksum:
        raise DataChanged(
            f"path must be as this object left it, but another object has written {path} since: "
            "begin again from the file, and let only one object write it"
        )


def read(path: Path, kind: str) -> tuple[dict[str, Any], Arrays, str]:
    """Return what `write` wrote: the values, the arrays and the checksum.

    Raises
    ------
    ForeignFile
        If it is not such a file, or is of another version.
    DataChanged
        If it was changed or cut short.
    """
    atomic.refuse_special(path)
    with path.open("rb") as file:
        head = HEAD.fullmatch(file.readline(MAX_HEAD))
        # A file of another program may be larger than memory, so it is not read any further.
        try:
            content = b"" if head is None else file.read()
        except (MemoryError, OverflowError):
            raise ForeignFile(
                f"path must be a file that {kind} wrote, {path} is larger than the memory"
            ) from None
    if head is None or head[1].decode() != kind:
        advice = "name another file"
        if head is not None:
            # Every class that writes such files is a name of the package.
            other = head[1].decode()
            advice = f"{other} wrote it, so load it by ibukit.{other}.load, or {advice}"
        raise ForeignFile(f"path must be a file that {kind} wrote, {path} is not; {advice}")
    if int(head[2]) != VERSION:
        raise ForeignFile(
            f"path must be a file of version {VERSION}, {path} is of version {int(head[2])}; "
            "read it with the release of ibukit that wrote it"
        )
    # The checksum comes first: nothing is decoded that is not what was written.
    checksum = hashlib.sha256(content).hexdigest()
    if checksum.encode() != head[3]:
        raise DataChanged(
            f"path must be as {kind} wrote it, but {path} does not have the SHA-256 of its first "
            "line: it was changed or cut short; restore it from a copy"
        )
    with decoding_errors_as_foreign(path, kind):
        body = io.BytesIO(content)
        values = json.loads(body.readline(), object_pairs_hook=_once)
        # `np.load` is not used, because it opens archives as well.
        arrays = _once([(name, read_array(body, allow_pickle=False)) for name in values["arrays"]])
        if body.read(1):
            raise ValueError("there are bytes after the last array")
        for name, array in arrays.items():
            if array.dtype.kind not in "biuf":
                raise ValueError(f"{name} must be numbers, got {array.dtype}")
        return values, arrays, checksum


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a mapping; ValueError if a name occurs twice, because one value would then be lost."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name occurs twice")
    return values


@contextmanager
def decoding_errors_as_foreign(path: Path, kind: str) -> Iterator[None]:
    """Raise ForeignFile where content with the right checksum cannot be decoded."""
    try:
        yield
    except DECODING_ERRORS as error:
        raise ForeignFile(
            f"path must be a file that {kind} wrote, the content of {path} is not: {error!r}"
        ) from error
