"""The parts of a run, each in processes of its own."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pandas as pd

from benchmarks import tables
from benchmarks.draws import ROOT
from benchmarks.measure import limit_memory
from benchmarks.peers import contenders
from benchmarks.race import Row, race
from benchmarks.workloads import WORKLOADS

HERE = Path(__file__).resolve().parent
SCRATCH = ROOT / "_build" / "bench"
GIGABYTE = 2**30


def results(name: str, quick: bool) -> Path:
    """The path of a table, in a folder that is there; the results of a quick run stay in _build."""
    path = (SCRATCH / "quick" if quick else HERE / "results") / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write_growing(found: Iterable[pd.DataFrame], path: Path) -> None:
    """Write a table that grows by one row each time, and print each row."""
    for table in found:
        table.to_csv(path, index=False)
        print(table.tail(1).to_string(header=len(table) == 1), flush=True)


def write_rows(found: Iterable[dict[str, object]], path: Path) -> None:
    """Write rows as they come, and print each."""
    rows: list[dict[str, object]] = []

    def growing() -> Iterator[pd.DataFrame]:
        for row in found:
            rows.append(row)
            yield pd.DataFrame(rows)

    write_growing(growing(), path)


def run_race(name: str, quick: bool) -> list[Row]:
    """Run a race in a process of its own, so that memory starts clean and a crash stays there."""
    workload = WORKLOADS[name]
    limit_memory(12 * GIGABYTE)
    try:
        workload.tally()
    except MemoryError:
        return [
            Row(
                name,
                "ibukit",
                note="no tally: its channel would be a dense matrix too large for memory",
            )
        ]
    here, _ = contenders(workload.matrix is None)
    fit = [one for one in here if one.suits(workload) and not (quick and one.slow(workload))]
    return race(workload, fit, rounds=3 if quick else 7, limit=10.0 if quick else 120.0)


def races(names: list[str], quick: bool) -> list[Row]:
    rows = []
    with ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        for name in names:
            found = pool.submit(run_race, name, quick).result()
            rows += found
            shown = tables.frame_of_races(found).drop(columns=["workload", "rounds", "memory"])
            print(
                f"\n{name}: {WORKLOADS[name].title}\n{tables.text(shown.sort_values('seconds'))}",
                flush=True,
            )
    return rows


def scaling(quick: bool) -> pd.DataFrame:
    """Cost against k by pytest-benchmark, which also compares with the last run on this machine."""
    kept = SCRATCH / "scaling.json"
    kept.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(HERE / "pytest.ini"),
        "--rootdir",
        str(HERE),
        str(HERE),
    ]
    command += [
        "--benchmark-timer=time.process_time",
        f"--benchmark-json={kept}",
        "--benchmark-autosave",
    ]
    command += [
        f"--benchmark-storage={SCRATCH / 'history'}",
        "--benchmark-columns=median",
        "--benchmark-sort=name",
    ]
    command += ["--benchmark-compare"] if list(SCRATCH.glob("history/*/*.json")) else []
    command += ["--limit=5", "-k", "not (1600 or 16384 or 1000000)"] if quick else []
    subprocess.run(command, cwd=ROOT, check=False)  # a case that fails is missing from the table
    found = json.loads(kept.read_text())["benchmarks"] if kept.exists() else []
    return pd.DataFrame([{**one["extra_info"], "seconds": one["stats"]["median"]} for one in found])
