"""Mechanisms whose reports are too many to be listed: what one report tells is averaged over simulated ones."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from ibukit._ground.arguments import Floats, readable
from ibukit._ground.threads import one_thread
from ibukit.domain.distributions import quantize
from ibukit.errors import NotInvertible, TooLarge
from ibukit.fisher_information import contrasts, observed_information
from ibukit.mechanisms import Mechanism
from ibukit.planning.worst_case import Worst

# reports for each secret: variances are then wrong by 1 in so many at most, beyond their standard
# errors
REPORTS_A_SECRET = 1000
# in all, where secrets are few
MIN_SIMULATED = 50_000
# numbers of the reports, one for each secret: half a gigabyte
MAX_NUMBERS = 2**26
# a direction of less information than this share of the best cannot be told from none
FLAT = 1e-12


class Sampled:
    """Variances from w C w, C the inverse of the mean of s s^T over simulated reports, s_x = M_xz / (theta M)_z.

    The relative standard error of w C w is that of the mean of (s . C w)^2 over the same reports.
    """

    def __init__(self, mechanism: Mechanism, rng: Generator):
        self.mechanism, self.rng = mechanism, rng
        k = mechanism.k
        self.n = max(MIN_SIMULATED, REPORTS_A_SECRET * k)
        if self.n * k > MAX_NUMBERS:
            most = math.isqrt(MAX_NUMBERS // REPORTS_A_SECRET)
            raise TooLarge(
                f"mechanism must have at most {most} secrets to plan from simulated reports, got {mechanism} with "
                f"{readable(k)}; take a coarser alphabet"
            )
        self.noise = 0.0
        """Relative standard error of the largest variance that was asked for last."""

    def near(self, theta: Floats, weights: Floats | None) -> Floats:
        """Variances at theta, with their standard errors."""
        k = self.mechanism.k
        tally = self.mechanism.simulate(self.rng.multinomial(self.n, quantize(theta)), self.rng)
        with one_thread():
            basis = contrasts(k)
            information = basis.T @ observed_information(tally, theta) @ basis / self.n
            values, axes = np.linalg.eigh(information)
            if values[0] <= FLAT * values[-1]:
                raise NotInvertible(
                    f"the reports of {self.mechanism} hardly identify the distribution: one direction has less than "
                    f"{FLAT:.0e} of the information of another, which simulated reports cannot tell from none; take "
                    "fewer secrets"
                )
            along = basis @ axes
            asked = np.eye(k) if weights is None else weights.T
            answers = along @ ((along.T @ asked) / values[:, None])  # C w, one column a question
            variances = np.einsum("xr,xr->r", asked, answers)
            worst = answers[:, variances.argmax()]
        p = tally.operator.forward(theta)
        # in two parts: some channels take weights of one sign alone
        size = np.abs(worst).max()
        squares = (
            (tally.operator.forward(worst + size) - tally.operator.forward(np.full(k, size))) / p
        ) ** 2
        mean = float(tally.counts @ squares) / self.n
        spread = math.sqrt(float(tally.counts @ (squares - mean) ** 2) / self.n)
        self.noise = spread / mean / math.sqrt(self.n) if mean else 0.0
        return np.asarray(variances)

    def worst(self, weights: Floats | None) -> Worst:
        """There is none.

        Raises
        ------
        ValueError
            Always: simulated reports are of one distribution.
        """
        raise ValueError(
            f"near must be given for {self.mechanism}: its reports cannot be listed, and simulated ones are those of "
            "one distribution"
        )
