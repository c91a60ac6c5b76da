"""Hamiltonian Monte Carlo: long trajectories, whose ends hardly depend on where they began.

Under a parabola Q for the log-likelihood, p is normal on the simplex, truncated where an entry
would be below 0. There Hamilton's equations have a solution in closed form, arcs between
reflections at the walls, of O(k) each (Pakman and Paninski 2014). So a proposal costs as little as
one evaluation of the likelihood, which judges the end as in `_surrogate_metropolis`: it is accepted
with probability min(1, exp[W(end) - W(start)]), where W = L - Q + sum_x (alpha_x - 1) log p_x. The
trajectory keeps Q's law and is reversible. A trajectory that meets too many walls would meet as
many backwards, so it may be refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from scipy.linalg import cholesky, solve_triangular

from ibukit._ground.arguments import Floats
from ibukit.bayes._gibbs_kernels import MIN_DRAWN, travel
from ibukit.bayes._surrogate_metropolis import SurrogateMoves, walk_end
from ibukit.channels import Channel
from ibukit.fisher_information import contrasts
from ibukit.tally.tally import Tally

# Times of trajectories. A quarter of a period makes the end independent of the start, except for
# refusals. If trajectories meet too many walls, the time is halved, down to the second number.
MAX_TIME, MIN_TIME = math.pi / 2, 0.35
# Without reflections, integrate slightly past pi/2: ends on the opposite side offset the refusals
# (antithetic draws).
TIME_WITHOUT_WALLS = 2.0
# Moves of a random walk for each secret, before and after a trajectory that meets walls: such a
# trajectory, if it hits a wall again and again, leaves the wall's entry near its old height.
WALK_MOVES_PER_SECRET = 2
# This number of reflections takes about as long as a walk of `_surrogate_metropolis`.
MAX_REFLECTIONS_PER_SECRET = 10
# Curvature in nats per squared unit that is added: if reports say next to nothing, the parabola
# must still be bounded.
MIN_CURVATURE = 1.0


@dataclass(frozen=True, eq=False)
class Trajectories:
    """A parabola for the log-likelihood, and trajectories under its normal law.

    With t the point where it is tangent, Q(p) = slope . (p - t) - 1/2 (p - t) H (p - t), where H
    has MIN_CURVATURE added. Its law is normal with mean `centre` and covariance root root^T on the
    vectors with sum 1.
    """

    tally: Tally
    channel: Channel
    prior_exponents: Floats | None
    """Alpha - 1, or None if all are 0."""
    tangent_point: Floats
    slope: Floats
    hessian: Floats
    root: Floats
    covariance: Floats
    centre: Floats
    time: float = MAX_TIME
    meets_walls: bool = True

    @classmethod
    def of(cls, moves: SurrogateMoves) -> Trajectories | None:
        """Trajectories under the parabola of the walk; None if it is not curved in doubles."""
        # On {v : sum v = 0} with basis U the covariance is U (U^T H U)^-1 U^T; with the Cholesky
        # factor C of U^T H U its root is U C^-T.
        basis = contrasts(moves.tally.k)
        curved = basis.T @ moves.hessian @ basis
        curved[np.diag_indices(len(curved))] += MIN_CURVATURE
        try:
            half = cholesky(curved, lower=True)
        except np.linalg.LinAlgError:
            return None
        root = np.ascontiguousarray(solve_triangular(half, basis.T, lower=True).T)
        covariance = root @ root.T
        hessian = moves.hessian + MIN_CURVATURE * (basis @ basis.T)
        centre = moves.centre + covariance @ moves.slope
        prior_exponents = moves.alpha - 1 if (moves.alpha != 1).any() else None
        parabola = moves.centre, moves.slope, hessian
        reports = moves.tally, moves.channel
        return cls(*reports, prior_exponents, *parabola, root, covariance, centre)

    def weight(self, p: Floats) -> float:
        """Log-weight W, up to a constant: log-density less the parabola."""
        return self.log_density(p) - self.parabola(p)

    def log_density(self, p: Floats) -> float:
        """Log-density of the posterior, up to a constant."""
        # If a report is impossible the log-likelihood is -inf, and the end is refused.
        with np.errstate(divide="ignore"):
            value = float(self.tally.counts @ np.log(self.channel.forward(p)))
        exponents = self.prior_exponents
        return value if exponents is None else value + float(exponents @ np.log(p))

    def parabola(self, p: Floats) -> float:
        """Value of the parabola Q."""
        deviation = p - self.tangent_point
        return float(self.slope @ deviation - deviation @ self.hessian @ deviation / 2)

    def end(self, p: Floats, rng: Generator) -> tuple[Floats | None, int]:
        """End of a trajectory from p, None after too many reflections, and their number.

        A trajectory that can meet walls runs between two random walks, so that the order is the
        same backwards.
        """
        p = self._walk(p, rng)
        off, most = p - self.centre, MAX_REFLECTIONS_PER_SECRET * len(p)
        velocity = self.root @ rng.standard_normal(self.root.shape[1])
        hits = int(travel(off, velocity, self.centre, self.covariance, self.time, most))
        if hits > most:
            return None, hits
        # Rounding may leave an entry below 0.
        end = np.maximum(self.centre + off, MIN_DRAWN)
        return self._walk(end / end.sum(), rng), hits

    def _walk(self, p: Floats, rng: Generator) -> Floats:
        if not self.meets_walls:
            return p
        slope = self.slope - self.hessian @ (p - self.tangent_point)
        return walk_end(p, slope, self.hessian, np.ones(len(p)), WALK_MOVES_PER_SECRET, rng)

    def shorter(self) -> Trajectories | None:
        """Trajectories of half the time, or None if that is too short."""
        return replace(self, time=self.time / 2) if self.time / 2 >= MIN_TIME else None

    def without_walls(self) -> Trajectories:
        """Trajectories of the time that is best without walls."""
        return replace(self, time=TIME_WITHOUT_WALLS, meets_walls=False)

    def balanced(self, draws: Floats) -> Trajectories:
        """Trajectories with a slope that is right on average over draws, not at the tangent point.

        The third derivative of the log-likelihood adds a mean slope: sum_z M_z counts_z / (theta
        M)_z^3 times the mean square of the deviations of (p M)_z. Without it more ends are refused.
        """
        channel = self.channel
        start, counts = self.tangent_point, self.tally.counts
        squares = np.mean([channel.forward(draw - start) ** 2 for draw in draws], axis=0)
        bent = channel.adjoint(counts * squares / channel.forward(start) ** 3)
        return replace(self, slope=self.slope + bent, centre=self.centre + self.covariance @ bent)
