"""Measure how often intervals hold and how wide they are, on repeated draws from a known truth.

    python scripts/interval_coverage.py [--methods wald profile ...] [--settings ages ...] [--draws
    1000] [--to FILE]

Writes data/interval-coverage.csv, one row for each setting, number of people, cell, target and
method. Rows that the file has are kept, and a row is written as soon as it is there: what was
interrupted goes on where it stopped. Draw i of a setting has the same reports for every method,
from the seed (SEED, position of the setting, n, i).
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import ibukit as ik

FILE = Path(__file__).resolve().parents[1] / "data" / "interval-coverage.csv"
SEED, LEVEL, DRAWS = 2026, 0.95, 1000
COLUMNS = (
    "setting",
    "noise",
    "epsilon",
    "k",
    "n",
    "cell",
    "share",
    "target",
    "method",
    "level",
    "draws",
    "covered",
)
COLUMNS += ("error", "width")
KEY = ("setting", "noise", "n", "cell", "target", "method")
METHODS: dict[str, dict[str, Any]] = {
    "wald": {"method": "wald"},
    "profile": {"method": "profile"},
    "boxes": {"method": "guaranteed", "by": "boxes"},
    "betting": {"method": "guaranteed", "by": "betting"},
    "cross-fitted": {"method": "guaranteed", "by": "cross-fitted"},
    "averaged": {"method": "guaranteed", "by": "averaged"},
    "bootstrap": {"method": "bootstrap", "draws": 199},
}
# of these, draw i has the seed i
RANDOM = ("betting", "cross-fitted", "averaged", "bootstrap")
# methods that take long are measured at some settings
ONLY_AT: dict[str, set[str]] = {
    "cross-fitted": {"vertex", "ages"},
    "averaged": {"vertex", "ages"},
    "bootstrap": {"vertex", "vertex20", "two_of_20", "ages"},
}
# an end that touches the truth covers it, however the last digit falls
TOUCHES = 1e-9
# measured for both targets; the boxes' interval is the same for both
OF_FREQUENCIES = ("wald", "boxes")


class Setting(NamedTuple):
    """People whose distribution is known, and what makes their reports."""

    name: str
    noise: str
    mechanism: ik.FiniteMechanism
    theta: np.ndarray
    sizes: Sequence[int]
    cells: dict[str, int]
    """The largest share, and one at the boundary: of nobody, or of hardly anybody."""


def blocks(city: str, cells: int) -> tuple[ik.Grid, np.ndarray]:
    """A city in squares of several cells each way, 0.5 km a cell, and the share of each."""
    data = ik.datasets.load_gowalla(city)
    rows, cols = data.alphabet.n_rows // cells, data.alphabet.n_cols // cells
    counts = data.counts.reshape(rows, cells, cols, cells).sum(axis=(1, 3)).ravel()
    return ik.Grid(rows, cols, cell_size=cells / 2), counts / counts.sum()


def settings() -> Iterator[Setting]:
    """All settings, in an order that seeds depend on: a new one comes last."""
    counts = ik.datasets.load_adult_ages().counts.reshape(20, 5).sum(axis=1)  # groups of five years
    ages, sizes = counts / counts.sum(), (1_000, 30_000, 1_000_000)
    cells = {"largest": int(ages.argmax()), "boundary": 2}  # nobody is younger than 17
    for noise, epsilon in (("mild", 2.0), ("strong", 0.3)):
        yield Setting(
            "ages", noise, ik.TruncatedGeometric(ik.Line(0, 19), epsilon), ages, sizes, cells
        )
    for city, width, levels in (("san_francisco", 4, (1.0, 0.25)), ("manhattan", 2, (2.0, 0.5))):
        grid, shares = blocks(city, width)
        cells = {"largest": int(shares.argmax()), "boundary": int(shares.argmin())}
        for noise, epsilon in zip(("mild", "strong"), levels, strict=True):
            yield Setting(
                city, noise, ik.TruncatedPlanarGeometric(grid, epsilon), shares, sizes, cells
            )
    cells = {"largest": int(ages.argmax()), "boundary": 17}  # 85 to 89: 3 in 10,000
    # under strong noise nearly all of a million rows of bits differ, and a thousand draws of them
    # take hours
    for noise, epsilon, most in (("mild", 4.0, 1_000_000), ("strong", 1.0, 100_000)):
        yield Setting("unary", noise, ik.Rappor(20, epsilon), ages, (1_000, 30_000, most), cells)
    cells = {"largest": 0, "boundary": 1}  # everybody is alike
    yield Setting(
        "vertex", "strong", ik.RandomizedResponse(5, 1.0), np.eye(5)[0], (300, 3_000, 30_000), cells
    )
    twenty = ik.RandomizedResponse(20, 1.0)
    yield Setting("vertex20", "strong", twenty, np.eye(20)[0], (1_000, 30_000), cells)
    halves = np.repeat([0.5, 0.0], [2, 18])
    yield Setting(
        "two_of_20", "strong", twenty, halves, (1_000, 30_000), {"largest": 0, "boundary": 2}
    )
    shares = ik.datasets.load_gowalla("manhattan").distribution  # 280 cells, 40 of them empty
    cells = {"largest": int(shares.argmax()), "boundary": int(shares.argmin())}
    yield Setting(
        "manhattan_krr", "strong", ik.RandomizedResponse(280, 2.0), shares, (10_000, 100_000), cells
    )


def ends(
    estimate: ik.Estimate, of: np.ndarray, method: str, target: str, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The intervals; not a number where the method finds that no distribution fits the reports."""
    options = METHODS[method] | ({"seed": seed} if method in RANDOM else {})
    try:
        return estimate.interval(LEVEL, of=of, target=target, **options)
    except ValueError as error:
        if "does not fit" not in str(error):
            raise
        return np.full(len(of), np.nan), np.full(len(of), np.nan)


