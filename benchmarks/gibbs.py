"""Effective samples of the posterior for a CPU second, beside those of a plain Gibbs sampler.

    .venv/bin/python -m benchmarks.gibbs [--quick]

Writes results/gibbs.csv. The plain sampler works on whole arrays of numpy and repeats two steps:
given p, the users of each report are shared among the secrets by one call of `multinomial`; then p
is drawn from the Dirichlet distribution that these totals give. Both samplers are judged by the
same program (arviz) on the same coordinates, E[F | p, reports]; the slowest secret counts. The time
of judging is charged to neither sampler, and `judging` gives it. Our sampler is charged with all
else that it does from the tally on; the plain sampler begins at the maximum of the likelihood,
which is not charged, nor is the first half of its sweeps.

Where the plain chains do not meet, no run of a sensible length says how slow they are, but short
runs from draws of the posterior do. Data augmentation is a reversible chain with no negative
eigenvalue, so the correlation r_t of a coordinate after t sweeps is a mean of powers l^t. Hence,
from the correlation after m sweeps alone, r_t >= r_m for t up to m and, by Jensen,
r_t >= r_m^(t / m) for t above m, and a sample costs

    1 + 2 sum_t r_t >= 1 + 2 (m - 1) r_m + 2 r_m / (1 - r_m^(1 / m))

sweeps or more. `plain, at most` is the rate that follows: the true rate of the plain sampler can
only be lower. The draws that its short runs start from are those of our sampler, whose R-hat is
printed. The secret and m are chosen on every second start, and the bound is taken on the other
starts, with r_m two standard errors lower than it was found.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd

import ibukit as ik
from benchmarks import tables
from benchmarks.run import results
from ibukit.bayes import _gibbs

K, N = 100, 10**5
LEVELS = (2.0, 0.5, 0.05)
MAX_SWEEPS = 20_000
LAGS = (1, 8, 64)


def plain(tally: ik.Tally, starts: np.ndarray, sweeps: int, rng: np.random.Generator) -> np.ndarray:
    """Draws of E[F | p, reports], shape (chains, sweeps + 1, k), the starts among them.

    The prior is Dirichlet(1, ..., 1).
    """
    columns = np.ascontiguousarray(tally.matrix().T)
    counts, shares = tally.counts, tally.counts / tally.counts.sum()
    draws = np.empty((len(starts), sweeps + 1, tally.k))
    for chain, p in zip(draws, starts, strict=True):
        drawn = p
        for sweep in chain:
            weights = columns * drawn
            weights /= weights.sum(axis=1, keepdims=True)
            sweep[:] = shares @ weights
            drawn = rng.dirichlet(1.0 + rng.multinomial(counts, weights).sum(axis=0))
    return draws


def sweeps_a_sample(paths: np.ndarray, variance: np.ndarray) -> float:
    """A lower bound on the sweeps that a sample of the slowest secret takes.

    The paths, shape (starts, sweeps + 1, k), begin in the posterior.
    """

    def least(some: np.ndarray) -> np.ndarray:
        found = []
        for m in LAGS:
            moved = ((some[:, m:] - some[:, :-m]) ** 2).mean(axis=1)
            at_most = moved.mean(axis=0) + 2 * moved.std(axis=0, ddof=1) / len(some) ** 0.5
            r = np.clip(1 - at_most / (2 * variance), 0.0, 1 - 1e-12)
            found.append(1 + 2 * (m - 1) * r + 2 * r / -np.expm1(np.log(np.maximum(r, 1e-300)) / m))
        return np.array(found)

    chosen = least(paths[::2])
    return float(least(paths[1::2]).flat[chosen.argmax()])


def row(epsilon: float, sweeps: int, starts: int) -> dict[str, object]:
    mechanism = ik.TruncatedGeometric(K, epsilon)
    people = np.exp(-0.5 * ((np.arange(K) / K - 0.4) / 0.1) ** 2) + 0.1
    secrets = np.random.default_rng(1).multinomial(N, people / people.sum())
    tally = mechanism.simulate(secrets, np.random.default_rng(2))
    best = ik.mle(tally).distribution + 1e-6
    few = mechanism.simulate(np.ones(K, dtype=int), np.random.default_rng(2))
    _gibbs.sample(few, np.ones(K), "distribution", np.random.default_rng(3), 10)  # compiles
    clock = [time.process_time()]
    ours = _gibbs.sample(tally, np.ones(K), "distribution", np.random.default_rng(3), MAX_SWEEPS)
    clock.append(time.process_time())
    draws = plain(tally, np.tile(best / best.sum(), (4, 1)), sweeps, np.random.default_rng(4))
    clock.append(time.process_time())
    samples, r_hat = _gibbs._diagnostics(draws[:, sweeps // 2 :])
    clock.append(time.process_time())
    _gibbs._diagnostics(ours.frequencies)
    clock.append(time.process_time())
    took, plainly, _, judging = np.diff(clock)
    took -= judging  # the call has also done the judging
    a_sweep = plainly / (4 * (sweeps + 1))
    spread = np.reshape(ours.values, (-1, K))[:: 4 * _gibbs.N_DRAWS // starts]
    paths = plain(tally, spread, LAGS[-1], np.random.default_rng(5))
    at_most = 1 / (sweeps_a_sample(paths, ours.frequencies.var(axis=(0, 1))) * a_sweep)
    met = r_hat.max() <= _gibbs.MAX_R_HAT
    rate, measured = ours.effective_sample_size.min() / took, samples.min() / (plainly / 2)
    return {
        "case": f"truncated geometric, eps = {epsilon:g}",
        "ours, a second": rate,
        "plain, a second": measured if met else None,
        "plain, at most": at_most,
        "ratio": rate / measured if met else None,
        "ratio, at least": rate / at_most,
        "ours, sweeps": ours.sweeps,
        "ours, CPU s": took,
        "judging, CPU s": judging,
        "ours, R-hat": ours.r_hat.max(),
        "plain, sweeps": sweeps,
        "plain, R-hat": r_hat.max(),
        "plain, CPU ms a sweep": 1000 * a_sweep,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="the quickest case, short; the result stays in _build"
    )
    quick = parser.parse_args().quick
    found = []
    for epsilon in LEVELS[:1] if quick else LEVELS:
        found.append(row(epsilon, *((100, 20) if quick else (2000, 200))))
        tables.write(pd.DataFrame(found), results("gibbs", quick))
        print(f"\ngibbs\n{tables.text(pd.DataFrame(found[-1:]))}", flush=True)


if __name__ == "__main__":
    main()
