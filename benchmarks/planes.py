"""The cost of the maximum under noise on large planes, and over a city without an end.

    .venv/bin/python -m benchmarks.planes [--quick | NAME ...]

The planes have 256 x 256 to 1024 x 1024 cells, about 153 users for each cell, and planar geometric
noise of eps = 0.2 a cell, exactly remapped to the grid; `mle` goes to 1e-8. The city is Paris: a
million check-ins on an unbounded grid of cells of 0.1 km, eps = 1 a km; `mle` goes to 1e-6. Writes
results/planes.csv: CPU seconds, iterations, the gap that is certified, and the memory of the call
in vectors of one number for each cell. Cases that are not asked for keep their rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

import ibukit as ik
from benchmarks.draws import SEED, _towns
from benchmarks.measure import clocked, peak_bytes
from benchmarks.run import results

EPSILON, TOL = 0.2, 1e-8
USERS_A_SQUARE, SQUARE = 10**7, 256**2


def tally(side: int) -> ik.Tally:
    """Reports with equally many towns and users for each 256 x 256 cells, whatever the side."""
    rng = np.random.default_rng([SEED, side])
    share = side**2 / SQUARE
    people = _towns(
        (side, side), (20, side - 20), round(25 * share), round(1500 * share), 1.0, 9, 0.05, rng
    )
    mechanism = ik.TruncatedPlanarGeometric(ik.Grid(side, side), EPSILON)
    law = ik.distributions.normalize(np.maximum(mechanism.forward(people), 0))
    return mechanism.tally_counts(rng.multinomial(round(USERS_A_SQUARE * share), ik.quantize(law)))


def check_ins() -> ik.Tally:
    """Reports of check-ins, spread evenly over the half-kilometre cells in which they are known.

    They are made as in `benchmarks.unbounded`.
    """
    rng = np.random.default_rng(SEED)
    known = ik.datasets.load_gowalla("paris")
    held = rng.choice(len(known.alphabet), 10**6, p=known.distribution)
    cells = np.column_stack(np.divmod(held, known.alphabet.n_cols))
    mechanism = ik.PlanarGeometric(ik.Grid(None, None, 0.1), 1.0)
    secrets = np.floor((cells + rng.random(cells.shape)) * 5).astype(np.int64)
    return mechanism.tally(mechanism.randomize(secrets, rng))


CASES: dict[str, tuple[Callable[[], ik.Tally], float]] = {
    **{f"{side} x {side}": (partial(tally, side), TOL) for side in (256, 512, 1024)},
    "Paris, 0.1 km, no border": (check_ins, 1e-6),
}


def measured(name: str) -> dict[str, object]:
    make, tol = CASES[name]
    ik.mle(tally(64), tol=tol)  # so that the memory of a first call is not counted
    reports = make()
    found: list[tuple[ik.Estimate, float]] = []
    memory = peak_bytes(lambda: found.append(clocked(lambda: ik.mle(reports, tol=tol))))
    ((estimate, seconds),) = found
    return {
        "name": name,
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="the smallest alone; the result stays in _build"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)}")
    asked = parser.parse_args()
    path = results("planes", asked.quick)
    before = (
        pd.read_csv(path).set_index("name", drop=False).to_dict("index") if path.exists() else {}
    )
    for name in [next(iter(CASES))] if asked.quick else asked.names or CASES:
        before[name] = measured(name)
        print(before[name], flush=True)
        pd.DataFrame([before[name] for name in CASES if name in before]).to_csv(path, index=False)


if __name__ == "__main__":
    main()
