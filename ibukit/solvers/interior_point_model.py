"""Model of the interior point: two linear maps, the system of a step, and exact zeros."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels import Channel

# Solves for a right-hand side, from a start (None for 0), as accurately as the centring needs: the
# smaller the centring, the closer the path is to the solution.
System = Callable[[Floats, Floats | None, float], Floats]


@dataclass(frozen=True)
class QuadraticTerm:
    """The term 1/2 theta H theta + (c - 1) . theta of an objective; absent for a likelihood."""

    hessian: Floats | None
    c: Floats

    @classmethod
    def none(cls) -> QuadraticTerm:
        """No quadratic part; c is 1 everywhere."""
        return cls(None, np.ones(1))

    @property
    def is_present(self) -> bool:
        """True if there is a quadratic part."""
        return self.hessian is not None

    def apply(self, x: Floats) -> Floats | float:
        """H x."""
        return 0.0 if self.hessian is None else self.hessian @ x

    def gradient(self, theta: Floats) -> Floats:
        """Gradient c + H theta: the upper bound of M lam in the optimality conditions."""
        return self.c if self.hessian is None else self.c + self.hessian @ theta


class Iterate(NamedTuple):
    """A point of the path: theta, its slacks s, the weights lam and the fit nu of the reports."""

    theta: Floats
    s: Floats
    lam: Floats
    nu: Floats
    mu: float
    """Mean complementarity of theta and s."""
    residual: Floats | float
    """c + H theta - M lam - s: with a quadratic part it vanishes at a full step; else it is 0."""
    full_steps: bool = True
    """True if the last step went more than half of the way in both variables."""


class Model(ABC):
    """A channel on the reports seen, as the interior point uses it."""

    k: int
    channel: Channel
    """The channel of the entries; none of them is much above 1."""
    boundary_share: float | None = None
    """Share of the way to the boundary that a step may go, if systems are solved approximately."""

    def forward(self, theta: Floats) -> Floats:
        """Theta M."""
        return self.channel.forward(theta)

    def adjoint(self, w: Floats) -> Floats:
        """M w."""
        return self.channel.adjoint(w)

    def rows(self, which: Ints) -> Floats:
        """Rows of M as an array."""
        return self.channel.rows(which)

    @abstractmethod
    def system(self, point: Iterate, quadratic: QuadraticTerm, shrink: bool) -> System | None:
        """A solver of (M diag(lam / nu) M^T + H + diag(s / theta)) x = r; None if it fails."""

    @abstractmethod
    def cross_over(self, q: Floats, theta: Floats, s: Floats, tol: float) -> tuple[float, Floats]:
        """Go from near the solution to exact zeros; return max g - 1 and the distribution.

        The first number is inf if that fails.
        """

    def fit_of(self, change: Floats) -> Floats:
        """Change of the fit for a change of theta, whose entries have any sign."""
        return self.forward(change)

    def mean(self, a: Floats, b: Floats) -> float:
        """Mean of a b over the secrets."""
        return float(a @ b) / self.k

    def accurate(self) -> Model:
        """The model with the most accurate system that is affordable."""
        return self

    def excess(self, q: Floats, theta: Floats) -> float:
        """Largest g - 1 at a distribution; inf if a report has no probability."""
        nu = self.forward(theta)
        if not nu.min() > 0:
            return np.inf
        return float(self.adjoint(q / nu).max() - 1)
