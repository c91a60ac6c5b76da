"""The cost of all of Figure 9 through `ik.replicate`, on one core and on two.

    .venv/bin/python -m benchmarks.figure9 [--quick]

The figure is that of the comparison of IBU with INV: ages and Manhattan, each under geometric,
Laplace and exponential noise, at eight levels from end to end of the paper's range. Each of the 48
settings has a hundred draws and the paper's three estimators, of which IBU is run to its end:
14,400 fits. A tenth of the draws goes through one process, and all of them through two, with a
journal on disk. Writes results/figure9.csv. `CPU` is the time of all processes, with their start;
`in fits` is the share of it that the estimators took, while the rest went into draws, distances and
overhead; `parent` is the share of the first process alone, which no further core makes shorter.
Seconds by the clock mean something on an idle machine only: there two cores take half of `CPU`.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import ibukit as ik
from benchmarks import tables
from benchmarks.run import results

SEED = 7
LEVELS = 8
REPETITIONS = 100
LINEAR = (ik.TruncatedGeometric, ik.LinearLaplace, ik.Exponential)
PLANAR = (ik.TruncatedPlanarGeometric, ik.PlanarLaplace, ik.Exponential)
ESTIMATORS = {
    "INV-N": partial(ik.inv, post="normalize"),
    "INV-P": partial(ik.inv, post="project"),
    "IBU to its end": ik.mle,
}


def settings() -> list[tuple[ik.datasets.Dataset, list[ik.Mechanism]]]:
    """Each population with its mechanisms; levels in nats per year and per kilometre."""
    ages, town = ik.datasets.load_adult_ages(), ik.datasets.load_gowalla("manhattan")
    ranges = ((ages, LINEAR, (0.01, 0.3)), (town, PLANAR, (0.2, 6.0)))
    return [
        (
            people,
            [
                kind(people.alphabet, float(level))
                for kind in kinds
                for level in np.geomspace(*ends, LEVELS)
            ],
        )
        for people, kinds, ends in ranges
    ]


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def run(jobs: int, repetitions: int) -> dict[str, object]:
    """One line of the table."""
    from joblib.externals import loky

    start = time.perf_counter(), _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        found = [
            ik.replicate(
                people,
                noises,
                ESTIMATORS,
                repetitions,
                SEED,
                Path(folder) / f"{i}.jsonl",
                n_jobs=jobs,
            )
            for i, (people, noises) in enumerate(settings())
        ]
    if jobs > 1:  # the CPU time of children is known only when they have ended
        loky.get_reusable_executor().shutdown(wait=True)
    end = time.perf_counter(), _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN)
    wall, parent, children = (b - a for a, b in zip(start, end, strict=True))
    table = pd.concat(found)
    most = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {
        "fits": len(table),
        "jobs": jobs,
        "wall s": wall,
        "CPU s": parent + children,
        "CPU s / jobs": (parent + children) / jobs,
        "CPU ms a fit": 1000 * (parent + children) / len(table),
        "in fits": table.seconds.sum() / (parent + children),
        "parent": parent / (parent + children) if jobs > 1 else 1.0,
        "largest process, MB": most / 1024,  # Linux counts in KiB
        "worst gap": table[table.estimator == "IBU to its end"].gap.max(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="three draws of each; the result stays in _build"
    )
    quick = parser.parse_args().quick
    run(1, 1)  # compiles, and loads what is loaded once
    table = pd.DataFrame(
        [run(1, 1), run(2, 3)] if quick else [run(1, REPETITIONS // 10), run(2, REPETITIONS)]
    )
    tables.write(table, results("figure9", quick))
    print(f"\nfigure9\n{tables.text(table)}")


if __name__ == "__main__":
    main()
