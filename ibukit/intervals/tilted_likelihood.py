"""A likelihood as a function on the simplex, and its tilted maximisers.

f(theta) = sum_z q_z log (theta M)_z with q the frequencies of the reports. A distribution that
maximises f(theta) + t w . theta for some t >= 0 is the most likely one with its value of w . theta.
There g, the gradient of f, fulfils g_x + t w_x <= nu, with equality wherever theta_x > 0, and nu =
1 + t w . theta, because theta . g = 1. Divided by nu, this is the condition for the maximum of a
likelihood under costs: with a_x = 1 - rho w_x and rho = t / nu, theta maximises f, up to a factor,
over {theta >= 0 : a . theta = 1}. This rho, from 0 to 1, is the tilt.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, readable
from ibukit._ground.limits import max_dense_entries
from ibukit._ground.typing import override
from ibukit.channels import Channel
from ibukit.errors import TooLarge
from ibukit.solvers import interior_point
from ibukit.solvers.problem import Problem
from ibukit.solvers.table import maximiser_at_costs
from ibukit.tally.tally import Tally

# Secrets up to which a matrix is faster than the structure of its channel.
MAX_K_DENSE = 300
# Number of secrets up to which a dense matrix is factorised at every step of every interval; more
# are refused with TooLarge, as they would take hours. The matrix's entries are bounded by
# `max_dense_entries`.
MAX_SECRETS_PROFILED = 3000
# max g - 1 at which a tilted maximiser counts as found.
MAXIMUM_TOLERANCE = 1e-12
# Among more reports, rounding cannot tell the ends of a region from its inside. The region of this
# number of reports, which contains that of more, is then taken instead.
MAX_REPORTS_TOLD = 10**14
# Cost of mass outside a face: so high that the maximiser has none there.
COST_OFF_FACE = 1e9


class Tilted(NamedTuple):
    """The most likely distribution with its value of w . theta: a tilted maximiser."""

    theta: Floats
    p: Floats
    """theta M."""
    fit: float
    """f(theta)."""
    ratios: Floats
    """g."""
    answer: float
    """w . theta."""
    slope: float
    """t: nats per report by which the fit falls for each unit that w . theta rises."""


class Likelihood(ABC):
    """The mean log-likelihood f as a function on the simplex; q sums to 1."""

    q: Floats
    rows: Floats | None = None
    """The channel as a matrix, shape (k, s), if it is dense."""

    @abstractmethod
    def forward(self, theta: Floats) -> Floats:
        """Return theta M, each report scaled by a constant.

        The scale changes neither the maximiser nor g.
        """

    @abstractmethod
    def adjoint(self, w: Floats) -> Floats:
        """Return M w for weights w of the reports, with the scale of `forward`."""

    @abstractmethod
    def tilted_maximiser(self, a: Floats) -> Floats:
        """Return the maximiser of f over {theta >= 0 : a . theta = 1}, normalised."""

    @abstractmethod
    def on_face(self, face: NDArray[np.bool_]) -> Floats | None:
        """Return the most likely distribution on the secrets of `face`.

        None if they cannot produce all reports.
        """

    @cached_property
    def best(self) -> Tilted:
        """The most likely distribution.

        If its fit is slightly below the maximum, regions and intervals become larger, which is
        safe.
        """
        return self.tilted(np.zeros(self.k), 0.0)

    def floor(self, ratio: float, n: int) -> float:
        """Return how low f is where the likelihood ratio of n reports, 2 n (max f - f), is this."""
        return self.best.fit - ratio / 2 / min(n, MAX_REPORTS_TOLD)

    @property
    @abstractmethod
    def k(self) -> int:
        """Number of secrets."""

    def fit_of(self, p: Floats) -> float:
        """Return f from the probabilities of the reports; -inf if that of a report seen is 0."""
        # The context costs more than the logarithms of a few reports, and is mostly not needed.
        if p.min() > 0:
            return float(self.q @ np.log(p))
        with np.errstate(divide="ignore"):
            return float(self.q @ np.log(p))

    def tilted(self, w: Floats, rho: float) -> Tilted:
        """Return the maximiser with the tilt rho towards w, for weights from 0 to 1."""
        theta = self.tilted_maximiser(1 - rho * w)
        answer = float(w @ theta)
        # From rho = t / nu and nu = 1 + t w . theta.
        return self.at(theta, w, rho / (1 - rho * answer))

    def at(self, theta: Floats, w: Floats, slope: float) -> Tilted:
        """Return fit, ratios and w . theta of a maximiser of f + t w . theta, with t = slope."""
        p = self.forward(theta)
        # A report of probability 0 gives infinite ratios, and a fit of -inf, which callers check.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            g = self.adjoint(self.q / p)
        return Tilted(theta, p, self.fit_of(p), g, float(w @ theta), slope)


class DenseLikelihood(Likelihood):
    """Likelihood of a dense channel, whose matrix has shape (k, s)."""

    def __init__(self, columns: Floats, q: Floats):
        self.rows: Floats = columns / columns.max(axis=0)
        self.q = q

    @property
    @override
    def k(self) -> int:
        return len(self.rows)

    @override
    def forward(self, theta: Floats) -> Floats:
        return theta @ self.rows

    @override
    def adjoint(self, w: Floats) -> Floats:
        return self.rows @ w

    @override
    def tilted_maximiser(self, a: Floats) -> Floats:
        # With phi = a theta the constraint is sum phi = 1, and the rows are divided by the costs.
        phi, _ = interior_point.maximise(self.rows / a[:, None], self.q, MAXIMUM_TOLERANCE)
        theta = phi / a
        return theta / theta.sum()

    @override
    def on_face(self, face: NDArray[np.bool_]) -> Floats | None:
        if not self.rows[face].any(axis=0).all():
            return None
        theta = np.zeros(self.k)
        theta[face], _ = interior_point.maximise(self.rows[face], self.q, MAXIMUM_TOLERANCE)
        return theta


class StructuredLikelihood(Likelihood):
    """Likelihood of a channel on which the maximiser at given costs takes O(k)."""

    def __init__(self, channel: Channel, q: Floats, at_costs: Callable[[Floats], Floats]):
        self._channel, self.q, self._at_costs = channel, q, at_costs

    @property
    @override
    def k(self) -> int:
        return self._channel.k

    @override
    def forward(self, theta: Floats) -> Floats:
        return self._channel.forward(theta)

    @override
    def adjoint(self, w: Floats) -> Floats:
        return self._channel.adjoint(w)

    @override
    def tilted_maximiser(self, a: Floats) -> Floats:
        theta = self._at_costs(a)
        return theta / theta.sum()

    @override
    def on_face(self, face: NDArray[np.bool_]) -> Floats | None:
        theta = np.where(face, self.tilted_maximiser(np.where(face, 1.0, COST_OFF_FACE)), 0.0)
        return theta / theta.sum() if theta.any() else None


def likelihood_of(problem: Problem) -> Likelihood:
    """Return the likelihood in the form that suits its channel; TooLarge if there is none."""
    channel = problem.channel
    at_costs = maximiser_at_costs(problem) if problem.k > MAX_K_DENSE else None
    if at_costs is not None:
        return StructuredLikelihood(channel, problem.q, at_costs)
    entries = max_dense_entries()
    if problem.k > MAX_SECRETS_PROFILED or problem.k * channel.size > entries:
        raise TooLarge(
            f"such intervals would decompose a matrix of {readable(problem.k)} x "
            f"{readable(channel.size)} numbers, and at most {MAX_SECRETS_PROFILED} secrets and "
            f"{entries} numbers are accepted, except for k-RR and geometric noise on a line; take "
            'method="wald", or a coarser alphabet'
        )
    return DenseLikelihood(channel.rows(np.arange(problem.k)), problem.q)


def likelihood_of_tally(tally: Tally) -> Likelihood:
    """Return the likelihood of the reports of a tally."""
    return likelihood_of(Problem(tally.operator, tally.counts, tally.n))
