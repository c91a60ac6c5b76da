"""Long trajectories for the chains of the posterior, whose ends hardly depend on where they began.

Under a parabola Q for the log-likelihood, p is normal on the simplex: cut off where an entry would
be below 0. There Hamilton's equations have a solution in closed form, arcs between reflections at
the walls, of O(k) each (Pakman and Paninski 2014). So a draw costs as little as one evaluation of
the likelihood, which judges the end as in `_surrogate_moves`: it is accepted with the probability
min(1, exp[W(end) - W(beginning)]), where W = L - Q + sum_x (alpha_x - 1) log p_x. The trajectory
keeps Q's law and can be run backwards. One that meets too many walls would meet as many backwards,
so that it may be refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from scipy.linalg import cholesky, solve_triangular

from ibukit._ground.arguments import Floats
from ibukit.bayes._gibbs_kernels import MIN_DRAWN, travel
from ibukit.bayes._surrogate_metropolis import SurrogateMoves, walked
from ibukit.fisher_information import contrasts
from ibukit.tally.tally import Tally

# a quarter of a turn makes draws independent, but for what is refused
LONGEST_TIME, SHORTEST_TIME = math.pi / 2, 0.35
# where no walls are met: a little more, so that ends lie on the other side rather, makes up for
# what is refused
TIME_WITHOUT_WALLS = 2.0
# moves of a walk for each secret before a trajectory that meets walls and after it, as one that
# falls on a wall again and again leaves its entry at about its height
MOVES_AROUND = 2
# so many take about as long as a walk of `_surrogate_moves`
REFLECTIONS_A_SECRET = 10
# nats for a whole unit: where reports say next to nothing, a parabola must still be bounded
MIN_CURVATURE = 1.0


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Q(p) = slope . (p - touching) - 1/2 (p - touching) H (p - touching), with a little more curvature than H.

    Its law is normal with mean `centre` and covariance root root^T, on the vectors with sum 1.
    """

    tally: Tally
    bend: Floats | None  # alpha - 1, if not all 0
    touching: Floats
    slope: Floats
    hessian: Floats
    root: Floats
    covariance: Floats
    centre: Floats
    time: float = LONGEST_TIME
    meets_walls: bool = True

    @classmethod
    def of(cls, moves: SurrogateMoves) -> Trajectories | None:
        """Under the parabola of the walk; None where to doubles it is not curved everywhere."""
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
        bend = moves.alpha - 1 if (moves.alpha != 1).any() else None
        return cls(moves.tally, bend, moves.centre, moves.slope, hessian, root, covariance, centre)

    def weight(self, p: Floats) -> float:
        """W, up to a constant: what the parabola leaves to be judged."""
        return self.log_density(p) - self.parabola(p)

    def log_density(self, p: Floats) -> float:
        """Of the posterior, up to a constant."""
        with np.errstate(divide="ignore"):  # where a report is impossible it is -inf, and refused
            found = float(self.tally.counts @ np.log(self.tally.operator.forward(p)))
        return found if self.bend is None else found + float(self.bend @ np.log(p))

    def parabola(self, p: Floats) -> float:
        """Q."""
        off = p - self.touching
        return float(self.slope @ off - off @ self.hessian @ off / 2)

    def end(self, p: Floats, rng: Generator) -> tuple[Floats | None, int]:
        """Where a trajectory from p ends, None if it has met too many walls, and how many it has met.

        With walls to meet it goes between two walks, in an order that is the same backwards.
        """
        p = self._walked(p, rng)
        off, most = p - self.centre, REFLECTIONS_A_SECRET * len(p)
        velocity = self.root @ rng.standard_normal(self.root.shape[1])
        met = int(travel(off, velocity, self.centre, self.covariance, self.time, most))
        if met > most:
            return None, met
        found = np.maximum(self.centre + off, MIN_DRAWN)  # by rounding an entry may be below 0
        return self._walked(found / found.sum(), rng), met

    def _walked(self, p: Floats, rng: Generator) -> Floats:
        if not self.meets_walls:
            return p
        slope = self.slope - self.hessian @ (p - self.touching)
        return walked(p, slope, self.hessian, np.ones(len(p)), MOVES_AROUND, rng)

    def shorter(self) -> Trajectories | None:
        """Half as long, or None where they are short already."""
        return replace(self, time=self.time / 2) if self.time / 2 >= SHORTEST_TIME else None

    def without_walls(self) -> Trajectories:
        """As long as is best where no walls are met."""
        return replace(self, time=TIME_WITHOUT_WALLS, meets_walls=False)

    def balanced(self, draws: Floats) -> Trajectories:
        """With a slope that is right on average over draws, not where the parabola touches.

        The third-order terms of the log-likelihood have a mean slope: sum_z M_z counts_z / (theta
        M)_z^3 times the mean square of the deviations of (p M)_z. Without it more ends are refused.
        """
        operator = self.tally.operator
        squares = np.mean([operator.forward(draw - self.touching) ** 2 for draw in draws], axis=0)
        bent = operator.adjoint(self.tally.counts * squares / operator.forward(self.touching) ** 3)
        return replace(self, slope=self.slope + bent, centre=self.centre + self.covariance @ bent)
