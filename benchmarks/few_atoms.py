"""Dense channels far from square, smooth, or uninformative, beside forty lines of scipy's nnls.

    .venv/bin/python -m benchmarks.few_atoms [--quick | NAME ...]

`mle` at its default tolerance and constrained Newton steps (Wang 2007) take turns in one process.
Writes results/few_atoms.csv: median CPU seconds, steps, the gap of the returned vector, and the
secrets with mass. With more secrets than reports and a perfect fit, constrained Newton returns one
of many maximisers, which depends on the order of the secrets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import pandas as pd

import ibukit as ik
from benchmarks.dense_kinds import PEOPLE, around, laws, low_rank
from benchmarks.draws import SEED
from benchmarks.peers import constrained_newton
from benchmarks.run import results

TOL, ROUNDS = 1e-9, 5
Make = Callable[[np.random.Generator], np.ndarray]


def blur(k: int, s: int, width: float) -> Make:
    return lambda rng: around(k, s, lambda d: np.exp(-0.5 * (d / width) ** 2) + 1e-300)


def random_rows(k: int, s: int) -> Make:
    return lambda rng: rng.dirichlet(np.ones(s), size=k)


def scales(k: int, s: int) -> Make:
    """Normal laws of k scales in no order, in s intervals."""
    ends = np.linspace(-20, 20, s)
    return lambda rng: laws(
        np.exp(-0.5 * (ends / rng.permutation(np.geomspace(1, 10, k))[:, None]) ** 2)
    )


def confusion(k: int) -> Make:
    return lambda rng: 0.6 * np.eye(k) + 0.4 * rng.dirichlet(np.full(k, 0.3), size=k)


CASES: dict[str, Make] = {
    **{f"wide, {k} x {s}": random_rows(k, s) for k, s in ((3000, 4), (4900, 30), (2000, 12))},
    **{f"blur .04, {k} x {k}": blur(k, k, 0.04) for k in (250, 300, 800, 1600)},
    "blur .01, 800 x 800": blur(800, 800, 0.01),
    "eps = .01, 100 x 100": lambda rng: laws(np.exp(0.01 * rng.random((100, 100)))),
    "rank 5, 150 x 120": lambda rng: low_rank(150, 120, 5, rng),
    "scales, 60 x 3000": scales(60, 3000),
    "tall, 20 x 20000": random_rows(20, 20_000),
    "confusion, 300 x 300": confusion(300),
}
QUICK = list(CASES)[:4]


def measured(name: str) -> pd.DataFrame:
    rng = np.random.default_rng([SEED, 44, list(CASES).index(name)])
    matrix = CASES[name](rng)
    law = rng.dirichlet(np.ones(len(matrix))) @ matrix
    counts = rng.multinomial(PEOPLE, ik.quantize(law / law.sum()))
    tally = ik.MatrixMechanism(matrix).tally_counts(counts)
    columns, q = matrix[:, counts > 0], counts[counts > 0] / counts.sum()

    def ours() -> tuple[np.ndarray, int]:
        estimate = ik.mle(tally, TOL)
        return estimate.distribution, estimate.n_iter

    calls = {
        "ibukit": ours,
        "constrained Newton by nnls": lambda: constrained_newton.maximise(columns, q, TOL),
    }
    seconds: dict[str, list[float]] = {solver: [] for solver in calls}
    answers = {solver: call() for solver, call in calls.items()}
    for _ in range(ROUNDS):
        for solver, call in calls.items():
            start = time.process_time()
            call()
            seconds[solver].append(time.process_time() - start)
    rows = []
    for solver, (theta, steps) in answers.items():
        rows.append(
            {
                "case": name,
                "solver": solver,
                "seconds": float(f"{median(seconds[solver]):.3g}"),
                "steps": steps,
                "gap": float(f"{ik.gap(tally, theta / theta.sum()):.1e}"),
                "support": int((theta > 0).sum()),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="four cases; results stay in _build")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)}")
    asked = parser.parse_args()
    tables = []
    for name in asked.names or (QUICK if asked.quick else CASES):
        tables.append(measured(name))
        print(tables[-1].to_string(index=False, header=len(tables) == 1), flush=True)
    table = pd.concat(tables)
    path = results("few_atoms", asked.quick)
    if asked.names and path.exists():
        kept = pd.read_csv(path)
        table = pd.concat([kept[~kept.case.isin(asked.names)], table])
    table.to_csv(path, index=False)


if __name__ == "__main__":
    main()
