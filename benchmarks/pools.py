"""Pools of many mechanisms, and many words with few reports, beside solvers of all rows.

    .venv/bin/python -m benchmarks.pools [--quick | NAME ...]

`mle` at its default tolerance, scipy's L-BFGS-B and constrained Newton steps (Wang 2007) take turns
in one process. Writing the rows out is not in the rivals' time. L-BFGS-B starts at the uniform
distribution and stops at the gap that it reaches. A rival runs only once if it took ten times as
long as `mle`. Writes results/pools.csv: median CPU seconds, the certified gap of the returned
vector, and what `mle` says that it did.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
import pandas as pd
from scipy.optimize import minimize

import ibukit as ik
from benchmarks.draws import SEED
from benchmarks.peers import constrained_newton
from benchmarks.run import results

TOL, ROUNDS, MAX_RATIO = 1e-9, 3, 10
FLOOR = 1e-300
Make = Callable[[np.random.Generator], ik.Tally]
MECHANISMS: dict[str, Callable[[int, float], ik.Mechanism]] = {
    "k-RR": ik.RandomizedResponse,
    "OUE": ik.OptimizedUnaryEncoding,
    "geometric": lambda k, epsilon: ik.LinearGeometric(ik.Line(0, k - 1), epsilon),
    "RAPPOR": ik.Rappor,
    "subset selection": ik.SubsetSelection,
    "local hashing": ik.LocalHashing,
}


def pool(kind: str, m: int, k: int, n: int, rng: np.random.Generator) -> ik.Tally:
    """n reports of each of m mechanisms, whose levels go from 1/2 to 3."""
    law = np.exp(-0.5 * ((np.arange(k) - k / 3) / (k / 8)) ** 2)
    levels = np.linspace(0.5, 3, m)
    mechanisms = [MECHANISMS[kind](k, float(level)) for level in levels]
    return sum(each.simulate(rng.multinomial(n, law / law.sum()), rng) for each in mechanisms)  # type: ignore[return-value]


def words(kind: str, k: int, n: int, rng: np.random.Generator) -> ik.Tally:
    """n reports at level 3 about k words with Zipf's law."""
    law = 1 / np.arange(1, k + 1)
    return MECHANISMS[kind](k, 3.0).simulate(rng.multinomial(n, law / law.sum()), rng)


CASES: dict[str, Make] = {
    **{
        f"{m} {kind}, k = {k}, {n} each": partial(pool, kind, m, k, n)
        for kind, m, k, n in (
            ("k-RR", 400, 60, 250),
            ("k-RR", 400, 200, 250),
            ("OUE", 400, 60, 25),
            ("OUE", 400, 60, 250),
            ("geometric", 400, 60, 250),
            ("geometric", 400, 200, 250),
            ("OUE", 20, 200, 200),
        )
    },
    **{
        f"{k} words, 200 reports of {kind}": partial(words, kind, k, 200)
        for kind in ("RAPPOR", "OUE", "subset selection", "local hashing")
        for k in (4_000, 16_000)
    },
}
QUICK = [next(iter(CASES)), list(CASES)[-2]]


def quasi_newton(columns: np.ndarray, q: np.ndarray) -> np.ndarray:
    """L-BFGS-B on the orthant, where the sum in the loss makes the maximiser sum to 1."""

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        p = np.maximum(theta @ columns, FLOOR)
        return theta.sum() - q @ np.log(p), 1 - columns @ (q / p)

    k = len(columns)
    options = {"ftol": 0, "gtol": 1e-9, "maxiter": 10_000, "maxfun": 10_000, "maxcor": 20}
    start = np.full(k, 1 / k)
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * k, options=options
    )
    return found.x


def measured(name: str) -> pd.DataFrame:
    """The rows of one case."""
    tally = CASES[name](np.random.default_rng([SEED, 45, list(CASES).index(name)]))
    columns, q = tally.matrix(), tally.frequencies
    # A factor of a report changes no maximiser, and rivals need numbers of moderate size.
    columns = columns / columns.max(axis=0)
    calls: dict[str, Callable[[], np.ndarray]] = {
        "ibukit": lambda: ik.mle(tally, TOL).distribution,
        "L-BFGS-B on the rows": lambda: quasi_newton(columns, q),
    }
    # With more reports than secrets, the system of constrained Newton has all reports and
    # takes up to minutes on these pools.
    if len(columns) > len(q):
        calls["constrained Newton by nnls"] = lambda: constrained_newton.maximise(columns, q, TOL)[
            0
        ]
    seconds: dict[str, list[float]] = {solver: [] for solver in calls}
    answers: dict[str, np.ndarray] = {}
    for solver, call in calls.items():
        start = time.process_time()
        answers[solver] = call()
        seconds[solver].append(time.process_time() - start)
        if solver == "ibukit":
            # The first call loads and compiles.
            seconds[solver].clear()
            start = time.process_time()
            call()
            seconds[solver].append(time.process_time() - start)
    for _ in range(ROUNDS - 1):
        for solver, call in calls.items():
            if seconds[solver][0] <= MAX_RATIO * seconds["ibukit"][0]:
                start = time.process_time()
                call()
                seconds[solver].append(time.process_time() - start)
    return pd.DataFrame(
        {
            "case": name,
            "solver": solver,
            "seconds": float(f"{median(seconds[solver]):.3g}"),
            "gap": float(f"{ik.gap(tally, theta / theta.sum()):.1e}"),
            "support": int((theta > 1e-9).sum()),
            "method": ik.mle(tally, TOL).method if solver == "ibukit" else "",
        }
        for solver, theta in answers.items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two cases; results stay in _build")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)}")
    asked = parser.parse_args()
    tables = []
    for name in asked.names or (QUICK if asked.quick else CASES):
        tables.append(measured(name))
        print(tables[-1].to_string(index=False, header=len(tables) == 1), flush=True)
    table = pd.concat(tables)
    path = results("pools", asked.quick)
    if asked.names and path.exists():
        kept = pd.read_csv(path)
        table = pd.concat([kept[~kept.case.isin(asked.names)], table])
    table.to_csv(path, index=False)


if __name__ == "__main__":
    main()
