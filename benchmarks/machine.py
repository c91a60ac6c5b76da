"""The machine of the measurements, without anything that names it or its owner."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path

import pandas as pd

from benchmarks.peers import versions
from benchmarks.race import Contender


def describe(contenders: list[Contender], run: str) -> pd.DataFrame:
    return facts(set().union(*(contender.packages for contender in contenders)), run)


def facts(packages: set[str], run: str) -> pd.DataFrame:
    """The machine, and the versions of these packages and of those that all benchmarks use."""
    told = {
        "run": run,
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "threads used": os.environ.get("OPENBLAS_NUM_THREADS", "not limited"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    return pd.DataFrame(
        (told | versions({"numpy", "scipy", "numba"} | packages)).items(), columns=["what", "value"]
    )


def _processor() -> str:
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text(encoding="utf-8").splitlines() if cpus.exists() else []
    return next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )
