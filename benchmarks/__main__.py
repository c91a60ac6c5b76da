"""`make bench`: the races of all workloads, cost against k, first calls, the bars, and other parts.

The last lines say how long each step took, and which steps ended with an error; if any did, the
exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks import bars, compile_time, dense, machine, tables
from benchmarks.draws import ROOT
from benchmarks.peers import contenders
from benchmarks.run import HERE, SCRATCH, races, scaling
from benchmarks.workloads import STRUCTURES, WORKLOADS

RESULTS = HERE / "results"
QUICK = ("W1", "W2-1", "W3-1e6", "W4-20", "W5", "W6-line-1e5", "mixed")
# these run in processes of their own, so that one that fails stops no other
PARTS = (
    *("protocol_solvers", "libraries", "figure9", "gibbs", "threads"),
    *(
        "planes",
        "small_planes",
        "cell_errors",
        "ranges",
        "optimal_private",
        "intervals",
        "reports",
        "few_atoms",
        "pools",
        "transport",
        "tables_of_reports",
        "questions",
    ),
)
ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="fewer workloads and rounds; results stay in _build"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=WORKLOADS,
        help="race on these alone, in place of their last rows",
    )
    asked = parser.parse_args()
    if any(
        os.environ.get(name) != "1" for name in ONE_THREAD
    ):  # before any library has started its threads
        again = [sys.executable, "-m", "benchmarks", *sys.argv[1:]]
        os.execve(sys.executable, again, os.environ | dict.fromkeys(ONE_THREAD, "1"))
    here, missing = contenders()
    print("\n".join(f"not racing: {line}" for line in missing))
    if asked.only:
        again = races(asked.only, asked.quick)
        if not asked.quick:
            kept = [
                row
                for row in tables.rows_of_races(RESULTS / "races.csv")
                if row.workload not in asked.only
            ]
            rows = sorted(kept + again, key=lambda row: list(WORKLOADS).index(row.workload))
            tables.write(tables.frame_of_races(rows), RESULTS / "races.csv")
            tables.write(
                tables.frame_of_bars([*bars.judge(rows), *dense.kept_bars()]), RESULTS / "bars.csv"
            )
        return
    minutes: dict[str, float] = {}

    def timed(step: str, call: Callable[[], Any]) -> Any:
        start = time.monotonic()
        found = call()
        minutes[step] = (time.monotonic() - start) / 60
        return found

    folder = SCRATCH / "quick" if asked.quick else RESULTS
    names = [name for name in WORKLOADS if not asked.quick or name.startswith(QUICK)]
    structures = ["line", "bits"] if asked.quick else [*STRUCTURES, *compile_time.OTHERS]
    rows = timed("races", lambda: races(names, asked.quick))
    command = [sys.executable, "-m", "benchmarks.dense", *(["--quick"] if asked.quick else [])]
    ended = timed("dense", lambda: subprocess.run(command, cwd=ROOT, check=False))
    failed = ["dense"] if ended.returncode else []
    judged = tables.frame_of_bars([*bars.judge(rows), *dense.kept_bars(folder / "dense.csv")])
    found = {
        "machine": machine.describe(here, "quick" if asked.quick else "full"),
        "races": tables.frame_of_races(rows),
        "scaling": timed("scaling", lambda: scaling(asked.quick)),
        "first_call": timed("first_call", lambda: compile_time.measure(structures)),
        "bars": judged,
    }
    failed += [name for name, table in found.items() if table.empty]
    for name, table in found.items():
        tables.write(table, folder / f"{name}.csv")
        if name != "races":
            shown = (
                table[table.met != tables.VERDICT[None]]
                if asked.quick and name == "bars"
                else table
            )
            print(f"\n{name}\n{tables.text(shown)}")
    for part in PARTS:
        command = [
            sys.executable,
            "-m",
            f"benchmarks.{part}",
            *(["--quick"] if asked.quick else []),
        ]
        ended = timed(part, lambda command=command: subprocess.run(command, cwd=ROOT, check=False))
        failed += [part] if ended.returncode else []
    missed = judged[judged.met == tables.VERDICT[False]]
    print(
        f"\n{len(missed)} of {len(judged)} bars missed,"
        f" {(judged.met == tables.VERDICT[None]).sum()} not measured"
    )
    for row in missed.itertuples():
        print(f"MISSED: {row.bar}: {row.required} required, {row.measured} measured")
    print("minutes: " + ", ".join(f"{step} {spent:.1f}" for step, spent in minutes.items()))
    if failed:
        sys.exit(f"ended with an error: {', '.join(failed)}")


if __name__ == "__main__":
    main()
