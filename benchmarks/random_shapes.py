"""Two thousand random shapes: `mle` beside the fastest of five rivals, to the gap of each.

    .venv/bin/python -m benchmarks.random_shapes [--quick | --most 2000 --entries 4000000]

The numbers of secrets and of kinds of reports are log-uniform from 2 to 5,000, and the channels are
of eleven kinds. The people are in few hills, drawn from a Dirichlet law, or in few values. A rival
is stopped at three times our time. A rival that ends with a larger gap than ours, but below 1e-4,
is compared with `mle` at that gap. Writes results/random_shapes.csv, a row for each instance;
instances that the file has are kept. The bar: on no instance does `mle` take both more than twice
as long as the fastest rival and 5 ms more than it.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from tqdm import tqdm

import ibukit as ik
from benchmarks.dense_kinds import around, laws, lifetimes, low_rank, poisson, sparse
from benchmarks.draws import SEED
from benchmarks.few_atoms import blur, scales
from benchmarks.measure import budget
from benchmarks.peers import constrained_newton, general, squarem
from benchmarks.run import results

INSTANCES, SHORTEST_SIDE, LONGEST_SIDE, PEOPLE = 2000, 2, 5000, 100_000
TOL, ROUGHEST = 1e-9, 1e-4
# A rival that cannot be stopped during a call is left out above this size.
MAX_CONIC = 10**5
# Instances that take less are timed again, and the median counts.
SHORT, ROUNDS = 0.5, 3
TINY = 1e-300

Rival = Callable[[np.ndarray, np.ndarray, float], np.ndarray]
Make = Callable[[int, int, np.random.Generator], np.ndarray]


def _blur(k: int, s: int, rng: np.random.Generator) -> np.ndarray:
    width = np.exp(rng.uniform(np.log(0.005), np.log(0.3)))
    return blur(k, s, width)(rng)


def _cauchy(k: int, s: int, rng: np.random.Generator) -> np.ndarray:
    width = np.exp(rng.uniform(np.log(0.002), np.log(0.3)))
    return around(k, s, lambda d: 1 / (1 + (d / width) ** 2))


def _box(k: int, s: int, rng: np.random.Generator) -> np.ndarray:
    width = max(rng.uniform(0.01, 0.3), 1 / s)
    return around(k, s, lambda d: 1.0 * (np.abs(d) <= width))


def _confusion(k: int, s: int, rng: np.random.Generator) -> np.ndarray:
    right = np.zeros((k, s))
    right[np.arange(k), np.arange(k) % s] = 1.0
    share = rng.uniform(0.2, 0.95)
    return np.asarray(share * right + (1 - share) * rng.dirichlet(np.full(s, 0.3), size=k))


KINDS: dict[str, Make] = {
    "normal blur": _blur,
    "Cauchy blur": _cauchy,
    "box": _box,
    "random rows": lambda k, s, rng: rng.dirichlet(np.full(s, rng.uniform(0.2, 2)), size=k),
    "few entries": lambda k, s, rng: sparse(k, s, max(rng.uniform(0.01, 0.2), 2 / s), rng),
    "low rank": lambda k, s, rng: low_rank(k, s, int(rng.integers(2, 20)), rng),
    "confusion": _confusion,
    "scales in no order": lambda k, s, rng: scales(k, s)(rng),
    "hardly informative": lambda k, s, rng: laws(
        np.exp(rng.choice([0.01, 0.1, 0.5]) * rng.random((k, s)))
    ),
    "counts": lambda k, s, rng: poisson(k, rng.uniform(0.2, 0.8) * s, s),
    "lifetimes": lambda k, s, rng: lifetimes(k, s - 1),
}


def shape(rng: np.random.Generator) -> tuple[int, int]:
    """Numbers of secrets and of kinds of reports."""
    sides = np.rint(np.exp(rng.uniform(np.log(SHORTEST_SIDE), np.log(LONGEST_SIDE), 2)))
    return int(sides[0]), int(sides[1])


def generator(number: int) -> np.random.Generator:
    return np.random.default_rng([SEED, 44, 2000, number])


def instance(number: int) -> tuple[str, np.ndarray, np.ndarray]:
    """The kind, the matrix, and the counts of all its reports."""
    rng = generator(number)
    k, s = shape(rng)
    kind = list(KINDS)[rng.integers(len(KINDS))]
    matrix = KINDS[kind](k, s, rng)
    place = (np.arange(k) + 0.5) / k
    hills = 0.02 + sum(
        np.exp(-0.5 * ((place - at) / width) ** 2)
        for at, width in zip(rng.random(3), rng.uniform(0.02, 0.15, 3), strict=True)
    )
    few = np.bincount(rng.integers(0, k, 4), minlength=k)
    people = [hills, rng.dirichlet(np.ones(k)), few][rng.integers(3)]
    return kind, matrix, rng.multinomial(PEOPLE, ik.quantize(laws((people @ matrix)[None])[0]))


def by_squarem(columns: np.ndarray, q: np.ndarray, tol: float) -> np.ndarray:
    return squarem.maximise(columns, q, tol)[0]


def by_constrained_newton(columns: np.ndarray, q: np.ndarray, tol: float) -> np.ndarray:
    return constrained_newton.maximise(columns, q, tol)[0]


def by_bounds(columns: np.ndarray, q: np.ndarray, tol: float) -> np.ndarray:
    return np.asarray(general.minimised(columns, q, "L-BFGS-B", tol).x)


def by_softmax(columns: np.ndarray, q: np.ndarray, tol: float) -> np.ndarray:
    """L-BFGS on the logarithms of the shares."""

    def shares(x: np.ndarray) -> np.ndarray:
        weights = np.exp(x - x.max())
        return np.asarray(weights / weights.sum())

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        theta = shares(x)
        p = np.maximum(theta @ columns, TINY)
        return -q @ np.log(p), theta * (1 - columns @ (q / p))

    how = {"ftol": 0, "gtol": tol / 10, "maxiter": 10**5, "maxfun": 10**5, "maxcor": 20}
    found = minimize(loss, np.zeros(len(columns)), jac=True, method="L-BFGS-B", options=how)
    return shares(found.x)


def by_clarabel(columns: np.ndarray, q: np.ndarray, tol: float) -> np.ndarray:
    # cvxpy may not be installed.
    from benchmarks.peers import conic

    problem, theta = conic.dual(columns, q)
    problem.solve(solver="CLARABEL")
    return np.asarray(theta())


RIVALS: dict[str, Rival] = {
    "SQUAREM": by_squarem,
    "constrained Newton by nnls": by_constrained_newton,
    "L-BFGS-B": by_bounds,
    "L-BFGS on logarithms": by_softmax,
    "Clarabel, dual": by_clarabel,
}


def timed(
    call: Callable[[Any], Any], made: Callable[[], Any] = lambda: None, limit: float = np.inf
) -> tuple[Any, float]:
    """The result, and the median CPU seconds of one call, or of a few short ones.

    What is made for each call is off the clock.
    """
    seconds: list[float] = []
    while not seconds or (sum(seconds) < SHORT and len(seconds) < ROUNDS):
        given = made()
        start = time.process_time()
        with budget(limit) if np.isfinite(limit) else contextlib.nullcontext():
            result = call(given)
        seconds.append(time.process_time() - start)
    return result, float(np.median(seconds))


def measured(number: int) -> dict[str, object]:
    kind, matrix, counts = instance(number)
    mechanism = ik.MatrixMechanism(matrix)
    columns, q = np.ascontiguousarray(matrix[:, counts > 0]), counts[counts > 0] / counts.sum()

    def fresh() -> ik.Tally:
        # A tally that nobody has used, with its channel: reading reports is not the race.
        tally = mechanism.tally_counts(counts)
        assert tally.operator.size == len(q)
        return tally

    estimate, seconds = timed(lambda tally: ik.mle(tally, TOL), fresh)
    row: dict[str, object] = {
        "number": number,
        "kind": kind,
        "k": len(matrix),
        "s": matrix.shape[1],
        "seen": len(q),
        "method": estimate.method,
        "gap": float(f"{estimate.gap:.1e}"),
        "seconds": float(f"{seconds:.3g}"),
    }
    worst: tuple[float, dict[str, object]] = (-np.inf, {})
    for name, rival in RIVALS.items():
        if rival is by_clarabel and columns.size > MAX_CONIC:
            continue
        try:
            theta, theirs = timed(lambda _, r=rival: r(columns, q, TOL), limit=3 * seconds + 0.01)
        # Whatever a rival stumbles over is no answer.
        except Exception:
            continue
        theta = np.maximum(theta, 0) / np.maximum(theta, 0).sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = float((columns @ (q / (theta @ columns))).max() - 1)
        if not gap <= ROUGHEST:
            continue
        mine = seconds
        if gap > 2 * TOL:
            _, mine = timed(lambda tally, g=gap: ik.mle(tally, g), fresh)
        if mine / theirs > worst[0]:
            found = {"rival": name, "rival_gap": float(f"{gap:.1e}")}
            found |= {"rival_seconds": float(f"{theirs:.3g}"), "ours_there": float(f"{mine:.3g}")}
            worst = mine / theirs, found | {"ratio": float(f"{mine / theirs:.3g}")}
    return row | worst[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="twenty instances")
    parser.add_argument("--most", type=int, default=INSTANCES, help="instances in all")
    parser.add_argument(
        "--entries", type=int, default=LONGEST_SIDE**2, help="leave out larger matrices"
    )
    asked = parser.parse_args()
    path = results("random_shapes", asked.quick)
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    done = {int(row["number"]) for row in rows}
    # Loops are compiled, and modules loaded, by the first calls.
    for number in range(5):
        _, matrix, counts = instance(number)
        ik.mle(ik.MatrixMechanism(matrix).tally_counts(counts), TOL)
    for number in tqdm(range(20 if asked.quick else asked.most), disable=None):
        if number in done or math.prod(shape(generator(number))) > asked.entries:
            continue
        rows.append(measured(number))
        pd.DataFrame(rows).to_csv(path, index=False)
    table = pd.DataFrame(rows)
    above = table[(table.ratio > 2) & (table.ours_there - table.rival_seconds > 0.005)]
    print(f"{len(table)} instances, {len(above)} above the bar")
    print(above.sort_values("ratio").to_string(index=False))


if __name__ == "__main__":
    main()
