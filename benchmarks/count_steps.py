"""Count once how many steps plain IBU takes to a certified gap.

    python -m benchmarks.count_steps

This takes about six minutes. The counts are exact and the same on every machine up to rounding, so
they are kept in results/ibu_steps.csv.
"""

from __future__ import annotations

import csv
import time

import numpy as np

from benchmarks.peers.plain_ibu import COUNTED, ibu_loops
from benchmarks.workloads import WORKLOADS

GAPS = (1e-6, 1e-8, 1e-10)
AT_ONCE = 2000
MAX_SECONDS = 900.0
COUNT = ("W1", "W2-0.2", "W2-1", "W2-3", "W4-20", "W5")


def count(columns: np.ndarray, q: np.ndarray, gaps: tuple[float, ...] = GAPS) -> dict[float, int]:
    """Gap -> steps from the uniform start to it, without the gaps that are not reached in time."""
    theta, steps, reached = np.full(len(columns), 1 / len(columns)), 0, {}
    start = time.process_time()
    for tol in sorted(gaps, reverse=True):
        gap = np.inf
        while gap > tol:
            if time.process_time() - start > MAX_SECONDS:
                return reached
            taken, gap = ibu_loops(columns, q, theta, AT_ONCE, tol)
            steps += taken
        reached[tol] = steps
    return reached


def main() -> None:
    with COUNTED.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["workload", "gap", "steps"])
        for name in COUNT:
            for tol, steps in count(*WORKLOADS[name].seen).items():
                print(f"{name}: gap {tol:g} after {steps:,} steps", flush=True)
                table.writerow([name, tol, steps])


if __name__ == "__main__":
    main()
