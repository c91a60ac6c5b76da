"""A file that refuses to be read if a bit of it changed.

The first line says who wrote it, its version, and the SHA-256 of all that follows. The second is
JSON with what is not an array and the arrays' names; then come the arrays themselves, one .npy
after the other. None of this can hold code.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import read_array
from numpy.typing import NDArray

from ibukit.errors import DataChanged, ForeignFile
from ibukit.files import atomic

HEAD = re.compile(rb"ibukit ([A-Za-z]+) ([0-9]+) sha256 ([0-9a-f]{64})\n")
LONGEST_HEAD = 200  # no writer's name and version fill it
ANYTHING = "anything"
# what reading a file can fail with that has the right checksum and is nonsense all the same
NONSENSE = (
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    MemoryError,
    OverflowError,
    RecursionError,
)

Arrays = dict[str, NDArray[Any]]


def write(
    path: Path,
    kind: str,
    version: int,
    values: dict[str, Any],
    arrays: Arrays,
    over: str | None = ANYTHING,
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
        The checksum of what is replaced, as this writer knows it; None for no file. By default
        whatever it is.
    """
    body = io.BytesIO()
    # json writes floats by repr, so they come back to the last bit
    body.write(json.dumps(values | {"arrays": list(arrays)}).encode() + b"\n")
    for array in arrays.values():
        np.save(body, array, allow_pickle=False)
    content = body.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    head = f"ibukit {kind} {version} sha256 {digest}\n".encode()
    atomic.replace(path, head + content, lambda old: _refuse_other(old, over))
    return digest


def _refuse_other(path: Path, over: str | None) -> None:
    if (
        over == ANYTHING or not path.exists()
    ):  # who took the file away has lost nothing by a new one
        return
    with path.open("rb") as file:
        said = HEAD.fullmatch(file.readline(LONGEST_HEAD))
    if said is None or said[3].decode() != over:
        raise DataChanged(
            f"path must be as this object left it, but {path} was written by another since: begin again from the file, "
            "and let one object write it"
        )


def read(path: Path, kind: str, version: int) -> tuple[dict[str, Any], Arrays, str]:
    """What `write` wrote: the values, the arrays, and the checksum.

    Raises
    ------
    ForeignFile
        If it is no such file, or of another version.
    DataChanged
        If it was changed or cut short.
    """
    atomic.refuse_special(path)
    with path.open("rb") as file:
        said = HEAD.fullmatch(file.readline(LONGEST_HEAD))
        # what somebody else wrote may be larger than memory
        content = b"" if said is None else file.read()
    if said is None or said[1].decode() != kind:
        other = "" if said is None else f": {said[1].decode()} wrote it"
        raise ForeignFile(
            f"path must be a file that {kind} wrote, {path} is not; name another file{other}"
        )
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
        # not np.load, which opens archives, too
        return (
            values,
            {name: read_array(body, allow_pickle=False) for name in values["arrays"]},
            digest,
        )


@contextmanager
def sensible(path: Path, kind: str) -> Iterator[None]:
    """While the content is made sense of: where it has the right checksum and makes none, another program wrote it."""
    try:
        yield
    except NONSENSE as error:
        raise ForeignFile(
            f"path must be a file that {kind} wrote, the content of {path} is not: {error!r}"
        ) from error
