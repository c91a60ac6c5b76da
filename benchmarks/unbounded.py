"""The cost of estimates on an alphabet without an end: on the likely subset, and on a guess.

    .venv/bin/python -m benchmarks.unbounded

The guess is a larger alphabet. There are a million users, or a hundred thousand where there are a
million values. Writes results/unbounded.csv: CPU seconds and memory of `mle` to a gap of 1e-6 and
of a hundred steps of `ibu`, from reports that are already drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ibukit as ik
from benchmarks.measure import clocked, peak_bytes
from ibukit.channels import ResponseChannel
from ibukit.tally.tally import TallyPart

RESULTS = Path(__file__).parent / "results" / "unbounded.csv"
USERS = 1_000_000
TOL, STEPS = 1e-6, 100


@dataclass(frozen=True)
class Reported:
    """k-RR on k values, of which only those reported can be secrets: their codes count from 0."""

    whole: ik.RandomizedResponse
    alphabet: ik.Line

    def channel(self, reports: Any) -> ResponseChannel:
        return ResponseChannel(len(self.alphabet), reports, self.whole.truth, self.whole.lie)

    def log_scale(self, reports: Any) -> None:
        return None


Case = tuple[str, str, str, Callable[[], ik.Tally]]


def incomes(rng: np.random.Generator) -> Iterator[Case]:
    """Simulated incomes: a median of 3,000 a month, geometric noise of about 100 either way."""
    whole, epsilon = ik.Line(0, None), 0.01
    mechanism = ik.LinearGeometric(whole, epsilon)
    reports = mechanism.randomize(np.rint(rng.lognormal(np.log(3000), 0.5, USERS)), rng)
    yield "incomes, geometric", repr(whole), "between the reports", lambda: mechanism.tally(reports)
    for last in (10**5, 10**6):
        larger = ik.Line(0, last)
        yield (
            "incomes, geometric",
            repr(larger),
            "all",
            lambda line=larger: ik.LinearGeometric(line, epsilon).tally(reports),
        )


def paris(rng: np.random.Generator) -> Iterator[Case]:
    """Check-ins, spread evenly over the cells of half a kilometre in which they are known."""
    known = ik.datasets.load_gowalla("paris")
    cells = np.column_stack(
        np.divmod(
            rng.choice(len(known.alphabet), USERS, p=known.distribution), known.alphabet.n_cols
        )
    )
    for cell_size, epsilon in ((0.5, 1.0), (0.25, 1.0)):
        whole = ik.Grid(None, None, cell_size)
        mechanism = ik.PlanarGeometric(whole, epsilon)
        secrets = np.floor((cells + rng.random((USERS, 2))) * (0.5 / cell_size)).astype(np.int64)
        reports = mechanism.randomize(secrets, rng)
        name = f"Paris, cells of {cell_size:g} km"
        yield (
            name,
            "Grid(None, None)",
            "between the reports",
            lambda r=reports, m=mechanism: m.tally(r),
        )
        if cell_size == 0.5:
            for side in (128, 256):
                larger = ik.Grid(side, side, cell_size, first=(6 - side // 2, 8 - side // 2))
                same = ik.PlanarGeometric(larger, epsilon)
                yield name, f"Grid({side}, {side})", "all", lambda r=reports, m=same: m.tally(r)


def responses(rng: np.random.Generator) -> Iterator[Case]:
    """A million values, a hundred thousand reports, so most values are not reported."""
    k, few = 1_000_000, USERS // 10
    mechanism = ik.RandomizedResponse(k, 14.0)
    tally = mechanism.tally(mechanism.randomize(rng.zipf(1.5, few) % 1000, rng))
    counts, seen = tally.counts, len(tally.counts)
    part = TallyPart(Reported(mechanism, ik.Line(0, seen - 1)), np.arange(seen), counts)
    yield "a million values, k-RR", f"Line(0, {k - 1})", "reported", lambda: ik.Tally((part,))
    yield (
        "a million values, k-RR",
        f"Line(0, {k - 1})",
        "all",
        lambda: mechanism.tally(np.repeat(tally.parts[0].reports, counts)),
    )


ESTIMATORS: dict[str, Callable[[ik.Tally], ik.Estimate]] = {
    "mle": lambda tally: ik.mle(tally, tol=TOL),
    f"ibu, {STEPS} steps": lambda tally: ik.ibu(tally, stop=ik.Steps(STEPS)),
}


def measured(cases: Iterator[Case]) -> Iterator[dict[str, object]]:
    for name, alphabet, secrets, make in cases:
        tally, making = clocked(make)
        for method, estimator in ESTIMATORS.items():
            found: list[tuple[ik.Estimate, float]] = []
            memory = peak_bytes(
                lambda e=estimator, t=tally, f=found: f.append(clocked(lambda: e(t)))
            )
            ((estimate, seconds),) = found
            row = {
                "reports": name,
                "alphabet": alphabet,
                "secrets": secrets,
                "k": tally.k,
                "n": tally.n,
                "distinct": len(tally.counts),
                "method": method,
                "tally_seconds": float(f"{making:.2g}"),
                "seconds": float(f"{seconds:.2g}"),
                "megabytes": None if memory is None else float(f"{memory / 1e6:.2g}"),
                "gap": float(f"{estimate.gap:.1e}"),
                "log_likelihood": round(estimate.log_likelihood / tally.n, 6),
            }
            print(row, flush=True)
            yield row


def main() -> None:
    rng = np.random.default_rng(1)
    for small in (
        ik.LinearGeometric(5, 1.0),
        ik.RandomizedResponse(5, 1.0),
    ):  # compiled before the clock runs
        for estimator in ESTIMATORS.values():
            estimator(small.tally([1, 3]))
    rows = [row for cases in (responses, incomes, paris) for row in measured(cases(rng))]
    table = pd.DataFrame(rows)
    table.to_csv(RESULTS, index=False)
    print(table.to_string())


if __name__ == "__main__":
    main()
