"""Effective samples of the posterior a CPU second: ours beside a plain Gibbs sampler on whole arrays of numpy.

Writes results/gibbs.csv. The plain sampler does one thing in turns: given p, the users of each report are shared among
the secrets by one call of `multinomial`, and p is drawn from the Dirichlet distribution that these totals give. It
starts at the maximum of the likelihood, and what it takes to get there is not counted. Its effective sample size is
that of the same programme (arviz) and the same coordinates, E[F | p, reports]; the smallest of all secrets counts.
Where its R-hat is far above 1.01 the chains have not met, and the rate says only that it is at most about that.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pandas as pd

import ibukit as ik
from benchmarks import tables
from benchmarks.run import HERE
from ibukit.posterior import _gibbs

K, N = 100, 10**5
CASES = {
    "truncated geometric, eps = 0.05": ik.TruncatedGeometric(K, 0.05),
    "truncated geometric, eps = 0.5": ik.TruncatedGeometric(K, 0.5),
}


def plain(tally: ik.Tally, start: np.ndarray, sweeps: int, chains: int, rng: np.random.Generator) -> np.ndarray:
    """Draws of E[F | p, reports], shape (chains, sweeps, k); prior Dirichlet(1, ..., 1)."""
    columns = np.ascontiguousarray(tally.matrix().T)
    counts, shares = tally.counts, tally.counts / tally.counts.sum()
    draws = np.empty((chains, sweeps, len(start)))
    for chain in draws:
        p = start
        for draw in chain:
            weights = columns * p
            weights /= weights.sum(axis=1, keepdims=True)
            p = rng.dirichlet(1.0 + rng.multinomial(counts, weights).sum(axis=0))
            given = columns * p
            draw[:] = shares @ (given / given.sum(axis=1, keepdims=True))
    return draws


def measure(sweeps: int) -> pd.DataFrame:
    rows = []
    people = np.exp(-0.5 * ((np.arange(K) / K - 0.4) / 0.1) ** 2) + 0.1
    secrets = np.random.default_rng(1).multinomial(N, people / people.sum())
    for name, mechanism in CASES.items():
        tally = mechanism.simulate(secrets, np.random.default_rng(2))
        start = ik.mle(tally).distribution + 1e-6
        alpha = np.ones(K)
        few = mechanism.simulate(np.ones(K, dtype=int), np.random.default_rng(2))
        _gibbs.sample(few, alpha, "frequencies", np.random.default_rng(3), 10)  # compiles
        began = time.process_time()
        ours = _gibbs.sample(tally, alpha, "frequencies", np.random.default_rng(3), 4 * sweeps)
        took = time.process_time() - began
        began = time.process_time()
        draws = plain(tally, start / start.sum(), sweeps, 4, np.random.default_rng(3))
        plainly = time.process_time() - began
        theirs = _gibbs._diagnostics(draws[:, sweeps // 2 :])
        rates = ours.effective_sample_size.min() / took, theirs[0].min() / (plainly / 2)
        rows.append(
            {
                "case": name,
                "ours, a second": rates[0],
                "plain, a second": rates[1],
                "ratio": rates[0] / rates[1],
                "ours, sweeps": ours.sweeps,
                "ours, R-hat": ours.r_hat.max(),
                "plain, sweeps": sweeps,
                "plain, R-hat": theirs[1].max(),
                "plain, CPU ms a sweep": 1000 * plainly / sweeps / 4,
            }
        )
        print(tables.text(pd.DataFrame(rows[-1:])), flush=True)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    tables.write(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1000), HERE / "results" / "gibbs.csv")
