"""The interior point of `interior_point` on a matrix, in as few calls as it takes.

On matrices of some hundred rows a call of numpy costs as much as what it does. So the two pairs of
the optimality conditions stand one after the other in two vectors, A = (theta, nu) and B = (s,
lam), whose product is to become (mu, ..., mu, q): what is done to both is one call. What the
certificate needs, g = M (q / nu), is also the right-hand side of the predictor, g - 1, since s = 1
- M lam.
"""

from __future__ import annotations

import math

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.solvers.dense.systems import Systems

MIN_COORDINATE = 1e-150
# how far towards the boundary a step may go, at least
NEARLY_ALL = 0.99

_sum = np.add.reduce


class DensePath:
    """The central path of a matrix of shape (k, s), whose columns have a largest entry of 1.

    Parameters
    ----------
    matrix : ndarray, shape (k, s)
    q : ndarray, shape (s,)
        Frequencies of the reports.
    em_steps, uniform_share
        It begins with so many updates from uniform, mixed with it.
    """

    def __init__(self, matrix: Floats, q: Floats, em_steps: int, uniform_share: float):
        k, s = matrix.shape
        self.matrix, self.q, self.k = matrix, q, k
        self.systems = Systems(matrix)
        self.steps = 0
        self.full_step = True
        """True if the last step went more than half of the way in both variables."""
        self._a, self._b, self._target = np.empty(k + s), np.empty(k + s), np.empty(k + s)
        self.theta, self.nu, self.s, self.lam = self._a[:k], self._a[k:], self._b[:k], self._b[k:]
        self._target[k:] = q
        self._ratio, self.g = np.empty(s), np.empty(k)
        self._start(em_steps, uniform_share)

    def _start(self, em_steps: int, uniform_share: float) -> None:
        theta = self.theta
        theta[:] = 1 / self.k
        for _ in range(em_steps):
            self._look()
            np.multiply(theta, self.g, out=theta)
        theta *= (1 - uniform_share) / _sum(theta)
        theta += uniform_share / self.k
        self._look()
        margin = 1.1 * max(_most(self.g), 1.0)
        np.divide(self._ratio, margin, out=self.lam)
        np.subtract(1.0, self.g / margin, out=self.s)

    def _look(self) -> None:
        """The fit at theta, and g."""
        np.dot(self.theta, self.matrix, out=self.nu)
        np.divide(self.q, self.nu, out=self._ratio)
        np.dot(self.matrix, self._ratio, out=self.g)

    def excess(self) -> float:
        """Max g - 1 of theta over its sum."""
        return float(_sum(self.theta)) * _most(self.g) - 1

    def advance(self) -> bool:
        """One step, predictor and corrector; False where numbers give out."""
        a, b, k, matrix = self._a, self._b, self.k, self.matrix
        quotient = b / a
        solve = self.systems.solver(quotient[k:], quotient[:k], shrink=self.steps >= 2)
        if solve is None:
            return False
        product = a * b
        total = float(_sum(product[:k]))
        # predictor: straight at the solution, relative to where we are
        change = np.empty_like(a)
        change[:k] = solve(self.g - 1)
        np.dot(change[:k], matrix, out=change[k:])
        along = change / a
        across = -1 - along
        across[k:] += self.q / product[k:]
        primal, dual = _length(-_least(along[:k]), 1.0), _length(-_least(across), 1.0)
        second = along * across
        second *= product
        # theta . s after those lengths, without another vector: s d_theta + theta d_s = -theta s
        gained = float(np.dot(product[:k], along[:k]))
        after = (
            total
            + primal * gained
            - dual * (total + gained)
            + primal * dual * float(_sum(second[:k]))
        )
        # at the limits of doubles this may exceed the total beyond all bounds; exactly, it never
        # does
        mu = min(max(after / total, 0.0), 1.0) ** 3 * total / k
        # corrector: centred, with second-order terms
        self._target[:k] = mu
        second += product
        rest = np.subtract(self._target, second, out=second)
        rest /= a
        change[:k] = solve(rest[:k] + np.dot(matrix, rest[k:]))
        np.dot(change[:k], matrix, out=change[k:])
        quotient *= change
        across = np.subtract(rest, quotient, out=rest)
        np.dot(matrix, across[k:], out=across[:k])
        np.negative(across[:k], out=across[:k])
        share = max(NEARLY_ALL, 1 - total / k)
        np.divide(change, a, out=along)
        np.divide(across, b, out=quotient)
        primal, dual = _length(-_least(along[:k]), share), _length(-_least(quotient), share)
        if not math.isfinite(primal + dual):
            return False
        self._move(change[:k], primal, across, dual)
        return True

    def _move(self, d_theta: Floats, primal: float, d_b: Floats, dual: float) -> None:
        d_theta *= primal
        d_theta += self.theta
        np.maximum(d_theta, MIN_COORDINATE, out=self.theta)
        d_b *= dual
        d_b += self._b
        np.maximum(d_b, MIN_COORDINATE, out=self._b)
        self._look()
        self.full_step = min(primal, dual) > 0.5
        self.steps += 1


def _least(values: Floats) -> float:
    """In less time than `min`, which asks in Python what it is asked; NaN if there is one."""
    return float(values[values.argmin()])


def _most(values: Floats) -> float:
    return float(values[values.argmax()])


def _length(worst: float, share: float) -> float:
    """Step that keeps all entries positive: 1, or `share` of the way to the boundary."""
    return 1.0 if worst <= share else share / worst
