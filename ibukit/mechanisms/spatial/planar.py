"""Noise on the plane: planar geometric (on the infinite grid, or remapped to the grid) and planar Laplace."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit import exact
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import Channel, DenseChannel, offset_masses
from ibukit.channels.line import split_factor
from ibukit.channels.plane import PlaneChannel, infinite, remapped, worthwhile
from ibukit.domain import geography
from ibukit.domain.grid import Grid
from ibukit.domain.labels import in_order
from ibukit.mechanisms.base import Mechanism
from ibukit.mechanisms.draws import drawable, on_all_sides
from ibukit.mechanisms.epsilon_range import level
from ibukit.mechanisms.points.coordinates import Outside, points_of
from ibukit.mechanisms.points.laplace_points import PlanarLaplacePoints
from ibukit.mechanisms.points.lattice import PlaneLattice
from ibukit.mechanisms.spatial._grid_mechanism import GridMechanism, nearest_cell
from ibukit.tally.tally import Tally, make_part

# users whose reports are drawn one by one; of more, offsets are counted as they are drawn
MAX_ONE_BY_ONE = 2**26


@dataclass(frozen=True)
class PlanarGeometric(Mechanism):
    """Geometric noise on the infinite grid of cells.

    P(z given x) = lambda exp(-eps d(x, z)) for every cell z of the infinite grid, d Euclidean
    between centres. lambda = 1 / sum over all offsets (i, j) of exp(-eps |(i, j)|). These
    probabilities satisfy epsilon-geo-indistinguishability, tightly. Reports are simulated, see
    `Mechanism`.

    Parameters
    ----------
    alphabet : Grid
        The k secrets. Reports are integer cell coordinates (row, column) on the grid continued
        without end, shape (n, 2); the grid's south-west cell is its `first`, (0, 0) unless said
        otherwise. The grid may be without an end itself: then secrets are cell coordinates, too. If
        it has bounds, reports may be points instead, as `Grid.codes` takes them, and are the cells
        that hold them, also outside the bounds.
    epsilon : float
        Nats per unit of the grid, e.g. per km.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number above 0, or so small that the noise spreads over
        millions of cells, or so large that it leaves its own cell with a probability of at most
        2^-53.
    TypeError
        If `alphabet` is not a Grid.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.2.
    .. [freewill] ElSalamouny and Palamidessi, arXiv:2307.07744, section 2.3.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = PlanarGeometric(Grid(20, 14, cell_size=0.5), epsilon=1.0)
    >>> mechanism.tally([[3, 4], [3, 4], [-2, 7]]).counts
    array([1, 2])

    Points, (lat, lon) in degrees, of which the second is south of the grid:

    >>> placed = PlanarGeometric(Grid.from_bounds(40.0, 40.2, -74.0, -73.8, 2, 2), epsilon=1.0)
    >>> placed.tally([(40.05, -73.95), (39.95, -73.95)]).parts[0].reports
    array([[-1,  0],
           [ 0,  0]])

    If the alphabet is unbounded, the estimate covers only the bounding box of the reports:

    >>> anywhere = PlanarGeometric(Grid(None, None, cell_size=0.5, unit="km"), epsilon=1.0)
    >>> anywhere.tally([[3, 4], [3, 4], [-2, 7]]).alphabet
    Grid(6, 4, cell_size=0.5, unit='km', first=(-2, 4))
    """

    alphabet: Grid
    epsilon: float
    metric = True

    def __post_init__(self) -> None:
        """Check the fields."""
        self._keep(epsilon=_checked_level(self))

    @cached_property
    def _table(self) -> Floats:
        return offset_masses.geometric_table(self.alphabet, self.epsilon)

    @cached_property
    def _cumulative(self) -> Floats:
        cumulative = np.cumsum(self._table * offset_masses.multiplicity(self._table.shape))
        return np.asarray(cumulative / cumulative[-1])

    @override
    def code_reports(self, reports: ArrayLike) -> NDArray[Any]:
        """Pairs (row, column); of points, the cells that hold them.

        Pairs of floats that are all whole could be either, and are refused if the grid has bounds.
        """
        grid = self.alphabet
        if not grid.bounded or grid.bounds is None:
            return super().code_reports(reports)
        pairs, are_points = geography.labels_of_cells(reports, "reports")
        if not are_points:
            return np.asarray(pairs)
        unnamed = isinstance(pairs, np.ndarray) and not hasattr(reports, "columns")
        if unnamed and len(pairs) and (pairs == np.rint(pairs)).all():
            raise ValueError(
                f"reports must be integers, which are (row, column), or points that are not all whole, got {pairs[0]} "
                "first: points of any kind go in with a CRS, or in a frame with the columns lat and lon"
            )
        return (
            geography.cells_beyond(*geography.positions(reports, "reports"), grid.edges())
            + grid.first
        )

    @override
    def check_reports(self, reports: ArrayLike) -> Ints:
        cells = arguments.integers("reports", reports, ndim=2)
        if cells.shape[1] != 2:
            raise ValueError(
                f"reports must be (row, column) pairs, shape (n, 2), got {cells.shape}"
            )
        return cells

    @override
    def channel(self, reports: NDArray[Any]) -> Channel:
        """Forward and adjoint on the seen cells.

        Each keeps its largest entry, so that far reports do not underflow.
        """
        if worthwhile(self.k, len(reports)):
            largest, beyond = float(self._table[0, 0]), self._beyond(reports)
            cells = self.check_reports(reports) - np.array(self.alphabet.first)
            plane, far = infinite(self.alphabet, self.epsilon, largest, cells, beyond)
            if len(far) < len(reports):
                plane.columns[:] = self._columns(reports[far])
                return plane
        return DenseChannel(self._columns(reports))

    def _columns(self, reports: Ints) -> Floats:
        scale, _ = split_factor(self._log_factor(reports))
        height, width = self.alphabet.cell_shape
        north = (self.alphabet.values[:, :1] - reports[:, 0]) * height
        east = (self.alphabet.values[:, 1:] - reports[:, 1]) * width
        columns = np.hypot(north, east)
        columns -= self._beyond(reports)
        columns *= -self.epsilon
        np.exp(columns, out=columns)
        columns *= scale
        return np.asarray(columns)

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats:
        """What `channel` leaves out for reports far outside the grid.

        Their probability would underflow.
        """
        return split_factor(self._log_factor(reports))[1]

    def _beyond(self, reports: Ints) -> Floats:
        """Distance of each report from the nearest cell of the grid."""
        away = (reports - self.alphabet.nearest(reports)) * np.array(self.alphabet.cell_shape)
        return np.asarray(np.hypot(away[:, 0], away[:, 1]))

    def _log_factor(self, reports: Ints) -> Floats:
        return np.asarray(np.log(self._table[0, 0]) - self.epsilon * self._beyond(reports))

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        cells = self.alphabet.labels_of(secrets)
        # the last entry of the table stands for all that is farther: mass below e^-45
        drawn = np.searchsorted(self._cumulative, rng.random(len(cells)), side="right")
        offsets = np.column_stack(np.unravel_index(drawn, self._table.shape))
        return np.asarray(cells + offsets * rng.choice([-1, 1], size=offsets.shape))

    @override
    def simulate(self, secret_counts: ArrayLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population.

        Of more than 2^26 users by one multinomial per secret, over the offsets that `draw` makes.
        """
        rng = arguments.generator(rng)
        counts = in_order("secret_counts", secret_counts, self.alphabet)
        if counts.sum() <= MAX_ONE_BY_ONE:
            return super().simulate(counts, rng)
        north, east = self._table.shape
        shares = drawable(np.diff(self._cumulative, prepend=0.0)).reshape(north, east)
        reports = on_all_sides(counts.reshape(self.alphabet.n_rows, -1), shares, rng)
        seen = np.argwhere(reports)
        cells = seen - (north - 1, east - 1) + self.alphabet.first
        return Tally((make_part(self, cells, reports[tuple(seen.T)]),))

    def _exactly(self) -> exact.Exact:
        return exact.Exact(self._noisy, lambda: self.epsilon)

    def _noisy(self, secrets: NDArray[Any], source: exact.Source) -> Ints:
        height, width = map(Fraction, self.alphabet.cell_shape)
        offsets = exact.planar(Fraction(self.epsilon), height, width, len(secrets), source)
        return np.asarray(self.alphabet.labels_of(secrets) + offsets)


