"""The interior point of `interior_point` on a matrix, with as few numpy calls as possible.

On matrices of a few hundred rows the overhead of a call is as large as its work. So the two pairs
of the optimality conditions stand one after the other in two vectors, A = (theta, nu) and B =
(s, lam), whose product is to become (mu, ..., mu, q): one call works on both. The certificate's
g = M (q / nu) is also the right-hand side of the predictor, g - 1: with r_c = -theta s and
r_q = q - lam nu it is r_c / theta + M (r_q / nu) = -s + g - M lam, and s = 1 - M lam.
"""

from __future__ import annotations

import math

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.solvers.dense.systems import Systems

# No coordinate becomes smaller than this, so that quotients and products stay doubles.
MIN_COORDINATE = 1e-150
# Smallest share of the way to the boundary that a step may go.
MIN_BOUNDARY_SHARE = 0.99

_sum = np.add.reduce


class DensePath:
    """The central path of a matrix of shape (k, s), whose columns have a largest entry of 1.

    Parameters
    ----------
    matrix : ndarray, shape (k, s)
    q : ndarray, shape (s,)
        Frequencies of the reports.
    em_steps, uniform_share
        The start: a number of EM updates from uniform, mixed with uniform by a share.
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
            self._evaluate()
            np.multiply(theta, self.g, out=theta)
        theta *= (1 - uniform_share) / _sum(theta)
        theta += uniform_share / self.k
        self._evaluate()
        margin = 1.1 * max(_max(self.g), 1.0)
        np.divide(self._ratio, margin, out=self.lam)
        np.subtract(1.0, self.g / margin, out=self.s)

    def _evaluate(self) -> None:
        """Compute the fit nu and the ratios g at theta."""
        np.dot(self.theta, self.matrix, out=self.nu)
        np.divide(self.q, self.nu, out=self._ratio)
        np.dot(self.matrix, self._ratio, out=self.g)

    def excess(self) -> float:
        """Largest g - 1 of theta divided by its sum."""
        return float(_sum(self.theta)) * _max(self.g) - 1

    def advance(self) -> bool:
        """Take one predictor-corrector step; return False if it fails."""
        a, b, k, matrix = self._a, self._b, self.k, self.matrix
        quotient = b / a
        solve = self.systems.solver(quotient[k:], quotient[:k], shrink=self.steps >= 2)
        if solve is None:
            return False
        product = a * b
        total = float(_sum(product[:k]))
        # Predictor, aimed at mu = 0: `change` is the change of A, `along` that relative to A,
        # `across` that of B relative to B. Linearised, A B (1 + along + across) is the target.
        change = np.empty_like(a)
        change[:k] = solve(self.g - 1)
        np.dot(change[:k], matrix, out=change[k:])
        along = change / a
        across = -1 - along
        across[k:] += self.q / product[k:]
        primal, dual = _step_length(-_min(along[:k]), 1.0), _step_length(-_min(across), 1.0)
        second = along * across
        second *= product
        # theta . s after these lengths without another vector, as s d_theta + theta d_s = -theta s.
        gained = float(np.dot(product[:k], along[:k]))
        after = (
            total
            + primal * gained
            - dual * (total + gained)
            + primal * dual * float(_sum(second[:k]))
        )
        # In exact arithmetic `after` never exceeds `total`; at the limits of doubles it may, by any
        # factor.
        mu = min(max(after / total, 0.0), 1.0) ** 3 * total / k
        # Corrector: centred, with the second-order terms of the predictor. The system gives
        # d_theta, then d_nu = d_theta M, d_lam from its own equation, and d_s = -M d_lam.
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
        share = max(MIN_BOUNDARY_SHARE, 1 - total / k)
        np.divide(change, a, out=along)
        np.divide(across, b, out=quotient)
        primal, dual = _step_length(-_min(along[:k]), share), _step_length(-_min(quotient), share)
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
        self._evaluate()
        self.full_step = min(primal, dual) > 0.5
        self.steps += 1


def _min(values: Floats) -> float:
    """The minimum, faster than `values.min()`, which goes through Python; NaN if there is one."""
    return float(values[values.argmin()])


def _max(values: Floats) -> float:
    return float(values[values.argmax()])


def _step_length(worst: float, share: float) -> float:
    """Step length that keeps values positive which fall by at most the factor `worst`.

    It is 1, or `share` of the way to the boundary.
    """
    return 1.0 if worst <= share else share / worst
