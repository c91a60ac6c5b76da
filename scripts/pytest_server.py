"""A server that runs pytest again and again, with the foreign packages already imported.

    python scripts/pytest_server.py [PACKAGE ...]

Each line of standard input is a job: JSON with the folder, pytest's arguments, the seconds of
processor time it may take and whether it runs without JIT. Each line of standard output is an
answer: JSON with the exit code (null if the time was up), what pytest said, and the processor time.
A job runs in a fork, into which nothing of the folder has been imported before; importing the
foreign packages is half of a short run.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FOREIGN = (
    "numpy",
    "scipy.optimize",
    "scipy.sparse.linalg",
    "scipy.special",
    "scipy.stats",
    "scipy.fft",
    "numba",
)
FOREIGN += (
    "pandas",
    "pyarrow",
    "hypothesis.strategies",
    "hypothesis.extra.numpy",
    "pytest",
    "doctest",
    "nbformat",
)
FOREIGN += ("jupyter_client.manager", "sklearn", "matplotlib.pyplot")
PATIENCE = 40  # even a crowded processor runs a job to its end in this time


class PytestServer:
    """The server of this file, seen from another process; `foreign` is imported beforehand."""

    def __init__(self, foreign: tuple[str, ...] = FOREIGN) -> None:
        single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.server = subprocess.Popen(
            [sys.executable, __file__, *foreign],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | single,
        )

    def pytest(
        self, tree: Path, arguments: list[str], limit: float, plain: bool
    ) -> tuple[int | None, str, float]:
        """The exit code of a run (None beyond `limit`), its output, and its processor time."""
        if self.server.stdin is None or self.server.stdout is None:
            raise RuntimeError("the server has no pipes")
        print(json.dumps([str(tree), arguments, limit, plain]), file=self.server.stdin, flush=True)
        code, said, seconds = json.loads(self.server.stdout.readline())
        return code, said, seconds

    def close(self) -> None:
        """End the server."""
        self.server.communicate()


def child(tree: str, arguments: list[str], limit: float, plain: bool, said: int) -> int:
    """Become the job and run it."""
    os.setsid()
    seconds = max(1, round(limit))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    path = os.pathsep.join([tree, os.path.join(tree, "book", "_ext", "claims")])
    os.environ |= {"PYTHONPATH": path, "HYPOTHESIS_PROFILE": "mutants"}
    if plain:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
        importlib.import_module("numba").core.config.reload_config()
    os.chdir(tree)
    sys.path.insert(0, tree)
    sys.argv = ["pytest", *arguments]
    return int(importlib.import_module("pytest").main(arguments))


def run(
    tree: str, arguments: list[str], limit: float, plain: bool
) -> tuple[int | None, str, float]:
    """Run one job in a fork."""
    with tempfile.TemporaryFile() as said:
        job = os.fork()
        if job == 0:
            code = 3
            try:
                code = child(tree, arguments, limit, plain, said.fileno())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        status, used = wait(job, PATIENCE * limit)
        said.seek(0)
        text = said.read().decode(errors="replace")
    return (
        (os.WEXITSTATUS(status) if os.WIFEXITED(status) else None),
        text,
        used.ru_utime + used.ru_stime,
    )


def wait(job: int, limit: float) -> tuple[int, resource.struct_rusage]:
    """The status and the use of a job; it and its children are killed after `limit` seconds."""
    end = time.monotonic() + limit
    ended, status, used = os.wait4(job, os.WNOHANG)
    while not ended:
        if time.monotonic() > end:
            kill(job)
        time.sleep(0.02)
        ended, status, used = os.wait4(job, os.WNOHANG)
    kill(job)
    return status, used


def kill(job: int) -> None:
    """Kill a job with all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(job, signal.SIGKILL)


def main(foreign: list[str]) -> None:
    """Answer jobs until the input ends."""
    for name in foreign:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        job: list[Any] = json.loads(line)
        print(json.dumps(run(*job)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