class _Remapped(GridMechanism):
    """Noise on the cells of a plane, then the nearest cell of the grid."""

    alphabet: Grid

    @property
    @abstractmethod
    def _table(self) -> Floats:
        """The mass of each offset (i, j), i, j >= 0."""

    @override
    def make_matrix(self) -> Floats:
        return offset_masses.remapped_matrix(self.alphabet, self._table)

    @override
    def _plane_channel(self, reports: Ints) -> PlaneChannel:
        return remapped(self.alphabet, self._table, reports)


@dataclass(frozen=True)
class TruncatedPlanarGeometric(_Remapped):
    """Planar geometric noise, then the nearest cell of the grid.

    P(z given x) = sum over the cells w of the infinite grid whose nearest cell is z of lambda
    exp(-eps d(x, w)): a border cell gets all that lies beyond it. These probabilities satisfy
    epsilon-geo-indistinguishability (remapping is post-processing). Reports are simulated, see
    `Mechanism`. Towards a border the nearer secret need not be the likelier one.

    Parameters
    ----------
    alphabet : Grid
        The k secrets, which are also the reports (as codes 0..k-1).
    epsilon : float
        Nats per unit of the grid, e.g. per km.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number above 0, or so small that the noise spreads over
        millions of cells, or so large that it leaves its own cell with a probability of at most
        2^-53.
    TypeError
        If `alphabet` is not a Grid.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.2.

    Examples
    --------
    >>> mechanism = TruncatedPlanarGeometric(Grid(20, 14, cell_size=0.5), epsilon=1.0)
    >>> mechanism.matrix().shape, mechanism.matrix()[0, 0].round(4)
    ((280, 280), np.float64(0.3408))
    """

    alphabet: Grid
    epsilon: float
    metric = True

    def __post_init__(self) -> None:
        """Check the fields."""
        self._keep(epsilon=_checked_level(self))

    @property
    @override
    def _table(self) -> Floats:
        return offset_masses.geometric_table(self.alphabet, self.epsilon)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        return nearest_cell(
            self.alphabet, PlanarGeometric(self.alphabet, self.epsilon).draw(secrets, rng)
        )

    def _exactly(self) -> exact.Exact:
        noisy = PlanarGeometric(self.alphabet, self.epsilon)._noisy
        return exact.Exact(
            lambda secrets, source: nearest_cell(self.alphabet, noisy(secrets, source)),
            lambda: self.epsilon,
        )


