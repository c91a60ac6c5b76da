r"""Markov chains of the posterior where reports get lost.

With the prior Dirichlet(alpha) on the distribution theta of all secrets, and the efficiencies e,
the density of theta given n reports that were seen is proportional to

    prod_x theta_x^(alpha_x - 1)  prod_z (theta M)_z^c_z  (theta . e)^-n.

Given the totals t of the secrets that reports tell (see `_data_augmentation`), n_t of them in all,
what depends on theta is prod_x theta_x^(alpha_x + t_x - 1) (theta . e)^-n_t. Two positive numbers
make it a product:

    (theta . e)^-n_t  is proportional to  int S^(n_t - 1) exp(-S theta . e) dS,
    S^-A  is proportional to  int r^(A - 1) exp(-r S) dr,  A = sum_x alpha_x.

Under lambda = S theta, whose volume element is S^(k - 1) dS dtheta, the joint density of lambda
and r is prod_x lambda_x^(alpha_x + t_x - 1) exp(-(e_x + r) lambda_x) r^(A - 1): given t and r, the
lambda_x are independent gamma variables. S may be read as the number of secrets, seen or not, under
the prior 1 / S, and so no lost report need be drawn.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from ibukit._ground.arguments import Floats, Ints
from ibukit.bayes._chains import N_CHAINS
from ibukit.bayes._data_augmentation import sampler_of
from ibukit.bayes._dirichlet import dirichlet
from ibukit.domain.efficiency import relative
from ibukit.tally.tally import Tally


class LossyChains:
    """Draws of theta, shape (N_CHAINS, k).

    A sweep draws t, S and r given theta, then theta given t and r.
    """

    needs_secrets = True

    def __init__(self, tally: Tally, alpha: Floats, rng: Generator):
        assert tally.efficiency is not None, "reports get lost"
        self._efficiency = relative(tally.efficiency)
        self._alpha, self._rng = alpha, rng
        self._draw_secrets = sampler_of(tally.among_seen)
        p = dirichlet(np.broadcast_to(np.minimum(alpha, 1), (N_CHAINS, tally.k)), rng)
        # Mixed with the uniform distribution, so that every report seen has a positive probability.
        self.p = 0.999 * p + 0.001 / tally.k

    def draw_assigned(self) -> Ints:
        """Draw t | theta: totals of the secrets that reports tell."""
        seen = self.p * self._efficiency
        return self._draw_secrets(seen / seen.sum(axis=1, keepdims=True), self._rng)

    def warm_up(self, sweeps: int, advance: Callable[[], object]) -> None:
        """Move away from the start; calls `advance` after each sweep."""
        for _ in range(sweeps):
            self.sweep()
            advance()

    def sweep(self, assigned: Ints | None = None) -> None:
        """Move every chain once; `assigned` is t | theta if it has been drawn already."""
        told = self.draw_assigned() if assigned is None else assigned
        rates = self._efficiency + self._draw_rate(told.sum(axis=1))[:, None]
        # Gamma variables are a Dirichlet variable times their sum, which theta does not need.
        weights = dirichlet(self._alpha + told, self._rng) * (rates.min(axis=1)[:, None] / rates)
        self.p = weights / weights.sum(axis=1, keepdims=True)

    def _draw_rate(self, number: Ints) -> Floats:
        """Draw S given theta and the number of reports that tell, then r given S."""
        s = self._rng.gamma(np.maximum(number, 1)) / (self.p @ self._efficiency)
        rate = self._rng.gamma(self._alpha.sum(), size=len(s)) / s
        # If no report tells its secret, theta is drawn from its prior, as at an infinite rate.
        return np.where(number > 0, rate, 1e300)
