"""Unary encodings and subset selection, whose secrets are exchangeable: one stands for all that are asked alike.

A permutation of secrets permutes the reports and changes no probability. So for a question that
weighs some secrets alike the least variance, which is concave, is largest at a distribution that
has them equally often, and the best estimator there looks only at how many of their bits are set.
What is left is a mechanism of as many secrets as the question has different weights: groups of n_1,
..., n_g secrets, whose reports are numbers of ones s_1, ..., s_g,

    P(s given a secret of group i) = P(s if no secret mattered) (s_i / n_i one + (1 - s_i / n_i)
    zero),

where one and zero are the ratios by which the secret's own bit is set or not set more often than by
chance.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.threads import one_thread
from ibukit.errors import TooLarge
from ibukit.fisher_information.bits import Bits
from ibukit.mechanisms import SubsetSelection
from ibukit.planning.ascent import STEPS_EXPECTED, Climb, climb
from ibukit.planning.bit_moments import BitMoments
from ibukit.planning.dense import Dense
from ibukit.planning.worst_case import Worst
from ibukit.theory import asymptotic_mse

# numbers in the matrix of the groups, and multiplications to look at all secrets
MAX_GROUPED, MAX_WORK = 2**22, 1e12


class BitModel:
    """What `plans` asks of a mechanism."""

    def __init__(self, mechanism: Bits):
        self.mechanism = mechanism

    def near(self, theta: Floats, weights: Floats | None) -> Floats:
        """Variances at theta, from the information of all secrets."""
        k = self.mechanism.k
        if weights is None and (theta == theta[0]).all():
            return np.full(k, asymptotic_mse(self.mechanism, theta) / k)
        moments = BitMoments(self.mechanism)
        refuse_too_much_work(moments, theta, 1)
        with one_thread():
            covariance = moments.covariance(theta)
        if weights is None:
            return np.diag(covariance).copy()
        centred = weights - (weights @ theta)[:, None]
        return np.asarray(((centred @ covariance) * centred).sum(axis=1))

    def worst(self, weights: Floats | None) -> Worst:
        """The hardest question at its hardest distribution, each from the groups of secrets that it weighs alike."""
        k = self.mechanism.k
        if weights is None:  # every secret is as hard as the first
            weights = np.eye(1, k)
        found = [self._climb(w) for w in weights]
        question = int(np.argmax([each.lower for each in found]))
        upper = max(each.upper for each in found)
        return Worst(upper, found[question].lower, question, found[question].theta)

    def _climb(self, w: Floats) -> Climb:
        """From the groups of secrets that are weighed alike, or from all secrets where the groups are too many."""
        values, group, sizes = np.unique(w, return_inverse=True, return_counts=True)
        if math.prod(int(size) + 1 for size in sizes) * len(sizes) <= MAX_GROUPED:
            worst = Dense(grouped(self.mechanism, sizes)).worst(values[None])
            return Climb(worst.upper, worst.lower, (worst.theta / sizes)[group])
        moments, k = BitMoments(self.mechanism), self.mechanism.k
        refuse_too_much_work(moments, np.full(k, 1 / k), 4 * STEPS_EXPECTED)
        with one_thread():
            return climb(moments, w[:, None])


def refuse_too_much_work(moments: BitMoments, theta: Floats, looks: int) -> None:
    """Refuse what would take hours."""
    work = looks * moments.work(theta)
    if work > MAX_WORK:
        raise TooLarge(
            f"what {moments.mechanism} tells about {moments.k} secrets takes some {work:.1e} multiplications, and at "
            f"most {MAX_WORK:.0e} are accepted; each single probability in the worst case takes few (of=None, "
            "near=None), and so does a region of few secrets"
        )


def grouped(mechanism: Bits, sizes: Ints) -> Floats:
    """The matrix from groups of secrets to numbers of ones in each, shape (groups, reports)."""
    ones = np.stack(
        [axis.ravel() for axis in np.indices([size + 1 for size in sizes])]
    )  # shape (groups, reports)
    if isinstance(mechanism, SubsetSelection):
        q = mechanism.size / mechanism.k
        ones = ones[:, ones.sum(axis=0) == mechanism.size]
        log_chance = _log_choices(sizes[:, None], ones).sum(axis=0)
        log_chance -= _log_choices(np.array(mechanism.k), np.array(mechanism.size))
    else:
        q = mechanism.p_zero
        log_chance = _log_choices(sizes[:, None], ones).sum(axis=0)
        log_chance += ones.sum(axis=0) * np.log(q) + (mechanism.k - ones.sum(axis=0)) * np.log1p(-q)
    share, one, zero = ones / sizes[:, None], mechanism.p_one / q, mechanism.p_hidden / (1 - q)
    return np.asarray(np.exp(log_chance) * (share * one + (1 - share) * zero))


def _log_choices(n: Ints, s: Ints) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1))
