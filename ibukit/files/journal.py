"""The file of `replicate`, which grows by a line for each repetition, so that a run can go on.

The first line is the question, with everything on which the numbers depend. Each other line ends
with the first 16 hexadecimal digits of the SHA-256 of the rest of it. It is a text and not a
database, so wherever it is cut off, its whole lines remain, and any program can read them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ibukit.errors import DataChanged, ForeignFile
from ibukit.files.atomic import lock, refuse_special

# A mechanism and the number of the repetition.
Key = tuple[str, int]
# The numbers of each estimator.
Rows = dict[str, dict[str, Any]]

# Every line is a mapping in JSON.
BEGINNING = b'{"'
FIELDS = {"mechanism", "repetition", "estimators"}
# Fields of a repetition that are words; all others are numbers.
WORDS = {"status"}
# Names that a question may lack.
OPTIONAL = {"losses"}
# The first line also tells whoever reads the file without ibukit how lines are checked.
LINES = {"lines": "sha256"}
CHECKSUM = re.compile(rb', "sha256": "([0-9a-f]{16})"}$')


@contextmanager
def open_journal(
    path: Path, question: dict[str, Any]
) -> Iterator[tuple[dict[Key, Rows], Callable[[Key, Rows], None]]]:
    """Yield the repetitions that the file holds, and the function that appends one."""
    refuse_special(path)
    with path.open("ab") as file:
        # The lock comes first: a line that another run is about to finish would look cut short.
        lock(file, path)
        _refuse_other_beginning(path)
        content = path.read_bytes()
        # Whatever follows the last line break was cut short, and is computed again.
        whole = content[: content.rfind(b"\n") + 1]
        header = question | LINES
        if not whole and not _line(header).startswith(content):
            raise _foreign(path)
        finished = _read(path, whole.splitlines(), header) if whole else {}
        file.truncate(len(whole))

        def append(line: bytes) -> None:
            file.write(line)
            file.flush()

        def write(key: Key, rows: Rows) -> None:
            line = _line({"mechanism": key[0], "repetition": key[1], "estimators": rows})[:-1]
            append(line[:-1] + b', "sha256": "' + _checksum(line) + b'"}\n')

        if not whole:
            append(_line(header))
        yield finished, write


def _refuse_other_beginning(path: Path) -> None:
    """Refuse a file of another program by its first bytes, as it may be larger than memory."""
    with path.open("rb") as file:
        beginning = file.read(len(BEGINNING))
    if not BEGINNING.startswith(beginning):
        raise _foreign(path)


def _line(values: dict[str, Any]) -> bytes:
    # JSON has floats as `repr` writes them, so they come back to the last bit, and NaN and Infinity
    # as Python reads them.
    return json.dumps(values).encode() + b"\n"


def _checksum(line: bytes) -> bytes:
    return hashlib.sha256(line).hexdigest()[:16].encode()


def _read(path: Path, lines: list[bytes], header: dict[str, Any]) -> dict[Key, Rows]:
    there = _parsed(lines[0])
    if there.keys() | OPTIONAL != header.keys() | OPTIONAL:
        raise _foreign(path)
    differing = [
        difference
        for name in header | there
        for difference in _differences(name, there.get(name, {}), header.get(name, {}))
    ]
    if differing:
        raise ForeignFile(
            f"path must be a file of the same question, {path} is of another: "
            f"{'; '.join(differing)}. Name another file, or ask what this one was begun with"
        )
    finished: dict[Key, Rows] = {}
    for number, line in enumerate(lines[1:], start=2):
        end = CHECKSUM.search(line)
        rest = b"" if end is None else line[: end.start()] + b"}"
        if end is not None and _checksum(rest) != end[1]:
            raise DataChanged(
                f"path must be as replicate wrote it, but line {number} of {path} was changed; "
                "delete this line, and replicate computes it again"
            )
        entry = _parsed(rest)
        if not _is_repetition(entry, header["estimators"]):
            raise ForeignFile(
                f"path must hold a repetition in each line, but line {number} of {path} does not; "
                "delete this line, and replicate computes what is missing"
            )
        finished.setdefault((entry["mechanism"], entry["repetition"]), entry["estimators"])
    return finished


def _is_repetition(entry: dict[str, Any], estimators: dict[str, Any]) -> bool:
    """Return whether a line holds numbers and words of all estimators, as `replicate` writes."""
    if entry.keys() != FIELDS or not isinstance(entry["estimators"], dict):
        return False
    rows = entry["estimators"]
    return (
        isinstance(entry["mechanism"], str)
        and type(entry["repetition"]) is int
        and entry["repetition"] >= 0
        and rows.keys() == estimators.keys()
        and all(
            isinstance(row, dict)
            and row
            and all(
                type(value) is str if name in WORDS else type(value) in (int, float)
                for name, value in row.items()
            )
            for row in rows.values()
        )
    )


def _parsed(line: bytes) -> dict[str, Any]:
    """Return the mapping that a line holds as JSON, or an empty one if it holds none."""
    try:
        values = json.loads(line)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _foreign(path: Path) -> ForeignFile:
    return ForeignFile(
        f"path must be a new file or one that replicate began, {path} is neither; name another file"
    )


def _differences(name: str, there: Any, here: Any) -> Iterator[str]:
    """Say in words how a value of the first line differs from that of today's question."""
    if not (isinstance(there, dict) and isinstance(here, dict)):
        if there != here:
            yield f"{name} {there} there, {here} here"
        return
    for key in there | here:
        if key not in here or key not in there:
            yield f"{name}: {key} only {'there' if key in there else 'here'}"
        elif there[key] != here[key]:
            yield f"{name}: {key} is {there[key]} there, {here[key]} here"
