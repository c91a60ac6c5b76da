"""Replace a file as a whole, one writer at a time: readers find the old content or the new.

The lock is on the new file itself, which is renamed at the end. So no other file is left in the
folder, whenever a process is killed; a library such as `filelock` needs a second file for its lock.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
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
# The beginning of each part while it is written, and the beginnings that show a part to be ours.
MARK = b"ibukit is writing this file\n"
OURS = re.compile(rb"ibukit (is writing this file|[A-Za-z]+ [0-9]+ sha256 )")
# Bytes that a name may have on most file systems.
MAX_NAME = 255
# Where Linux keeps the lists of who else may read a file.
ACCESS_LIST = "system.posix_acl_access"


def replace(path: Path, content: bytes, check: Callable[[Path], None] | None = None) -> None:
    """Write new content in the place of the old, or raise an error and leave the old as it is.

    The new content is written to a file beside the old one, flushed to the disk, and then renamed.
    Before that, while no other process can write, `check` may look at the old file and refuse.
    Whoever may read or write the old file may do so with the new one, and nobody else may.
    """
    path = _target(path)
    part = _part_of(path)
    with _open_exclusively(part) as (file, mode):
        try:
            if check is not None:
                check(path)
            # A part that a killed process leaves behind must be known as ours even if its content
            # is a table, which has no first line of ours: so its beginning is written last.
            file.write(MARK + content[len(MARK) :])
            file.seek(0)
            file.write(content[: len(MARK)])
            file.truncate(len(content))
            file.flush()
            _set_access(file, path, mode)
            os.fsync(file.fileno())
            # The renaming comes before the lock is given back: no one else can write the part.
            if LOCKS:
                os.replace(part, path)
        except BaseException:
            # If an interrupt came after the renaming, the name may already be that of the next
            # writer's part, which is not ours to remove.
            if LOCKS and _is_same_file(file, part):
                part.unlink(missing_ok=True)
            raise
    # Windows cannot rename an open file, and has no lock that would have to be kept.
    if not LOCKS:
        os.replace(part, path)
    _flush_folder(path.parent)


def _target(path: Path) -> Path:
    """Return the file that is replaced: if the path is a link, the one that it points to."""
    try:
        target = path.resolve()
    # For links that go round in a circle Python before 3.13 raises this; later ones return a link.
    except RuntimeError:
        target = path
    if target.is_symlink():
        raise ForeignFile(f"path must be a file, {path} is a link to itself; name another one")
    refuse_special(target)
    return target


def _part_of(path: Path) -> Path:
    """Return the path of what is written until it is renamed."""
    # The name is always the same, so the next writer finds what a killed process has left.
    name = f"{path.name}.part"
    if len(os.fsencode(name)) > MAX_NAME:
        name = f"{hashlib.sha256(os.fsencode(path.name)).hexdigest()}.part"
    return path.with_name(name)


def refuse_special(path: Path) -> None:
    """Refuse to replace a folder, a pipe or a device by a file, or to read it as one."""
    if path.exists() and not path.is_file():
        raise ForeignFile(
            f"path must be a file, but {path} is a folder, a pipe or a device; name another one"
        )


def lock(file: IO[Any], name: Path) -> None:
    """Keep other writers off an open file where there are locks, which end with the process."""
    if not LOCKS:
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataChanged(
            f"path must be written by one program at a time, but another is writing {name} now: "
            "give each program its own file"
        ) from None
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise


@contextmanager
def _open_exclusively(part: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Yield a new file that only this process can read and write, and the mode of new files."""
    flags = os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    while True:
        _remove_own(part, flags)
        try:
            descriptor = os.open(part, flags | os.O_CREAT | os.O_EXCL, 0o666)
        # Another writer has created the part in between.
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "r+b") as file:
            lock(file, part)
            # If another writer took this file for one that was left behind, we begin again.
            if LOCKS and not _is_same_file(file, part):
                continue
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            # A file that is to be private is private from its first byte on.
            _try(getattr(os, "fchmod", None), descriptor, 0o600)
            yield file, mode
            return


def _remove_own(part: Path, flags: int) -> None:
    """Remove what a killed process has left; refuse anything that it cannot have written.

    Somebody may have put there a link, another name of a file, or a file of their own, for us to
    write to.
    """
    try:
        there = os.lstat(part)
        if not stat.S_ISREG(there.st_mode):
            raise _in_the_way(part)
        # If the name is a pipe by now, opening it must not wait.
        descriptor = os.open(part, flags | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _in_the_way(part) from None
        raise
    with os.fdopen(descriptor, "rb") as file:
        lock(file, part)
        held = os.fstat(descriptor)
        # The writer before may just have renamed its part, which is then the finished file.
        if LOCKS and not _is_same_file(file, part):
            return
        own = not hasattr(os, "geteuid") or held.st_uid == os.geteuid()
        beginning = file.read(100) if stat.S_ISREG(held.st_mode) else b"a pipe"
        if held.st_nlink > 1 or not own or not (beginning == b"" or OURS.match(beginning)):
            raise _in_the_way(part)
        if LOCKS:
            part.unlink()
    # Windows cannot remove an open file.
    if not LOCKS:
        part.unlink(missing_ok=True)


def _in_the_way(part: Path) -> ForeignFile:
    return ForeignFile(
        f"path must leave the name of {part} free, which is written first: what has that name now "
        "is not ours; move it away, or name another path"
    )


def _set_access(file: BinaryIO, path: Path, mode: int) -> None:
    """Give the new file the old one's owner, group, mode and access list, as far as we may."""
    descriptor, change_mode = file.fileno(), getattr(os, "fchmod", None)
    try:
        old = path.stat()
    except FileNotFoundError:
        _try(change_mode, descriptor, mode)
        return
    mode = stat.S_IMODE(old.st_mode) & 0o777
    new = os.fstat(descriptor)
    change_owner = getattr(os, "fchown", None)
    if new.st_uid != old.st_uid:
        _try(change_owner, descriptor, old.st_uid, -1)
    # What the old group was allowed to do is not allowed to another group.
    if new.st_gid != old.st_gid and not _try(change_owner, descriptor, -1, old.st_gid):
        mode = mode & 0o707 | (mode & 0o070) & (mode & 0o007) << 3
    _try(change_mode, descriptor, mode)
    if hasattr(os, "getxattr"):
        try:
            access = os.getxattr(path, ACCESS_LIST)
        except OSError:
            return
        _try(os.setxattr, descriptor, ACCESS_LIST, access)


def _try(change: Callable[..., None] | None, *arguments: Any) -> bool:
    """Return whether a change of access was made; some systems and file systems have none."""
    try:
        if change is not None:
            change(*arguments)
    except OSError as error:
        if error.errno not in (errno.EPERM, *UNSUPPORTED):
            raise
        return False
    return change is not None


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
