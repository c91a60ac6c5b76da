"""Joint probabilities of totals and reports, one user at a time, in numbers of any size: mantissa times 2^exponent."""

import math

import numpy as np
from numba import njit

from ibukit._ground.arguments import Floats, Ints


@njit(cache=True)
def add_user(
    mantissas: Floats,
    exponents: Ints,
    steps: Ints,
    m: int,
    states: int,
    column: Floats,
    alpha: Floats,
) -> None:
    """From totals of m users to the `states` totals of m + 1, in place; `column` is the new report's M_x.

    w(t) <- sum_x M_x (alpha_x + t_x - 1) / (alpha_0 + m) w(t - e_x): the next secret is x with the
    probability of Polya's urn. Totals t are ranked by their partial sums s_j = t_0 + ... + t_j,
    rank = sum_j C(s_j + j, j + 1), so that those of m users are the first ones, and taking away one
    of t_x moves back by steps[j, s_j] for each j >= x. From the last rank down every t - e_x is
    still that of m users.
    """
    k = len(alpha)
    last = k - 1
    s = np.full(last, m + 1)
    rank = states - 1
    scale = alpha.sum() + m
    products, powers = np.empty(k), np.empty(k, dtype=np.int64)
    while True:
        found, highest = 0, 0
        back = 0
        for x in range(last, -1, -1):
            if x < last:
                back += steps[x, s[x]]
            own = (m + 1 if x == last else s[x]) - (s[x - 1] if x > 0 else 0)
            if own > 0 and mantissas[rank - back] > 0 and column[x] > 0:
                products[found] = mantissas[rank - back] * (
                    column[x] * ((alpha[x] + (own - 1)) / scale)
                )
                powers[found] = exponents[rank - back]
                if found == 0 or powers[found] > highest:
                    highest = powers[found]
                found += 1
        total = 0.0
        for i in range(found):
            total += (
                products[i]
                if powers[i] == highest
                else math.ldexp(products[i], int(powers[i] - highest))
            )
        mantissas[rank], power = math.frexp(total)
        exponents[rank] = highest + power
        # the rank below: the first sum that is not 0 goes down, and those before it go as high as
        # they can
        j = 0
        while j < last and s[j] == 0:
            j += 1
        if j == last:
            return
        s[j] -= 1
        for i in range(j):
            s[i] = s[j]
        rank -= 1


@njit(cache=True)
def marginals(weights: Floats, n: int, k: int) -> Floats:
    """Sums of the weights over the totals with t_x = i, shape (k, n + 1)."""
    last = k - 1
    sums = np.zeros((k, n + 1))
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
