"""Exact posterior of one of two probabilities: the likelihood times the prior, by quadrature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit.bayes.sums.unit_density import UnitDensity, check_rounding, rounding_at


@dataclass(frozen=True, eq=False)
class TwoSecrets:
    """The probability of one of two secrets under any mechanism."""

    columns: Floats
    """Probabilities of each report seen given either secret, shape (2, s)."""
    alpha: Floats
    counts: Ints

    def quantiles(self, inside: NDArray[np.bool_], probabilities: Sequence[float]) -> Floats:
        """Return quantiles of the probability of the secret that is marked.

        It raises TooLarge if the prior weighs so much that rounding would show.
        """
        check_rounding(float(self.alpha.sum()))
        own, other = self.columns[inside][0], self.columns[~inside][0]
        a, b = float(self.alpha[inside][0]), float(self.alpha[~inside][0])
        fit, deviation = self._peak(own, other, a, b)
        p = own * fit + other * (1 - fit)

        def log_density(v: Floats, rest: Floats) -> Floats:
            # The likelihood is taken relative to the peak, so that many reports lose no digits.
            moved = np.where(v < 0.5, v - fit, (1 - fit) - rest)
            with np.errstate(divide="ignore"):
                gains = sum(
                    n * np.log1p(np.maximum(moved * (x - y) / at, -1))
                    for n, x, y, at in zip(self.counts, own, other, p, strict=True)
                )
            return gains + (a - 1) * np.log(v) + (b - 1) * np.log(rest)

        # The likelihood of the reports is relative to the peak; the prior is not.
        noise = rounding_at(a + b + math.sqrt(self.counts.sum()))
        density = UnitDensity(log_density, (a, b), fit, deviation, noise)
        return np.array([density.quantile(p) for p in probabilities])

    def _peak(self, own: Floats, other: Floats, a: float, b: float) -> tuple[float, float]:
        """Return the v at which v f(v) (1 - v) is largest, and about the deviation."""
        slopes = own - other
        low, high = 0.0, 1.0
        # The derivative of the logarithm times v (1 - v): bisection in v has all digits that the
        # search for the range needs.
        for _ in range(60):
            v = (low + high) / 2
            rise = float(self.counts @ (slopes / (own * v + other * (1 - v))))
            if a * (1 - v) - b * v + rise * v * (1 - v) > 0:
                low = v
            else:
                high = v
        v = min(max((low + high) / 2, 1e-16), 1 - 1e-16)
        steep = float(self.counts @ (slopes / (own * v + other * (1 - v))) ** 2)
        return v, 1 / math.sqrt(steep + (a + b + 1) / (v * (1 - v)))
