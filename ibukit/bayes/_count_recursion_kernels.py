"""Recursion over users for joint probabilities of totals and reports.

Numbers of any size are a mantissa times 2^exponent.
"""

import math

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit


@njit()
def add_user(
    mantissas: Floats,
    exponents: Ints,
    steps: Ints,
    m: int,
    states: int,
    column: Floats,
    alpha: Floats,
) -> None:
    """Add one user in place: from totals of m users to the `states` totals of m + 1.

    `column` is the new report's M_x.

    The recursion is w(t) <- sum_x M_x (alpha_x + t_x - 1) / (alpha_0 + m) w(t - e_x): the next
    secret is x with the probability of Polya's urn. Totals t are ranked by their partial sums s_j =
    t_0 + ... + t_j, rank = sum_j C(s_j + j, j + 1), so those of m users have the first ranks, and
    removing one from t_x lowers the rank by steps[j, s_j] for each j >= x. Going down from the last
    rank, every t - e_x still holds the number of m users.
    """
    k = len(alpha)
    last = k - 1
    s = np.full(last, m + 1)
    rank = states - 1
    scale = alpha.sum() + m
    products, powers = np.empty(k), np.empty(k, dtype=np.int64)
    while True:
        n_terms, highest = 0, 0
        back = 0
        for x in range(last, -1, -1):
            if x < last:
                back += steps[x, s[x]]
            # t_x from the partial sums; t - e_x has the rank below by `back`.
            own = (m + 1 if x == last else s[x]) - (s[x - 1] if x > 0 else 0)
            if own > 0 and mantissas[rank - back] > 0 and column[x] > 0:
                products[n_terms] = mantissas[rank - back] * (
                    column[x] * ((alpha[x] + (own - 1)) / scale)
                )
                powers[n_terms] = exponents[rank - back]
                if n_terms == 0 or powers[n_terms] > highest:
                    highest = powers[n_terms]
                n_terms += 1
        # Terms are added at the scale of the largest exponent; much smaller ones underflow to 0.
        total = 0.0
        for i in range(n_terms):
            total += (
                products[i]
                if powers[i] == highest
                else math.ldexp(products[i], int(powers[i] - highest))
            )
        mantissas[rank], power = math.frexp(total)
        exponents[rank] = highest + power
        # Go to the rank below: the first sum that is not 0 falls by one, and those before it become
        # as large as they can.
        j = 0
        while j < last and s[j] == 0:
            j += 1
        if j == last:
            return
        s[j] -= 1
        for i in range(j):
            s[i] = s[j]
        rank -= 1


@njit()
def marginals(weights: Floats, n: int, k: int) -> Floats:
    """Sums of the weights over the totals with t_x = i, shape (k, n + 1)."""
    last = k - 1
    sums = np.zeros((k, n + 1))
    # Walk down through all totals as `add_user` does, and add each weight to its marginals.
    s = np.full(last, n)
    for rank in range(len(weights) - 1, -1, -1):
        w = weights[rank]
        before = 0
        for x in range(last):
            sums[x, s[x] - before] += w
            before = s[x]
        sums[last, n - before] += w
        j = 0
        while j < last and s[j] == 0:
            j += 1
        if j < last:
            s[j] -= 1
            for i in range(j):
                s[i] = s[j]
    return sums
