"""What the reports of exchangeable bits tell about all secrets at any distribution, without a list of the reports.

The column of a row b is its probability if no secret mattered, bits independent with chance q, times m_x = 1 + c (b_x -
q); with theta it is s = 1 + c sum_x theta_x (b_x - q). On directions that keep the sum, with f_x = c (b_x - q),

    J = E[f f^T / s],   C = its inverse there,   l = C w,   u = l . f / s,   v = w . l,

and the curvature of -v is 2 (E[f f^T u^2 / s] - R C R) with R = E[f f^T u / s]. Each 1 / s^j is an integral of t^(j-1)
exp(-s t) over t, under which the bits are independent again, with other chances: what is left are moments of sums of
independent variables. Sets of `size` are such rows given their number of ones, which a sum over turns picks out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from ibukit._validate import Floats
from ibukit.mechanisms import SubsetSelection
from ibukit.mechanisms.unary import UnaryEncoding
from ibukit.planning.ascent import Point
from ibukit.theory.asymptotics import SMALLEST_TAIL, STEP_OF_LOG_T

Bits = UnaryEncoding | SubsetSelection
# nodes are taken until exp(-s t) is below SMALLEST_TAIL by far, because the moments bring powers of t
FURTHER = 2.0


class Tilted(NamedTuple):
    """The bits under exp(-s t) at each t, for one turn; complex for turns other than 1."""

    t: Floats
    weight: Any
    """Of the integral of exp(-s t) dt, shape (T,)."""
    mean: Any
    """Of f, shape (T, k)."""
    square: Any
    """Central moments of f: the second, the third and the fourth."""
    third: Any
    fourth: Any


class BitMoments:
    """A mechanism whose reports are rows of bits, as `ascent` climbs it."""

    def __init__(self, mechanism: Bits):
        self.mechanism = mechanism
        self.k = self.m = mechanism.k
        # the chance q of a bit where the secret does not matter, and p_one - q without cancellation
        if isinstance(mechanism, SubsetSelection):
            q, more = mechanism.size / self.k, mechanism.contrast * (self.k - 1) / self.k
        else:
            q, more = mechanism.p_zero, mechanism.contrast
        self._q, self._c = q, more / (q * (1 - q))

    @cached_property
    def _turns(self) -> list[tuple[complex, complex]]:
        """Rows with `size` ones among independent bits: the sum over turns z of z^(ones - size) is 0 for all others."""
        if not isinstance(self.mechanism, SubsetSelection):
            return [(1.0, 1.0)]
        k, size, q = self.k, self.mechanism.size, self._q
        n = (max(size, k - size) + 1) | 1  # odd: at half a turn a factor could vanish
        log_chance = gammaln(k + 1) - gammaln(size + 1) - gammaln(k - size + 1)
        log_chance += size * np.log(q) + (k - size) * np.log1p(-q)
        turns = np.exp(2j * np.pi / n * np.arange(n // 2 + 1))
        coefficients = turns**-size / (n * np.exp(log_chance))
        coefficients[1:] *= 2  # the other half are their conjugates
        return list(zip(turns.tolist(), coefficients.tolist(), strict=True))

    def _nodes(self, theta: Floats) -> Floats:
        none = self.mechanism.p_hidden / (1 - self._q)  # s with no bit set, 1 - c q without cancellation
        fewest = self.mechanism.size if isinstance(self.mechanism, SubsetSelection) else 0
        least, most = none + self._c * np.sort(theta)[:fewest].sum(), none + self._c
        last = -FURTHER * np.log(SMALLEST_TAIL) / least
        return np.exp(np.arange(np.log(SMALLEST_TAIL / most), np.log(last), STEP_OF_LOG_T))

    def work(self, theta: Floats) -> float:
        """Multiplications for one look at a distribution, about."""
        return 8.0 * len(self._turns) * len(self._nodes(theta)) * self.k**2 + 2.0 * self.k**3

    def _tilted(self, theta: Floats) -> Iterator[Tilted]:
        q, c = self._q, self._c
        t = self._nodes(theta)
        none = self.mechanism.p_hidden / (1 - q)
        power = np.exp(-np.outer(t, c * theta))
        for turn, coefficient in self._turns:
            total = 1 - q + q * turn * power
            weight = coefficient * STEP_OF_LOG_T * t * np.exp(-t * none) * total.prod(axis=1)
            one = q * turn * power / total
            square = one * (1 - one)
            fourth = square * (1 - 3 * square)
            yield Tilted(t, weight, c * (one - q), c**2 * square, c**3 * square * (1 - 2 * one), c**4 * fourth)

    def covariance(self, theta: Floats) -> Floats:
        """C, shape (k, k): the inverse of the information on the directions that keep the sum."""
        information = np.zeros((self.k, self.k))
        for bits in self._tilted(theta):
            part = np.real((bits.mean * bits.weight[:, None]).T @ bits.mean)
            part[np.diag_indices(self.k)] += np.real(bits.weight @ bits.square)
            information += part
        information += np.trace(information) / self.k**2  # no direction that keeps the sum sees it; sets have sum f = 0
        # with a unit diagonal: the information of rare secrets is larger by orders of magnitude
        scale = 1 / np.sqrt(np.diag(information))
        inverse = np.linalg.inv(information * np.outer(scale, scale)) * np.outer(scale, scale)
        # the inverse on the directions that keep the sum is without its part along this
        along = inverse.sum(axis=1)
        return np.asarray(inverse - np.outer(along, along) / along.sum())

    def at(self, theta: Floats, w: Floats) -> Point:
        """The l and C of one question, and the second moments of its u + w . theta, which is unbiased."""
        covariance = self.covariance(theta)
        known = float(theta @ w[:, 0])
        weights = covariance @ (w[:, 0] - known)
        moments = np.zeros(self.k)
        for bits in self._tilted(theta):
            level, spread, along = _of_sum(bits, weights)
            about = (1 + bits.mean) * (level**2 + spread)[:, None] + along
            moments += np.real((bits.weight * bits.t) @ about)
        slopes = moments + 2 * known * w[:, 0] - known**2
        variance = float(weights @ (w[:, 0] - known))
        return Point(weights[:, None], slopes[:, None], np.array([variance]), covariance)

    def curvature(self, theta: Floats, point: Point, w: Floats) -> Floats:
        """2 (E[f f^T u^2 / s] - R C R)."""
        weights = point.estimators[:, 0]
        squares, products = np.zeros((self.k, self.k)), np.zeros((self.k, self.k))
        for bits in self._tilted(theta):
            level, spread, along = _of_sum(bits, weights)
            products += _products(bits, bits.weight * bits.t, level, weights)
            squares += _squares(bits, bits.weight * bits.t**2 / 2, level, spread, along, weights)
        assert point.basis is not None
        return np.asarray(2 * (squares - products @ point.basis @ products))


def _of_sum(bits: Tilted, weights: Floats) -> tuple[Any, Any, Any]:
    """Mean and variance of g = weights . f, and E[(f_x - its mean) g^2]."""
    level, spread = bits.mean @ weights, bits.square @ weights**2
    along = 2 * level[:, None] * weights * bits.square + weights**2 * bits.third
    return level, spread, along


def _products(bits: Tilted, rule: Any, level: Any, weights: Floats) -> Floats:
    """The sum of E[f_x f_y g] over the nodes."""
    cross = (rule[:, None] * weights * bits.square).T @ bits.mean
    part = ((rule * level)[:, None] * bits.mean).T @ bits.mean + cross + cross.T
    own = bits.square * level[:, None] + weights * bits.third
    part[np.diag_indices(len(part))] += rule @ own
    return np.asarray(np.real(part))


def _squares(bits: Tilted, rule: Any, level: Any, spread: Any, along: Any, weights: Floats) -> Floats:
    """The sum of E[f_x f_y g^2] over the nodes."""
    size = level**2 + spread
    moved = weights * bits.square
    cross = (rule[:, None] * along).T @ bits.mean
    part = ((rule * size)[:, None] * bits.mean).T @ bits.mean + cross + cross.T + 2 * (rule[:, None] * moved).T @ moved
    # of one bit there is the fourth moment, and not twice the product of two second ones
    own = bits.square * (size[:, None] - weights * moved) + 2 * level[:, None] * weights * bits.third
    own = own + weights**2 * bits.fourth - 2 * moved**2
    part[np.diag_indices(len(part))] += rule @ own
    return np.asarray(np.real(part))
