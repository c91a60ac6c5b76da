"""The file that holds a PRIVIC loop between two moments: replaced as a whole, never half of it.

The first line says what it is, its version, and the SHA-256 of all that follows. The second is JSON with what is not an
array and the arrays' names; then come the arrays themselves, one .npy after the other.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit import _validate
from ibukit._validate import Floats, Ints
from ibukit.alphabet import Alphabet, Line
from ibukit.design._privic_choices import Choices
from ibukit.errors import DataChanged, ForeignFile
from ibukit.grid import Grid
from ibukit.mechanisms import MatrixMechanism

VERSION = 2
HEAD = re.compile(rb"ibukit Privic ([0-9]+) sha256 ([0-9a-f]{64})")
LABELS = (str, int, float, bool)

Arrays = dict[str, NDArray[Any]]


# of the choices and of a cycle, what JSON can hold as it is
PLAIN = ("beta", "ba_steps", "ibu_steps", "restart", "combine", "tol")
SCALARS = ("gap", "n_iter", "status", "method")


@dataclass(frozen=True)
class Cycle(_validate.ReadOnlyArrays):
    """What is kept of a finished cycle."""

    distribution: Floats
    counts: Ints
    gap: float
    n_iter: int
    status: str
    method: str

    @property
    def n(self) -> int:
        """Number of reports."""
        return int(self.counts.sum())


def write(path: Path, choices: Choices, cycles: Sequence[Cycle], mechanism: MatrixMechanism) -> None:
    """Put the new content in the place of the old: whoever reads, or loses power, meets one or the other."""
    alphabet, own = describe(choices.alphabet)
    arrays: Arrays = {
        "distributions": np.array([choices.start, *(cycle.distribution for cycle in cycles)]),
        "counts": np.array([cycle.counts for cycle in cycles], dtype=np.int64).reshape(-1, len(choices.alphabet)),
        "mechanism": mechanism.matrix(),
        **own,
    }
    if choices.ba_start is not None:
        arrays["ba_start"] = choices.ba_start
    values = {name: getattr(choices, name) for name in PLAIN} | {
        "alphabet": alphabet,
        "cycles": [{name: getattr(cycle, name) for name in SCALARS} for cycle in cycles],
        "arrays": list(arrays),
    }
    body = io.BytesIO()
    # json writes floats by repr, so they come back to the last bit
    body.write(json.dumps(values).encode() + b"\n")
    for array in arrays.values():
        np.save(body, array, allow_pickle=False)
    _replace(path.resolve(), body.getvalue())


def _replace(path: Path, content: bytes) -> None:
    # always of the same name: what a killed process left of it is overwritten by the next
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        file.write(f"ibukit Privic {VERSION} sha256 {hashlib.sha256(content).hexdigest()}\n".encode())
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Make the new name last: on POSIX it is the folder that holds it."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path) -> tuple[dict[str, Any], tuple[Cycle, ...], MatrixMechanism]:
    """What `write` wrote: the arguments of `Privic`, the finished cycles, and the mechanism of the running one."""
    content = _content(path)
    try:
        return _parsed(io.BytesIO(content))
    except (EOFError, KeyError, TypeError, ValueError) as error:  # the checksum is right: no accident, another writer
        raise ForeignFile(f"path must be a file that Privic wrote, the content of {path} is not: {error!r}") from error


def _parsed(body: io.BytesIO) -> tuple[dict[str, Any], tuple[Cycle, ...], MatrixMechanism]:
    values = json.loads(body.readline())
    arrays = {name: np.load(body, allow_pickle=False) for name in values["arrays"]}
    alphabet = alphabet_of(values["alphabet"], arrays)
    start, *thetas = (_validate.frozen(theta.copy()) for theta in arrays["distributions"])
    cycles = tuple(
        Cycle(theta, _validate.frozen(counts.copy()), **scalars)
        for theta, counts, scalars in zip(thetas, arrays["counts"], values["cycles"], strict=True)
    )
    arguments = {name: values[name] for name in PLAIN} | {"alphabet": alphabet, "start": start}
    arguments["ba_start"] = arrays.get("ba_start")
    return arguments, cycles, MatrixMechanism(arrays["mechanism"], alphabet)


def _content(path: Path) -> bytes:
    """All after the first line, if it is what that line says."""
    head, _, content = path.read_bytes().partition(b"\n")
    said = HEAD.fullmatch(head)
    if said is None:
        raise ForeignFile(f"path must be a file that Privic wrote, {path} is not; name another file")
    if int(said[1]) != VERSION:
        raise ForeignFile(
            f"path must be a file of version {VERSION}, {path} is of version {int(said[1])}; "
            "read it with the release of ibukit that wrote it"
        )
    if hashlib.sha256(content).hexdigest().encode() != said[2]:
        raise DataChanged(
            f"path must be as Privic wrote it, but {path} does not have the SHA-256 of its first line: it was changed "
            "or cut short; restore it from a copy"
        )
    return content


def describe(alphabet: Alphabet) -> tuple[dict[str, Any], Arrays]:
    """The alphabet as what JSON can hold, and its distances where they are its own."""
    if type(alphabet) is Line:
        return {"kind": "Line", "first": alphabet.first, "last": alphabet.last, "unit": alphabet.unit}, {}
    if type(alphabet) is Grid:
        names = ("n_rows", "n_cols", "cell_size", "unit", "bounds", "first")
        return {"kind": "Grid", **{name: getattr(alphabet, name) for name in names}}, {}
    labels = alphabet.values.tolist()
    if type(alphabet) is not Alphabet or not all(isinstance(label, LABELS) for label in labels):
        raise TypeError(
            "alphabet must be an Alphabet of strings or numbers, a Line or a Grid to be written to a file, got "
            f"{alphabet!r}"
        )
    own = alphabet._distances
    return {"kind": "Alphabet", "values": labels, "unit": alphabet.unit}, {} if own is None else {"distances": own}


def alphabet_of(described: dict[str, Any], arrays: Arrays) -> Alphabet:
    """The alphabet that `describe` described."""
    words = dict(described)
    kind = words.pop("kind")
    if kind == "Line":
        return Line(**words)
    if kind == "Grid":
        return Grid(**words)
    return Alphabet(words["values"], arrays.get("distances"), words["unit"])
