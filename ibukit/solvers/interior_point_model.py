"""The model of an interior point: two linear maps, the system of a step, and exact zeros."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels import Channel

# solves for a right-hand side, from a point to begin at (None for 0); the less the centring, the
# more digits are worth
System = Callable[[Floats, Floats | None, float], Floats]


@dataclass(frozen=True)
class QuadraticTerm:
    """The quadratic part 1/2 theta H theta + (c - 1) . theta of an objective, if there is one."""

    hessian: Floats | None
    c: Floats

    @classmethod
    def none(cls) -> QuadraticTerm:
        """No quadratic part; c is 1 everywhere."""
        return cls(None, np.ones(1))

    @property
    def present(self) -> bool:
        """True if there is one."""
        return self.hessian is not None

    def apply(self, x: Floats) -> Floats | float:
        """H x."""
        return 0.0 if self.hessian is None else self.hessian @ x

    def slope(self, theta: Floats) -> Floats:
        """C + H theta: what M lam may be at most."""
        return self.c if self.hessian is None else self.c + self.hessian @ theta


class Point(NamedTuple):
    """A point of the path."""

    theta: Floats
    s: Floats
    lam: Floats
    nu: Floats
    mu: float
    """Mean complementarity of theta and s."""
    residual: Floats | float
    """Dual residual c + H theta - M lam - s; 0 without a quadratic part, or after a full step."""
    full_steps: bool = True
    """True if the last step went more than half of the way in both variables."""


class Model(ABC):
    """A channel on the seen reports, as the interior point uses it."""

    k: int
    channel: Channel
    """Source of its entries, of which none is much above 1."""
    farthest: float | None = None
    """Share of the way to the boundary that a step may go if systems are solved inexactly."""

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
    def system(self, point: Point, curved: QuadraticTerm, shrink: bool) -> System | None:
        """Return a solver of (M diag(lam / nu) M^T + H + diag(s / theta)) x = r, or None."""

    @abstractmethod
    def cross_over(self, q: Floats, theta: Floats, s: Floats, tol: float) -> tuple[float, Floats]:
        """Return max g - 1 and the distribution with exact zeros; inf if it fails."""

    def fit_of(self, change: Floats) -> Floats:
        """Theta M of a change of theta, whose entries have any sign."""
        return self.forward(change)

    def mean(self, a: Floats, b: Floats) -> float:
        """Mean of a b over the secrets."""
        return float(a @ b) / self.k

    def accurate(self) -> Model:
        """The same with the most accurate system that is affordable."""
        return self

    def excess(self, q: Floats, theta: Floats) -> float:
        """Max g - 1 at a distribution."""
        nu = self.forward(theta)
        if not nu.min() > 0:
            return np.inf
        return float(self.adjoint(q / nu).max() - 1)
