"""Replace a file as a whole, by one writer at a time: readers find the old content or the new."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from ibukit.errors import DataChanged, ForeignFile

# Windows has no such locks; there the checksum of the replaced file has to suffice.
LOCKS = os.name == "posix"
# Errors of file systems without locks, or that cannot flush a folder, such as Lustre, NFS and CIFS
# as they are often mounted.
CANNOT = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)


def replace(path: Path, content: bytes, check: Callable[[Path], None] | None = None) -> None:
    """Put new content in the place of the old, or raise and leave the old as it is.

    It is written beside its place, flushed to the disk and then renamed. Before, and while no other
    can write, `check` may look at the old file and refuse.
    """
    # If the path is a link, the file that it points to is replaced.
    path = path.resolve()
    refuse_special(path)
    # The name is always the same, so the rest that a killed process left is overwritten.
    part = path.with_name(f"{path.name}.part")
    with _alone(part) as file:
        try:
            if check is not None:
                check(path)
            file.truncate()
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            # With locks nobody else can write the part file now.
            if LOCKS:
                os.replace(part, path)
        except BaseException:
            if LOCKS and _same(
                file, part
            ):  # interrupted after the renaming, the next writer's part may stand there
                part.unlink(missing_ok=True)
            raise
    # Windows cannot rename an open file.
    if not LOCKS:
        os.replace(part, path)
    _sync(path.parent)


def refuse_special(path: Path) -> None:
    """A folder, a pipe or a device is not replaced by a file, nor read as one."""
    if path.exists() and not path.is_file():
        raise ForeignFile(
            f"path must be a file, {path} is a folder, a pipe or a device; name another one"
        )


def hold(file: IO[Any], name: Path) -> None:
    """Lock an open file against other writers, if there are locks; they end with their process."""
    if not LOCKS:
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataChanged(
            f"path must be written by one at a time, another is writing {name} now: give each its "
            "own file"
        ) from None
    except OSError as error:
        if error.errno not in CANNOT:
            raise


@contextmanager
def _alone(part: Path) -> Iterator[BinaryIO]:
    """Open a file that no other writer has open."""
    while True:
        with os.fdopen(
            os.open(part, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b"
        ) as file:
            hold(file, part)
            # The writer before has just renamed it.
            if LOCKS and not _same(file, part):
                continue
            yield file
            return


def _same(file: IO[Any], path: Path) -> bool:
    """Whether an open file is the one of that name now."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _sync(folder: Path) -> None:
    """Make the new name last: on POSIX it is the folder that holds it."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in CANNOT:
            raise
    finally:
        os.close(descriptor)
