"""Marginal laws of the probabilities P_x and the frequencies T_x / n from those of totals T_x."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from scipy.special import betainc

from ibukit._ground.arguments import Floats

# Components of a mixture with smaller shares change no digit of its quantiles.
NEGLIGIBLE_SHARE = 1e-18
# Quantiles below 1e-300 are returned as 0.
LOG_MIN_PROBABILITY = math.log(1e-300)


@dataclass(frozen=True, eq=False)
class Marginals:
    """Posterior Pr[T_x = t | reports] in row x, column t = 0..n.

    P given T is Dirichlet(alpha + T), so each P_x is a mixture of beta distributions.
    """

    shares: Floats
    alpha: Floats
    log_evidence: float

    @property
    def n(self) -> int:
        """Number of reports."""
        return int(self.shares.shape[1] - 1)

    def mean(self, of: str) -> Floats:
        """Mean E[P | reports] = (alpha + n E[F | reports]) / (alpha_0 + n), or E[F | reports]."""
        frequencies: Floats = self.shares @ np.arange(self.n + 1) / self.n
        return (
            frequencies
            if of == "frequencies"
            else from_frequencies(frequencies, self.alpha, self.n)
        )

    def standard_deviations(self, of: str) -> Floats:
        """Standard deviations by Var P_x = E[Var(P_x | T)] + Var(E[P_x | T]): nothing cancels."""
        totals = np.arange(self.n + 1)
        deviation = totals - self.n * self.mean("frequencies")[:, None]
        spread = (self.shares * deviation**2).sum(axis=1)
        if of == "frequencies":
            return np.sqrt(spread) / self.n
        total = self.alpha.sum() + self.n
        mean = (self.alpha[:, None] + totals) / total
        within = (self.shares * mean * (1 - mean)).sum(axis=1) / (total + 1)
        return np.sqrt(within + spread / total**2)

    def quantiles(self, of: str, level: float) -> Floats:
        """Least values that at least `level` of the posterior does not exceed, shape (k,)."""
        if of == "frequencies":
            # Rounding may leave the last sum below 1.
            reached = np.cumsum(self.shares, axis=1) >= level - 1e-12
            reached[:, -1] = True
            return reached.argmax(axis=1) / self.n
        return np.array([self._quantile(x, level) for x in range(len(self.alpha))])

    def _quantile(self, x: int, level: float) -> float:
        """Quantile of the mixture for secret x: a root in log p, as p may be tiny."""
        if len(self.alpha) == 1:
            return 1.0
        # Given T_x = t the beta distribution has parameters alpha_x + t and the rest.
        (totals,) = np.nonzero(self.shares[x] > NEGLIGIBLE_SHARE)
        share = self.shares[x, totals] / self.shares[x, totals].sum()
        a = self.alpha[x] + totals
        b = self.alpha.sum() + self.n - a

        def excess(log_p: float) -> float:
            return float(share @ betainc(a, b, math.exp(log_p))) - level

        # The distribution function is monotone in log p, so Brent's method finds the only root.
        if excess(LOG_MIN_PROBABILITY) >= 0:
            return 0.0
        return math.exp(
            scipy.optimize.brentq(excess, LOG_MIN_PROBABILITY, 0.0, xtol=1e-15, rtol=1e-14)
        )


def from_frequencies(frequencies: Floats, alpha: Floats, n: int) -> Floats:
    """Mean E[P | reports] from E[F | reports], because P given F is Dirichlet(alpha + n F)."""
    return (alpha + n * frequencies) / (alpha.sum() + n)
