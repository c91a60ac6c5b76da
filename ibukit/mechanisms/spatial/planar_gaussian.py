"""Gaussian noise in the plane."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.grid import Grid
from ibukit.domain.plane import extent
from ibukit.mechanisms.matrix import MatrixMechanism
from ibukit.mechanisms.numeric.gaussian_noise import (
    check_sigma,
)
from ibukit.mechanisms.points.coordinates import (
    Outside,
    bounded_grid,
    centres,
    distances,
    nearest_distance,
    points_of,
)
from ibukit.mechanisms.points.gaussian_points import (
    GaussianPoints,
    ascending_edges,
    masses_between,
)
from ibukit.tally.tally import Tally


@dataclass(frozen=True)
class PlanarGaussian(GaussianPoints):
    r"""Gaussian noise in the plane: reports are points.

    The density of z given x is :math:`e^{-r^{2} / (2\,\sigma^{2})} / (2\,\pi\,\sigma^{2})`, where r
    is the distance of z from the centre of cell x. No finite pure epsilon holds. For secrets at
    distance d the noise satisfies :math:`d^2/(2\sigma^2)`-zCDP, and
    :math:`(\varepsilon, \delta)`-differential privacy with the exact :math:`\delta` that `delta`
    returns. `tally.forward` and `tally.log_scale` refer to densities. If many reports would make a
    large matrix, reports close together are merged into their mean; see `merging_loss` in
    `ibukit.mechanisms.points`. Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Grid
        The k secrets. Reports are (x, y), shape (n, 2), in the grid's unit from its south-west
        corner, or places in degrees, as for `tally_points`; reports outside the grid are taken
        where they are.
    sigma : float
        Standard deviation of the noise in each direction, in the grid's unit, e.g. km.

    Raises
    ------
    ValueError
        If `sigma` is not a number from 1e-50 to 1e50.
    TypeError
        If `alphabet` is not a Grid.

    References
    ----------
    .. [balle2018] Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML
       2018, theorem 8.

    Examples
    --------
    >>> mechanism = PlanarGaussian(Grid(20, 14, cell_size=0.5), sigma=1.0)
    >>> mechanism.tally([[3.25, 1.8], [2.1, 2.9], [-0.4, 1.2]]).n
    3
    """

    alphabet: Grid
    sigma: float
    every_report_is_possible: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        bounded_grid(self.alphabet)
        self._keep(sigma=check_sigma(self.sigma))

    @property
    @override
    def diameter(self) -> float:
        # Between the centres of opposite corner cells.
        return float(np.hypot(*(extent(self.alphabet) - self.alphabet.cell_shape[::-1])))

    @override
    def logs(self, points: Floats) -> Floats:
        away = distances(self.alphabet, points)
        nearest = nearest_distance(self.alphabet, points)
        # A difference of squares as a product: far out the squares themselves would lose digits.
        return (nearest - away) * (nearest + away) / (2 * self.sigma**2)

    @override
    def log_largest(self, points: Floats) -> Floats:
        # The logarithm of e^(-r^2 / (2 sigma^2)) / (2 pi sigma^2) at the nearest centre.
        nearest = nearest_distance(self.alphabet, points)
        return -((nearest / self.sigma) ** 2) / 2 - math.log(2 * math.pi) - 2 * math.log(self.sigma)

    def tally_points(
        self, points: Any, outside: Outside = "raise", bins: int | None = None
    ) -> Tally:
        """Count reports that are points, or places on the globe.

        It counts as `tally` does, but `outside` says what happens to points outside the grid.

        Parameters
        ----------
        points : array_like, shape (n, 2), frame, or GeoSeries
            Coordinates x and y, or places in degrees, as for `PlanarLaplace.tally_points`.
        outside : {"raise", "keep", "drop"}
            What to do with points outside the grid. "keep" takes them where they are, which is
            right for reports, because noise leaves the map. "drop" leaves people out, those near
            the border more often than others, so that the estimate is wrong there.
        bins : int, optional
            Merge points in squares of the side `side` / `bins`, however few points there are.
        """
        return self.counted(
            self.check_reports(points_of(self.alphabet, points, outside)), bins=bins
        )

    def binned(self, x_edges: ArrayLike, y_edges: ArrayLike) -> MatrixMechanism:
        """The mechanism whose reports are binned into rectangles.

        The rectangles at the border have no end on the outer side.

        Parameters
        ----------
        x_edges, y_edges : array_like, shape (columns - 1,), shape (rows - 1,)
            Ascending numbers that separate the columns and the rows of rectangles.

        Returns
        -------
        MatrixMechanism
            Report code = row * columns + column, from the south-west.
        """
        # The noise is independent in the two directions, so the masses multiply.
        x, y = centres(self.alphabet).T
        east = masses_between(x, ascending_edges("x_edges", x_edges), self.sigma)
        north = masses_between(y, ascending_edges("y_edges", y_edges), self.sigma)
        return MatrixMechanism(
            (north[:, :, None] * east[:, None]).reshape(self.k, -1), self.alphabet
        )

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        return centres(self.alphabet)[secrets] + self.sigma * rng.standard_normal((len(secrets), 2))
