"""The time of `ibukit.mle` on each protocol's reports, beside optimised unary encoding's.

    .venv/bin/python -m benchmarks.protocol_solvers [--quick]

A hundred thousand people, the same for all protocols, have words by Zipf's law, one of 100 and then
one of 1,000, at epsilon 2 (for the bounded number protocols, the words are points of a line). The
tally is given, with its channel; tolerance is the default. In each round all protocols take their
turn, so that a busy moment hits all: three rounds with 100 words, one with 1,000. Writes
results/protocol_solvers.csv: medians of CPU seconds, `ratio` over OUE's, the steps and the
certified gap. The bar is a ratio of at most 3. The run takes about four minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import pandas as pd

import ibukit as ik
from benchmarks import tables
from benchmarks.run import results

EPSILON, SEED, BAR, BESIDE = 2.0, 20260801, 3.0, "OUE"
PROTOCOLS: dict[str, Callable[[int, float], ik.Mechanism]] = {
    BESIDE: ik.OptimizedUnaryEncoding,
    "SUE (RAPPOR without hashing)": ik.Rappor,
    "THE": ik.ThresholdedHistogram,
    "L-OSUE": lambda k, eps: ik.LongitudinalUnaryEncoding.osue(k, eps, 2 * eps),
    "L-OSUE, 5 linked rounds": lambda k, eps: ik.LinkedRounds.of(
        ik.LongitudinalUnaryEncoding.osue(k, eps / 2, eps), 5
    ),
    "k-RR": ik.RandomizedResponse,
    "L-GRR": lambda k, eps: ik.LongitudinalResponse(k, eps, 2 * eps),
    "subset selection": ik.SubsetSelection,
    "OLH": ik.LocalHashing,
    "OLH, balanced": lambda k, eps: ik.LocalHashing(k, eps, balanced=True),
    "L-OLH": lambda k, eps: ik.LongitudinalHashing(k, eps, 2 * eps),
    "Hadamard response": ik.HadamardResponse,
    "Hadamard mechanism, 1 bit": ik.HadamardMechanism,
    "Hadamard mechanism, 3 bits": lambda k, eps: ik.HadamardMechanism(k, eps, 3),
    "CMS": lambda k, eps: ik.CountMeanSketch(k, eps, 64, 256),
    "HCMS": lambda k, eps: ik.HadamardCountMeanSketch(k, eps, 64, 256),
    "Bloom RAPPOR": lambda k, eps: ik.BloomRappor(k, 128, 2, 8, 0.5, 0.25, 0.75),
    "SHE": ik.HistogramEncoding,
    "square wave": lambda k, eps: ik.SquareWave(ik.Line(0, k - 1), eps),
    "square wave, discrete": lambda k, eps: ik.DiscreteSquareWave(ik.Line(0, k - 1), eps),
    "piecewise": lambda k, eps: ik.Piecewise(ik.Line(0, k - 1), eps),
    "hybrid": lambda k, eps: ik.HybridMechanism(ik.Line(0, k - 1), eps),
    "Duchi": lambda k, eps: ik.Duchi(ik.Line(0, k - 1), eps),
    "staircase": lambda k, eps: ik.Staircase(ik.Line(0, k - 1), eps),
}


def timed(
    k: int,
    n: int,
    rounds: int,
    protocols: dict[str, Callable[[int, float], ik.Mechanism]],
    compiled: bool = False,
) -> pd.DataFrame:
    """A row for each protocol; a first round is not timed, unless all was compiled before."""
    share = ik.normalize(1 / np.arange(1, k + 1))
    people = np.random.default_rng(SEED).multinomial(n, share)
    samples: dict[str, list[float]] = {name: [] for name in protocols}
    rows: dict[str, dict[str, object]] = {}
    tallies: dict[str, ik.Tally] = {}
    for name, make in protocols.items():
        rows[name] = {
            "protocol": name,
            "k": k,
            "n": n,
            "epsilon": EPSILON,
            "steps": None,
            "gap": np.nan,
            "note": "",
        }
        try:
            tallies[name] = make(k, EPSILON).simulate(people, np.random.default_rng(SEED))
        except (
            Exception
        ) as error:  # a protocol that cannot be had at this size is a line of the table
            rows[name]["note"] = f"{type(error).__name__}: {error}".splitlines()[0][:150]
    for number in range(0 if compiled else -1, rounds):
        for name, tally in tallies.items():
            unused = ik.Tally(
                tally.parts
            )  # with the channels of its parts, and nothing that a solver kept
            start = time.process_time()
            found = ik.mle(unused, strict=False)
            if number >= 0:
                samples[name].append(time.process_time() - start)
            rows[name] |= {"steps": found.n_iter, "gap": found.gap}
    table = pd.DataFrame(rows.values()).astype({"steps": "Int64"})
    table["seconds"] = [
        median(samples[name]) if samples[name] else np.nan for name in table.protocol
    ]
    table["ratio"] = table.seconds / table.seconds[table.protocol == BESIDE].iloc[0]
    table["rounds"] = rounds
    return table[
        ["protocol", "k", "n", "epsilon", "seconds", "ratio", "steps", "gap", "rounds", "note"]
    ]


def verdict(table: pd.DataFrame) -> str:
    """The protocols that are above the bar."""
    above = table[table.ratio > BAR]
    lines = [f"{row.protocol} at k = {row.k}: {row.ratio:.3g} times" for row in above.itertuples()]
    return "\n".join(
        [f"{len(above)} of {table.ratio.notna().sum()} above {BAR:g} times {BESIDE}'s time", *lines]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="k = 100 and fewer people; results stay in _build"
    )
    quick = parser.parse_args().quick
    sizes = [(100, 10_000, 3)] if quick else [(100, 100_000, 3), (1000, 100_000, 1)]
    found = []
    for k, n, rounds in sizes:
        found.append(timed(k, n, rounds, PROTOCOLS, compiled=bool(found)))
        table = pd.concat(found, ignore_index=True)
        tables.write(table, results("protocol_solvers", quick))
    print(f"\nprotocol_solvers\n{tables.text(table)}\n{verdict(table)}")


if __name__ == "__main__":
    main()
