"""A file with one line for each finished repetition, from which an interrupted run goes on.

Each line ends with the beginning of its own SHA-256. Lines of files that were begun before there
was one are believed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from ibukit.errors import DataChanged, ForeignFile
from ibukit.files.atomic import hold, refuse_special

Key = tuple[str, int]
Rows = dict[str, dict[str, Any]]
FIELDS = {"mechanism", "repetition", "estimators"}
# Parts of a question that are optional.
OPTIONAL = {"losses"}
# The first line says besides the question that each line has a checksum.
SEALED = {"lines": "sha256"}
SEAL = re.compile(rb', "sha256": "([0-9a-f]{16})"}$')


class Write(Protocol):
    """Append a repetition to the file."""

    def __call__(self, key: Key, rows: Rows) -> None:
        """The mechanism and the number of the repetition, and the numbers of each estimator."""


@contextmanager
def opened(path: Path, question: dict[str, Any]) -> Iterator[tuple[dict[Key, Rows], Write]]:
    """Yield the content of the file and a function that appends; a line cut short is removed."""
    refuse_special(path)
    with path.open("ab") as file:
        hold(
            file, path
        )  # before it is read: what another was about to finish would be taken for cut short
        content = path.read_bytes()
        whole = content[
            : content.rfind(b"\n") + 1
        ]  # what follows the last line break was cut short
        header = _line(question | SEALED)
        if not whole and not header.startswith(content):
            raise ForeignFile(
                f"path must be a new file or one that replicate began, {path} is neither; name "
                "another file"
            )
        finished = _read(path, whole, question) if whole else {}
        file.truncate(len(whole))

        def append(line: bytes) -> None:
            file.write(line)
            file.flush()

        def write(key: Key, rows: Rows) -> None:
            append(_sealed(_line({"mechanism": key[0], "repetition": key[1], "estimators": rows})))

        if not whole:
            append(header)
        yield finished, write


def _line(thing: dict[str, Any]) -> bytes:
    # JSON has floats as `repr` writes them, so they come back to the last bit; NaN and Infinity are
    # written as Python reads them.
    return json.dumps(thing, ensure_ascii=True).encode() + b"\n"


def _sealed(line: bytes) -> bytes:
    bare = line.rstrip(b"\n")
    return bare[:-1] + b', "sha256": "' + _seal(bare) + b'"}\n'


def _seal(bare: bytes) -> bytes:
    return hashlib.sha256(bare).hexdigest()[:16].encode()


def _read(path: Path, whole: bytes, question: dict[str, Any]) -> dict[Key, Rows]:
    lines = whole.splitlines()
    there = _parsed(lines[0])
    sealed = there.items() >= SEALED.items()
    there = {name: said for name, said in there.items() if not sealed or name not in SEALED}
    if there.keys() | OPTIONAL != question.keys() | OPTIONAL:
        raise ForeignFile(
            f"path must be a new file or one that replicate began, {path} is neither; name another "
            "file"
        )
    named = [*question, *(name for name in there if name not in question)]
    differing = [
        said
        for name in named
        for said in _differences(name, there.get(name, {}), question.get(name, {}))
    ]
    if differing:
        raise ForeignFile(
            f"path must be a file of the same question, {path} is of another: "
            f"{'; '.join(differing)}. Name another file, or ask what this one was begun with"
        )
    finished: dict[Key, Rows] = {}
    for number, line in enumerate(lines[1:], start=2):
        said = SEAL.search(line)
        bare = line if said is None else line[: said.start()] + b"}"
        if said is not None and _seal(bare) != said[1]:
            raise DataChanged(
                f"path must be as replicate wrote it, line {number} of {path} was changed; take it "
                "out"
            )
        entry = _parsed(bare) if said is not None or not sealed else {}
        if entry.keys() != FIELDS or entry["estimators"].keys() != question["estimators"].keys():
            raise ForeignFile(
                f"path must hold a repetition in each line, line {number} of {path} is none; take "
                "it out"
            )
        finished.setdefault((entry["mechanism"], entry["repetition"]), entry["estimators"])
    return finished


def _parsed(line: bytes) -> dict[str, Any]:
    """The line as a mapping; an empty one where it is nothing of ours."""
    try:
        thing = json.loads(line)
    except ValueError:
        return {}
    return thing if isinstance(thing, dict) else {}


def _differences(name: str, there: Any, here: Any) -> Iterator[str]:
    if not (isinstance(there, dict) and isinstance(here, dict)):
        if there != here:
            yield f"{name} {there} there, {here} here"
        return
    for key in [*there, *(key for key in here if key not in there)]:
        if key not in here or key not in there:
            yield f"{name}: {key} only {'there' if key in there else 'here'}"
        elif there[key] != here[key]:
            yield f"{name}: {key} is {there[key]} there, {here[key]} here"
