"""The gain from two threads: `mle` on bits, and steps of `ibu` on planes.

    .venv/bin/python -m benchmarks.threads [--quick]

The threads are set by scipy.fft.set_workers(1) and (2). The bits are a million rows and ten
million. Writes results/threads.csv. `two processes` says how much more work two processes do than
one alone, if they share nothing but the machine and each has a problem of its own: no way of
sharing one problem gains more. The ratio of the seconds by the clock means something on an idle
machine only. The other ratio holds on a busy machine as well: CPU seconds of one thread, over those
of the caller or of its companion, whichever are more. It is what the clock shows if these two run
side by side and wait for each other only once.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from threading import Barrier
from typing import Any

import numpy as np
import pandas as pd
from scipy import fft

import ibukit as ik
from benchmarks import tables
from benchmarks.draws import SEED
from benchmarks.run import results

THREADS = 2


def _people(k: int, n: int) -> np.ndarray:
    return np.random.default_rng(k).multinomial(n, np.random.default_rng(k).dirichlet(np.ones(k)))


def cases(n: int, side: int) -> dict[str, Callable[[], Any]]:
    few, many = (
        ik.Rappor(100, 0.5).simulate(_people(100, users), np.random.default_rng(SEED))
        for users in (n, 10 * n)
    )
    return {
        f"bits, k = 100, n = {n:,}: mle": lambda: ik.mle(few),
        f"bits, k = 100, n = {10 * n:,}: mle": lambda: ik.mle(many),
        f"plane, {side} x {side}: 3 steps of ibu": _steps(side),
        f"plane, {2 * side} x {2 * side}: 3 steps of ibu": _steps(2 * side),
    }


def _steps(side: int) -> Callable[[], Any]:
    """Three steps of `ibu` on a grid of `side` rows and columns."""
    noise = ik.TruncatedPlanarGeometric(ik.Grid(side, side), 0.5)
    tally = noise.simulate(_people(side**2, 10**7), np.random.default_rng(SEED))
    return lambda: ik.ibu(tally, stop=ik.Steps(3))


def timed(call: Callable[[], Any], threads: int) -> tuple[float, float, float]:
    """Seconds by the clock, CPU seconds of the process, and CPU seconds of its busiest thread."""
    with fft.set_workers(threads):
        start = time.perf_counter(), time.process_time(), time.thread_time()
        call()
        end = time.perf_counter(), time.process_time(), time.thread_time()
    wall, cpu, own = (b - a for a, b in zip(start, end, strict=True))
    return wall, cpu, max(own, (cpu - own) / max(1, threads - 1))


def _alone(name: str, n: int, side: int, rounds: int, begin: Barrier) -> float:
    """Seconds by the clock of a case in a process of its own, which begins when all are ready."""
    call = cases(n, side)[name]
    call()
    begin.wait()
    return statistics.median(timed(call, 1)[0] for _ in range(rounds))


def two_processes(name: str, n: int, side: int, rounds: int) -> float:
    """The work of two processes that share nothing, over the work of one."""
    took = []
    with (
        get_context("spawn").Manager() as manager,
        ProcessPoolExecutor(THREADS, get_context("spawn")) as pool,
    ):
        for processes in (1, THREADS):
            begin = manager.Barrier(processes)
            found = [
                pool.submit(_alone, name, n, side, 3 * rounds, begin) for _ in range(processes)
            ]
            took.append(statistics.mean(future.result() for future in found))
    return THREADS * took[0] / took[1]


def measure(n: int, side: int, rounds: int) -> pd.DataFrame:
    found = []
    for name, call in cases(n, side).items():
        one = call()
        with fft.set_workers(THREADS):
            many = call()
        same = np.array_equal(one.distribution, many.distribution)
        pairs = [(timed(call, 1), timed(call, THREADS)) for _ in range(rounds)]
        wall, cpu, _ = (statistics.median(one[i] for one, _ in pairs) for i in range(3))
        wall_2, cpu_2, side_by_side = (
            statistics.median(two[i] for _, two in pairs) for i in range(3)
        )
        found.append(
            {
                "case": name,
                "wall, one": wall,
                "wall, two": wall_2,
                "CPU, one": cpu,
                "CPU, two": cpu_2,
                "wall ratio": wall / wall_2,
                "ratio side by side": cpu / side_by_side,
                "two processes": two_processes(name, n, side, rounds),
                "same bits": same,
            }
        )
    return pd.DataFrame(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the people; the result stays in _build"
    )
    quick = parser.parse_args().quick
    table = measure(10**5, 128, 1) if quick else measure(10**6, 512, 5)
    tables.write(table, results("threads", quick))
    print(f"\nthreads\n{tables.text(table)}")


if __name__ == "__main__":
    main()
