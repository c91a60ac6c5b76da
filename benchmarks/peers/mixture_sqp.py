"""mixsqp in R, where Rscript and the package are installed.

CPU time is by R's own clock, without R's start.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.race import ANY_MATRIX, SMALL_MATRIX, Answer, Contender
from benchmarks.workloads import Workload

SETTINGS = {"default": "", "tight": "tol.svd = 0, eps = 1e-12, convtol.sqp = 1e-12, "}
PROGRAM = """
suppressMessages(library(mixsqp))
dims <- as.integer(readLines("dims"))
L <- matrix(readBin("matrix", "double", prod(dims)), dims[1], dims[2])
w <- readBin("weights", "double", dims[1])
time <- system.time(fit <- mixsqp(L, w, control = list(SETTINGS verbose = FALSE)))
writeBin(as.double(fit$x), "theta")
cat(time[["user.self"]] + time[["sys.self"]], nrow(fit$progress), fit$status, sep = "\\n")
"""


def _r(*arguments: str, cwd: str | None = None) -> str:
    return subprocess.run(
        ["Rscript", *arguments], cwd=cwd, capture_output=True, text=True, check=True
    ).stdout


def _prepare(settings: str, workload: Workload) -> Callable[[], Answer]:
    columns, q = workload.seen

    def call() -> Answer:
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder)
            columns.T.ravel(order="F").tofile(here / "matrix")
            q.tofile(here / "weights")
            (here / "dims").write_text(f"{len(q)}\n{len(columns)}\n")
            (here / "program.R").write_text(PROGRAM.replace("SETTINGS", settings))
            seconds, steps, status = _r("program.R", cwd=folder).splitlines()
            return Answer(
                np.fromfile(here / "theta"),
                int(steps),
                seconds=float(seconds),
                note=f"says: {status}",
            )

    return call


def contenders() -> list[Contender]:
    if shutil.which("Rscript") is None:
        raise ImportError("there is no Rscript")
    try:
        version = _r("-e", "cat(format(packageVersion('mixsqp')))")
    except subprocess.CalledProcessError:
        raise ImportError("R has no package mixsqp") from None
    return [
        Contender(
            f"mixsqp {version}, {name}",
            partial(_prepare, settings),
            suits,
            slow=lambda w: w.name != "W1",
        )
        for (name, settings), suits in zip(
            SETTINGS.items(), (ANY_MATRIX, SMALL_MATRIX), strict=True
        )
    ]
