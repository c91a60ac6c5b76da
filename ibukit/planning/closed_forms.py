"""Closed forms for mechanisms with one unbiased estimator u of each question: k-RR and the line.

The solution of M u = w is unique and is found in O(k). Its variance at theta is

    sum_z p_z (u_z - w . theta)^2 = c . theta - (w . theta)^2   with   c_x = sum_z M_xz u_z^2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.fisher_information.line import LineInformation
from ibukit.mechanisms import FiniteMechanism, RandomizedResponse, TruncatedGeometric
from ibukit.mechanisms.inversion_error import inverse_contrast
from ibukit.planning.worst_case import Worst, max_single_variance, max_variance, two_point


class UniqueEstimator(ABC):
    """Base class of mechanisms whose square matrix has an inverse in closed form."""

    mechanism: FiniteMechanism

    @abstractmethod
    def estimator(self, w: Floats) -> Floats:
        """Return the u with M u = w, shape (k,)."""

    @abstractmethod
    def single_variances(self, theta: Floats) -> Floats:
        """Return the variances of all single probabilities at theta."""

    @abstractmethod
    def worst_single(self) -> Worst:
        """Return the largest variance of a single probability over all distributions."""

    def variances(self, theta: Floats, weights: Floats | None) -> Floats:
        """Return the variances at theta."""
        if weights is None:
            return self.single_variances(theta)
        p = self.mechanism.forward(theta)
        return np.array([p @ (self.estimator(w) - w @ theta) ** 2 for w in weights])

    def worst_case(self, weights: Floats | None) -> Worst:
        """Return the largest variance over all questions and distributions."""
        if weights is None:
            return self.worst_single()
        maxima = [max_variance(self.mechanism.adjoint(self.estimator(w) ** 2), w) for w in weights]
        question = int(np.argmax([value for value, _ in maxima]))
        value, theta = maxima[question]
        return Worst(value, value, question, theta)


class ResponseVariances(UniqueEstimator):
    """k-RR: theta_x is estimated by (q_x - lie) a, with a = 1 / (truth - lie) and q_x binomial."""

    mechanism: RandomizedResponse

    def __init__(self, mechanism: RandomizedResponse):
        self.mechanism = mechanism
        self._scale = inverse_contrast(mechanism.k, mechanism.epsilon)

    @override
    def estimator(self, w: Floats) -> Floats:
        return self.mechanism.invert(np.arange(len(w)), w)

    @override
    def single_variances(self, theta: Floats) -> Floats:
        p = self.mechanism.forward(theta)
        return self._scale**2 * p * (1 - p)

    @override
    def worst_single(self) -> Worst:
        # The variance is proportional to p (1 - p) with p the probability of the report x, so p
        # should be as close to 1/2 as [lie, truth] allows. By symmetry secret 0 stands for all.
        truth, lie, k = self.mechanism.truth, self.mechanism.lie, self.mechanism.k
        p = min(0.5, truth)
        value = self._scale**2 * p * (1 - p)
        mass = 1.0 if truth <= 0.5 else min(1.0, (0.5 - lie) * self._scale)
        return Worst(value, value, 0, two_point(k, 0, mass))


class LineVariances(UniqueEstimator):
    """Truncated geometric noise: M = K diag(c), K_xz = a^|x - z|, and K^-1 is tridiagonal."""

    mechanism: TruncatedGeometric

    def __init__(self, mechanism: TruncatedGeometric):
        self.mechanism = mechanism
        a, k = mechanism.decay, mechanism.k
        self._factors = np.full(k, -np.expm1(-mechanism.epsilon) / (1 + a))
        self._factors[[0, -1]] = 1 / (1 + a)

    @override
    def estimator(self, w: Floats) -> Floats:
        return self.mechanism.invert(np.arange(len(w)), w * self._factors) / self._factors

    @override
    def single_variances(self, theta: Floats) -> Floats:
        return LineInformation(
            np.sqrt(self.mechanism.forward(theta)) / self._factors, self.mechanism.decay
        ).variances()

    @override
    def worst_single(self) -> Worst:
        a, k = self.mechanism.decay, self.mechanism.k
        loss = -np.expm1(-2 * self.mechanism.epsilon)
        middle = np.full(k, (1 + a * a) / loss)
        middle[[0, -1]] = 1 / loss
        at = middle**2 / self._factors
        # Column x of K^-1 has `middle` on the diagonal and -a / loss beside it. For the question x,
        # `own`, `of_below` and `of_above` are the c of the secrets x, x - 1 and x + 1; secrets that
        # are farther away have a smaller c. `beside` is what a neighbouring report adds to c_x,
        # divided by a; beyond the ends there is no such report.
        beside = (a / loss) ** 2 / self._factors
        below, above = np.r_[0.0, beside[:-1]], np.r_[beside[1:], 0.0]
        own = at + a * (below + above)
        of_below, of_above = below + a * at + a * a * above, above + a * at + a * a * below
        of_below[0] = of_above[-1] = -np.inf
        values, masses = max_single_variance(own, np.maximum(of_below, of_above))
        x = int(values.argmax())
        other = x - 1 if of_below[x] > of_above[x] else x + 1
        return Worst(
            float(values[x]), float(values[x]), x, two_point(k, x, float(masses[x]), other)
        )
