"""Race `mle` on dense channels that it was not built for, beside Clarabel and BLAS.

Run it by `python -m benchmarks.dense`. Clarabel is asked through cvxpy, on the problem and on its
dual, and through its own Python interface, which saves the time that cvxpy takes. `mle` is asked
for the gap that each of these ways reached. `limit` is the time of an iteration of `mle` in units
of the two calls of BLAS that it cannot do without: the product that forms the system and its
Cholesky factor.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf

import ibukit as ik
from benchmarks import tables
from benchmarks.bars import Bar
from benchmarks.dense_kinds import KINDS, drawn
from benchmarks.draws import ROOT
from ibukit.solvers import interior_point
from ibukit.solvers.dense.central_path import DensePath
from ibukit.solvers.dense.systems import MAX_REPORTS_PER_SECRET

RESULTS = ROOT / "benchmarks" / "results" / "dense.csv"
QUICK = ("binomial", "low-rank", "tiny-random")
TIMES = 20
LIMIT = 2
# CPU seconds that a contender spends in a round, at least
ENOUGH = 0.02
# the finest gap that is asked for
FINEST = 1e-12
Answer = tuple[np.ndarray, int]


@dataclass(frozen=True)
class Kind:
    """Reports of one kind: what a user has, and what Clarabel gets."""

    name: str
    tally: ik.Tally
    columns: np.ndarray
    q: np.ndarray

    @classmethod
    def of(cls, name: str) -> Kind:
        matrix, counts = drawn(name)
        seen = counts > 0
        columns = np.ascontiguousarray(matrix[:, seen])
        return cls(
            name,
            ik.MatrixMechanism(matrix).tally_counts(counts),
            columns,
            counts[seen] / counts.sum(),
        )

    def gap(self, theta: np.ndarray) -> float:
        """max g - 1 on the vector made a distribution: no solver's own claim counts."""
        theta = np.maximum(theta, 0)
        with np.errstate(divide="ignore"):
            return float((self.columns @ (self.q / (theta / theta.sum() @ self.columns))).max() - 1)


def by_cvxpy(kind: Kind, dual: bool) -> Callable[[], Answer]:
    """A call of cvxpy, as in the race of the workloads, on a problem that was not solved before."""
    import cvxpy as cp

    if dual:
        w = cp.Variable(len(kind.q))
        within = kind.columns @ w <= 1
        problem = cp.Problem(cp.Maximize(kind.q @ cp.log(w)), [within])
    else:
        theta = cp.Variable(len(kind.columns))
        fit = kind.q @ cp.log(kind.columns.T @ theta)
        problem = cp.Problem(cp.Maximize(fit - cp.sum(theta)), [theta >= 0])

    def call() -> Answer:
        problem.solve(solver=cp.CLARABEL)
        found = within.dual_value if dual else theta.value
        return np.asarray(found), int(problem.solver_stats.num_iters)

    return call


def by_clarabel(kind: Kind, dual: bool) -> Callable[[], Answer]:
    """A call of Clarabel with exponential cones (t, 1, nu), timed with making its sparse matrix."""
    import clarabel
    from scipy import sparse

    k, s = kind.columns.shape
    at = 3 * np.arange(s)

    def call() -> Answer:
        t = sparse.csc_matrix((-np.ones(s), (at, np.arange(s))), (3 * s, s))
        if dual:
            inside = sparse.csc_matrix(kind.columns)
            third = sparse.csc_matrix((-np.ones(s), (at + 2, np.arange(s))), (3 * s, s))
            bounds, cost = np.ones(k), np.zeros(s)
        else:
            inside = -sparse.identity(k)
            fit = sparse.coo_matrix(kind.columns.T)
            third = sparse.csc_matrix((-fit.data, (3 * fit.row + 2, fit.col)), (3 * s, k))
            bounds, cost = np.zeros(k), np.ones(k)
        a = sparse.vstack(
            [sparse.hstack([inside, sparse.csc_matrix((k, s))]), sparse.hstack([third, t])]
        ).tocsc()
        b = np.concatenate([bounds, np.tile([0.0, 1.0, 0.0], s)])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        cones = [clarabel.NonnegativeConeT(k), *[clarabel.ExponentialConeT()] * s]
        n = a.shape[1]
        solver = clarabel.DefaultSolver(
            sparse.csc_matrix((n, n)), np.concatenate([cost, -kind.q]), a, b, cones, settings
        )
        found = solver.solve()
        return np.array(found.z if dual else found.x)[:k], found.iterations

    return call


PEERS: dict[str, Callable[[Kind], Callable[[], Answer]]] = {
    "cvxpy, primal": lambda kind: by_cvxpy(kind, dual=False),
    "cvxpy, dual": lambda kind: by_cvxpy(kind, dual=True),
    "own interface, primal": lambda kind: by_clarabel(kind, dual=False),
    "own interface, dual": lambda kind: by_clarabel(kind, dual=True),
}


def clocked(prepare: Callable[[], Callable[[], Any]], samples: list[float]) -> Any:
    """Append to `samples` the CPU seconds of the calls of one round; return the last result."""
    spent = 0.0
    while spent < ENOUGH:
        call = prepare()
        start = time.process_time()
        found = call()
        samples.append(time.process_time() - start)
        spent += samples[-1]
    return found


