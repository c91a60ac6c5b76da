"""Unary encodings and subset selection, whose secrets are exchangeable: one stands for all that are asked alike.

A permutation of secrets permutes the reports and changes no probability. So for a question that weighs some secrets
alike the least variance, which is concave, is largest at a distribution that has them equally often, and the best
estimator there looks only at how many of their bits are set. What is left is a mechanism of as many secrets as the
question has different weights: groups of n_1, ..., n_g secrets, whose reports are numbers of ones s_1, ..., s_g,

    P(s given a secret of group i) = P(s if no secret mattered) (s_i / n_i one + (1 - s_i / n_i) zero),

where one and zero are the ratios by which the secret's own bit is set or not set more often than by chance.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from ibukit._threads import one_thread
from ibukit._validate import Floats, Ints, readable
from ibukit.errors import TooLarge
from ibukit.mechanisms import SubsetSelection
from ibukit.mechanisms.unary import UnaryEncoding
from ibukit.planning.dense import Dense
from ibukit.planning.saddle import Worst
from ibukit.theory.asymptotics import SMALLEST_TAIL, STEP_OF_LOG_T, _chance, _turns, asymptotic_mse

Bits = UnaryEncoding | SubsetSelection
# numbers in the matrix of the groups, and multiplications to find the information of all secrets
MOST_ENTRIES, MOST_WORK = 2**22, 1e12


class BitModel:
    """What `plans` asks of a mechanism."""

    def __init__(self, mechanism: Bits):
        self.mechanism = mechanism

    def near(self, theta: Floats, weights: Floats | None) -> Floats:
        """Variances at theta, from the information of all secrets."""
        k = self.mechanism.k
        if weights is None and (theta == theta[0]).all():
            return np.full(k, asymptotic_mse(self.mechanism, theta) / k)
        with one_thread():
            covariance = _covariance(self.mechanism, theta)
        if weights is None:
            return np.diag(covariance).copy()
        centred = weights - (weights @ theta)[:, None]
        return np.asarray(((centred @ covariance) * centred).sum(axis=1))

    def worst(self, weights: Floats | None) -> Worst:
        """The hardest question at its hardest distribution, each from the groups of secrets that it weighs alike."""
        k = self.mechanism.k
        if weights is None:  # every secret is as hard as the first
            weights = np.eye(1, k)
        best = Worst(-np.inf, -np.inf, 0, np.empty(0))
        upper = -np.inf
        for question, w in enumerate(weights):
            values, group, sizes = np.unique(w, return_inverse=True, return_counts=True)
            found = Dense(grouped(self.mechanism, sizes)).worst(values[None])
            upper = max(upper, found.upper)
            if found.lower > best.lower:
                best = Worst(upper, found.lower, question, (found.theta / sizes)[group])
        return best._replace(upper=upper)


def grouped(mechanism: Bits, sizes: Ints) -> Floats:
    """The matrix from groups of secrets to numbers of ones in each, shape (groups, reports)."""
    reports = math.prod(int(size) + 1 for size in sizes)
    if reports * len(sizes) > MOST_ENTRIES:
        raise TooLarge(
            f"the worst case of a question with {len(sizes)} different weights takes a matrix of {readable(reports)} x "
            f"{len(sizes)} numbers, and at most {MOST_ENTRIES} are accepted: ask with fewer different weights, such as "
            "1 inside a region and 0 outside, or name a distribution with `near`"
        )
    ones = np.stack([axis.ravel() for axis in np.indices([size + 1 for size in sizes])])  # shape (groups, reports)
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


def _covariance(mechanism: Bits, theta: Floats) -> Floats:
    """The inverse of the information on the directions that keep the sum, shape (k, k); see `asymptotic_mse`."""
    k, (q, c) = mechanism.k, _chance(mechanism)
    none = mechanism.p_hidden / (1 - q)
    fewest = mechanism.size if isinstance(mechanism, SubsetSelection) else 0
    least, most = none + c * np.sort(theta)[:fewest].sum(), none + c
    t = np.exp(np.arange(np.log(SMALLEST_TAIL / most), np.log(-np.log(SMALLEST_TAIL) / least), STEP_OF_LOG_T))
    turns = _turns(mechanism)
    work = 8.0 * len(turns) * len(t) * k**2 + 2.0 * k**3
    if work > MOST_WORK:
        raise TooLarge(
            f"the information of {mechanism} at a distribution that is not uniform takes {work:.2g} multiplications, "
            f"and at most {MOST_WORK:.0e} are accepted; plan for the worst case, near=None"
        )
    power = np.exp(-np.outer(t, c * theta))
    information = np.zeros((k, k))
    for turn, coefficient in turns:
        mean = 1 - q + q * turn * power
        weight = coefficient * c * STEP_OF_LOG_T * t * np.exp(-t * none) * mean.prod(axis=1)
        own = q * turn * power / mean
        part = np.real((own * weight[:, None]).T @ own)
        np.fill_diagonal(part, np.real(weight @ own))
        information += part
    size = np.sqrt(np.diag(information))
    scale = 1 / (size * np.sqrt(c))
    inverse = np.linalg.inv(information / np.outer(size, size)) * np.outer(scale, scale)
    along = inverse.sum(axis=1)
    return np.asarray(inverse - np.outer(along, along) / along.sum())
