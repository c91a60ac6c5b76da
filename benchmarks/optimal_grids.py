"""The best private mechanism on small grids, beside the known mechanisms.

    .venv/bin/python -m benchmarks.optimal_grids [--quick]

The table has the value of the best mechanism and its gap to the proven bound. Times are CPU seconds
of one thread at a uniform distribution; all columns are listed on 3 x 3 cells, and climb on more
than ten. Writes results/optimal_grids.csv as it goes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pandas as pd

import ibukit as ik
from benchmarks.measure import clocked
from benchmarks.run import results, write_growing

GRIDS = ((3, 3), (3, 4), (4, 4), (6, 6), (8, 8), (10, 10))
LEVELS = (0.2, 0.5, 2.0)
RIVALS = {
    "subset selection": ik.SubsetSelection,
    "k-RR": ik.RandomizedResponse,
    "exponential": ik.Exponential,
    "planar geometric": ik.TruncatedPlanarGeometric,
    "planar Laplace": ik.PlanarLaplace,
}


def row(grid: ik.Grid, cells: str, eps: float) -> dict[str, object]:
    """One design and the known mechanisms, where a cell's nearest neighbour is at distance 1."""
    prior = ik.uniform(len(grid))
    best, seconds = clocked(lambda: ik.optimal_private(prior, grid, eps, strict=False))
    found: dict[str, object] = {
        "cells": cells,
        "eps": eps,
        "seconds": float(f"{seconds:.2g}"),
        "value": float(f"{best.value:.8g}"),
        "gap share": float(f"{best.gap / best.value:.2g}"),
        "reports": best.mechanism.m,
    }
    for name, rival in RIVALS.items():
        found[name] = float(f"{ik.theory.asymptotic_mse(rival(grid, eps), prior):.5g}")
    return found


def measured(most: int) -> Iterator[pd.DataFrame]:
    """The table, which grows by one row each time."""
    rows: list[dict[str, object]] = []
    for n, m in GRIDS:
        for eps in LEVELS:
            if n * m <= most:
                rows.append(row(ik.Grid(n, m), f"{n} x {m}", eps))
                yield pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="up to 4 x 4 cells; the result stays in _build"
    )
    asked = parser.parse_args()
    write_growing(measured(16 if asked.quick else 100), results("optimal_grids", asked.quick))


if __name__ == "__main__":
    main()