@dataclass(frozen=True)
class PlanarLaplace(_Remapped):
    """Laplace noise in the plane, rounded to the nearest cell.

    Noise of density eps^2/(2 pi) e^(-eps r) is added to the centre of the secret cell; the nearest
    cell is reported. The noise is drawn in the continuum and discretised afterwards; what falls
    outside the grid goes to its nearest cell. So the matrix holds the noise's mass on each cell,
    border cells reaching to infinity; it is computed by Gauss-Legendre quadrature (rows sum to 1
    within 1e-12). These probabilities satisfy epsilon-geo-indistinguishability; the tight level is
    a little lower. Reports are simulated, see `Mechanism`. `release` draws geometric noise on a
    lattice of steps of at most 2^-20 / eps and reports the nearest cell: the probability of each
    report is that of the matrix times a factor between e^-eta and e^eta, eta = sqrt(2) 2^-20 <
    1.4e-6.

    Parameters
    ----------
    alphabet : Grid
        The k secrets, which are also the reports (as codes 0..k-1).
    epsilon : float
        Nats per unit of the grid, e.g. per km.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number above 0, or so small that the noise spreads over
        millions of cells, or so large that it leaves its own cell with a probability of at most
        2^-53.
    TypeError
        If `alphabet` is not a Grid.

    References
    ----------
    .. [andres] Andrés, Bordenabe, Chatzikokolakis and Palamidessi, "Geo-indistinguishability", CCS 2013.
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.3 (which does not say how it discretises).

    Examples
    --------
    >>> mechanism = PlanarLaplace(Grid(20, 14, cell_size=0.5), epsilon=1.0)
    >>> mechanism.matrix().sum(axis=1).round(12).min()
    np.float64(1.0)

    Reports as the points that people released, by ``mechanism.of_points.release(secrets)``, in km
    from the south-west corner; one is west of the grid:

    >>> mechanism.tally_points([[3.25, 1.8], [2.1, 2.9], [-0.4, 1.2]], outside="keep").n
    3
    """

    alphabet: Grid
    epsilon: float
    metric = True

    def __post_init__(self) -> None:
        """Check the fields."""
        self._keep(epsilon=_checked_level(self))

    @property
    @override
    def _table(self) -> Floats:
        return offset_masses.laplace_table(self.alphabet, self.epsilon)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        radius = rng.gamma(2.0, 1 / self.epsilon, size=len(secrets))
        angle = rng.uniform(0, 2 * np.pi, size=len(secrets))
        shift = np.column_stack([radius * np.sin(angle), radius * np.cos(angle)]) / np.array(
            self.alphabet.cell_shape
        )
        return nearest_cell(
            self.alphabet, np.rint(self.alphabet.values[secrets] + shift).astype(np.int64)
        )

    def _exactly(self) -> exact.Exact:
        return exact.Exact(PlaneLattice(self.alphabet, self.epsilon).codes, lambda: self.epsilon)

    @property
    def of_points(self) -> PlanarLaplacePoints:
        """The same noise before it is rounded; reports are points."""
        return PlanarLaplacePoints(self.alphabet, self.epsilon)

    def tally_points(
        self, points: Any, outside: Outside = "raise", bins: int | None = None
    ) -> Tally:
        """Count reports that are points, which say more than the cells that hold them.

        The likelihood of a point z is the density of the noise, eps^2/(2 pi) e^(-eps |z - x|), for
        each cell's centre x: people are taken to be in the middle of their cells, as by `tally`. No
        more points than make a matrix of 2^25 entries are taken as they are. Of more, those close
        together are merged into their mean, in the smallest squares that leave few enough; with a
        million points on 400 cells these are about an eighth of a cell wide.
        `ibukit.mechanisms.points.merging_loss` bounds what that may cost, in nats per report.

        Parameters
        ----------
        points : array_like, shape (n, 2), or GeoSeries
            Coordinates x (east) and y (north) in the grid's unit from its south-west corner. Or
            places on the globe in any CRS, if the grid has bounds; they are put on it in proportion
            to their degrees.
        outside : {"raise", "keep", "drop"}
            What to do with points outside the grid. "keep" takes them where they are, which is
            right for reports, because noise leaves the map. "drop" leaves people out, those near
            the border more often than others.
        bins : int, optional
            Merge points in squares of which so many make the shorter side of a cell, however few
            points there are.

        Returns
        -------
        Tally
            Of a `PlanarLaplacePoints`, also called `of_points`; its ``parts[0].reports`` are rows
            (x, y, bound of merging).

        Raises
        ------
        AlphabetMismatch
            If a coordinate is missing or infinite, or outside the grid where `outside` is "raise".
        ValueError
            If there is no point, the points have not the shape (n, 2), or the grid has no bounds
            for a GeoSeries.
        """
        mechanism = self.of_points
        return mechanism.counted(
            mechanism.check_reports(points_of(self.alphabet, points, outside)), bins=bins
        )


def _checked_level(mechanism: PlanarGeometric | TruncatedPlanarGeometric | PlanarLaplace) -> float:
    """The level of noise over cells, which only a grid has."""
    alphabet = mechanism.alphabet
    if not isinstance(alphabet, Grid):
        raise TypeError(
            f"alphabet must be a Grid, because the noise moves over cells of a plane; got {alphabet!r}"
        )
    if not isinstance(mechanism, PlanarGeometric):
        len(alphabet)  # a grid without an end says so: there is no nearest cell at its border
    # too small a level spreads over too many cells
    offset_masses.reach(alphabet, arguments.positive("epsilon", mechanism.epsilon))
    escape = (
        offset_masses.laplace_escape
        if isinstance(mechanism, PlanarLaplace)
        else offset_masses.geometric_escape
    )
    return level(mechanism.epsilon, lambda eps: escape(alphabet, eps), smallest=0.0)
