"""Variances of unary encodings and subset selection, whose secrets are exchangeable.

A permutation of secrets permutes the reports and changes no probability. So if a question has equal
weights at some secrets, the least variance, which is concave, is largest at a distribution with
equal probabilities at them, and the best estimator there depends only on how many of their bits are
set. The problem reduces to a mechanism with one secret for each different weight of the question:
groups of n_1, ..., n_g secrets, whose reports are numbers of ones s_1, ..., s_g,

    P(s given a secret of group i) = P_0(s) (s_i / n_i one + (1 - s_i / n_i) zero),

where P_0 is the law without any secret. The factor `one` is the probability that the secret's own
bit is set, divided by that of any other bit; `zero` is the same ratio for a bit that is not set.
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
from ibukit.planning.ascent import EXPECTED_STEPS, Climb, climb
from ibukit.planning.bit_moments import BitMoments
from ibukit.planning.dense import DenseVariances
from ibukit.planning.worst_case import Worst
from ibukit.theory import asymptotic_mse

# Largest matrix of groups, 32 MB; and largest number of multiplications without groups, some
# minutes.
MAX_GROUP_ENTRIES, MAX_WORK = 2**22, 1e12


class BitVariances:
    """Variances from a mechanism whose reports are rows of exchangeable bits."""

    def __init__(self, mechanism: Bits):
        self.mechanism = mechanism

    def variances(self, theta: Floats, weights: Floats | None) -> Floats:
        """Return the variances at theta, from the Fisher information of all secrets."""
        k = self.mechanism.k
        if weights is None and (theta == theta[0]).all():
            return np.full(k, asymptotic_mse(self.mechanism, theta) / k)
        moments = BitMoments(self.mechanism)
        check_work(moments, theta, 1)
        with one_thread():
            covariance = moments.covariance(theta)
        if weights is None:
            return np.diag(covariance).copy()
        centred = weights - (weights @ theta)[:, None]
        return ((centred @ covariance) * centred).sum(axis=1)

    def worst_case(self, weights: Floats | None) -> Worst:
        """Return the largest variance over all questions and distributions."""
        k = self.mechanism.k
        # By symmetry all single probabilities have the same largest variance.
        if weights is None:
            weights = np.eye(1, k)
        climbs = [self._climb(w) for w in weights]
        question = int(np.argmax([each.lower for each in climbs]))
        upper = max(each.upper for each in climbs)
        return Worst(upper, climbs[question].lower, question, climbs[question].theta)

    def _climb(self, w: Floats) -> Climb:
        """Bound the largest variance of a question, by groups of equal weight if these are few."""
        values, group, sizes = np.unique(w, return_inverse=True, return_counts=True)
        if math.prod(int(size) + 1 for size in sizes) * len(sizes) <= MAX_GROUP_ENTRIES:
            worst = DenseVariances(grouped(self.mechanism, sizes)).worst_case(values[None])
            return Climb(worst.upper, worst.lower, (worst.theta / sizes)[group])
        moments, k = BitMoments(self.mechanism), self.mechanism.k
        check_work(moments, np.full(k, 1 / k), 4 * EXPECTED_STEPS)
        with one_thread():
            return climb(moments, w[:, None])


def check_work(moments: BitMoments, theta: Floats, looks: int) -> None:
    """Raise TooLarge if the computation would take hours."""
    work = looks * moments.work(theta)
    if work > MAX_WORK:
        raise TooLarge(
            f"what {moments.mechanism} tells about {moments.k} secrets takes about {work:.1e} "
            f"multiplications, and at most {MAX_WORK:.0e} are accepted; the worst case of each "
            "single probability (of=None, near=None) takes few, and so does a region of few secrets"
        )


def grouped(mechanism: Bits, sizes: Ints) -> Floats:
    """Return the matrix from groups of secrets to numbers of ones, shape (groups, reports)."""
    # All vectors of numbers of ones, as columns of an array of shape (groups, reports).
    ones = np.stack([axis.ravel() for axis in np.indices([size + 1 for size in sizes])])
    if isinstance(mechanism, SubsetSelection):
        q = mechanism.size / mechanism.k
        ones = ones[:, ones.sum(axis=0) == mechanism.size]
        log_probability = _log_choices(sizes[:, None], ones).sum(axis=0)
        log_probability -= _log_choices(np.array(mechanism.k), np.array(mechanism.size))
    else:
        q = mechanism.p_zero
        log_probability = _log_choices(sizes[:, None], ones).sum(axis=0)
        log_probability += ones.sum(axis=0) * np.log(q) + (
            mechanism.k - ones.sum(axis=0)
        ) * np.log1p(-q)
    share, one, zero = ones / sizes[:, None], mechanism.p_one / q, mechanism.p_hidden / (1 - q)
    return np.exp(log_probability) * (share * one + (1 - share) * zero)


def _log_choices(n: Ints, s: Ints) -> Floats:
    """Return the logarithms of binomial coefficients n over s."""
    return gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1)
