"""Exact posterior of the totals by a recursion over users: O(k C(n + k, k)) additions.

The cost depends on the number of reports n, not on the number of different ones.
"""

from __future__ import annotations

import math

import numpy as np
from tqdm import tqdm

from ibukit._ground.arguments import Floats, Ints, readable
from ibukit.bayes._count_recursion_kernels import add_user, marginals
from ibukit.bayes._marginals import Marginals
from ibukit.errors import TooLarge
from ibukit.tally.tally import Tally

# Limits of about a minute of additions, and of a quarter of a small machine's memory.
MAX_TERMS = 4 * 10**9
MAX_BYTES = 2**31


def cost(n: int, k: int) -> tuple[int, int]:
    """Number of terms added, sum over m = 1..n of k C(m + k - 1, k - 1), and bytes of the state."""
    return k * (math.comb(n + k, k) - 1), 32 * math.comb(n + k - 1, k - 1)


def posterior_of_totals(tally: Tally, alpha: Floats) -> Marginals:
    """Exact law of the totals: coefficients of prod_y (sum_x M_xy z_x)^{s_y}, weighted.

    Each coefficient times the Dirichlet integral of its monomial is the joint probability of totals
    and reports; users are added one at a time. Only nonnegative numbers are added, so each has as
    many correct digits as the channel, less those lost to n roundings.
    """
    n, k = tally.n, tally.k
    terms, n_bytes = cost(n, k)
    if terms > MAX_TERMS or n_bytes > MAX_BYTES:
        raise TooLarge(
            f"method='exact' would add {readable(terms)} terms for n = {n} reports of {k} secrets "
            f"(at most {MAX_TERMS:.0e}) and keep {readable(n_bytes)} bytes (at most "
            f"{MAX_BYTES:.3g}); take method='gibbs' with an rng"
        )
    states = math.comb(n + k - 1, k - 1)
    mantissas, exponents = np.zeros(states), np.zeros(states, dtype=np.int64)
    mantissas[0] = 1.0
    columns = np.ascontiguousarray(tally.matrix().T)
    # Columns are divided by their largest entry, which returns in the log-evidence below, and
    # numbers are mantissas with exponents of their own: nothing underflows.
    largest = columns.max(axis=1)
    columns /= largest[:, None]
    steps = _steps(n, k)
    m = 0
    with tqdm(
        total=terms,
        desc="posterior",
        unit=" terms",
        unit_scale=True,
        leave=False,
        disable=None,
        delay=1,
    ) as bar:
        for column, count in zip(columns, tally.counts, strict=True):
            for _ in range(count):
                now = math.comb(m + k, k - 1)
                add_user(mantissas, exponents, steps, m, now, column, alpha)
                m += 1
                bar.update(k * now)
    # All numbers are brought to one exponent; those below 2^-2000 of the largest become 0.
    highest = int(exponents[mantissas > 0].max())
    weights = np.ldexp(mantissas, np.maximum(exponents - highest, -2000))
    total = float(weights.sum())
    weights /= total
    log_evidence = (
        math.log(total)
        + highest * math.log(2)
        + float(tally.counts @ (np.log(largest) + tally.log_scale))
    )
    return Marginals(marginals(weights, n, k), alpha, log_evidence)


def _steps(n: int, k: int) -> Ints:
    """Table C(v + j - 1, j), row j, column v: drop of a total's rank with its j-th partial sum."""
    steps = np.zeros((k - 1, n + 1), dtype=np.int64)
    for j in range(k - 1):
        steps[j, 1:] = 1 if j == 0 else np.cumsum(steps[j - 1, 1:])
    return steps
