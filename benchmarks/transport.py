"""The earth mover's distance on square grids, beside POT's network simplex on all pairs.

    .venv/bin/python -m benchmarks.transport [--quick]

Writes results/transport.csv: CPU seconds, the median of rounds in turns, and the highest memory of
a call. POT gets what a user who knows it would give it: only the cells where the distributions
differ, by their difference, and the distances between these.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import ot
from scipy.spatial.distance import cdist

import ibukit as ik
from benchmarks.draws import SEED
from benchmarks.measure import clocked, peak_bytes
from benchmarks.run import results, write_rows

ROUNDS = {16: 7, 32: 5, 45: 5, 64: 3, 100: 1}
Pair = tuple[np.ndarray, np.ndarray]


def blob(side: int, row: float, col: float, width: float) -> np.ndarray:
    y, x = np.mgrid[:side, :side] / side
    weights = np.exp(-((y - row) ** 2 + (x - col) ** 2) / (2 * width**2)).ravel()
    return weights / weights.sum()


def instances(side: int) -> Iterator[tuple[str, Pair]]:
    rng, k = np.random.default_rng(SEED), side**2
    smooth = (blob(side, 0.3, 0.3, 0.1) + blob(side, 0.7, 0.6, 0.2)) / 2
    yield "rough", tuple(rng.dirichlet(np.ones(k), 2))
    yield "far", (blob(side, 0.2, 0.3, 0.08), blob(side, 0.8, 0.6, 0.12))
    yield "sample", (smooth, rng.multinomial(10 * k, smooth) / (10 * k))
    yield "few atoms", (smooth, rng.dirichlet(np.full(k, 0.02)))
    yield "uniform", (np.full(k, 1 / k), blob(side, 0.5, 0.5, 0.1))
    half = (np.arange(k) < k // 2).astype(float)
    yield "halves", (half / half.sum(), (1 - half) / (1 - half).sum())


def by_pot(p: np.ndarray, q: np.ndarray, side: int) -> float:
    places = np.stack(np.divmod(np.arange(side**2), side), axis=1).astype(float)
    more, less = np.flatnonzero(p > q), np.flatnonzero(p < q)
    supply, demand = (p - q)[more], (q - p)[less]
    total = supply.sum()
    distances = cdist(places[more], places[less])
    return total * ot.emd2(supply / total, demand / demand.sum(), distances, numItermax=10**8)


def measured(side: int, name: str, pair: Pair) -> dict[str, object]:
    grid = ik.Grid(side, side)
    ours, theirs = (lambda: ik.emd(*pair, grid)), (lambda: by_pot(*pair, side))
    rounds = [(clocked(ours), clocked(theirs)) for _ in range(ROUNDS[side])]
    seconds = np.median([[one[1] for one in each] for each in rounds], axis=0)
    (distance, _), (other, _) = rounds[0]
    memory = [peak_bytes(call) for call in (ours, theirs)]
    return {
        "side": side,
        "instance": name,
        "ours_s": float(f"{seconds[0]:.3g}"),
        "pot_s": float(f"{seconds[1]:.3g}"),
        "ratio": float(f"{seconds[0] / seconds[1]:.2g}"),
        "difference": float(f"{distance / other - 1:.1g}"),
        "ours_mb": None if memory[0] is None else round(memory[0] / 1e6),
        "pot_mb": None if memory[1] is None else round(memory[1] / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="grids of up to 45 cells a side")
    asked = parser.parse_args()
    sides = [side for side in ROUNDS if side <= 45 or not asked.quick]
    # Both import modules at their first call.
    measured(16, "rough", next(instances(16))[1])
    rows = (measured(side, *each) for side in sides for each in instances(side))
    write_rows(rows, results("transport", asked.quick))


if __name__ == "__main__":
    main()
