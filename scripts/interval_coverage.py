"""Measure how often intervals hold and how wide they are, on repeated draws from a known truth.

    python scripts/interval_coverage.py [--methods wald profile ...] [--mechanisms line ...]
    [--draws 400] [--jobs 2] [--to FILE]

Writes data/interval-coverage.csv. A setting is a mechanism at one of two levels of noise, a truth
and a number of people; all combinations are measured, and each has a row for each question, target
and method. Methods that take more than a tenth of a second for a question take half as many draws,
and only in all corners (a vertex, two values) and every third of the other settings. Rows that the
file has are kept, and the rows of a setting are written as soon as they are measured, so an
interrupted run goes on where it stopped. Draw i of a setting has the same reports for every method,
from the seed (SEED, mechanism, truth, n, i).
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import ibukit as ik

FILE = Path(__file__).resolve().parents[1] / "data" / "interval-coverage.csv"
SEED, LEVEL, DRAWS = 2026, 0.95, 400
SIZES = (300, 3_000, 30_000)
SETTING = ("mechanism", "noise", "truth", "n")
COLUMNS = (*SETTING, "k", "question", "value", "target", "method", "level", "draws", "covered")
COLUMNS += ("error", "width")
METHODS: dict[str, dict[str, Any]] = {
    "auto": {"method": "auto"},
    "profile": {"method": "profile"},
    "wald": {"method": "wald"},
    "guaranteed": {"method": "guaranteed"},
    "betting": {"method": "guaranteed", "by": "betting"},
    "bootstrap": {"method": "bootstrap", "draws": 199},
    "credible": {"method": "credible"},
    "calibrated": {"method": "calibrated"},
}
# Methods that draw random numbers of their own; for draw i they get the seed i.
RANDOM = ("betting", "bootstrap", "credible", "calibrated", "auto")
# Methods that are measured on half as many draws, and only in the corners and a third of the rest.
# Three questions take .4 to .6 seconds by credible intervals, and .3 to 8 by calibrated ones.
SLOW = ("guaranteed", "betting", "bootstrap", "credible", "calibrated")
CORNERS = ("vertex", "two values")
# Betting needs reports that can be listed, which cells of a plane without end cannot be.
FAMILIES = ("k-RR", "line", "plane", "unary", "subset", "matrix")
FAMILIES_OF = {"betting": tuple(family for family in FAMILIES if family != "plane")}
# Methods that are measured for both targets.
OF_FREQUENCIES = ("wald",)
# An end that touches the truth covers it, however the last digit falls.
TOUCHES = 1e-9


class Setting(NamedTuple):
    """People whose distribution is known, and the mechanism of their reports."""

    mechanism: str
    noise: str
    truth: str
    n: int
    place: tuple[int, int]
    """Numbers of the mechanism and of the truth, which the seeds are made of."""

    def has(self, method: str) -> bool:
        """Return whether the method is measured here."""
        if self.mechanism not in FAMILIES_OF.get(method, FAMILIES):
            return False
        in_third = (sum(self.place) + SIZES.index(self.n)) % 3 == 0
        return method not in SLOW or self.truth in CORNERS or in_third


@cache
def mechanisms() -> dict[tuple[str, str], ik.FiniteMechanism]:
    """Return the mechanisms by family and noise; add new ones last, because seeds use the order."""
    line, plane, rng = ik.Line(0, 19), ik.Grid(4, 5), np.random.default_rng(SEED)
    return {
        ("k-RR", "mild"): ik.RandomizedResponse(20, 2.0),
        ("k-RR", "strong"): ik.RandomizedResponse(20, 1.0),
        ("line", "mild"): ik.LinearGeometric(line, 1.0),
        ("line", "strong"): ik.LinearGeometric(line, 0.3),
        ("plane", "mild"): ik.PlanarGeometric(plane, 2.0),
        ("plane", "strong"): ik.PlanarGeometric(plane, 1.0),
        ("unary", "mild"): ik.Rappor(10, 2.0),
        ("unary", "strong"): ik.OptimizedUnaryEncoding(10, 1.0),
        ("subset", "mild"): ik.SubsetSelection(10, 2.0),
        ("subset", "strong"): ik.SubsetSelection(10, 1.0),
        ("matrix", "mild"): ik.MatrixMechanism(rng.dirichlet(np.full(12, 0.3), 9)),
        ("matrix", "strong"): ik.MatrixMechanism(rng.dirichlet(np.full(12, 1.0), 9)),
    }


@cache
def truths(k: int) -> dict[str, np.ndarray]:
    """Return the people's distributions, from a corner to all equal; add new ones at the end."""
    vertex, other = np.eye(k)[[k // 2, 1]]
    few = np.zeros(k)
    few[[1, k // 3, k // 2, k - 2]] = 0.4, 0.3, 0.2, 0.1
    bell = np.exp(-(((np.arange(k) - k / 2) / (k / 6)) ** 2) / 2)
    return {
        "vertex": vertex,
        "two values": 0.98 * vertex + 0.02 * other,
        "few of many": few,
        "broad": bell / bell.sum(),
        "real": real(k),
        "all equal": np.full(k, 1 / k),
    }


def real(k: int) -> np.ndarray:
    """Return check-ins of San Francisco in 4 x 5 blocks for 20 secrets, else ages in k groups."""
    if k == 20:
        data = ik.datasets.load_gowalla("san_francisco")
        counts = data.counts.reshape(data.alphabet.n_rows, data.alphabet.n_cols)
        rows = [each.sum(axis=0) for each in np.array_split(counts, 4, axis=0)]
        counts = np.array([each.sum(axis=1) for each in np.array_split(np.array(rows), 5, axis=1)])
        counts = counts.T.ravel()
    else:
        ages = np.array_split(ik.datasets.load_adult_ages().counts, k)
        counts = np.array([each.sum() for each in ages])
    return counts / counts.sum()


def settings() -> Iterator[Setting]:
    """Yield all settings."""
    for i, (family, noise) in enumerate(mechanisms()):
        for j, truth in enumerate(truths(20)):
            for n in SIZES:
                yield Setting(family, noise, truth, n, (i, j))


def questions(theta: np.ndarray) -> dict[str, np.ndarray]:
    """Return the weights of the largest share, the smallest, and the upper half of all secrets."""
    k = len(theta)
    half = (np.arange(k) >= k // 2).astype(float)
    return {
        "largest": np.eye(k)[theta.argmax()],
        "smallest": np.eye(k)[theta.argmin()],
        "half": half,
    }


def ends(
    estimate: ik.Estimate, of: np.ndarray, method: str, target: str, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the intervals; not a number where no distribution fits the reports."""
    options = METHODS[method] | ({"seed": seed} if method in RANDOM else {})
    try:
        return estimate.interval(LEVEL, of=of, target=target, **options)
    except ValueError as error:
        if "does not fit" not in str(error):
            raise
        return np.full(len(of), np.nan), np.full(len(of), np.nan)


def measure(setting: Setting, methods: Sequence[str], draws: int) -> list[dict[str, Any]]:
    """Return the rows of one setting by methods that take equally many draws."""
    mechanism = mechanisms()[setting.mechanism, setting.noise]
    theta = truths(mechanism.k)[setting.truth]
    asked = questions(theta)
    of = np.array(list(asked.values()))
    law = ik.quantize(theta)
    wanted = [
        (method, target)
        for method in methods
        for target in ("distribution", "frequencies")[: 1 + (method in OF_FREQUENCIES)]
    ]
    held, widths = np.zeros((2, len(wanted), draws, len(of)))
    for i in range(draws):
        rng = np.random.default_rng([SEED, *setting.place, setting.n, i])
        people = rng.multinomial(setting.n, law)
        estimate = ik.mle(mechanism.simulate(people, rng))
        values = {"distribution": of @ theta, "frequencies": of @ people / setting.n}
        for j, (method, target) in enumerate(wanted):
            lower, upper = ends(estimate, of, method, target, i)
            held[j, i] = (lower <= values[target] + TOUCHES) & (values[target] - TOUCHES <= upper)
            widths[j, i] = upper - lower
    rows = []
    for j, (method, target) in enumerate(wanted):
        for c, question in enumerate(asked):
            # Half a draw more of each kind, hit and miss, so that no error is 0.
            share = (held[j, :, c].sum() + 0.5) / (draws + 1)
            rows.append(
                {name: getattr(setting, name) for name in SETTING}
                | {"k": len(theta), "question": question, "value": f"{of[c] @ theta:.6f}"}
                | {"target": target, "method": method, "level": LEVEL, "draws": draws}
                | {"covered": held[j, :, c].mean()}
                | {"error": f"{np.sqrt(share * (1 - share) / draws):.5f}"}
                | {"width": f"{np.nanmean(widths[j, :, c]):.6f}"}
            )
    return rows


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows that a file has, none if it is not there."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write all rows at once: if this is interrupted, the earlier file remains."""
    new = path.with_suffix(".part")
    with new.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    new.replace(path)


def missing(
    setting: Setting, rows: Sequence[dict[str, Any]], methods: Sequence[str], draws: int
) -> Iterator[tuple[list[str], int]]:
    """Yield groups of methods that have no row for a setting yet, each with its number of draws."""
    own = tuple(str(getattr(setting, name)) for name in SETTING)
    done = {row["method"] for row in rows if tuple(str(row[name]) for name in SETTING) == own}
    left = [name for name in methods if name not in done and setting.has(name)]
    yield [name for name in left if name not in SLOW], draws
    for name in left:
        if name in SLOW:
            yield [name], draws // 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the rows that are missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--mechanisms", nargs="+", help="families, as in the file (default: all)")
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of people (default: all)")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--to", type=Path, default=FILE)
    chosen = parser.parse_args(arguments)
    rows = read(chosen.to)
    with ProcessPoolExecutor(chosen.jobs) as pool:
        running = [
            pool.submit(measure, setting, methods, draws)
            for setting in settings()
            if not chosen.mechanisms or setting.mechanism in chosen.mechanisms
            if not chosen.sizes or setting.n in chosen.sizes
            for methods, draws in missing(setting, rows, chosen.methods, chosen.draws)
            if methods
        ]
        for done in tqdm(as_completed(running), total=len(running), disable=None):
            rows += done.result()
            write(chosen.to, sorted(rows, key=_order))


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        FAMILIES.index(row["mechanism"]),
        row["noise"],
        list(truths(20)).index(row["truth"]),
        int(row["n"]),
        list(questions(np.eye(2)[0])).index(row["question"]),
        row["target"],
        list(METHODS).index(row["method"]),
    )


if __name__ == "__main__":
    main()
