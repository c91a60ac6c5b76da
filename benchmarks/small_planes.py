"""Planes of 20 to 64 cells a side, where a matrix still fits: `mle` beside itself with that matrix.

    .venv/bin/python -m benchmarks.small_planes [--quick]

There are a hundred reports for each cell, and three towns on a thin background. Writes
results/small_planes.csv: CPU seconds of `mle` as it chooses and with method="dense", the medians of
rounds in turns, the gap that is certified, and CPU seconds of `smooth` with the penalty that it
chooses.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import ibukit as ik
from benchmarks.draws import SEED
from benchmarks.measure import clocked
from benchmarks.run import results, write_rows
from benchmarks.transport import blob

SIDES = (20, 24, 26, 27, 28, 32, 36, 40, 45, 48, 56, 64)
ROUNDS = 3
# With a matrix, larger planes take minutes.
MAX_SIDE_OF_MATRIX = 48
MECHANISMS: dict[str, Callable[[ik.Grid], ik.Mechanism]] = {
    "planar, eps = .5": lambda grid: ik.PlanarGeometric(grid, 0.5),
    "planar, eps = 1.5": lambda grid: ik.PlanarGeometric(grid, 1.5),
    "remapped, eps = .2": lambda grid: ik.TruncatedPlanarGeometric(grid, 0.2),
}


def tally(side: int, name: str) -> ik.Tally:
    """Reports of a hundred people a cell."""
    rng = np.random.default_rng([SEED, side])
    towns = 10 * blob(side, 0.3, 0.3, 0.08) + 6 * blob(side, 0.7, 0.6, 0.15)
    people = towns + 4 * blob(side, 0.2, 0.8, 0.04) + 2 / side**2
    counts = rng.multinomial(100 * side**2, ik.quantize(people / people.sum()))
    return MECHANISMS[name](ik.Grid(side, side)).simulate(counts, rng)


def measured(side: int, name: str) -> dict[str, object]:
    reports = tally(side, name)
    calls: dict[str, Callable[[], ik.Estimate]] = {"mle_s": lambda: ik.mle(reports)}
    if side <= MAX_SIDE_OF_MATRIX:
        calls["dense_s"] = lambda: ik.mle(reports, method="dense")
    rounds = [{key: clocked(call) for key, call in calls.items()} for _ in range(ROUNDS)]
    estimate = rounds[0]["mle_s"][0]
    seconds = {key: np.median([each[key][1] for each in rounds]) for key in calls}
    seconds["smooth_s"] = clocked(lambda: ik.smooth(reports))[1]
    return {
        "mechanism": name,
        "side": side,
        "distinct": len(reports.counts),
        "gap": float(f"{estimate.gap:.1e}"),
        "iterations": estimate.n_iter,
        **{key: float(f"{value:.3g}") for key, value in seconds.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="20 and 28 cells a side")
    asked = parser.parse_args()
    sides = (20, 28) if asked.quick else SIDES
    # So that no row includes the time of what a first call loads.
    measured(20, next(iter(MECHANISMS)))
    rows = (measured(side, name) for name in MECHANISMS for side in sides)
    write_rows(rows, results("small_planes", asked.quick))


if __name__ == "__main__":
    main()
