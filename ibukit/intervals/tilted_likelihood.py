"""A likelihood as a function on the simplex, and the most likely of the distributions that lean towards an answer.

f(theta) = sum_z q_z log (theta M)_z with q the frequencies of the reports. The distributions that
maximise f(theta) + t w . theta for some t >= 0 are the most likely ones with their answers w .
theta. There g_x + t w_x <= nu with equality wherever theta_x > 0, nu = 1 + t w . theta. Divided by
nu that is the condition for a maximum of a likelihood: with a_x = 1 - rho w_x, rho = t / nu, theta
maximises f over {theta >= 0 : a . theta = 1}, but for a factor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, readable
from ibukit._ground.typing import override
from ibukit.channels import Channel
from ibukit.errors import TooLarge
from ibukit.solvers import interior_point
from ibukit.solvers.problem import Problem
from ibukit.solvers.table import MAX_SECRETS_DENSE_ANYWAY, with_costs
from ibukit.tally.tally import Tally

# numbers in a matrix that is taken apart at every step (half a gigabyte), and its order
MAX_PROFILED, MAX_SECRETS_PROFILED = 2**26, 3000
# max g - 1 of the estimates along the way
ACCURATE = 1e-12
# what mass costs where there should be none
FORBIDDING = 1e9


class Tilted(NamedTuple):
    """The most likely distribution of those with its answer."""

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
    """t: nats by which the fit falls for each unit that the answer rises."""


class Likelihood(ABC):
    """F as a function on the simplex; q sums to 1."""

    q: Floats
    rows: Floats | None = None
    """M as a matrix, shape (k, s), where it is one."""

    @abstractmethod
    def forward(self, theta: Floats) -> Floats:
        """Theta M, each report by a factor of its own, which changes neither the maximiser nor g."""

    @abstractmethod
    def adjoint(self, w: Floats) -> Floats:
        """M w, in the same units."""

    @abstractmethod
    def tilted_maximiser(self, a: Floats) -> Floats:
        """The maximiser over {theta >= 0 : a . theta = 1}, times a factor that makes it a distribution."""

    @abstractmethod
    def on_face(self, face: NDArray[np.bool_]) -> Floats | None:
        """The most likely of the distributions of some secrets alone; None where these do not explain a report."""

    @cached_property
    def best(self) -> Tilted:
        """The most likely distribution. A maximum that is not quite reached makes regions larger, and intervals."""
        return self.tilted(np.zeros(self.k), 0.0)

    @property
    @abstractmethod
    def k(self) -> int:
        """Number of secrets."""

    def fit_of(self, p: Floats) -> float:
        """F from the probabilities of the reports; -inf where one that was seen has none."""
        with np.errstate(divide="ignore"):
            return float(self.q @ np.log(p))

    def tilted(self, w: Floats, rho: float) -> Tilted:
        """The most likely distribution of those that lean towards w by rho, of weights from 0 to 1."""
        theta = self.tilted_maximiser(1 - rho * w)
        answer = float(w @ theta)
        return self.at(theta, w, rho / (1 - rho * answer))

    def at(self, theta: Floats, w: Floats, slope: float) -> Tilted:
        """What is to be known of a distribution that is said to lean so."""
        p = self.forward(theta)
        with np.errstate(
            divide="ignore", over="ignore", invalid="ignore"
        ):  # where a report is not explained
            g = self.adjoint(self.q / p)
        return Tilted(theta, p, self.fit_of(p), g, float(w @ theta), slope)


class Dense(Likelihood):
    """Of a matrix, shape (k, s)."""

    def __init__(self, columns: Floats, q: Floats):
        self.rows: Floats = columns / columns.max(axis=0)
        self.q = q

    @property
    @override
    def k(self) -> int:
        return len(self.rows)

    @override
    def forward(self, theta: Floats) -> Floats:
        return np.asarray(theta @ self.rows)

    @override
    def adjoint(self, w: Floats) -> Floats:
        return np.asarray(self.rows @ w)

    @override
    def tilted_maximiser(self, a: Floats) -> Floats:
        phi, _ = interior_point.maximise(self.rows / a[:, None], self.q, ACCURATE)
        theta = phi / a
        return np.asarray(theta / theta.sum())

    @override
    def on_face(self, face: NDArray[np.bool_]) -> Floats | None:
        if not self.rows[face].any(axis=0).all():
            return None
        theta = np.zeros(self.k)
        theta[face], _ = interior_point.maximise(self.rows[face], self.q, ACCURATE)
        return theta


class Structured(Likelihood):
    """Of a channel on which the maximiser at given costs takes O(k)."""

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
        return np.asarray(theta / theta.sum())

    @override
    def on_face(self, face: NDArray[np.bool_]) -> Floats | None:
        theta = np.where(face, self.tilted_maximiser(np.where(face, 1.0, FORBIDDING)), 0.0)
        return np.asarray(theta / theta.sum()) if theta.any() else None


def likelihood_of(problem: Problem) -> Likelihood:
    """In the form that suits its channel; `TooLarge` where there is none."""
    channel = problem.channel
    at_costs = with_costs(problem) if problem.k > MAX_SECRETS_DENSE_ANYWAY else None
    if at_costs is not None:
        return Structured(channel, problem.q, at_costs)
    if problem.k > MAX_SECRETS_PROFILED or problem.k * channel.size > MAX_PROFILED:
        raise TooLarge(
            f"such intervals would decompose a matrix of {readable(problem.k)} x {readable(channel.size)} numbers, and "
            f"at most {MAX_SECRETS_PROFILED} secrets and {MAX_PROFILED} numbers are accepted, but for k-RR and "
            'geometric noise on a line; take method="wald", or a coarser alphabet'
        )
    return Dense(channel.rows(np.arange(problem.k)), problem.q)


def likelihood_of_tally(tally: Tally) -> Likelihood:
    """That of the reports of a tally."""
    return likelihood_of(Problem(tally.operator, tally.counts, tally.n))
