"""Replace a file as a whole, one writer at a time: readers find the old content or the new.

The lock is on the new file itself, which is renamed at the end. So nothing else is left in the
folder, whenever a process is killed; a library such as `filelock` needs a second file for its lock.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from ibukit.errors import DataChanged, ForeignFile

# Windows has no `flock`. There the checksum of the file that is replaced is the only guard.
LOCKS = os.name == "posix"
# Errors of file systems that have no locks or cannot flush a folder: Lustre, NFS and CIFS, as they
# are often mounted. Files are written all the same.
UNSUPPORTED = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)


def replace(path: Path, content: bytes, check: Callable[[Path], None] | None = None) -> None:
    """Write new content in the place of the old, or raise and leave the old as it is.

    It is written beside its place, flushed to the disk and then renamed. Before that, while no
    other can write, `check` may look at the old file and refuse.
    """
    # If the path is a link, the file that it points to is replaced.
    path = path.resolve()
    refuse_special(path)
    # The name is always the same, so the next writer overwrites what a killed process has left.
    part = path.with_name(f"{path.name}.part")
    with _open_exclusively(part) as file:
        try:
            if check is not None:
                check(path)
            file.truncate()
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            # The renaming comes before the lock is given back: nobody else can write the part.
            if LOCKS:
                os.replace(part, path)
        except BaseException:
            # After an interrupt that came later than the renaming, the part of the next writer may
            # stand there; that one is not ours to remove.
            if LOCKS and _is_same_file(file, part):
                part.unlink(missing_ok=True)
            raise
    # Windows cannot rename an open file, and has no lock that would have to be kept.
    if not LOCKS:
        os.replace(part, path)
    _flush_folder(path.parent)


def refuse_special(path: Path) -> None:
    """Refuse a folder, a pipe or a device, to be replaced by a file or to be read as one."""
    if path.exists() and not path.is_file():
        raise ForeignFile(
            f"path must be a file, {path} is a folder, a pipe or a device; name another one"
        )


def lock(file: IO[Any], name: Path) -> None:
    """Keep other writers off an open file, where there are locks; they end with the process."""
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
        if error.errno not in UNSUPPORTED:
            raise


@contextmanager
def _open_exclusively(part: Path) -> Iterator[BinaryIO]:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
    while True:
        with os.fdopen(os.open(part, flags, 0o666), "r+b") as file:
            lock(file, part)
            # If the writer before has just renamed this file, it is now the finished one: the part
            # has to be opened again.
            if LOCKS and not _is_same_file(file, part):
                continue
            yield file
            return


def _is_same_file(file: IO[Any], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _flush_folder(folder: Path) -> None:
    # On POSIX a new name is content of the folder, so it lasts when the folder is on the disk.
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)
