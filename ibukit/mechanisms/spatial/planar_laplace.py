"""Laplace noise in the plane, rounded to the nearest cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit import exact
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import offset_masses
from ibukit.domain.grid import Grid
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.mechanisms.points.coordinates import Outside, points_of
from ibukit.mechanisms.points.lattice import PlaneLattice
from ibukit.mechanisms.points.planar_laplace_points import PlanarLaplacePoints
from ibukit.mechanisms.spatial._grid_mechanism import (
    RemappedNoise,
    check_grid_epsilon,
    nearest_cell,
)
from ibukit.mechanisms.truth import truthful_at_infinity
from ibukit.tally.tally import Tally


@truthful_at_infinity
@dataclass(frozen=True)
class PlanarLaplace(RemappedNoise):
    r"""Laplace noise in the plane, rounded to the nearest cell.

    Noise of density :math:`\frac{\varepsilon^2}{2\pi}\,e^{-\varepsilon r}` is added to the centre
    of the secret cell; the nearest cell is reported. The noise is drawn as a point of the plane and
    discretised afterwards; a point outside the grid goes to the nearest cell of the grid. So the
    matrix holds the noise's mass on each cell, where border cells reach to infinity; it is computed
    by Gauss-Legendre quadrature (rows sum to 1 within 1e-12). These probabilities satisfy
    epsilon-geo-indistinguishability; the tight level is lower, but hardly so on large grids.
    Reports are simulated, see `Mechanism`. `release` draws geometric noise on a lattice of steps of
    at most :math:`2^{-20} / \varepsilon` and reports the nearest cell: the probability of each
    report is that of the matrix times a factor between :math:`e^{-\eta}` and :math:`e^{\eta}` with
    :math:`\eta = \sqrt{2}\,2^{-20} < 1.4\times 10^{-6}`.

    Parameters
    ----------
    alphabet : Grid
        The k secrets, which are also the reports (as codes 0..k-1).
    epsilon : float
        Nats per unit of the grid, e.g. per km. inf releases the truth: the matrix is the identity.

    Raises
    ------
    ValueError
        If `epsilon` is not a number above 0, is so small that the noise spreads over millions of
        cells, or is so large that the noise leaves the secret's cell with a probability of at most
        :math:`2^{-53}`.
    TypeError
        If `alphabet` is not a Grid.

    References
    ----------
    .. [andres] Andrés, Bordenabe, Chatzikokolakis and Palamidessi, "Geo-indistinguishability", CCS
       2013.
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.3 (which does not say
       how it discretises).

    Examples
    --------
    >>> mechanism = PlanarLaplace(Grid(20, 14, cell_size=0.5), epsilon=1.0)
    >>> mechanism.matrix().sum(axis=1).round(12).min()
    np.float64(1.0)

    Reports may also be the points that people released by ``mechanism.of_points.release(secrets)``,
    in km from the south-west corner; here one is west of the grid:

    >>> mechanism.tally_points([[3.25, 1.8], [2.1, 2.9], [-0.4, 1.2]], outside="keep").n
    3
    """

    alphabet: Grid
    epsilon: float
    metric = True

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        escape = offset_masses.laplace_escape
        self._keep(epsilon=check_grid_epsilon(self.alphabet, self.epsilon, escape))

    @property
    @override
    def _table(self) -> Floats:
        return offset_masses.laplace_table(self.alphabet, self.epsilon)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        # The density eps^2 / (2 pi) e^(-eps r) is that of a radius with a Gamma(2) law, and of a
        # uniform direction.
        radius = rng.gamma(2.0, 1 / self.epsilon, size=len(secrets))
        angle = rng.uniform(0, 2 * np.pi, size=len(secrets))
        shift = np.column_stack([radius * np.sin(angle), radius * np.cos(angle)]) / np.array(
            self.alphabet.cell_shape
        )
        return nearest_cell(
            self.alphabet, np.rint(self.alphabet.values[secrets] + shift).astype(np.int64)
        )

    @property
    def of_points(self) -> PlanarLaplacePoints:
        """The mechanism of the noise before it is rounded; reports are points.

        A ValueError says that there is none if `epsilon` is inf.
        """
        return PlanarLaplacePoints(self.alphabet, self.epsilon)

    def tally_points(
        self, points: Any, outside: Outside = "raise", bins: int | None = None
    ) -> Tally:
        r"""Count reports that are points, which say more than the cells that hold them.

        The likelihood of a point z is the density of the noise,
        :math:`\varepsilon^{2} / (2\,\pi)\,e^{-\varepsilon\,|z - x|}`, for each cell's centre x:
        people are taken to be in the middle of their cells, as `tally` does. Points are taken as
        they are as long as their matrix has at most :math:`2^{25}` entries. If it would have more,
        points close together are merged into their mean, in the smallest squares that leave few
        enough points; with a million points on 400 cells these squares are about an eighth of a
        cell wide. `ibukit.mechanisms.points.merging_loss` bounds what this may cost, in nats per
        report.

        Parameters
        ----------
        points : array_like, shape (n, 2), frame, or GeoSeries
            Coordinates x (east) and y (north) in the grid's unit from its south-west corner, in an
            array or in the columns x and y of a frame. If the grid has bounds, points may also be
            places on the globe: a GeoSeries or GeoDataFrame in any CRS, or a frame with the columns
            lat and lon (also latitude, longitude, lng); they are put on the grid in proportion to
            their degrees. An array whose points are outside the grid, but would be inside if they
            were degrees, is refused. Columns whose names say the unit, such as x_km and y_km, are
            taken as they are.
        outside : {"raise", "keep", "drop"}
            What to do with points outside the grid. "keep" takes them where they are, which is
            right for reports, because noise leaves the map. "drop" leaves people out, those near
            the border more often than others, so that the estimate is wrong there.
        bins : int, optional
            Merge points in squares, this many along the shorter side of a cell, however few points
            there are.

        Returns
        -------
        Tally
            The tally of a `PlanarLaplacePoints`, which `of_points` also returns; its
            ``parts[0].reports`` are rows (x, y, bound on what merging may cost).

        Raises
        ------
        AlphabetMismatch
            If a coordinate is missing or infinite; if a point is outside the grid and `outside` is
            "raise"; or if what should be lengths are certainly degrees.
        ValueError
            If there are no points, their shape is not (n, 2), a frame has columns of other names,
            geometries have no CRS, the grid has no bounds for degrees, or `epsilon` is inf.
        """
        mechanism = self.of_points
        return mechanism.counted(
            mechanism.check_reports(points_of(self.alphabet, points, outside)), bins=bins
        )


@exact_sampler(PlanarLaplace)
def _planar_laplace_sampler(mechanism: PlanarLaplace) -> exact.ExactSampler:
    return exact.ExactSampler(
        PlaneLattice(mechanism.alphabet, mechanism.epsilon).codes, lambda: mechanism.epsilon
    )
