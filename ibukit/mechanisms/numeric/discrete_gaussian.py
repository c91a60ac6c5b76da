"""Discrete Gaussian noise on the integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments, limits
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import DenseChannel
from ibukit.channels.line import split_factor
from ibukit.domain.alphabet import Line
from ibukit.mechanisms.numeric.gaussian_noise import (
    MAX_TERM,
    GaussianNoise,
    distance_beyond,
    log_ratio_to_nearest,
)
from ibukit.mechanisms.numeric.line_alphabet import as_line
from ibukit.mechanisms.saturation import add_saturating, refuse_saturated

# Below the least sigma, noise other than 0 has a probability below 2^-53, and is never drawn. Up to
# the largest sigma, sums over all integers that matter take only seconds.
MIN_SIGMA = 0.12


MAX_SIGMA = 1e7


# From this sigma on the sum over all integers is the integral times 1 + 2 e^(-2 pi^2 sigma^2), by
# Poisson's summation formula; the next term is below e^-78.
WIDE_SIGMA = 1.0


# Terms this many deviations farther out than the largest one are below the rounding of the sum.
DEVIATIONS = 10.0


TERMS_AT_ONCE = 2**20


# Largest distance: beyond it, a whole number and the next are the same double.
MAX_SHIFT = 2**53


@dataclass(frozen=True)
class DiscreteGaussian(GaussianNoise):
    r"""Discrete Gaussian noise on the integers.

    :math:`P(z \mid x)` is proportional to :math:`e^{-(z-x)^2/(2\sigma^2)}` for every integer z. No
    finite pure epsilon holds, because far out the ratio of the probabilities under two secrets
    grows without end. For secrets at distance d the noise satisfies :math:`d^2/(2\sigma^2)`-zCDP,
    and :math:`(\varepsilon, \delta)`-differential privacy with the exact :math:`\delta` that
    `delta` returns. Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets; reports are integers (labels of the line continued in both directions, not
        codes). The line itself may have no end: secrets are then labels as well.
    sigma : float
        Scale of the noise, in units of the line. The variance of the noise is a little below
        :math:`\sigma^{2}`.

    Raises
    ------
    ValueError
        If `sigma` is not a number from 0.12 to 1e7. Below 0.12 numpy draws no noise other than 0.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [canonne2020] Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy",
       NeurIPS 2020.

    Examples
    --------
    >>> mechanism = DiscreteGaussian(Line(0, 9), sigma=3.0)
    >>> mechanism.tally([-3, 4, 4, 12]).counts
    array([1, 2, 1])
    >>> round(mechanism.zcdp(distance=1), 4), round(mechanism.delta(epsilon=1.0, distance=1), 6)
    (0.0556, 0.000218)
    """

    alphabet: Line
    sigma: float
    every_report_is_possible: ClassVar[bool] = True

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: Line | int, sigma: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        sigma = arguments.positive("sigma", self.sigma)
        if not MIN_SIGMA <= sigma <= MAX_SIGMA:
            raise ValueError(
                f"sigma must be from {MIN_SIGMA:g} to {MAX_SIGMA:g}, got {self.sigma!r}"
            )
        self._keep(alphabet=as_line(self.alphabet), sigma=sigma)

    @property
    @override
    def diameter(self) -> float:
        return float(self.k - 1)

    @cached_property
    def _log_total(self) -> float:
        """Logarithm of the sum of e^(-z^2 / (2 sigma^2)) over all integers."""
        if self.sigma < WIDE_SIGMA:
            z = np.arange(1, math.ceil(MAX_TERM * WIDE_SIGMA) + 1)
            return float(np.log1p(2 * np.exp(-(z**2) / (2 * self.sigma**2)).sum()))
        # By Poisson's summation formula; one term of the dual sum is enough.
        dual = 2 * math.exp(-2 * (math.pi * self.sigma) ** 2) if self.sigma < MAX_TERM else 0.0
        return math.log(self.sigma * math.sqrt(2 * math.pi)) + math.log1p(dual)

    @property
    def noise_variance(self) -> float:
        """Variance of the noise, in squared units of the line."""
        if self.sigma < WIDE_SIGMA:
            z = np.arange(1, math.ceil(MAX_TERM * WIDE_SIGMA) + 1)
            return float(2 * (z**2 * np.exp(-(z**2) / (2 * self.sigma**2) - self._log_total)).sum())
        # This follows from the second derivative of the formula in `_log_total`.
        s2 = self.sigma**2
        dual = math.exp(-2 * math.pi**2 * s2) if self.sigma < MAX_TERM else 0.0
        return s2 * (1 - 8 * math.pi**2 * s2 * dual / (1 + 2 * dual))

    @override
    def delta(self, epsilon: float, distance: float | None = None) -> float:
        r"""The least :math:`\delta` of :math:`(\varepsilon, \delta)`-differential privacy.

        It is :math:`P(Z > \varepsilon\,\sigma^{2} / d - d / 2) - e^{\varepsilon}\,P(Z >
        \varepsilon\,\sigma^{2} / d + d / 2)` for secrets at distance d, where Z is the noise.

        Parameters
        ----------
        epsilon : float
            Nats, at least 0.
        distance : int, optional
            Distance of the secrets; by default the largest, so that it holds for all pairs. There
            is none, and `TooLarge` is raised, if the alphabet has no end.
        """
        eps = arguments.from_zero("epsilon", epsilon)
        d = self.k - 1 if distance is None else arguments.whole("distance", distance, 0)
        if d > MAX_SHIFT:
            raise ValueError(f"distance must be at most {MAX_SHIFT}, got {arguments.readable(d)}")
        if d == 0:
            return 0.0
        # delta is the sum of P(z) - e^eps P(z + d) over the z where this is positive, all z from
        # `nearest` on. The terms are summed, because the difference of two tails would cancel.
        nearest = eps * self.sigma**2 / d - d / 2
        if nearest > MAX_TERM * self.sigma:
            return 0.0
        first = math.floor(nearest) + 1
        start, stop = (
            max(first, -math.ceil(DEVIATIONS * self.sigma)),
            max(first, 0) + math.ceil(DEVIATIONS * self.sigma) + 1,
        )
        total = 0.0
        for low in range(start, stop, TERMS_AT_ONCE):
            z = np.arange(low, min(low + TERMS_AT_ONCE, stop), dtype=np.float64)
            own = np.exp(-(z**2) / (2 * self.sigma**2) - self._log_total)
            # Logarithm of P(z) / (e^eps P(z + d)).
            more = (2 * z * d + d**2) / (2 * self.sigma**2) - eps
            total += float((own * -np.expm1(-np.maximum(more, 0))).sum())
        return total

    @override
    def check_reports(self, reports: ArrayLike) -> Ints:
        whole = arguments.integers("reports", reports)
        refuse_saturated(whole)
        return whole

    @override
    def channel(self, reports: NDArray[Any]) -> DenseChannel:
        limits.require_channel("the channel of these reports", self.k, len(reports))
        columns = log_ratio_to_nearest(self.alphabet, reports, self.sigma)
        np.exp(columns, out=columns)
        columns *= split_factor(self._log_largest(reports))[0]
        return DenseChannel(columns)

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats:
        """Logarithm of the factor that `channel` omits for reports far outside the line.

        Without this, their probability would underflow.
        """
        return split_factor(self._log_largest(reports))[1]

    def _log_largest(self, reports: Ints) -> Floats:
        return (
            -(distance_beyond(self.alphabet, reports) ** 2) / (2 * self.sigma**2) - self._log_total
        )

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        values = self.alphabet.labels_of(secrets)
        return add_saturating(values, self._noise(len(values), rng))

    def _noise(self, n: int, rng: Generator) -> Ints:
        """Draw n values of discrete Gaussian noise."""
        # Rejection sampling of Canonne, Kamath and Steinke, algorithm 3: discrete Laplace noise of
        # scale t is kept with probability e^(-(|z| - sigma^2 / t)^2 / (2 sigma^2)).
        t = math.floor(self.sigma) + 1
        noise = np.empty(n, dtype=np.int64)
        todo = np.arange(n)
        while len(todo):
            two = rng.geometric(-math.expm1(-1 / t), (2, len(todo)))
            tried = two[0] - two[1]
            kept = rng.random(len(todo)) < np.exp(
                -(((np.abs(tried) - self.sigma**2 / t) / self.sigma) ** 2) / 2
            )
            noise[todo[kept]] = tried[kept]
            todo = todo[~kept]
        return noise
