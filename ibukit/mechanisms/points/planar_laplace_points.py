"""Laplace noise in the plane whose reports are points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.grid import Grid
from ibukit.exact import ExactSampler
from ibukit.mechanisms.epsilon_range import finite_epsilon
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.mechanisms.points.coordinates import bounded_grid, centres, distances, nearest_distance
from ibukit.mechanisms.points.lattice import PlaneLattice
from ibukit.mechanisms.points.merging import Merged
from ibukit.mechanisms.points.point_reports import PointReports


@dataclass(frozen=True)
class PlanarLaplacePoints(PointReports):
    """Planar Laplace noise whose reports are points, as `PlanarLaplace.tally_points` takes them.

    The density of z given x is eps^2 / (2 pi) e^(-eps |z - x|), where x is the centre of the
    secret's cell. This satisfies epsilon-geo-indistinguishability, tightly.

    `release` draws a point of a lattice with a probability proportional to this density, and rounds
    its coordinates to doubles. The lattice divides the sides of cells into odd numbers of steps of
    at most 2^-20 / eps. So the likelihood of a point is still the density, times a constant. The
    probability of any set of points of the lattice is that of the rectangles around them, times a
    factor between e^-eta and e^eta with eta = sqrt(2) 2^-20 < 1.4e-6. So the divergence of the two
    laws is below 1e-12 nats per report.

    Parameters
    ----------
    alphabet : Grid
        The k secrets. Reports are (x, y), shape (n, 2), in the grid's unit from its south-west
        corner, or places in degrees, as for `PlanarLaplace.tally_points`; reports outside the grid
        are taken where they are.
    epsilon : float
        Nats per unit of the grid.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number above 0.
    TypeError
        If `alphabet` is not a Grid.
    NoExactSampler
        By `release`, if `epsilon` times a side of a cell is below 2^-50, or above 2^41 divided by
        the number of cells in a row, because noise on the lattice would leave the whole numbers of
        64 bits.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.PlanarLaplace(Grid(20, 14, cell_size=0.5, unit="km"), epsilon=1.0)
    >>> points = mechanism.of_points.release([(3, 4), (3, 4), (19, 0)])
    >>> points.shape, mechanism.of_points.release_epsilon
    ((3, 2), 1.0)
    >>> mechanism.tally_points(points, outside="keep").n
    3
    """

    alphabet: Grid
    epsilon: float
    metric = True

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        bounded_grid(self.alphabet)
        self._keep(epsilon=finite_epsilon(self.epsilon))

    @property
    @override
    def side(self) -> float:
        return min(self.alphabet.cell_shape)

    @override
    def logs(self, points: Floats) -> Floats:
        # In place, because the array is as large as the matrix.
        away = distances(self.alphabet, points)
        away -= nearest_distance(self.alphabet, points)
        away *= -self.epsilon
        return away

    @override
    def log_largest(self, points: Floats) -> Floats:
        level = 2 * math.log(self.epsilon) - math.log(2 * math.pi)
        return level - self.epsilon * nearest_distance(self.alphabet, points)

    @override
    def merging_bound(self, means: Floats, merged: Merged) -> Floats:
        """Bound on what merging may cost, for each of the original points, shape (n,).

        Let u_x be the direction from x to the mean. A point z at the offset t from the mean has
        |z - x| = |mean - x| + u_x t + r, where 0 <= r <= |t|^2 / (2 (rho - |t|)) and r <= 2 |t|,
        and rho is the distance of the mean from the nearest x. Terms linear in t sum to 0 over a
        square. Hence log f(z), with f = sum_x theta_x e^(-eps |z - x|), is on average below its
        value at the mean by at most eps r, and above it by at most (eps |t|)^2 / 2, by Hoeffding's
        lemma.
        """
        # `room` is rho - |t|. Where it is not positive, only the bound r <= 2 |t| is left.
        t = merged.apart
        room = nearest_distance(self.alphabet, means)[merged.group] - t
        curved = np.divide(t**2 / 2, room, out=np.full(len(t), np.inf), where=room > 0)
        return self.epsilon * np.minimum(2 * t, curved) + (self.epsilon * t) ** 2 / 2

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        # The density eps^2 / (2 pi) e^(-eps r) is that of a radius with a Gamma(2) law, and of a
        # uniform direction.
        radius = rng.gamma(2.0, 1 / self.epsilon, size=len(secrets))
        angle = rng.uniform(0, 2 * np.pi, size=len(secrets))
        shift = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        return centres(self.alphabet)[secrets] + shift


@exact_sampler(PlanarLaplacePoints)
def _planar_laplace_points_sampler(mechanism: PlanarLaplacePoints) -> ExactSampler:
    return ExactSampler(
        PlaneLattice(mechanism.alphabet, mechanism.epsilon).points, lambda: mechanism.epsilon
    )
