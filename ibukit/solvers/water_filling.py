"""The maximum-likelihood estimate under k-ary randomized response, in closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels import ResponseChannel
from ibukit.solvers._water_filling_kernels import fill, water_level

# relative precision of a root: that of doubles
PRECISE = float(np.finfo(float).eps)
# a mass that is as good as none
TINY = 1e-18


def maximise(channel: ResponseChannel, q: Floats | Ints, total: float | None = None) -> Floats:
    """The maximiser of sum_z q_z log(off + (diagonal - off) theta_z) over the simplex.

    q may have any factor; `total` is its sum, where that is known.

    By the optimality conditions q_z / p_z is one number beta on the support S, so that theta_z =
    (q_z / beta - off) / (diagonal - off) with beta = q(S) / (diagonal - off + |S| off), and S holds
    the secrets with q_z > beta off. Leaving one out that does not belong raises beta, so nothing
    ever comes back and a few rounds over fewer and fewer secrets end at S: O(k), no sort.
    """
    theta = np.zeros(channel.k)
    contrast = channel.diagonal - channel.off
    if (
        contrast <= 0
    ):  # the noise is so strong that doubles cannot tell the secrets apart: every theta is a maximiser
        theta[:] = 1 / channel.k
        return theta
    beta = water_level(q, float(q.sum() if total is None else total), contrast, channel.off)
    fill(theta, channel.reports, q, beta, contrast, channel.off)
    return theta


def maximise_at(channel: ResponseChannel, q: Floats, cost: Floats) -> Floats:
    """The maximiser over {theta >= 0 : cost . theta = 1}, costs above 0; q sums to 1.

    With c = diagonal - off, s = sum theta and kappa = off sum_z q_z / p_z the conditions say that c
    q_z / p_z is cost_z - kappa where theta_z > 0. So theta_z = (u_z - s off / c)_+ with u_z = q_z /
    (cost_z - kappa), and cost . theta rises with kappa. Where kappa reaches the least cost of all,
    that of secrets that nobody reported, these have the rest of the mass.
    """
    contrast, k = channel.diagonal - channel.off, channel.k
    cheapest = cost == cost.min()
    if contrast <= 0:  # to a double all secrets make the same reports
        return np.asarray(cheapest / cost[cheapest].sum())
    shares, level = np.zeros(k), channel.off / contrast
    shares[channel.reports] = q
    seen = shares > 0
    own, price, least = shares[seen], cost[seen], float(cost.min())
    dearer, first = price - price.min(), float(price.min())

    def masses(gap: float, rest: float = 0.0) -> Floats:
        """Of the secrets seen, with kappa so far below the least of their costs, and so much mass elsewhere."""
        u = own / (dearer + gap)
        kept = u
        while True:
            s = (rest + kept.sum()) / (1 + len(kept) * level)
            above = kept[kept > s * level]
            if len(above) in (0, len(kept)):
                return np.asarray(np.maximum(u - s * level, 0.0))
            kept = above

    theta = np.zeros(k)
    nearest = first - least
    if nearest > 0 and price @ masses(nearest) < 1:
        rest = _root(
            lambda mass: float(price @ masses(nearest, mass)) + least * mass - 1, 0.0, 1 / least
        )
        theta[seen] = masses(nearest, rest)
        theta[cheapest] = rest / cheapest.sum()
        return theta
    near = first  # where kappa is 0
    while price @ masses(near) < 1:
        near /= 2
    gap = _root(lambda gap: 1 - float(price @ masses(gap)), near, min(2 * near, first))
    theta[seen] = masses(gap)
    return theta


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a function rises through 0; an end where it does not."""
    if rising(low) >= 0:
        return low
    if rising(high) <= 0:
        return high
    return float(brentq(rising, low, high, xtol=PRECISE * low + TINY, rtol=4 * PRECISE))
