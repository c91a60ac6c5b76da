"""Operations on one block of rows, locally or on a worker: read, check, count, evaluate."""

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
from ibukit.channels.partitioned import PartitionFunction
from ibukit.domain.grid import Grid
from ibukit.domain.report_kind import ReportKind
from ibukit.errors import AlphabetMismatch, DataChanged, ImpossibleReport
from ibukit.mechanisms.base import Mechanism
from ibukit.tally.tally import Tally, make_tally_part, pool

# Largest number of rows and of bytes of a block. A block is read at once, so it should be small
# compared with the memory, but take long compared with the millisecond that handing it out takes.
MAX_BLOCK_ROWS = 2**18
MAX_BLOCK_BYTES = 2**25


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of an array or of a .npy file, which is mapped and read when needed."""

    source: Path | NDArray[Any]
    start: int
    stop: int
    stamp: tuple[int, int] | None = None
    """Size and modification time of the file when it was checked."""

    def read(self) -> NDArray[Any]:
        """Return a copy of the rows; raise DataChanged if the file was modified."""
        if isinstance(self.source, Path) and file_stamp(self.source) != self.stamp:
            raise DataChanged(f"{self.source} was written to after it was tallied; tally it again")
        # A mapped file is read page by page, so that only this block comes into memory.
        rows = np.load(self.source, mmap_mode="r") if isinstance(self.source, Path) else self.source
        return np.array(rows[self.start : self.stop])


def file_stamp(path: Path) -> tuple[int, int]:
    """Return size and modification time of a file, which nearly always change with its content."""
    about = path.stat()
    return about.st_size, about.st_mtime_ns


def blocks_of(source: Path | NDArray[Any]) -> list[Block]:
    """Cut an array or a .npy file into blocks."""
    if isinstance(source, Path):
        if not source.is_file():
            raise FileNotFoundError(
                "rows must name .npy files, as numpy.save writes them, but "
                f"{str(source)!r} is not a file"
            )
        stamp = file_stamp(source)
        try:
            rows = np.load(source, mmap_mode="r")
        except (ValueError, EOFError):
            raise ValueError(
                f"rows must name .npy files, as numpy.save writes them, but {source} is not one"
            ) from None
    else:
        stamp, rows = None, source
    if not isinstance(rows, np.ndarray) or rows.ndim == 0:
        raise ValueError(f"rows must be arrays of reports, or .npy files of them, got {source}")
    # The size of one row is that of the first.
    step = max(1, min(MAX_BLOCK_ROWS, MAX_BLOCK_BYTES // max(1, rows[:1].nbytes)))
    return [
        Block(source, start, min(start + step, len(rows)), stamp)
        for start in range(0, len(rows), step)
    ]


class Summary(NamedTuple):
    """Facts about a partition that the client keeps."""

    size: int
    digest: str
    log_offset: float
    """Sum of the logarithms of the factors that the channel leaves out."""


def checked_rows(mechanism: Mechanism, rows: Any, packed: bool) -> NDArray[Any]:
    """Check rows, and return them in the form that a tally keeps."""
    array = _values(mechanism, rows)
    if not len(array):
        return np.empty(0, dtype=np.uint8)
    if packed:
        return check_packed(mechanism, array)
    if mechanism.report_kind in (ReportKind.POINTS, ReportKind.CELLS):
        array = mechanism.code_reports(array)
    return mechanism.check_reports(array)


def _values(mechanism: Mechanism, rows: Any) -> Any:
    """Return a frame's array, or on a grid the frame itself, whose names say what it holds."""
    named = isinstance(mechanism.alphabet, Grid) and hasattr(rows, "columns")
    return rows if named or not hasattr(rows, "to_numpy") else rows.to_numpy()


def check_packed(mechanism: Mechanism, rows: ArrayLike) -> NDArray[np.uint8]:
    """Check rows that numpy.packbits(rows, axis=1) has packed."""
    array, width = np.asarray(rows), -(-mechanism.k // 8)
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != width:
        raise AlphabetMismatch(
            f"packed rows must be bytes of shape (n, {width}), as numpy.packbits(rows, axis=1) "
            f"makes them, got {array.dtype} of shape {array.shape}"
        )
    # Padding bits must be 0: equal reports have to be equal bytes.
    bits = np.unpackbits(array, axis=1)
    if bits[:, mechanism.k :].any():
        raise AlphabetMismatch(
            f"packed rows must have 0 in the {8 * width - mechanism.k} bits after the "
            f"{mechanism.k} of a report"
        )
    return np.asarray(mechanism.check_reports(bits[:, : mechanism.k]), dtype=np.uint8)


def summary(mechanism: Mechanism, rows: NDArray[Any], number: int) -> Summary:
    """Check that each report is possible, and return the facts that the client keeps."""
    if not len(rows):
        return Summary(0, "", 0.0)
    # As in `make_tally_part`: the uniform distribution gives each possible report a probability.
    likely = mechanism.channel(rows).forward(np.full(mechanism.k, 1 / mechanism.k)) > 0
    if not likely.all():
        raise ImpossibleReport(
            f"partition {number} of rows has {rows[np.argmin(likely)]}, which no secret can "
            f"produce under {mechanism}; is this the mechanism that made the reports?"
        )
    # The factors that the channel leaves out only shift the log-likelihood, so their sum suffices.
    scale = mechanism.log_scale(rows)
    return Summary(len(rows), digest(rows), 0.0 if scale is None else float(scale.sum()))


def digest(rows: NDArray[Any]) -> str:
    """Return a hash of the rows, by which a recomputed partition is verified."""
    return hashlib.blake2b(np.ascontiguousarray(rows).tobytes(), digest_size=16).hexdigest()


def tally_of_block(mechanism: Mechanism, rows: Any, packed: bool) -> Tally | None:
    """Return the tally of a block, or None if it is empty."""
    if not len(rows):
        return None
    if packed:
        return Tally((make_tally_part(mechanism, checked_rows(mechanism, rows, packed)),))
    return mechanism.tally(_values(mechanism, rows))


def pool_blocks(tallies: list[Tally | None]) -> Tally | None:
    """Return the sum of tallies, leaving out None."""
    present = [tally for tally in tallies if tally is not None]
    return pool(present) if present else None


def evaluate(
    rows: NDArray[Any], weights: Any, mechanism: Mechanism, function: PartitionFunction, shared: Any
) -> Any:
    """Return function(channel, shared, weights) with the channel of these rows."""
    # One thread at a time and one BLAS thread, so that the bits are the same on every machine.
    with LINALG_LOCK, one_thread():
        # Arrays that came over the network are read-only, others may not be. If all are read-only,
        # numba compiles one kernel for them.
        return function(mechanism.channel(arguments.frozen(rows.view())), shared, weights)