def race(name: str, rounds: int) -> list[dict[str, Any]]:
    """A row for each way to ask Clarabel, in turns with `mle` at the gap that this way reaches."""
    kind = Kind.of(name)
    rows: list[dict[str, Any]] = []
    for peer, make in PEERS.items():
        theta, iterations = make(kind)()  # also warms up
        gap = kind.gap(theta)
        rows.append({"kind": name, "peer": peer, "peer_iterations": iterations, "peer_gap": gap})
    theirs: list[list[float]] = [[] for _ in rows]
    ours: list[list[float]] = [[] for _ in rows]
    for number in range(rounds):
        for i in np.roll(np.arange(len(rows)), number).tolist():
            row = rows[i]
            clocked(lambda row=row: PEERS[row["peer"]](kind), theirs[i])
            tol = max(float(np.log1p(row["peer_gap"])), FINEST)
            estimate = clocked(lambda tol=tol: lambda: _fresh(kind, tol), ours[i])
            row["iterations"], row["gap"] = estimate.n_iter, kind.gap(estimate.distribution)
    limit = in_blas_calls(kind)
    for row, their, our in zip(rows, theirs, ours, strict=True):
        row |= {
            "peer_seconds": median(their),
            "seconds": median(our),
            "ratio": median(their) / median(our),
        }
        row |= {"limit": limit, "k": len(kind.columns), "s": len(kind.q)}
    return rows


def _fresh(kind: Kind, tol: float) -> ik.Estimate:
    return ik.mle(kind.tally, tol=tol)


def in_blas_calls(kind: Kind, gap: float = 1e-6) -> float:
    """The time of an iteration in units of its product and factor: medians of both, in turns."""
    matrix = kind.columns / kind.columns.max(axis=0)
    k, s = matrix.shape
    in_reports = s < MAX_REPORTS_PER_SECRET * k
    half = np.asfortranarray(matrix if in_reports else matrix.T)
    order = s if in_reports else k
    system = np.asfortranarray(
        (matrix.T @ matrix if in_reports else matrix @ matrix.T) + order * np.eye(order)
    )
    steps, calls = [], []
    settings = interior_point.TRIES[0]
    while sum(steps) < 10 * ENOUGH:
        path = DensePath(matrix, kind.q, settings.em_steps, settings.uniform_share)
        while path.excess() > gap:
            start = time.process_time()
            path.advance()
            steps.append(time.process_time() - start)
            start = time.process_time()
            dsyrk(1.0, half, trans=0 if in_reports else 1, lower=1)
            dpotrf(system, lower=1, clean=0)
            calls.append(time.process_time() - start)
    return median(steps) / median(calls)


def judge(table: pd.DataFrame) -> list[Bar]:
    """Two bars for each kind: the fastest way through cvxpy, and the iteration in calls of BLAS."""
    bars = []
    for name, rows in table.groupby("kind", sort=False):
        fastest = rows[rows.peer.str.startswith("cvxpy")].sort_values("peer_seconds").iloc[0]
        met = fastest.ratio >= TIMES and fastest.gap <= max(fastest.peer_gap, FINEST)
        told = (
            f"{fastest.ratio:.1f} ({fastest.peer}, gap {fastest.peer_gap:.0e} to our"
            f" {max(fastest.gap, 0):.0e})"
        )
        bars.append(
            Bar(f"dense, {name}: fastest Clarabel by cvxpy / ours", f">= {TIMES}", told, bool(met))
        )
        limit = rows.limit.iloc[0]
        bars.append(
            Bar(
                f"dense, {name}: an iteration / its two calls of BLAS",
                f"<= {LIMIT}",
                f"{limit:.2f}",
                limit <= LIMIT,
            )
        )
    return bars


def kept_bars(path: Path = RESULTS) -> list[Bar]:
    """The bars of the table that the last run has written."""
    return judge(pd.read_csv(path)) if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="three kinds, two rounds; results stay in _build"
    )
    parser.add_argument(
        "--only", nargs="+", choices=KINDS, help="these kinds, in place of their last rows"
    )
    asked = parser.parse_args()
    if any(os.environ.get(name) != "1" for name in ("OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")):
        alone = dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
        )
        os.execve(
            sys.executable,
            [sys.executable, "-m", "benchmarks.dense", *sys.argv[1:]],
            os.environ | alone,
        )
    rows: list[dict[str, Any]] = []
    for name in asked.only or (QUICK if asked.quick else KINDS):
        found = race(name, 2 if asked.quick else 3)
        rows += found
        shown = tables.text(pd.DataFrame(found).drop(columns=["kind", "k", "s"]))
        print(
            f"\n{KINDS[name][0]}\n{shown}",
            flush=True,
        )
    path = ROOT / "_build" / "bench" / "quick" / "dense.csv" if asked.quick else RESULTS
    table = pd.DataFrame(rows)
    if asked.only and path.exists():
        last = pd.read_csv(path)
        table = pd.concat([last[~last.kind.isin(asked.only)], table])
    table = table.sort_values("kind", key=lambda kinds: kinds.map(list(KINDS).index), kind="stable")
    tables.write(table, path)
    print(f"\n{tables.text(tables.frame_of_bars(judge(table)))}")


if __name__ == "__main__":
    main()
