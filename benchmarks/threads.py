"""What two threads bring: `mle` on bits, and steps of `ibu` on a plane, with scipy.fft.set_workers(1) and (2).

Writes results/threads.csv. The ratio of the seconds by the clock means something on an idle machine only. The other one
holds on a busy machine too: CPU seconds of one thread, over those of the calling thread plus half of what the two
others used, which is what the clock shows if these run side by side.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import fft

import ibukit as ik
from benchmarks import tables
from benchmarks.draws import SEED
from benchmarks.run import HERE

THREADS = 2
ROUNDS = 3


def _people(k: int, n: int) -> np.ndarray:
    return np.random.default_rng(k).multinomial(n, np.random.default_rng(k).dirichlet(np.ones(k)))


def cases() -> dict[str, Callable[[], Any]]:
    rows = ik.Rappor(100, 0.5).simulate(_people(100, 10**6), np.random.default_rng(SEED))
    plane = ik.TruncatedPlanarGeometric(ik.Grid(512, 512), 0.5).simulate(
        _people(512**2, 10**7), np.random.default_rng(SEED)
    )
    return {
        "bits, k = 100, n = 1e6: mle": lambda: ik.mle(rows),
        "plane, 256 x 256: 3 steps of ibu": lambda: ik.ibu(plane, stop=ik.Steps(3)),
    }


def timed(call: Callable[[], Any], threads: int) -> tuple[float, float, float]:
    """Seconds by the clock, CPU seconds of the process, and those if the other threads run side by side."""
    with fft.set_workers(threads):
        start = time.perf_counter(), time.process_time(), time.thread_time()
        call()
        end = time.perf_counter(), time.process_time(), time.thread_time()
    wall, cpu, own = (b - a for a, b in zip(start, end, strict=True))
    return wall, cpu, own + (cpu - own) / threads


def measure() -> pd.DataFrame:
    found = []
    for name, call in cases().items():
        one = call()
        with fft.set_workers(THREADS):
            many = call()
        same = np.array_equal(one.distribution, many.distribution)
        rounds = [(timed(call, 1), timed(call, THREADS)) for _ in range(ROUNDS)]
        wall, cpu, _ = (statistics.median(one[i] for one, _ in rounds) for i in range(3))
        wall_2, cpu_2, side_by_side = (statistics.median(two[i] for _, two in rounds) for i in range(3))
        found.append(
            {
                "case": name,
                "wall, one": wall,
                "wall, two": wall_2,
                "CPU, one": cpu,
                "CPU, two": cpu_2,
                "wall ratio": wall / wall_2,
                "ratio side by side": cpu / side_by_side,
                "same bits": same,
            }
        )
    return pd.DataFrame(found)


if __name__ == "__main__":
    table = measure()
    tables.write(table, HERE / "results" / "threads.csv")
    print(tables.text(table))
