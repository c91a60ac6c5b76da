"""The maximum-likelihood estimate under k-ary randomized response, in closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels import ResponseChannel
from ibukit.channels.response import FIRST_CALLS
from ibukit.solvers.responses._water_filling_kernels import BLOCK, fill, water_level

# Relative tolerance of a root: that of doubles.
ROOT_TOLERANCE = float(np.finfo(float).eps)
# Absolute tolerance of a root: a mass of this size has no effect.
NEGLIGIBLE_MASS = 1e-18


def maximise(channel: ResponseChannel, q: Floats | Ints, total: float | None = None) -> Floats:
    """Maximise sum_z q_z log(off + (diagonal - off) theta_z) over the simplex.

    q may be scaled by any factor; `total` is its sum, if that is known.

    By the optimality conditions q_z / p_z is the same number beta everywhere on the support S. So
    theta_z = (q_z / beta - off) / (diagonal - off) there, and as theta sums to 1, beta = q(S) /
    (diagonal - off + |S| off). S holds the secrets with q_z > beta off. The search begins with all
    secrets. Leaving out one that does not belong raises beta, so none ever comes back, and a few
    rounds over fewer and fewer secrets end at S, in O(k) and without sorting.
    """
    theta = np.zeros(channel.k)
    contrast = channel.diagonal - channel.off
    # Noise so strong that doubles cannot tell the secrets apart: every theta is a maximiser.
    if contrast <= 0:
        theta[:] = 1 / channel.k
        return theta
    total = float(q.sum() if total is None else total)
    by_numpy = len(q) <= BLOCK and FIRST_CALLS.takes_one()
    level, put = (_level_of_few, _fill_few) if by_numpy else (water_level, fill)
    put(theta, channel.reports, q, level(q, total, contrast, channel.off), contrast, channel.off)
    return theta


def _level_of_few(q: Floats | Ints, total: float, contrast: float, off: float) -> float:
    """Return what `water_level` does, to the bit, for the reports of one block."""
    left = q.astype(np.float64)
    while True:
        beta = total / (contrast + len(left) * off)
        kept = left[left > beta * off]
        if len(kept) in (0, len(left)):
            return beta
        # Numbers are added one after the other.
        left, total = kept, float(kept.cumsum()[-1])


def _fill_few(
    theta: Floats, reports: Ints, q: Floats | Ints, beta: float, contrast: float, off: float
) -> None:
    """Do what `fill` does, to the bit, for the reports of one block."""
    values = np.maximum(q * (1 / (beta * contrast)) - off / contrast, 0.0)
    total = float(values.cumsum()[-1])
    if total == 0:
        values = (q == q.max()).astype(np.float64)
        total = float(values.sum())
    theta[reports] = values
    theta *= 1 / total


def maximise_at(channel: ResponseChannel, q: Floats, cost: Floats) -> Floats:
    """Maximise over {theta >= 0 : cost . theta = 1}, with costs above 0; q sums to 1.

    With c = diagonal - off, s = sum theta and kappa = off sum_z q_z / p_z, the optimality
    conditions are c q_z / p_z = cost_z - kappa where theta_z > 0. So
    theta_z = (u_z - s off / c)_+ with u_z = q_z / (cost_z - kappa). Both s and cost . theta rise
    with kappa, which is therefore a root in one variable. If kappa reaches the smallest cost, that
    of secrets that nobody reported, these hold the rest of the mass.
    """
    contrast, k = channel.diagonal - channel.off, channel.k
    cheapest = cost == cost.min()
    # As far as doubles can tell, all secrets make the same reports.
    if contrast <= 0:
        return cheapest / cost[cheapest].sum()
    shares, level = np.zeros(k), channel.off / contrast
    shares[channel.reports] = q
    reported = shares > 0
    own, price, least = shares[reported], cost[reported], float(cost.min())
    # cost_z - kappa = dearer_z + gap, without cancellation where both are nearly equal.
    dearer, first = price - price.min(), float(price.min())

    def masses(gap: float, rest: float = 0.0) -> Floats:
        """Masses of the reported secrets, if kappa is `gap` below the smallest of their costs.

        `rest` is the mass of the others. s is found by leaving out secrets without mass.
        """
        u = own / (dearer + gap)
        kept = u
        while True:
            s = (rest + kept.sum()) / (1 + len(kept) * level)
            above = kept[kept > s * level]
            if len(above) in (0, len(kept)):
                return np.maximum(u - s * level, 0.0)
            kept = above

    theta = np.zeros(k)
    # The largest kappa is the smallest of all costs.
    nearest = first - least
    if nearest > 0 and price @ masses(nearest) < 1:
        rest = _root(
            lambda mass: float(price @ masses(nearest, mass)) + least * mass - 1, 0.0, 1 / least
        )
        theta[reported] = masses(nearest, rest)
        theta[cheapest] = rest / cheapest.sum()
        return theta
    # kappa = 0 at the gap `first`; halving the gap brackets the root.
    low = first
    while price @ masses(low) < 1:
        low /= 2
    gap = _root(lambda gap: 1 - float(price @ masses(gap)), low, min(2 * low, first))
    theta[reported] = masses(gap)
    return theta


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Root of a rising function in [low, high]; an end of the interval if there is none."""
    if rising(low) >= 0:
        return low
    if rising(high) <= 0:
        return high
    return float(
        scipy.optimize.brentq(
            rising, low, high, xtol=ROOT_TOLERANCE * low + NEGLIGIBLE_MASS, rtol=4 * ROOT_TOLERANCE
        )
    )
