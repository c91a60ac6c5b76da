"""Counting the reports of a table, beside the table's own engine, and sums of many tallies.

    .venv/bin/python -m benchmarks.tables_of_reports [--quick]

Writes results/tables_of_reports.csv: CPU seconds of all threads, the median of rounds in turns, and
the highest memory of a call. The rival of a table is the group-by of its engine, which counts the
pairs of report and level and nothing else. The rival of a sum of n tallies is numpy's sum of their
counts, which knows no mechanism: the bar there is that twice as many tallies take twice as long.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import dataset, parquet

import ibukit as ik
from benchmarks.draws import SEED
from benchmarks.measure import clocked, peak_bytes
from benchmarks.run import results, write_rows

ROUNDS = 5
K, LEVELS = 50, (0.5, 1.0, 2.0, 4.0)


class Case(NamedTuple):
    """One call of ours and its rival, on n rows or tallies with a number of reports."""

    what: str
    n: int
    reports: int
    ours: Callable[[], ik.Tally]
    rival: Callable[[], Any]


def counted(table: Any) -> ik.Tally:
    return ik.Tally.from_table(table, lambda level: ik.RandomizedResponse(K, level), epsilon="eps")


def of_tables(n: int, folder: Path) -> Iterator[Case]:
    rng, path = np.random.default_rng(SEED), folder / "reports.parquet"
    columns = {"report": rng.integers(0, K, n, dtype=np.int16), "eps": rng.choice(LEVELS, n)}
    parquet.write_table(pa.table(columns), path)
    by = "report, eps, count(*)"
    yield Case(
        "a Parquet file; DuckDB",
        n,
        n,
        lambda: counted(str(path)),
        lambda: duckdb.read_parquet(str(path)).aggregate(by).fetchnumpy(),
    )
    arrow = dataset.dataset(path)
    yield Case(
        "an Arrow dataset; DuckDB over it",
        n,
        n,
        lambda: counted(arrow),
        lambda: duckdb.from_arrow(arrow).aggregate(by).fetchnumpy(),
    )
    lazy = pl.scan_parquet(path)
    group = lazy.group_by("report", "eps").agg(pl.len())
    streamed = lambda: group.collect(engine="streaming")  # noqa: E731
    yield Case("a Polars scan; streaming", n, n, lambda: counted(lazy), streamed)


def of_sums(n: int) -> Iterator[Case]:
    rng = np.random.default_rng(SEED)
    alike = [ik.RandomizedResponse(K, 1.0)] * n
    levels = [ik.RandomizedResponse(K, 1.0 + i / n) for i in range(n)]
    matrices = [ik.MatrixMechanism(rng.dirichlet(np.ones(K), K)) for _ in range(n)]
    kinds = {"one mechanism": alike, "k-RRs of n levels": levels, "n matrices": matrices}
    for what, mechanisms in kinds.items():
        tallies = [each.simulate(np.full(K, 20), rng) for each in mechanisms]
        counts = [each.counts for each in tallies]
        ours, by_hand = (lambda t=tallies: sum(t)), (lambda c=counts: sum(map(np.sum, c)))
        yield Case(f"a sum; {what}", n, 20 * K * n, ours, by_hand)


def measured(case: Case) -> dict[str, object]:
    case.rival()
    assert case.ours().n == case.reports
    rounds = [(clocked(case.ours)[1], clocked(case.rival)[1]) for _ in range(ROUNDS)]
    mine, other = np.median(rounds, axis=0)
    memory = peak_bytes(case.ours)
    return {
        "what": case.what,
        "n": case.n,
        "ours_s": float(f"{mine:.3g}"),
        "rival_s": float(f"{other:.3g}"),
        "ratio": float(f"{mine / other:.2g}"),
        "megabytes": None if memory is None else round(memory / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rows and tallies")
    asked = parser.parse_args()
    sizes = (200, 400) if asked.quick else (200, 400, 800, 1600)
    with TemporaryDirectory() as folder:
        tables = of_tables(10**6 if asked.quick else 10**8, Path(folder))
        cases = chain(tables, *map(of_sums, sizes))
        write_rows(map(measured, cases), results("tables_of_reports", asked.quick))


if __name__ == "__main__":
    main()
