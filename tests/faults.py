"""What happens to files and who writes them:
full disks, interrupts, closed folders, strange content.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np


@contextlib.contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes:
    the system itself stops a write halfway, as on a full disk.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def read_only_folder() -> Iterator[Path]:
    """A folder in which nobody may write, with a file `old`;
    an administrator, who may always, is somebody else now.
    """
    with tempfile.TemporaryDirectory() as name:  # that of pytest belongs to one user
        folder = Path(name)
        (folder / "old").write_bytes(b"as it was")
        (folder / "old").chmod(0o444)
        folder.chmod(0o555)
        administrator = os.geteuid() == 0
        if administrator:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if administrator:
                os.seteuid(0)
            folder.chmod(0o755)


@contextlib.contextmanager
def interrupted(line: int, module: ModuleType, *functions: str) -> Iterator[None]:
    """Ctrl-C before one of the lines that functions of a module run, counted from 0."""
    left = line

    def trace(frame, event, argument):
        nonlocal left
        if frame.f_code.co_filename != module.__file__ or frame.f_code.co_name not in functions:
            return None
        if event == "line":
            left -= 1
            if left == -1:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Who waits for a pipe that nobody writes to waits no longer."""

    def late(*about):
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Bomb:
    """What a pickle executes when it is read."""

    def __reduce__(self):
        return os.mkdir, ("exploded",)


def of_objects(write) -> bytes:
    """What numpy writes of an array of objects, which is a pickle inside."""
    body = io.BytesIO()
    write(body, np.array([Bomb(), None], dtype=object))
    return body.getvalue()


def zipped() -> bytes:
    """An archive with a pickle in it."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("data.pkl", pickle.dumps(Bomb()))
    return body.getvalue()


# where an archive, a journal or an array is expected
STRANGE = {
    "a pickle": pickle.dumps(Bomb()),
    "a pickle in text": pickle.dumps(Bomb(), protocol=0),
    "an array of objects": of_objects(np.save),
    "arrays of objects, zipped": of_objects(np.savez),
    "a zip archive": zipped(),
    "zeros": bytes(300),
    "one long line": b"x" * 100_000,
}
