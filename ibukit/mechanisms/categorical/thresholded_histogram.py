"""Thresholded histogram encoding: one bit of each noisy entry of a one-hot row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet
from ibukit.mechanisms.categorical.independent_bits import BitsOfGivenProbabilities
from ibukit.mechanisms.epsilon_range import check_epsilon


@dataclass(frozen=True)
class ThresholdedHistogram(BitsOfGivenProbabilities):
    r"""Thresholded histogram encoding (THE): which noisy entries exceed a threshold.

    Laplace noise of scale 2 / nominal is added to each entry of the secret's one-hot row. Bit x of
    the report says whether entry x is above the threshold t. So the secret's own bit is 1 with
    probability :math:`p=1-\frac12e^{\mathrm{nominal}\,(t-1)/2}`, every other bit with probability
    :math:`q=\frac12e^{-\mathrm{nominal}\,t/2}`, all independently: this is a unary encoding. The
    noisy entries satisfy local differential privacy at the nominal level; the bits are more
    private. Their tight level `epsilon` = :math:`\ln\frac{p(1-q)}{(1-p)q}` is lower: 0.896, for
    instance, if the nominal level is 1 and the threshold is the best one. Reports are simulated (as
    bits with these probabilities), see `Mechanism`.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets; reports are rows of k bits.
    epsilon : float
        The level of the noise in nats, kept as ``nominal``. The attribute `epsilon` is the tight
        level of the reports.
    threshold : float, optional
        From 0 to 1. By default the threshold with the least :math:`q\,(1 - q) / (p - q)^{2}`, which
        is the variance of the published estimate for a rare secret; this threshold is between 1/2
        and 1.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 73.4, if `threshold` is not a number from 0 to 1,
        if q or 1 - p is not above :math:`2^{-53}` (the least probability that is drawn in doubles),
        or if there are fewer than two secrets.

    References
    ----------
    .. [oue] Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency
       estimation", USENIX Security 2017, section 4.3.

    Examples
    --------
    >>> mechanism = ThresholdedHistogram(10, epsilon=1.0)
    >>> mechanism.nominal, round(mechanism.epsilon, 3), round(mechanism.threshold, 3)
    (1.0, 0.896, 0.619)
    """

    alphabet: Alphabet
    nominal: float
    """Level of the noisy entries; the threshold leaves one bit of each."""
    threshold: float
    bits_are_independent = True

    # The argument is called `epsilon`, which the field cannot be: the attribute `epsilon` is the
    # level of the bits, another number.
    @arguments.field_is("nominal", "epsilon")
    def __init__(self, alphabet: Any, epsilon: float, threshold: float | None = None):
        self._keep(alphabet=alphabet, nominal=epsilon, threshold=threshold)
        self.__post_init__()

    @override
    def _check_probabilities(self) -> None:
        nominal = check_epsilon(self.nominal, lambda epsilon: math.exp(-epsilon / 2))
        threshold: Any = self.threshold
        if threshold is None:
            threshold = best_threshold(nominal)
        else:
            threshold = arguments.fraction("threshold", threshold, "[]")
        self._keep(nominal=nominal, threshold=threshold)

    @property
    @override
    def p_one(self) -> float:
        return 1 - self.p_hidden

    @property
    @override
    def p_hidden(self) -> float:
        return math.exp(self.nominal * (self.threshold - 1) / 2) / 2

    @property
    @override
    def p_zero(self) -> float:
        return math.exp(-self.nominal * self.threshold / 2) / 2

    @property
    @override
    def contrast(self) -> float:
        # p - q = 1 - e^(nominal (t - 1) / 2) / 2 - e^(-nominal t / 2) / 2. The 1 is shared by the
        # two differences from 1, so that nothing cancels at a small level.
        t = self.threshold
        return -(math.expm1(self.nominal * (t - 1) / 2) + math.expm1(-self.nominal * t / 2)) / 2


def best_threshold(nominal: float) -> float:
    r"""The t in [1/2, 1] with the least :math:`q(1-q)/(p-q)^2`."""
    # With u = e^(nominal t / 2) and a = e^(-nominal / 2) the variance is
    # (2u - 1) / (1 + a u^2 - 2u)^2, and its slope is 0 where 3 a u^2 - 2 (1 + a) u + 1 = 0. The
    # smaller root is below the range of u.
    a = math.exp(-nominal / 2)
    u = (1 + a + math.sqrt(1 - a + a * a)) / (3 * a)
    return float(np.clip(2 * math.log(u) / nominal, 0.5, 1.0))
