"""Drawing and counting reports, beside plain numpy.

    .venv/bin/python -m benchmarks.reports [--quick]

Writes results/reports.csv: the nanoseconds of CPU time for each report, the median of five rounds
in turns, and the highest memory of a call. "numpy" is what a user would write by hand for these
reports: it draws or counts the same, and neither checks nor labels anything.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import ibukit as ik
from benchmarks.draws import SEED
from benchmarks.measure import clocked, peak_bytes
from benchmarks.run import results, write_rows

ROUNDS = 5


class Case(NamedTuple):
    """One call of ours and its rival by hand."""

    what: str
    mechanism: Any
    n: int
    ours: Callable[[], Any]
    by_hand: Callable[[], Any]


def generator() -> np.random.Generator:
    return np.random.default_rng(SEED)


def square_wave(mechanism: ik.SquareWave, secrets: np.ndarray) -> np.ndarray:
    rng, b, n = generator(), mechanism.b, len(secrets)
    v = (secrets + 0.5) / mechanism.k
    near, rest = v - b + 2 * b * rng.random(n), rng.random(n)
    far = np.where(rest < v, rest - b, rest + b)
    return np.where(rng.random(n) < mechanism.inside, near, far)


def duchi(mechanism: ik.Duchi, secrets: np.ndarray) -> np.ndarray:
    upper, c = mechanism.matrix()[:, 1], 1 / np.tanh(mechanism.epsilon / 2)
    return np.where(generator().random(len(secrets)) < upper[secrets], c, -c)


def by_matrix(mechanism: ik.MatrixMechanism, secrets: np.ndarray) -> np.ndarray:
    """Inversion of the cumulative rows, secret by secret."""
    rng, reports = generator(), np.empty(len(secrets), dtype=np.int64)
    for secret, row in enumerate(mechanism.matrix().cumsum(axis=1)):
        users = np.flatnonzero(secrets == secret)
        reports[users] = row.searchsorted(rng.random(len(users)) * row[-1], side="right")
    return reports


def cases(quick: bool) -> Iterator[Case]:
    n, k = (10**4, 1000) if quick else (10**5, 10_000)
    line, secrets = ik.Line(0, k - 1), generator().integers(0, k, n)
    for cls, hand in ((ik.SquareWave, square_wave), (ik.Duchi, duchi)):
        m = cls(line, 1.0)
        users = np.bincount(secrets, minlength=k)
        draw = lambda m=m: m.randomize(secrets, generator(), codes=True)  # noqa: E731
        simulate = lambda m=m, users=users: m.simulate(users, generator())  # noqa: E731
        yield Case("randomize", m, n, draw, lambda m=m, hand=hand: hand(m, secrets))
        sort = lambda m=m, hand=hand: np.sort(hand(m, secrets))  # noqa: E731
        yield Case("simulate", m, n, simulate, sort)
    for m in (ik.Staircase(line, 1.0), ik.LinearGaussian(line, 50.0)):
        seen = m.randomize(secrets, generator(), codes=True)
        tally = lambda m=m, seen=seen: m.tally(seen)  # noqa: E731
        yield Case("tally", m, n, tally, lambda seen=seen: np.sort(seen))
    for m in (
        ik.DiscreteGaussian(line, 50.0),
        ik.LinearGeometric(line, 0.05),
        ik.HadamardResponse(k, 1.0),
    ):
        whole = m.randomize(secrets, generator(), codes=True)
        tally = lambda m=m, whole=whole: m.tally(whole)  # noqa: E731
        count = lambda whole=whole: np.bincount(whole - whole.min())  # noqa: E731
        yield Case("tally", m, n, tally, count)
    grid = ik.Grid(10, 10)
    for m in (ik.PlanarGeometric(grid, 1.0), ik.PlanarGaussian(grid, 1.0)):
        pairs = m.randomize(secrets % 100, generator(), codes=True)
        tally = lambda m=m, pairs=pairs: m.tally(pairs)  # noqa: E731
        yield Case("tally", m, n, tally, lambda pairs=pairs: np.unique(pairs, axis=0))
    she = ik.HistogramEncoding(100, 1.0)
    rows = she.randomize(secrets % 100, generator(), codes=True)
    yield Case("tally", she, n, lambda: she.tally(rows), lambda: rows[np.argsort(rows[:, 0])])
    dense = ik.MatrixMechanism(generator().dirichlet(np.ones(100), 100))
    few = secrets % 100
    yield Case(
        "randomize",
        dense,
        n,
        lambda: dense.randomize(few, generator(), codes=True),
        lambda: by_matrix(dense, few),
    )


def measured(case: Case) -> dict[str, object]:
    case.ours(), case.by_hand()
    rounds = [(clocked(case.ours)[1], clocked(case.by_hand)[1]) for _ in range(ROUNDS)]
    ours, hand = np.median(rounds, axis=0) / case.n * 1e9
    memory = peak_bytes(case.ours)
    return {
        "what": case.what,
        "mechanism": type(case.mechanism).__name__,
        "k": case.mechanism.k,
        "n": case.n,
        "ours_ns": float(f"{ours:.3g}"),
        "numpy_ns": float(f"{hand:.3g}"),
        "ratio": float(f"{ours / hand:.2g}"),
        "megabytes": None if memory is None else round(memory / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer reports and secrets")
    asked = parser.parse_args()
    write_rows(map(measured, cases(asked.quick)), results("reports", asked.quick))


if __name__ == "__main__":
    main()