def measure(
    setting: Setting, n: int, methods: Sequence[str], draws: int, seed: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """The rows of one setting and number of people."""
    of = np.eye(len(setting.theta))[list(setting.cells.values())]
    law = ik.quantize(setting.theta)
    wanted = [
        (m, t)
        for m in methods
        for t in ("distribution", "frequencies")[: 1 + (m in OF_FREQUENCIES)]
    ]
    held, widths = np.zeros((2, len(wanted), draws, len(of)))
    for i in tqdm(
        range(draws), desc=f"{setting.name}, {setting.noise}, {n:,}", disable=None, leave=False
    ):
        rng = np.random.default_rng([*seed, i])
        people = rng.multinomial(n, law)
        estimate = ik.mle(setting.mechanism.simulate(people, rng))
        truths = {"distribution": of @ setting.theta, "frequencies": of @ people / n}
        for j, (method, target) in enumerate(wanted):
            if (method, target) != ("boxes", "frequencies"):
                lower, upper = ends(estimate, of, method, target, i)
            held[j, i] = (lower <= truths[target] + TOUCHES) & (truths[target] - TOUCHES <= upper)
            widths[j, i] = upper - lower
    for j, (method, target) in enumerate(wanted):
        for c, (cell, at) in enumerate(setting.cells.items()):
            covered = held[j, :, c].mean()
            half = (held[j, :, c].sum() + 0.5) / (draws + 1)  # so that no error is 0
            numbers = {"n": n, "share": f"{setting.theta[at]:.6f}", "level": LEVEL, "draws": draws}
            numbers |= {
                "epsilon": f"{setting.mechanism.epsilon:g}",
                "k": len(setting.theta),
                "covered": covered,
            }
            numbers |= {"error": f"{np.sqrt(half * (1 - half) / draws):.5f}"}
            numbers |= {"width": f"{np.nanmedian(widths[j, :, c]):.6f}"}
            names = {
                "setting": setting.name,
                "noise": setting.noise,
                "cell": cell,
                "target": target,
                "method": method,
            }
            yield names | numbers


def read(path: Path) -> list[dict[str, Any]]:
    """The rows that a file has, none if it is not there."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """All rows at once: a file that is interrupted is the one before."""
    new = path.with_suffix(".part")
    with new.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    new.replace(path)


def key(row: dict[str, Any]) -> tuple[str, ...]:
    """The columns that identify a row."""
    return tuple(str(row[name]) for name in KEY)


def can(setting: Setting, n: int, method: str) -> bool:
    """True if a method takes this channel, and takes it in seconds."""
    name = setting.name
    if method in (
        "boxes",
        "betting",
    ):  # linear programmes with rows for each report; a unary encoding has 2^20
        return name not in ("unary", "manhattan_krr") and (name != "manhattan" or n <= 30_000)
    return method not in ONLY_AT or name in ONLY_AT[method]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--settings", nargs="+", help="names, as in the file (default: all)")
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of people (default: all)")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--to", type=Path, default=FILE)
    chosen = parser.parse_args(arguments)
    for place, setting in enumerate(settings()):
        if chosen.settings and setting.name not in chosen.settings:
            continue
        for n in setting.sizes:
            if chosen.sizes and n not in chosen.sizes:
                continue
            done = {
                row["method"]
                for row in read(chosen.to)
                if key(row)[:3] == (setting.name, setting.noise, str(n))
            }
            methods = [
                name for name in chosen.methods if name not in done and can(setting, n, name)
            ]
            if methods:
                new = list(measure(setting, n, methods, chosen.draws, (SEED, place, n)))
                write(chosen.to, sorted([*read(chosen.to), *new], key=_order))


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["setting"], row["noise"], int(row["n"]), row["cell"], row["target"], row["method"]


if __name__ == "__main__":
    main()
