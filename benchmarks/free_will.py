"""GIBU where two thousand mechanisms of different levels share a million users, k = 100.

    .venv/bin/python -m benchmarks.free_will [CASE ...]

The cost of a step is counted in products of a dense 100 x 100 matrix with a vector, for each
mechanism. These products and the steps take turns in one process, and medians count. Writes
results/free_will.csv; if cases are named, only their rows are measured again.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from scipy.stats import binom

import ibukit as ik
from benchmarks import tables
from benchmarks.__main__ import ONE_THREAD
from benchmarks.measure import clocked

RESULTS = Path(__file__).parent / "results" / "free_will.csv"
K, USERS, MECHANISMS, SEED, ROUNDS = 100, 10**6, 2000, 2026, 5
TOL = 1e-6
# the most products of a dense matrix and a vector that a step may take for each mechanism, and the
# most megabytes that a call may take
MAX_PRODUCTS, MAX_MEMORY = 4.0, 2000.0


@dataclass
class Row:
    """One way to the maximum; `per_step` and both products are microseconds for each mechanism."""

    case: str
    method: str
    mechanisms: int
    distinct: int
    gap: float
    steps: int
    seconds: float
    per_step: float
    product: float
    product_in_cache: float
    ratio: float
    ratio_in_cache: float
    memory: float


def responses() -> list[ik.Mechanism]:
    """k-RR at levels between those of the paper's Table V."""
    return [
        ik.RandomizedResponse(line(), epsilon) for epsilon in np.linspace(3.0, 8.08, MECHANISMS)
    ]


def noises() -> list[ik.Mechanism]:
    """Truncated geometric noise at levels between those of the paper's Table VI."""
    return [
        ik.TruncatedGeometric(line(), epsilon) for epsilon in np.geomspace(0.02, 0.869, MECHANISMS)
    ]


def rappors() -> list[ik.Mechanism]:
    """RAPPOR at levels between those of the paper's Table IV, low privacy."""
    return [ik.Rappor(line(), epsilon) for epsilon in np.linspace(1.0, 10.0, MECHANISMS)]


def matrices() -> list[ik.Mechanism]:
    """Matrices of the users' own: the truth half of the time, or else reports of uneven chances."""
    drawn = (
        np.random.default_rng([SEED, i]).dirichlet(np.full(K, 0.1), K) for i in range(MECHANISMS)
    )
    return [ik.MatrixMechanism((np.eye(K) + rows) / 2, line()) for rows in drawn]


def in_turn(*kinds: list[ik.Mechanism]) -> list[ik.Mechanism]:
    """The kinds in turn, so that no mechanism has a neighbour of its own kind."""
    return [kinds[i % len(kinds)][i] for i in range(MECHANISMS)]


CASES: dict[str, Callable[[], list[ik.Mechanism]]] = {
    "k-RR": responses,
    "geometric": noises,
    "k-RR, geometric": lambda: in_turn(responses(), noises()),
    "RAPPOR": rappors,
    "k-RR, geometric, RAPPOR": lambda: in_turn(responses(), noises(), rappors()),
    "own matrices": matrices,
}
METHODS: dict[str, Callable[[ik.Tally], ik.Estimate]] = {
    "ibu": ik.ibu,
    "ibu, accelerated": lambda tally: ik.ibu(tally, accelerate=True),
    "mle": ik.mle,
}


def line() -> ik.Line:
    return ik.Line(0, K - 1)


def tally_of(case: str) -> ik.Tally:
    """Secrets from binomial(99, 1/2), as on the paper's line; shares equal."""
    rng = np.random.default_rng(SEED)
    secrets = rng.multinomial(USERS, binom.pmf(np.arange(K), K - 1, 0.5))
    return ik.FreeWill(CASES[case]()).simulate(secrets, rng)


def products(stack: np.ndarray) -> float:
    """Microseconds of a matrix times a vector: the mean of forward and adjoint, over a stack."""
    theta = np.full(K, 1 / K)

    def all_of_them() -> None:
        for matrix in stack:
            matrix @ (theta @ matrix)

    return clocked(all_of_them)[1] / len(stack) / 2 * 1e6


def timed(case: str, method: str) -> Row:
    """Time one way to the maximum, in a process of its own."""
    tally = tally_of(case)
    run = METHODS[method]
    found, seconds = clocked(
        lambda: run(tally)
    )  # includes compiling, which is short beside the call where its time counts
    assert found.gap <= TOL, f"{method} on {case}: gap {found.gap}"
    # enough steps to make setting up negligible beside them
    again = (
        (lambda: ik.ibu(tally, stop=ik.Steps(min(found.n_iter, 200))))
        if method == "ibu"
        else lambda: run(tally)
    )
    stack = np.random.default_rng(SEED).dirichlet(np.ones(K), (MECHANISMS, K))
    same = np.broadcast_to(stack[0], stack.shape)
    steps, own, cached, whole = [], [], [], []
    for _ in range(ROUNDS):
        own.append(products(stack))
        cached.append(products(same))
        once, taken = clocked(again)
        whole.append(taken)
        steps.append(whole[-1] / once.n_iter / len(tally.parts) * 1e6)
    per_step, product, in_cache = median(steps), median(own), median(cached)
    return Row(
        case=case,
        method=method,
        mechanisms=len(tally.parts),
        distinct=len(tally.counts),
        gap=found.gap,
        steps=found.n_iter,
        seconds=seconds if method == "ibu" else median(whole),
        per_step=per_step,
        product=product,
        product_in_cache=in_cache,
        ratio=per_step / product,
        ratio_in_cache=per_step / in_cache,
        memory=0.0,
    )


def megabytes(case: str, method: str) -> float:
    """The peak megabytes of a process that draws the reports and estimates from them."""
    tally = tally_of(case)
    ik.ibu(tally, stop=ik.Steps(20)) if method == "ibu" else METHODS[method](tally)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def verdicts(table: pd.DataFrame) -> list[str]:
    """The bars that were missed; `mle` has no bar for its steps, which are not those of `ibu`."""
    steps = table[table.method.str.startswith("ibu") & (table.ratio > MAX_PRODUCTS)]
    large = table[table.memory >= MAX_MEMORY]
    return [
        *(
            f"{row.case}, {row.method}: {row.ratio:.3g} products a step"
            for row in steps.itertuples()
        ),
        *(f"{row.case}, {row.method}: {row.memory:,.0f} MB" for row in large.itertuples()),
    ]


def main() -> None:
    if any(
        os.environ.get(name) != "1" for name in ONE_THREAD
    ):  # before any library has started its threads
        again = [sys.executable, "-m", "benchmarks.free_will", *sys.argv[1:]]
        os.execve(sys.executable, again, os.environ | dict.fromkeys(ONE_THREAD, "1"))
    chosen = sys.argv[1:] or list(CASES)
    rows = []
    with ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        for case in chosen:
            for method in METHODS:
                row = pool.submit(timed, case, method).result()
                row.memory = pool.submit(megabytes, case, method).result()
                rows.append(asdict(row))
                print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    if RESULTS.exists() and set(chosen) < set(CASES):
        kept = pd.read_csv(RESULTS)
        table = pd.concat([kept[~kept.case.isin(chosen)], table])
        table = table.sort_values(
            "case", key=lambda names: names.map(list(CASES).index), kind="stable"
        )
    tables.write(table, RESULTS)
    print(tables.text(table))
    print("\n".join(f"MISSED: {line}" for line in verdicts(table)) or "every bar is met")


if __name__ == "__main__":
    main()
