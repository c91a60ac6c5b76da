"""Noise on large planes, exactly remapped: what the maximum costs from 256 x 256 to 1024 x 1024 cells.

    .venv/bin/python -m benchmarks.planes [SIDE ...]

About 153 users for each cell, planar geometric noise of eps = 0.2 a cell, remapped to the grid; `mle` to 1e-8.
Writes results/planes.csv: CPU seconds, iterations, the gap that is certified, and the memory of the call in vectors
of one number a cell; a side that is not asked for keeps its row.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import ibukit as ik
from benchmarks.draws import SEED, _towns
from benchmarks.measure import clocked, peak_bytes

RESULTS = Path(__file__).parent / "results" / "planes.csv"
SIDES = (256, 512, 1024)
EPSILON, TOL = 0.2, 1e-8
USERS_A_SQUARE, SQUARE = 10**7, 256**2


def tally(side: int) -> ik.Tally:
    """Reports of as many towns and users a square of 256 x 256 cells, whatever the side."""
    rng = np.random.default_rng([SEED, side])
    share = side**2 / SQUARE
    people = _towns((side, side), (20, side - 20), round(25 * share), round(1500 * share), 1.0, 9, 0.05, rng)
    mechanism = ik.TruncatedPlanarGeometric(ik.Grid(side, side), EPSILON)
    law = ik.distributions.normalize(np.maximum(mechanism.forward(people), 0))
    return mechanism.tally_counts(rng.multinomial(round(USERS_A_SQUARE * share), ik.quantize(law)))


def measured(side: int) -> dict[str, object]:
    reports = tally(side)
    found: list[tuple[ik.Estimate, float]] = []
    memory = peak_bytes(lambda: found.append(clocked(lambda: ik.mle(reports, tol=TOL))))
    ((estimate, seconds),) = found
    return {
        "side": side,
        "k": reports.k,
        "n": reports.n,
        "distinct": len(reports.counts),
        "seconds": float(f"{seconds:.3g}"),
        "microseconds_a_cell": float(f"{1e6 * seconds / reports.k:.3g}"),
        "iterations": estimate.n_iter,
        "gap": float(f"{estimate.gap:.1e}"),
        "vectors": None if memory is None else round(memory / (8 * reports.k)),
        "support": int((estimate.distribution > 0).sum()),
    }


def main() -> None:
    before = pd.read_csv(RESULTS).set_index("side", drop=False).to_dict("index") if RESULTS.exists() else {}
    for side in [int(side) for side in sys.argv[1:]] or SIDES:
        before[side] = measured(side)
        print(before[side], flush=True)
        pd.DataFrame([before[side] for side in sorted(before)]).to_csv(RESULTS, index=False)


if __name__ == "__main__":
    main()
