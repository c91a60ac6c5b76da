"""Gaussian noise whose reports are real numbers or points in the plane."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Line
from ibukit.domain.grid import Grid
from ibukit.mechanisms import MatrixMechanism
from ibukit.mechanisms.numeric.gaussian import GaussianNoise, beyond, check_scale, from_nearest
from ibukit.mechanisms.numeric.geometric import as_line
from ibukit.mechanisms.points import PointReports, real_numbers
from ibukit.mechanisms.points.coordinates import (
    Outside,
    centres,
    distances,
    extent,
    nearest_distance,
    points_of,
)
from ibukit.mechanisms.points.merging import Merged
from ibukit.tally.tally import Tally


@dataclass(frozen=True)
class LinearGaussian(GaussianNoise, PointReports):
    """Gaussian noise on a line: reports are real numbers.

    The density of z given x is e^(-(z - x)^2 / (2 sigma^2)) / (sigma sqrt(2 pi)). No pure epsilon
    holds; for secrets at distance d it satisfies d^2 / (2 sigma^2)-zCDP, and (eps,
    delta)-differential privacy with the exact `delta`. What `tally.forward` and `tally.log_scale`
    say are densities. Where many reports make a large matrix, close ones are merged into their
    mean, see `merging_loss` in `ibukit.mechanisms.points`. Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets; reports are real numbers in the units of the line.
    sigma : float
        In units of the line.

    Raises
    ------
    ValueError
        If `sigma` is not a number from 1e-50 to 1e50.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [balle2018] Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, theorem 8.

    Examples
    --------
    >>> mechanism = LinearGaussian(Line(0, 9), sigma=3.0)
    >>> mechanism.tally([-3.4, 4.1, 12.9]).n
    3
    >>> round(mechanism.delta(epsilon=1.0, distance=1), 6)
    0.000208
    """

    alphabet: Line
    sigma: float
    dimension: ClassVar[int] = 1

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(self, alphabet: Line | int, sigma: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_line(self.alphabet), sigma=check_scale(self.sigma))
        len(self.alphabet)  # a line without an end says so

    @property
    @override
    def diameter(self) -> float:
        return float(self.k - 1)

    @property
    @override
    def side(self) -> float:
        return _side(self.diameter, self.sigma)

    @override
    def places(self) -> Floats:
        return self.alphabet.values.astype(np.float64)

    @override
    def logs(self, points: Floats) -> Floats:
        return from_nearest(self.alphabet, points[:, 0], self.sigma)

    @override
    def log_largest(self, points: Floats) -> Floats:
        level = math.log(self.sigma) + math.log(2 * math.pi) / 2
        return np.asarray(-(beyond(self.alphabet, points[:, 0]) ** 2) / (2 * self.sigma**2) - level)

    @override
    def merging_bound(self, means: Floats, merged: Merged) -> Floats:
        return _bound(merged, self.diameter, self.sigma)

    def binned(self, edges: ArrayLike) -> MatrixMechanism:
        """The mechanism whose reports are binned.

        Code i is from edges_(i-1) to edges_i; the first and the last bin have no end.

        Parameters
        ----------
        edges : array_like, shape (m - 1,)
            Ascending numbers that separate m bins.

        Returns
        -------
        MatrixMechanism, m reports
        """
        at = _edges("edges", edges)
        return MatrixMechanism(_masses(self.alphabet.values, at, self.sigma), self.alphabet)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        return self.alphabet.first + secrets + self.sigma * rng.standard_normal(len(secrets))


@dataclass(frozen=True)
class PlanarGaussian(GaussianNoise, PointReports):
    """Gaussian noise in the plane: reports are points.

    The density of z given x is e^(-r^2 / (2 sigma^2)) / (2 pi sigma^2), r the distance of z from
    the centre of cell x. No pure epsilon holds; for secrets at distance d it satisfies d^2 / (2
    sigma^2)-zCDP, and (eps, delta)-differential privacy with the exact `delta`. What
    `tally.forward` and `tally.log_scale` say are densities. Where many reports make a large matrix,
    close ones are merged into their mean, see `merging_loss` in `ibukit.mechanisms.points`. Reports
    are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Grid
        The k secrets. Reports are (x, y), shape (n, 2), in the grid's unit from its south-west
        corner.
    sigma : float
        Standard deviation in each direction, in the grid's unit, e.g. km.

    Raises
    ------
    ValueError
        If `sigma` is not a number from 1e-50 to 1e50.
    TypeError
        If `alphabet` is not a Grid.

    References
    ----------
    .. [balle2018] Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, theorem 8.

    Examples
    --------
    >>> mechanism = PlanarGaussian(Grid(20, 14, cell_size=0.5), sigma=1.0)
    >>> mechanism.tally([[3.25, 1.8], [2.1, 2.9], [-0.4, 1.2]]).n
    3
    """

    alphabet: Grid
    sigma: float

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        if not isinstance(self.alphabet, Grid):
            raise TypeError(
                f"alphabet must be a Grid, because the noise moves in the plane; got {self.alphabet!r}"
            )
        len(self.alphabet)  # a grid without an end says so
        self._keep(sigma=check_scale(self.sigma))

    @property
    @override
    def diameter(self) -> float:
        return float(np.hypot(*(extent(self.alphabet) - self.alphabet.cell_shape[::-1])))

    @property
    @override
    def side(self) -> float:
        return _side(self.diameter, self.sigma)

    @override
    def places(self) -> Floats:
        return centres(self.alphabet)

    @override
    def logs(self, points: Floats) -> Floats:
        away = distances(self.alphabet, points)
        nearest = nearest_distance(self.alphabet, points)
        # a difference of squares: far out the squares themselves would lose digits
        return (nearest - away) * (nearest + away) / (2 * self.sigma**2)

    @override
    def log_largest(self, points: Floats) -> Floats:
        nearest = nearest_distance(self.alphabet, points)
        return np.asarray(
            -((nearest / self.sigma) ** 2) / 2 - math.log(2 * math.pi) - 2 * math.log(self.sigma)
        )

    @override
    def merging_bound(self, means: Floats, merged: Merged) -> Floats:
        return _bound(merged, self.diameter, self.sigma)

    def tally_points(
        self, points: Any, outside: Outside = "raise", bins: int | None = None
    ) -> Tally:
        """Count reports that are points, or places on the globe.

        As `tally`, but with a name for what happens to points outside the grid.

        Parameters
        ----------
        points : array_like, shape (n, 2), or GeoSeries
            Coordinates x and y, or places in any CRS, as for `PlanarLaplace.tally_points`.
        outside : {"raise", "keep", "drop"}
            What to do with points outside the grid. "keep" takes them where they are, which is
            right for reports, because noise leaves the map.
        bins : int, optional
            Merge points in squares of the side `side` / `bins`, however few points there are.
        """
        return self.counted(
            self.check_reports(points_of(self.alphabet, points, outside)), bins=bins
        )

    def binned(self, x_edges: ArrayLike, y_edges: ArrayLike) -> MatrixMechanism:
        """The mechanism whose reports are binned to rectangles.

        Those at the border have no end.

        Parameters
        ----------
        x_edges, y_edges : array_like, shape (columns - 1,), shape (rows - 1,)
            Ascending numbers that separate the columns and the rows of rectangles.

        Returns
        -------
        MatrixMechanism
            Report code = row * columns + column, from the south-west.
        """
        along, up = centres(self.alphabet).T
        east = _masses(along, _edges("x_edges", x_edges), self.sigma)
        north = _masses(up, _edges("y_edges", y_edges), self.sigma)
        return MatrixMechanism(
            (north[:, :, None] * east[:, None]).reshape(self.k, -1), self.alphabet
        )

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        return np.asarray(
            centres(self.alphabet)[secrets] + self.sigma * rng.standard_normal((len(secrets), 2))
        )


def _side(diameter: float, sigma: float) -> float:
    """Where the bound below is about 1: a 64th of it, as fine as reports are merged, has a bound near 1e-4."""
    return min(sigma, 8 * sigma**2 / diameter) if diameter else sigma


def _bound(merged: Merged, diameter: float, sigma: float) -> Floats:
    """By Hoeffding's lemma: but for a factor that depends on z alone the density is a mean of e^(z x / sigma^2).

    A point apart from the mean of its square by t changes z x / sigma^2 by numbers in an interval of length
    |t| diameter / sigma^2; terms linear in t sum to 0 over a square.
    """
    return np.asarray((merged.apart * diameter / sigma**2) ** 2 / 8)


def _edges(name: str, edges: ArrayLike) -> Floats:
    at = real_numbers(name, edges)
    if not len(at) or (np.diff(at) <= 0).any():
        raise ValueError(f"{name} must be ascending numbers, at least one, got {edges!r}")
    return at


def _masses(values: NDArray[Any], edges: Floats, sigma: float) -> Floats:
    """Mass between the edges, the first and last bin without end, shape (len(values), len(edges) + 1)."""
    z = np.pad(
        (edges - values[:, None]) / sigma,
        ((0, 0), (1, 1)),
        constant_values=((0, 0), (-np.inf, np.inf)),
    )
    low, high = z[:, :-1], z[:, 1:]
    # on the right of the secret the tails are subtracted, which are small there
    right = low > 0
    return np.asarray(np.where(right, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low)))
