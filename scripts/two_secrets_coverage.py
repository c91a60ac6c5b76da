"""Compute how often intervals hold for two secrets with two kinds of reports, without a draw.

    python scripts/two_secrets_coverage.py [--methods wald profile ...] [--to FILE]

Writes data/two-secrets-coverage.csv, one row for each matrix, number of people and method. Of n
people, x make the first report, and x is binomial. The interval of each x is computed once; the
coverage of a truth is the sum of the probabilities of those x whose intervals hold it. Rows of
methods that are not named are kept. The whole run takes about two minutes of one core.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom
from tqdm import tqdm

import ibukit as ik
from ibukit.intervals.clopper_pearson import FALSE_ALARM_PROBABILITY

FILE = Path(__file__).resolve().parents[1] / "data" / "two-secrets-coverage.csv"
LEVEL, TRUTHS, SIZES = 0.95, 200, (10, 50, 400)
# Shares of the secret whose report is counted.
SHARES = np.linspace(0, 1, TRUTHS)
MECHANISMS: dict[str, ik.FiniteMechanism] = {
    "k-RR at epsilon 0.5": ik.RandomizedResponse(2, 0.5),
    "k-RR at epsilon 2": ik.RandomizedResponse(2, 2.0),
    # Sensitivity .85 and specificity .99.
    "test": ik.MatrixMechanism([[0.85, 0.15], [0.01, 0.99]]),
    # The sum of two dice decides: up to 4 the report is yes, from 11 it is no, and between it is
    # true.
    "forced response": ik.MatrixMechanism([[11 / 12, 1 / 12], [2 / 12, 10 / 12]]),
}
METHODS: dict[str, dict[str, Any]] = {
    "auto": {},
    "profile": {},
    "wald": {},
    "guaranteed": {},
    "calibrated": {},
    "bootstrap": {"draws": 199, "seed": 0},
    "credible": {},
}
COLUMNS = ("matrix", "n", "method", "level", "truths", "least", "at", "inside", "mean", "width")
# Shares away from the boundary: at the boundary a method may fail for a reason of its own.
INSIDE = (SHARES > 0.05) & (SHARES < 0.95)
# An end that touches the truth covers it, and coverages that differ by less than this count as the
# same, however the last digit falls.
TOUCHES = 1e-9


def chances(mechanism: ik.FiniteMechanism, n: int) -> np.ndarray:
    """Return the probability of each tally at each truth, shape (truths, n + 1)."""
    positive, negative = mechanism.matrix()[:, 0]
    p = negative + (positive - negative) * SHARES
    return np.asarray(binom.pmf(np.arange(n + 1), n, p[:, None]))


def likely(chances: np.ndarray) -> np.ndarray:
    """Return the tallies that count: the others have at most 1e-5 together, and count as missed.

    "guaranteed" has no interval for a tally that no distribution makes likely.
    """
    return np.flatnonzero(chances.max(axis=0) > FALSE_ALARM_PROBABILITY)


def intervals(
    mechanism: ik.FiniteMechanism, n: int, tallies: np.ndarray, method: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends for each tally, by its number of first reports."""
    estimates = (ik.mle(mechanism.tally_counts([x, n - x])) for x in tallies.tolist())
    found = [
        estimate.interval(LEVEL, of=[1, 0], method=method, **METHODS[method])
        for estimate in tqdm(estimates, desc=f"{method}, {n}", total=len(tallies), disable=None)
    ]
    lower, upper = np.array(found).T
    return lower, upper


def covered(chances: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the coverage at each truth."""
    truths = SHARES[:, None]
    holds = (lower <= truths + TOUCHES) & (truths - TOUCHES <= upper)
    return np.asarray((chances * holds).sum(axis=1))


def row(matrix: str, n: int, method: str) -> dict[str, Any]:
    """Return a row: the least coverage, its first truth, the mean, and the mean width."""
    mechanism = MECHANISMS[matrix]
    of_all = chances(mechanism, n)
    tallies = likely(of_all)
    lower, upper = intervals(mechanism, n, tallies, method)
    of_likely = of_all[:, tallies]
    coverage = covered(of_likely, lower, upper)
    at = SHARES[np.flatnonzero(coverage < coverage.min() + TOUCHES)[0]]
    width = (of_likely @ (upper - lower) / of_likely.sum(axis=1)).mean()
    numbers = {"least": coverage.min(), "at": at, "inside": coverage[INSIDE].min()}
    numbers |= {"mean": coverage.mean(), "width": width}
    names = {"matrix": matrix, "n": n, "method": method, "level": LEVEL, "truths": TRUTHS}
    return names | {name: f"{number:.6f}" for name, number in numbers.items()}


def read(path: Path) -> dict[tuple[str, int, str], dict[str, Any]]:
    """Return the rows that a file has by matrix, n and method; none if it is not there."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {(one["matrix"], int(one["n"]), one["method"]): one for one in csv.DictReader(file)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute the rows of the methods, and print them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--to", type=Path, default=FILE)
    chosen = parser.parse_args(arguments)
    rows = read(chosen.to)
    for method in chosen.methods:
        for matrix in MECHANISMS:
            for n in SIZES:
                rows[matrix, n, method] = row(matrix, n, method)
                print(*rows[matrix, n, method].values(), sep=", ", flush=True)
    order = [(m, n, method) for m in MECHANISMS for n in SIZES for method in METHODS]
    with chosen.to.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows[key] for key in order if key in rows)


if __name__ == "__main__":
    main()
