"""What is done to one block of rows, here or on a worker: read, check, keep, count, compute."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.dask_tasks import LINALG_LOCK
from ibukit._ground.threads import one_thread
from ibukit.channels.partitioned import Piece
from ibukit.errors import AlphabetMismatch, DataChanged, ImpossibleReport
from ibukit.mechanisms.base import Mechanism
from ibukit.tally.tally import Tally, make_tally_part, pool

# a block of a file has at most so many rows, and at most so many bytes
BLOCK_ROWS = 2**18
BLOCK_BYTES = 2**25


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of an array in memory or of a .npy file, which is mapped and not read before they are asked for."""

    source: Path | NDArray[Any]
    start: int
    stop: int
    stamp: tuple[int, int] | None = None
    """Size and time of the file when it was checked."""

    def read(self) -> NDArray[Any]:
        """A copy of the rows.

        Raises
        ------
        DataChanged
            If the file is not what it was.
        """
        if isinstance(self.source, Path) and stamp_of(self.source) != self.stamp:
            raise DataChanged(f"{self.source} was written to after it was tallied; tally it again")
        rows = np.load(self.source, mmap_mode="r") if isinstance(self.source, Path) else self.source
        return np.array(rows[self.start : self.stop])


def stamp_of(path: Path) -> tuple[int, int]:
    """What changes with a file's content, mostly."""
    about = path.stat()
    return about.st_size, about.st_mtime_ns


def blocks_of(source: Path | NDArray[Any]) -> list[Block]:
    """An array or a .npy file cut into blocks."""
    if isinstance(source, Path):
        if not source.is_file():
            raise FileNotFoundError(
                f"rows must name .npy files, as numpy.save writes them, {str(source)!r} is no file"
            )
        stamp = stamp_of(source)
        try:
            rows = np.load(source, mmap_mode="r")
        except (ValueError, EOFError):
            raise ValueError(
                f"rows must name .npy files, as numpy.save writes them, {source} is none"
            ) from None
    else:
        stamp, rows = None, source
    if not isinstance(rows, np.ndarray) or rows.ndim == 0:
        raise ValueError(f"rows must be arrays of reports, or .npy files of them, got {source}")
    step = max(1, min(BLOCK_ROWS, BLOCK_BYTES // max(1, rows[:1].nbytes)))
    return [
        Block(source, start, min(start + step, len(rows)), stamp)
        for start in range(0, len(rows), step)
    ]


class Summary(NamedTuple):
    """What the client knows of a partition."""

    size: int
    digest: str
    log_offset: float
    """Sum of the logarithms of the factors that the channel leaves out."""


def kept(mechanism: Mechanism, rows: Any, packed: bool) -> NDArray[Any]:
    """Rows as a tally keeps them."""
    found = rows.to_numpy() if hasattr(rows, "to_numpy") else rows
    if not len(found):
        return np.empty(0, dtype=np.uint8)
    return check_packed(mechanism, found) if packed else mechanism.check_reports(found)


def check_packed(mechanism: Mechanism, rows: ArrayLike) -> NDArray[np.uint8]:
    """Rows that were packed by numpy.packbits(rows, axis=1) already."""
    array, width = np.asarray(rows), -(-mechanism.k // 8)
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != width:
        raise AlphabetMismatch(
            f"packed rows must be bytes of shape (n, {width}), as numpy.packbits(rows, axis=1) "
            "makes them, got "
            f"{array.dtype} of shape {array.shape}"
        )
    bits = np.unpackbits(array, axis=1)
    if bits[:, mechanism.k :].any():
        raise AlphabetMismatch(
            f"packed rows must have 0 in the {8 * width - mechanism.k} bits after the "
            f"{mechanism.k} of a report"
        )
    return np.asarray(mechanism.check_reports(bits[:, : mechanism.k]), dtype=np.uint8)


def summary(mechanism: Mechanism, rows: NDArray[Any], place: int) -> Summary:
    """Check that some secret can produce each report, and say what the client must know."""
    if not len(rows):
        return Summary(0, "", 0.0)
    likely = mechanism.channel(rows).forward(np.full(mechanism.k, 1 / mechanism.k)) > 0
    if not likely.all():
        raise ImpossibleReport(
            f"partition {place} of rows has {rows[np.argmin(likely)]}, which no secret can produce "
            f"under {mechanism}; "
            "is this the mechanism that made the reports?"
        )
    scale = mechanism.log_scale(rows)
    return Summary(len(rows), digest(rows), 0.0 if scale is None else float(scale.sum()))


def digest(rows: NDArray[Any]) -> str:
    """What two arrays of rows share where they are equal."""
    return hashlib.blake2b(np.ascontiguousarray(rows).tobytes(), digest_size=16).hexdigest()


def counted(mechanism: Mechanism, rows: Any, packed: bool) -> Tally | None:
    """The tally of a block, None of an empty one."""
    if not len(rows):
        return None
    if packed:
        return Tally((make_tally_part(mechanism, kept(mechanism, rows, packed)),))
    return mechanism.tally(rows.to_numpy() if hasattr(rows, "to_numpy") else rows)


def pooled(tallies: list[Tally | None]) -> Tally | None:
    """The sum of those that there are."""
    there = [tally for tally in tallies if tally is not None]
    return pool(there) if there else None


def computed(
    rows: NDArray[Any], weights: Any, mechanism: Mechanism, function: Piece, shared: Any
) -> Any:
    """function(channel, shared, weights) of the channel of some rows: the same bits wherever it is asked for."""
    with LINALG_LOCK, one_thread():
        # one kind of array, and so one compiled kernel, whether the rows were computed here or came
        # by wire
        return function(mechanism.channel(arguments.frozen(rows.view())), shared, weights)
