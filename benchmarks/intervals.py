"""Width, cost and coverage of intervals beside those of others, in one run.

    .venv/bin/python -m benchmarks.intervals [--quick]

Writes results/intervals.csv, a row for each case, each method of ours and each peer. `width` and
`cpu` are ratios, ours / theirs: of the mean over the truths of the expected width, where both have
an interval, and of the median of CPU seconds from the counts to the two ends. Contenders take
turns, tally by tally, in an order drawn each time, because a contender that follows a large
computation finds a cold cache. `our_width` and `our_ms` are our width and our milliseconds in these
ratios.

`least` and `mean` are the least and the mean coverage over the truths, by enumeration of all
tallies. A tally that has no interval counts as missed, and `failed` says how many of the `tallies`
have no interval by the peer. `n` is the number of people, or the expected number of counts. A peer
that is not installed is left out.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import multinomial

import ibukit as ik
from benchmarks import tables
from benchmarks.draws import SEED
from benchmarks.measure import clocked
from benchmarks.run import results
from ibukit._ground.threads import one_thread
from ibukit.intervals.clopper_pearson import FALSE_ALARM_PROBABILITY

LEVEL = 0.95
METHODS = ("auto", "profile", "calibrated", "guaranteed")
# Tallies whose intervals are timed, and how often each.
TIMED, ROUNDS = 10, 5
TOUCHES = 1e-9
# From the counts to the interval of the first secret's share, or of its number.
Interval = Callable[[np.ndarray], tuple[float, float]]


class Case(NamedTuple):
    """Tallies, shape (t, m), and the contenders whose intervals of them are compared."""

    name: str
    n: int
    tallies: np.ndarray
    chances: np.ndarray
    """Probabilities of the tallies at each truth, shape (truths, t)."""
    truths: np.ndarray | None
    """What is to be covered at each truth; none where the tallies are drawn."""
    ours: dict[str, Interval]
    peers: dict[str, Interval]


def installed(peer: str, name: str) -> Callable[..., tuple[float, float]] | None:
    """A function of a peer; None, with a printed line, if the peer is not installed."""
    try:
        return getattr(import_module(f"benchmarks.peers.{peer}"), name)
    except ImportError as error:
        print(f"left out: {peer}: {error}")
        return None


def peers(
    arguments: tuple[np.ndarray, ...], **functions: tuple[Callable[..., tuple[float, float]], ...]
) -> dict[str, Interval]:
    """The installed peers, each with the arguments that it takes before the counts."""
    return {
        name.replace("_", "-"): partial(function, *settings, *arguments, level=LEVEL)
        for name, (function, *settings) in functions.items()
        if function is not None
    }


def our_share(mechanism: ik.FiniteMechanism, method: str, counts: np.ndarray) -> tuple:
    estimate = ik.mle(mechanism.tally_counts(counts))
    return estimate.interval(LEVEL, of=np.eye(mechanism.k)[0], method=method)


def our_number(
    matrix: np.ndarray, background: np.ndarray, method: str, counts: np.ndarray
) -> tuple:
    unfolded = ik.unfold(counts, matrix, background=background)
    return unfolded.count_intervals(LEVEL, of=np.eye(len(matrix))[0], method=method)


def enumerated(
    name: str, mechanism: ik.FiniteMechanism, n: int, truths: np.ndarray, **functions: tuple
) -> Case:
    """All tallies of n people that any of the truths, shape (truths, k), makes likely."""
    m = mechanism.m
    bars = np.array(list(itertools.combinations(range(n + m - 1), m - 1)))
    tallies = np.diff(bars, prepend=-1, append=n + m - 1) - 1
    chances = multinomial.pmf(tallies, n, (truths @ mechanism.matrix())[:, None])
    likely = chances.max(axis=0) > FALSE_ALARM_PROBABILITY
    ours = {
        method: partial(our_share, mechanism, method)
        for method in METHODS
        # With more than two secrets "calibrated" simulates, which takes seconds for an interval.
        if mechanism.k == 2 or method != "calibrated"
    }
    others = peers((mechanism.matrix(),), **functions)
    return Case(name, n, tallies[likely], chances[:, likely], truths[:, 0], ours, others)


def drawn(n: int, draws: int) -> Case:
    """A spectrum of 6 bins, smeared over the 9 bins seen, with a fifth as much background."""
    response = np.exp(-0.5 * (np.linspace(0, 1, 9) - np.linspace(0, 1, 6)[:, None]) ** 2 / 0.02)
    matrix = 0.9 * response / response.sum(axis=1, keepdims=True)
    # The first bin, which is asked for, is nearly empty.
    numbers = n * np.array([0.01, 0.14, 0.35, 0.3, 0.15, 0.05])
    background = np.full(9, n / 45)
    rng = np.random.default_rng(SEED)
    tallies = rng.poisson(np.round(numbers @ matrix + background, 6), (draws, 9))
    ours = {
        method: partial(our_number, matrix, background, method)
        for method in ("profile", "guaranteed")
    }
    others = peers(
        (matrix, background),
        MINOS=(installed("minos", "number"),),
        SLSQP=(installed("slsqp", "number"),),
    )
    return Case("unfolding", n, tallies, np.full((1, draws), 1 / draws), None, ours, others)


def cases(quick: bool) -> Iterator[Case]:
    """Two secrets, three, and an unfolded spectrum."""
    response = ik.RandomizedResponse(2, 1.0)
    test = ik.MatrixMechanism([[0.85, 0.15], [0.01, 0.99]])
    # The truths are on the grid of Feldman and Cousins' belt.
    everywhere, rare = np.linspace(0, 1, 201), np.linspace(0, 0.05, 101)
    binomial = installed("binomial", "share")
    of_two = {
        "Clopper_Pearson": (binomial and partial(binomial, "beta"),),
        "Wilson": (binomial and partial(binomial, "wilson"),),
        "Feldman_Cousins": (installed("feldman_cousins", "share"),),
    }
    of_three = {
        "MINOS": (installed("minos", "share"),),
        "SLSQP": (installed("slsqp", "share"),),
    }
    for n in (10,) if quick else (50, 400):
        for name, mechanism, shares in (
            ("k-RR, 2 secrets, epsilon 1", response, everywhere),
            ("test", test, everywhere),
            ("test, share up to .05", test, rare),
        ):
            yield enumerated(name, mechanism, n, np.c_[shares, 1 - shares], **of_two)
    n = 4 if quick else 20
    tenths = np.array([t for t in itertools.product(range(11), repeat=3) if sum(t) == 10]) / 10
    mechanism = ik.RandomizedResponse(3, 2.0)
    yield enumerated("k-RR, 3 secrets, epsilon 2", mechanism, n, tenths, **of_three)
    for n in (300,) if quick else (300, 10_000):
        yield drawn(n, 3 if quick else 50)


def ends(interval: Interval, tallies: np.ndarray) -> np.ndarray:
    """The intervals of all tallies, shape (t, 2); not a number where a contender fails."""
    found = np.full((len(tallies), 2), np.nan)
    for i, counts in enumerate(tallies):
        try:
            found[i] = interval(counts)
        except RuntimeError:
            continue
    return found


def cpu_seconds(case: Case) -> dict[str, float]:
    """CPU seconds of each contender: the median over the rounds of the mean over some tallies."""
    some = case.tallies[:: max(len(case.tallies) // TIMED, 1)]
    all_of_them = case.ours | case.peers
    seconds: dict[str, list[float]] = {name: [] for name in all_of_them}
    rng = np.random.default_rng(SEED)
    for _ in range(ROUNDS):
        spent = dict.fromkeys(all_of_them, 0.0)
        for counts in some:
            for name in rng.permutation(list(all_of_them)):
                interval = all_of_them[name]
                spent[name] += clocked(lambda f=interval, c=counts: ends(f, c[None]))[1]
        for name, total in spent.items():
            seconds[name].append(total / len(some))
    return {name: statistics.median(rounds) for name, rounds in seconds.items()}


def coverage(case: Case, found: np.ndarray) -> tuple[float | None, float | None]:
    """The least and the mean coverage over the truths."""
    if case.truths is None:
        return None, None
    lower, upper = found.T
    truths = case.truths[:, None]
    holds = (lower <= truths + TOUCHES) & (truths - TOUCHES <= upper)
    of_each = (case.chances * holds).sum(axis=1)
    return float(of_each.min()), float(of_each.mean())


def measured(case: Case) -> Iterator[dict[str, object]]:
    """The rows of a case."""
    with np.errstate(all="ignore"):
        found = {name: ends(f, case.tallies) for name, f in (case.ours | case.peers).items()}
        seconds = cpu_seconds(case)
    for ours, theirs in itertools.product(case.ours, case.peers):
        widths = np.ptp([found[ours], found[theirs]], axis=2)
        both = np.isfinite(widths).all(axis=0)
        chances = case.chances[:, both] / case.chances[:, both].sum(axis=1, keepdims=True)
        our_width, their_width = (chances @ widths[:, both].T).mean(axis=0)
        (our_least, our_mean), (their_least, their_mean) = (
            coverage(case, found[name]) for name in (ours, theirs)
        )
        yield {
            "case": case.name,
            "n": case.n,
            "ours": ours,
            "peer": theirs,
            "width": our_width / their_width,
            "cpu": seconds[ours] / seconds[theirs],
            "our_width": our_width,
            "our_ms": 1e3 * seconds[ours],
            "our_least": our_least,
            "our_mean": our_mean,
            "their_least": their_least,
            "their_mean": their_mean,
            "tallies": len(case.tallies),
            "failed": int(np.isnan(found[theirs][:, 0]).sum()),
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="few people; the result stays in _build"
    )
    asked = parser.parse_args()
    path, rows = results("intervals", asked.quick), []
    with one_thread():
        for case in cases(asked.quick):
            new = list(measured(case))
            print(tables.text(pd.DataFrame(new)), flush=True)
            rows += new
            tables.write(pd.DataFrame(rows), path)


if __name__ == "__main__":
    main()
