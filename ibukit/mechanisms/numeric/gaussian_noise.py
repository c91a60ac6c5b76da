"""Base class of Gaussian noise: its privacy (zCDP, and exact delta), and density ratios."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.alphabet import Line
from ibukit.mechanisms.base import Mechanism
from ibukit.mechanisms.saturation import differences

# Number of deviations beyond which e^(-x^2 / 2) is 0 in doubles: e^-800.
MAX_TERM = 40.0


# Range of sigma and of distances: doubles can hold the fourth powers of all numbers in it.
MIN_SCALE, MAX_SCALE = 1e-50, 1e50


class GaussianNoise(Mechanism):
    """Gaussian noise: no pure level of privacy, but a concentrated and an approximate one."""

    sigma: float

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        """Infinity, because no finite pure level holds; see `zcdp` and `delta`."""
        return math.inf

    @property
    def diameter(self) -> float:
        """The largest distance between two secrets."""
        raise NotImplementedError

    def zcdp(self, distance: float | None = None) -> float:
        r"""Level :math:`\rho=d^2/(2\sigma^2)` of zero-concentrated differential privacy.

        Parameters
        ----------
        distance : float, optional
            Distance of the secrets; by default the largest, so that it holds for all pairs. There
            is none, and `TooLarge` is raised, if the alphabet has no end.
        """
        return (self._distance(distance) / self.sigma) ** 2 / 2

    def delta(self, epsilon: float, distance: float | None = None) -> float:
        r"""The least :math:`\delta` of :math:`(\varepsilon, \delta)`-differential privacy.

        Parameters
        ----------
        epsilon : float
            Nats, at least 0.
        distance : float, optional
            Distance of the secrets; by default the largest, so that it holds for all pairs. There
            is none, and `TooLarge` is raised, if the alphabet has no end.
        """
        eps, d = arguments.from_zero("epsilon", epsilon), self._distance(distance)
        if d == 0:
            return 0.0
        # Balle and Wang, theorem 8: delta = P(Z > low) - e^eps P(Z > high) with
        # low, high = eps sigma / d -+ d / (2 sigma), Z standard normal.
        low, high = (eps * self.sigma / d + sign * d / (2 * self.sigma) for sign in (-1, 1))
        if low > MAX_TERM:
            return 0.0
        # Since high^2 - low^2 = 2 eps, e^eps P(Z > high) = e^(-low^2 / 2) erfcx(high / sqrt 2) / 2,
        # where e^eps alone might overflow.
        weight = math.exp(-(low**2) / 2) / 2
        if low < 0:
            return float(ndtr(-low) - weight * erfcx(high / math.sqrt(2)))
        # P(Z > low) in the same form: both terms are small and nearly equal.
        return float(weight * (erfcx(low / math.sqrt(2)) - erfcx(high / math.sqrt(2))))

    def _distance(self, distance: float | None) -> float:
        d = self.diameter if distance is None else arguments.from_zero("distance", distance)
        if d > MAX_SCALE:
            raise ValueError(f"distance must be at most {MAX_SCALE:g}, got {d:g}")
        return d


def check_sigma(sigma: Any) -> float:
    """Return the standard deviation of continuous noise, if doubles can hold its powers."""
    scale = arguments.positive("sigma", sigma)
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise ValueError(
            f"sigma must be from {MIN_SCALE:g} to {MAX_SCALE:g}, got {sigma!r}: take another unit"
        )
    return scale


def distance_beyond(line: Line, reports: NDArray[Any]) -> Floats:
    """Distance of each report from the nearest value of the line."""
    return np.abs(_from_nearest(line, reports)[1])


def log_ratio_to_nearest(line: Line, reports: NDArray[Any], sigma: float) -> Floats:
    """Log-density at each report given each secret, less that of the nearest secret, (k, s)."""
    # With the nearest value n of the line, (z - n)^2 - (z - x)^2 = (x - n) (2 (z - n) - (x - n)):
    # far out the squares themselves would lose digits. Both differences are taken in integers,
    # because doubles do not tell neighbouring integers apart beyond 2^53.
    nearest, beyond = _from_nearest(line, reports)
    away = (line.values[:, None] - nearest).astype(np.float64)
    logs = 2 * beyond - away
    logs *= away
    logs /= 2 * sigma**2
    return logs


def _from_nearest(line: Line, reports: NDArray[Any]) -> tuple[Ints, Floats]:
    """The nearest value n of the line, and z - n, for each report z."""
    if reports.dtype.kind in "iu":
        nearest = np.clip(reports, line.first, line.last)
        return nearest, differences(reports, nearest)
    nearest = np.clip(np.rint(reports), line.first, line.last)
    return nearest.astype(np.int64), np.asarray(reports - nearest, dtype=np.float64)
