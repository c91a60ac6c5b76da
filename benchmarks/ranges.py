"""The time of the ranges of all probabilities, by one walk and by a linear programme each.

    .venv/bin/python -m benchmarks.ranges [--quick] [--limit SECONDS]

The walk goes along the vertices. The tallies leave hundreds of probabilities open, and times are
CPU seconds of one thread. The linear programmes are left out if they took more than SECONDS seconds
(1) on a smaller tally of the kind. Writes results/ranges.csv as it goes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

import ibukit as ik
from benchmarks.measure import clocked
from benchmarks.run import results, write_growing
from ibukit._ground.threads import one_thread
from ibukit.identification import _null_spaces
from ibukit.identification._polytope import Polytope
from ibukit.identification._polytope_ranges import ranges

LIMIT = 1.0
SEED = 1
WAYS = ("one walk", "a programme each")


def cut_map(k: int, rng: np.random.Generator) -> ik.MatrixMechanism:
    """Planar noise on a square of k cells.

    The last row and column are reported as the row and the column before them.
    """
    side = round(k**0.5)
    near = np.minimum(np.indices((side, side)), side - 2)
    codes = (near[0] * (side - 1) + near[1]).ravel()
    return ik.compose(
        ik.TruncatedPlanarGeometric(ik.Grid(side, side), 0.7), np.eye((side - 1) ** 2)[codes]
    )


def groups(k: int, rng: np.random.Generator) -> ik.MatrixMechanism:
    """k-RR whose reports are merged into k / 3 groups at random."""
    return ik.compose(ik.RandomizedResponse(k, 3.0), np.eye(k // 3)[rng.integers(0, k // 3, k)])


def blur(k: int, rng: np.random.Generator) -> ik.MatrixMechanism:
    """Gaussian noise of 1/200 of a line, read on a scale half as fine."""
    off = np.arange(k)[:, None] - np.linspace(0, k - 1, k // 2)
    kernel = np.exp(-((200 * off / k) ** 2) / 2)
    return ik.MatrixMechanism(kernel / kernel.sum(axis=1, keepdims=True))


def few(k: int, rng: np.random.Generator) -> ik.MatrixMechanism:
    """A matrix of random rows, with 20 reports."""
    return ik.MatrixMechanism(rng.dirichlet(np.ones(20), k))


def half(k: int, rng: np.random.Generator) -> ik.MatrixMechanism:
    """A matrix of random rows, with k / 2 reports.

    Every range is far from every other, and each entry of the tableau counts.
    """
    return ik.MatrixMechanism(rng.dirichlet(np.ones(k // 2), k))


KINDS: dict[str, Callable[[int, np.random.Generator], Any]] = {
    f.__name__: f for f in (cut_map, groups, few, half, blur)
}
PROBLEMS = [(kind, k) for kind in KINDS for k in (100, 196, 1024) if (kind, k) != ("half", 1024)]


def polytope(kind: str, k: int) -> Polytope:
    """The set of distributions that a tally without noise of sampling leaves open."""
    rng = np.random.default_rng(SEED)
    mechanism = KINDS[kind](k, rng)
    theta = rng.dirichlet(np.ones(k))
    tally = mechanism.tally_counts(np.rint(1e15 * mechanism.forward(theta)).astype(np.int64))
    unseen = _null_spaces.span(_null_spaces.seen_columns(tally, np.arange(k)), k).null
    return Polytope(theta, np.ascontiguousarray(unseen.T))


def row(way: str, kind: str, k: int, left: Polytope) -> dict[str, object]:
    size = len(left.centre)
    with one_thread():
        if way == WAYS[0]:
            walked, seconds = clocked(lambda: ranges(left.centre, left.basis))
            lower, upper, missed = walked.lower, walked.upper, walked.left
        else:
            nothing = np.full((2, size), np.nan)
            (lower, upper), seconds = clocked(lambda: left.by_programmes(*nothing))
            missed = left.unsolved
    return {
        "kind": kind,
        "k": k,
        "dimension": len(left.basis),
        "open": int((upper - lower > 1e-7).sum()),
        "way": way,
        "seconds": float(f"{seconds:.2g}"),
        "missed": missed,
        "widths": round(float(np.nansum(upper - lower)), 6),
    }


def measured(limit: float, problems: list[tuple[str, int]] = PROBLEMS) -> Iterator[pd.DataFrame]:
    """The table, which grows by one row each time."""
    rows: list[dict[str, object]] = []
    too_slow: set[tuple[str, str]] = set()
    for kind, k in problems:
        left = polytope(kind, k)
        for way in WAYS:
            if way == WAYS[0] or (kind, way) not in too_slow:
                rows.append(row(way, kind, k, left))
                if float(str(rows[-1]["seconds"])) > limit:
                    too_slow.add((kind, way))
                yield pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="the smallest of each kind; the result stays in _build"
    )
    parser.add_argument("--limit", type=float, default=LIMIT, help="CPU seconds")
    asked = parser.parse_args()
    problems = [(kind, k) for kind, k in PROBLEMS if k == 100] if asked.quick else PROBLEMS
    write_growing(measured(asked.limit, problems), results("ranges", asked.quick))


if __name__ == "__main__":
    main()
