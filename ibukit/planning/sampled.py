"""Variances from simulated reports, for mechanisms whose reports are too many to be listed."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from ibukit._ground.arguments import Floats, readable
from ibukit._ground.limits import max_dense_entries
from ibukit._ground.threads import one_thread
from ibukit.domain.distributions import quantize
from ibukit.errors import NotInvertible, TooLarge
from ibukit.fisher_information import contrasts, observed_information
from ibukit.mechanisms import Mechanism
from ibukit.planning.worst_case import Worst

# Number of simulated reports for each secret. The relative bias of the variances is then at most
# the inverse of this number, well below their standard error.
REPORTS_PER_SECRET = 1000
# Smallest number of simulated reports, which counts if there are few secrets.
MIN_SIMULATED = 50_000
# Information in a direction, relative to the best one, below which it may be rounding of zero.
MIN_INFORMATION_SHARE = 1e-12


class SimulatedVariances:
    """Variances w C w with C the inverse of the observed information of simulated reports.

    The information is the mean of s s^T with s_x = M_xz / (theta M)_z. The relative standard error
    of w C w is that of the mean of (s . C w)^2 over the same reports.
    """

    def __init__(self, mechanism: Mechanism, rng: Generator):
        self.mechanism, self.rng = mechanism, rng
        k = mechanism.k
        self.n = max(MIN_SIMULATED, REPORTS_PER_SECRET * k)
        # The scores s of all reports stand in one matrix, shape (n, k) with n proportional to k.
        if self.n * k > max_dense_entries():
            most = math.isqrt(max_dense_entries() // REPORTS_PER_SECRET)
            raise TooLarge(
                f"mechanism must have at most {most} secrets to plan from simulated reports, got "
                f"{mechanism} with {readable(k)}; take a coarser alphabet"
            )
        self.noise = 0.0
        """Relative standard error of the largest variance of the last call of `variances`."""

    def variances(self, theta: Floats, weights: Floats | None) -> Floats:
        """Return the variances at theta; set `noise` to the standard error of the largest."""
        k = self.mechanism.k
        tally = self.mechanism.simulate(self.rng.multinomial(self.n, quantize(theta)), self.rng)
        with one_thread():
            basis = contrasts(k)
            information = basis.T @ observed_information(tally, theta) @ basis / self.n
            values, axes = np.linalg.eigh(information)
            if values[0] <= MIN_INFORMATION_SHARE * values[-1]:
                raise NotInvertible(
                    f"the reports of {self.mechanism} hardly identify the distribution: of one "
                    f"combination of probabilities they tell less than {MIN_INFORMATION_SHARE:.0e} "
                    "of what they tell of another, and simulated reports cannot tell that from "
                    "nothing; take fewer secrets"
                )
            along = basis @ axes
            questions = np.eye(k) if weights is None else weights.T
            # C w, one column for each question.
            answers = along @ ((along.T @ questions) / values[:, None])
            variances = np.einsum("xr,xr->r", questions, answers)
            worst = answers[:, variances.argmax()]
        p = tally.operator.forward(theta)
        # Some channels accept weights of one sign only, so a constant is added and subtracted.
        size = np.abs(worst).max()
        squares = (
            (tally.operator.forward(worst + size) - tally.operator.forward(np.full(k, size))) / p
        ) ** 2
        mean = float(tally.counts @ squares) / self.n
        spread = math.sqrt(float(tally.counts @ (squares - mean) ** 2) / self.n)
        self.noise = spread / mean / math.sqrt(self.n) if mean else 0.0
        return variances

    def worst_case(self, weights: Floats | None) -> Worst:
        """Raise ValueError, because simulated reports belong to one distribution."""
        raise ValueError(
            f"near must be given for {self.mechanism}: its reports cannot be listed, and "
            "simulated ones are those of one distribution"
        )
