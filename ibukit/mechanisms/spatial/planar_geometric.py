"""Geometric noise on the infinite grid of cells."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit import exact
from ibukit._ground import arguments, limits
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import Channel, DenseChannel, offset_masses
from ibukit.channels.line import split_factor
from ibukit.channels.plane import infinite, is_fourier_faster
from ibukit.domain import pair_names, places
from ibukit.domain.grid import Grid
from ibukit.domain.labels import CountsLike, LabelsLike, aligned_counts
from ibukit.domain.plane import cells_without_end
from ibukit.domain.report_kind import ReportKind
from ibukit.mechanisms.base import Mechanism
from ibukit.mechanisms.draws import drawable, signed_offset_counts
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.mechanisms.saturation import add_saturating, differences, refuse_saturated
from ibukit.mechanisms.spatial._grid_mechanism import (
    check_grid_epsilon,
)
from ibukit.tally.tally import Tally, make_tally_part

# Number of users up to which reports are drawn one by one. With more, the offsets of all users of a
# cell are one multinomial draw.
MAX_ONE_BY_ONE = 2**26


@dataclass(frozen=True)
class PlanarGeometric(Mechanism):
    r"""Geometric noise on the infinite grid of cells.

    :math:`P(z \mid x) = \lambda\,\exp (-\varepsilon\,d(x, z))` for every cell z of the infinite
    grid, where d is the Euclidean distance between centres and
    :math:`1/\lambda=\sum_{(i,j)}e^{-\varepsilon|(i,j)|}` over all offsets. These probabilities
    satisfy epsilon-geo-indistinguishability, tightly. Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Grid
        The k secrets. Reports are integer cell coordinates (row, column) on the grid continued
        without end, shape (n, 2); the grid's south-west cell is its `first`, (0, 0) unless said
        otherwise. The grid itself may have no end: secrets are then cell coordinates as well. If it
        has bounds, reports may be points instead, as `Grid.codes` takes them; they stand for the
        cells that hold them, also outside the bounds.
    epsilon : float
        Nats per unit of the grid, e.g. per km.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number above 0, is so small that the noise spreads over
        millions of cells, or is so large that the noise leaves the secret's cell with a probability
        of at most :math:`2^{-53}`.
    TypeError
        If `alphabet` is not a Grid.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.2.
    .. [freewill] ElSalamouny and Palamidessi, arXiv:2208.11268, section 2.3.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = PlanarGeometric(Grid(20, 14, cell_size=0.5), epsilon=1.0)
    >>> mechanism.tally([[3, 4], [3, 4], [-2, 7]]).counts
    array([1, 2])

    Reports may be points, (lat, lon) in degrees; here the second is south of the grid:

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
    report_kind = ReportKind.CELLS

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        escape = offset_masses.geometric_escape
        self._keep(epsilon=check_grid_epsilon(self.alphabet, self.epsilon, escape, bounded=False))

    @cached_property
    def _table(self) -> Floats:
        """Probability of each offset (i, j), i, j >= 0, with given signs."""
        return offset_masses.geometric_table(self.alphabet, self.epsilon)

    @cached_property
    def _cumulative(self) -> Floats:
        """Distribution function over the offsets (i, j), i, j >= 0, with any signs."""
        cumulative = np.cumsum(self._table * offset_masses.multiplicity(self._table.shape))
        return cumulative / cumulative[-1]

    @override
    def code_reports(self, reports: LabelsLike) -> NDArray[Any]:
        """Pairs (row, column) of cells; points become the cells that hold them.

        The names of columns say whether pairs are cells or points. In an array, pairs of floats
        that are all whole could be either, and are refused if the grid has bounds.
        """
        return self._cells_of(reports, "reports")

    @override
    def _read_secrets(self, secrets: LabelsLike) -> NDArray[Any]:
        return self._cells_of(secrets, "secrets")

    def _cells_of(self, reports: ArrayLike, name: str) -> NDArray[Any]:
        """Pairs (row, column) of cells or points."""
        grid = self.alphabet
        named = hasattr(reports, "columns") or places.is_geopandas(reports)
        if not named and (not grid.bounded or grid.bounds is None):
            return arguments.whole_array(name, reports)
        # Two numbers may be (row, column) or coordinates on the globe. If it is not certain which,
        # they are refused.
        pairs, kind = places.read_points(reports, name, pair_names.ALL, places.CELLS, grid.unit)
        if kind is None:
            if grid.bounds is None or pairs.dtype.kind != "f":
                return pairs
            if (pairs == np.rint(pairs)).all():
                raise ValueError(
                    f"{name} must be integers if they are (row, column), for floats that are all "
                    f"whole may also be coordinates, got {pairs[0]} first: pass cells as integers, "
                    "and coordinates with a CRS or in a frame with the columns lat and lon"
                )
        return cells_without_end(grid, pairs, kind or "degrees", name)

    @override
    def check_reports(self, reports: ArrayLike) -> Ints:
        cells = arguments.integers("reports", reports, ndim=2)
        if cells.shape[1] != 2:
            raise ValueError(
                f"reports must be (row, column) pairs, shape (n, 2), got {cells.shape}"
            )
        refuse_saturated(cells)
        return cells

    @override
    def channel(self, reports: NDArray[Any]) -> Channel:
        """Forward and adjoint on the seen cells.

        Each column keeps its largest entry, so that far reports do not underflow.
        """
        # The farthest reports are columns of a matrix beside the convolutions, so that the window
        # of these need not stretch to them.
        if is_fourier_faster(self.k, len(reports)):
            largest, beyond = float(self._table[0, 0]), self._beyond(reports)
            cells = self.check_reports(reports) - np.array(self.alphabet.first)
            plane, far = infinite(self.alphabet, self.epsilon, largest, cells, beyond)
            if len(far) < len(reports):
                plane.columns[:] = self._columns(reports[far])
                return plane
        return DenseChannel(self._columns(reports))

    def _columns(self, reports: Ints) -> Floats:
        """Columns of the matrix, each divided by the factor of `log_scale`, shape (k, s)."""
        # e^(-eps (d - beyond)) times a scale, with d the distance and `beyond` that of the nearest
        # cell: the largest entry of a column is about 1 before it is scaled. In place, because the
        # array is as large as the matrix.
        limits.require_channel("the channel of these reports", self.k, len(reports))
        scale, _ = split_factor(self._log_factor(reports))
        height, width = self.alphabet.cell_shape
        north = differences(self.alphabet.values[:, :1], reports[:, 0]) * height
        east = differences(self.alphabet.values[:, 1:], reports[:, 1]) * width
        columns = np.hypot(north, east)
        columns -= self._beyond(reports)
        columns *= -self.epsilon
        np.exp(columns, out=columns)
        columns *= scale
        return columns

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats:
        """Logarithm of the factor that `channel` omits for reports far outside the grid.

        Without this, their probability would underflow.
        """
        return split_factor(self._log_factor(reports))[1]

    def _beyond(self, reports: Ints) -> Floats:
        """Distance of each report from the nearest cell of the grid."""
        away = differences(reports, self.alphabet.nearest(reports))
        away *= self.alphabet.cell_shape
        return np.hypot(away[:, 0], away[:, 1])

    def _log_factor(self, reports: Ints) -> Floats:
        # lambda e^(-eps beyond), the probability given the nearest cell.
        return np.log(self._table[0, 0]) - self.epsilon * self._beyond(reports)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        cells = self.alphabet.labels_of(secrets)
        # Inversion of the distribution function, then two random signs. Offsets beyond the table
        # have a probability below e^-45, and count as its last entry.
        drawn = np.searchsorted(self._cumulative, rng.random(len(cells)), side="right")
        offsets = np.column_stack(np.unravel_index(drawn, self._table.shape))
        return add_saturating(cells, offsets * rng.choice([-1, 1], size=offsets.shape))

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population.

        If there are more than :math:`2^{26}` users, there is one multinomial per secret, over the
        offsets that `draw` makes.
        """
        rng = arguments.generator(rng)
        counts = aligned_counts("secret_counts", secret_counts, self.alphabet)
        if counts.sum() <= MAX_ONE_BY_ONE:
            return super().simulate(counts, rng)
        north, east = self._table.shape
        shares = drawable(np.diff(self._cumulative, prepend=0.0)).reshape(north, east)
        reports = signed_offset_counts(counts.reshape(self.alphabet.n_rows, -1), shares, rng)
        # The map of reports begins `north` - 1 and `east` - 1 cells before the grid.
        reported = np.argwhere(reports)
        cells = reported - (north - 1, east - 1) + self.alphabet.first
        return Tally((make_tally_part(self, cells, reports[tuple(reported.T)]),))

    def _noisy(self, secrets: NDArray[Any], random_bits: exact.RandomBits) -> Ints:
        height, width = map(Fraction, self.alphabet.cell_shape)
        offsets = exact.planar_geometric(
            Fraction(self.epsilon), height, width, len(secrets), random_bits
        )
        return add_saturating(self.alphabet.labels_of(secrets), offsets)


@exact_sampler(PlanarGeometric)
def _planar_geometric_sampler(mechanism: PlanarGeometric) -> exact.ExactSampler:
    return exact.ExactSampler(mechanism._noisy, lambda: mechanism.epsilon)
