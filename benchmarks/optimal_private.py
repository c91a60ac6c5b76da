"""The time that the best private mechanism on a line takes, by three ways.

    .venv/bin/python -m benchmarks.optimal_private [--quick] [--most SECRETS]

Its columns are listed, looked through in two halves, or guessed. Times are CPU seconds of one
thread at a uniform distribution. The three ways stand side by side where each runs. Writes
results/optimal_private.csv as it goes, for up to SECRETS secrets (50).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from unittest import mock

import pandas as pd

import ibukit as ik
from benchmarks.measure import clocked
from benchmarks.run import results, write_growing
from ibukit.design.optimal.extremal_columns import MAX_K_EXACT_PRICING

MAX_SECRETS = 50
LEVELS = (0.1, 0.5, 2.0)
SECRETS = (8, 12, 14, 16, 20, 26, 30, 40, 50, 70, 100)
# the most secrets for which each way is asked
WAYS = {"listed": 14, "two halves": 20, "guessed": 100}
MIN_SECRETS = {"listed": 3, "two halves": 8, "guessed": 8}


def row(way: str, k: int, eps: float, criterion: str) -> dict[str, object]:
    """One design by the given way, even where the package would go another way."""
    listed = k if way == "listed" else 2
    looked_through = 2 if way == "guessed" else MAX_K_EXACT_PRICING
    module = sys.modules[ik.optimal_private.__module__]
    with mock.patch.multiple(module, MAX_K_LISTED_PATH=listed, MAX_K_EXACT_PRICING=looked_through):
        best, seconds = clocked(
            lambda: ik.optimal_private(ik.uniform(k), k, eps, criterion, strict=False)
        )
    return {
        "k": k,
        "eps": eps,
        "criterion": criterion,
        "way": way,
        "seconds": float(f"{seconds:.2g}"),
        "value": float(f"{best.value:.8g}"),
        "gap share": float(f"{best.gap / best.value:.2g}"),
        "reports": best.mechanism.m,
    }


def measured(most: int) -> Iterator[pd.DataFrame]:
    """The table, which grows by one row each time."""
    rows: list[dict[str, object]] = []
    for k in SECRETS:
        for eps in LEVELS:
            for criterion in ("mse", "emd"):
                for way, limit in WAYS.items():
                    if MIN_SECRETS[way] <= k <= min(limit, most):
                        rows.append(row(way, k, eps, criterion))
                        yield pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="up to 12 secrets; the result stays in _build"
    )
    parser.add_argument("--most", type=int, default=MAX_SECRETS, help="secrets")
    asked = parser.parse_args()
    write_growing(
        measured(12 if asked.quick else asked.most), results("optimal_private", asked.quick)
    )


if __name__ == "__main__":
    main()
