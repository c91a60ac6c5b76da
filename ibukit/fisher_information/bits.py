"""Expected information of exchangeable bits at any distribution, without a list of the reports.

The column of a row b is the probability of b if no secret mattered, with independent bits of chance
q, times m_x = 1 + c (b_x - q); under theta this factor becomes s = 1 + c sum_x theta_x (b_x - q).
On directions that keep the sum, with f_x = c (b_x - q), the information is J = E[f f^T / s]. Each 1
/ s^j is an integral of t^(j-1) exp(-s t) over t, under which the bits are independent again, with
other chances: what is left are moments of sums of independent variables. The sets of subset
selection are such rows, conditioned on their number of ones; a sum over roots of unity (here called
turns) picks out this number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln

from ibukit._ground.arguments import Floats
from ibukit.mechanisms import SubsetSelection
from ibukit.mechanisms.categorical.independent_bits import IndependentBits

Bits = IndependentBits | SubsetSelection
# The sum of exponentials that stands for 1 / s is the trapezoidal rule in log t with this step; its
# error is exp(-pi^2 / step). The tails are cut at the second number.
LOG_T_STEP = 0.25
MIN_TAIL = 1e-17
# Nodes go this many times as far as exp(-s t) = MIN_TAIL, because the moments have powers of t.
LAST_NODE_FACTOR = 2.0


@dataclass(frozen=True, eq=False)
class TiltedBits:
    """Bits tilted by exp(-s t) at each t, for one turn, and complex unless this is 1."""

    t: Floats
    weight: Any
    """Weight in the integral of exp(-s t) dt, shape (T,)."""
    chance: Any
    """Probability of each bit, shape (T, k)."""
    q: float
    c: float

    @cached_property
    def mean(self) -> Any:
        """Mean of f."""
        return self.c * (self.chance - self.q)

    @cached_property
    def _spread(self) -> Any:
        return self.chance * (1 - self.chance)

    @cached_property
    def square(self) -> Any:
        """Second central moment of f."""
        return self.c**2 * self._spread

    @cached_property
    def third(self) -> Any:
        """Third central moment of f."""
        return self.c**3 * self._spread * (1 - 2 * self.chance)

    @cached_property
    def fourth(self) -> Any:
        """Fourth central moment of f."""
        return self.c**4 * self._spread * (1 - 3 * self._spread)


class BitInformation:
    """Information of one report of a mechanism whose reports are rows of bits."""

    def __init__(self, mechanism: Bits):
        self.mechanism = mechanism
        self.k = self.m = mechanism.k
        # The probability q of a bit if the secret did not matter, and p_one - q without
        # cancellation.
        if isinstance(mechanism, SubsetSelection):
            q, more = mechanism.size / self.k, mechanism.contrast * (self.k - 1) / self.k
        else:
            q, more = mechanism.p_zero, mechanism.contrast
        self._q, self._c = q, more / (q * (1 - q))

    @cached_property
    def _turns(self) -> list[tuple[complex, complex]]:
        """Roots of unity z and weights that pick out the rows with `size` ones.

        The sum of z^(ones - size) over these roots z is 0 for all other rows.
        """
        if not isinstance(self.mechanism, SubsetSelection):
            return [(1.0, 1.0)]
        k, size, q = self.k, self.mechanism.size, self._q
        # The number of turns is odd, because at half a turn a factor could vanish.
        n = (max(size, k - size) + 1) | 1
        log_chance = gammaln(k + 1) - gammaln(size + 1) - gammaln(k - size + 1)
        log_chance += size * np.log(q) + (k - size) * np.log1p(-q)
        turns = np.exp(2j * np.pi / n * np.arange(n // 2 + 1))
        coefficients = turns**-size / (n * np.exp(log_chance))
        # Turns in the other half are the conjugates of these, so all but the first count twice.
        coefficients[1:] *= 2
        return list(zip(turns.tolist(), coefficients.tolist(), strict=True))

    def _nodes(self, theta: Floats) -> Floats:
        none = self.mechanism.p_hidden / (
            1 - self._q
        )  # s with no bit set, 1 - c q without cancellation
        fewest = self.mechanism.size if isinstance(self.mechanism, SubsetSelection) else 0
        least, most = none + self._c * np.sort(theta)[:fewest].sum(), none + self._c
        last = -LAST_NODE_FACTOR * np.log(MIN_TAIL) / least
        return np.exp(np.arange(np.log(MIN_TAIL / most), np.log(last), LOG_T_STEP))

    def work(self, theta: Floats) -> float:
        """Approximate number of multiplications for one distribution."""
        return 8.0 * len(self._turns) * len(self._nodes(theta)) * self.k**2 + 2.0 * self.k**3

    def tilted(self, theta: Floats) -> Iterator[TiltedBits]:
        """Tilted bits at each t, for one turn after the other."""
        q, c = self._q, self._c
        t = self._nodes(theta)
        none = self.mechanism.p_hidden / (1 - q)
        power = np.exp(-np.outer(t, c * theta))
        for turn, coefficient in self._turns:
            total = 1 - q + q * turn * power
            weight = coefficient * LOG_T_STEP * t * np.exp(-t * none) * total.prod(axis=1)
            one = q * turn * power / total
            yield TiltedBits(t, weight, one, q, c)

    def covariance(self, theta: Floats) -> Floats:
        """Covariance C, (k, k): inverse of the information on directions that keep the sum."""
        # On these directions the quadratic form of J is c times that of E[b_x b_y c / s].
        information = np.zeros((self.k, self.k))
        for bits in self.tilted(theta):
            weight = bits.weight * self._c
            # Off the diagonal bits are independent given t; on it b_x^2 = b_x.
            part = np.real((bits.chance * weight[:, None]).T @ bits.chance)
            np.fill_diagonal(part, np.real(weight @ bits.chance))
            information += part
        # Scale to a unit diagonal, because the information of rare secrets is larger by orders of
        # magnitude.
        size = np.sqrt(np.diag(information))
        scale = 1 / (size * np.sqrt(self._c))
        inverse = np.linalg.inv(information / np.outer(size, size)) * np.outer(scale, scale)
        # On the directions that keep the sum the inverse is J^-1 - J^-1 1 1^T J^-1 / (1^T J^-1 1).
        along = inverse.sum(axis=1)
        return inverse - np.outer(along, along) / along.sum()
