"""A rectangular grid of cells, with or without a place on the globe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments, limits
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.domain import geography, grid_frames, pair_names, places, plane
from ibukit.domain.alphabet import Alphabet, Unbounded, refuse_if_too_wide
from ibukit.domain.geography import Bounds as Bounds
from ibukit.domain.geography import Outside
from ibukit.errors import AlphabetMismatch

if TYPE_CHECKING:
    from geopandas import GeoDataFrame


@dataclass(frozen=True, eq=False)
class Grid(Alphabet):
    """Cells of a rectangle with the Euclidean distance between their centres.

    Cell code r * n_cols + c is row r (0 is the south row) and column c (0 is the west column).

    Parameters
    ----------
    n_rows, n_cols : int, or both None
        None for the plane of cells that has no end. Secrets are then (row, column) pairs instead of
        codes, `PlanarGeometric` is the mechanism for such a plane, and estimates are over the
        bounding box of the reports, because every maximum likelihood estimate is 0 outside this
        box.
    cell_size : float or (height, width)
        Side of a cell in `unit`; a pair where cells are not square.
    unit : str
        Unit of `cell_size`, and so of all distances, such as "km". It is a label, which comparisons
        leave out. Privacy parameters are then per `unit`.
    bounds : (lat0, lat1, lon0, lon1), optional
        South, north, west and east edge in degrees (WGS 84). The cells are then equal in degrees.
    first : (row, column)
        Name of the south-west cell: `values`, and reports on the infinite grid, count from there.

    Raises
    ------
    ValueError
        If a number of cells or a size is not positive, or if bounds are not increasing, or are
        given for a grid without an end.
    TooLarge
        If the grid has more than :math:`2^{26}` cells, or if the length, values, codes or distances
        of a grid without an end are asked for.

    Examples
    --------
    >>> grid = Grid(20, 14, cell_size=0.5)
    >>> len(grid), grid.distances()[0, 15].round(4)
    (280, np.float64(0.7071))
    """

    # Fields that every alphabet has: the values follow from the numbers of cells. The unit and the
    # fields after it in the signature are keyword-only in the __init__ that dataclasses write for
    # subclasses, because fields have another order there.
    values: NDArray[Any] = field(init=False, repr=False)
    _distances: Floats | None = field(init=False, default=None, repr=False)
    unit: str = field(default="", kw_only=True)
    n_rows: int
    n_cols: int
    cell_size: float | tuple[float, float] = 1.0
    bounds: Bounds | None = field(default=None, kw_only=True)
    first: tuple[int, int] = field(default=(0, 0), kw_only=True)

    def __init__(
        self,
        n_rows: int | None,
        n_cols: int | None,
        cell_size: float | tuple[float, float] = 1.0,
        unit: str = "",
        bounds: Bounds | None = None,
        first: tuple[int, int] = (0, 0),
    ):
        if type(self) is Grid and (n_rows is None or n_cols is None):
            # The constructor changes the class for the reasons given in `Line.__init__`.
            object.__setattr__(self, "__class__", UnboundedGrid)
            self.__init__(n_rows, n_cols, cell_size, unit, bounds, first)  # type: ignore[misc]
            return
        self._keep(n_rows=n_rows, n_cols=n_cols, cell_size=cell_size, bounds=bounds, first=first)
        self._keep(unit=arguments.text("unit", unit))
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the fields and list the cells."""
        n_rows, n_cols = (
            arguments.whole("n_rows", self.n_rows, 1),
            arguments.whole("n_cols", self.n_cols, 1),
        )
        corner = geography.check_corner(self.first)
        geography.refuse_too_many(n_rows, n_cols)
        # Codes run row by row from the south-west corner.
        rows, cols = np.divmod(np.arange(n_rows * n_cols), n_cols)
        self._keep(
            n_rows=n_rows,
            n_cols=n_cols,
            cell_size=arguments.sides("cell_size", self.cell_size),
            bounds=None if self.bounds is None else geography.check_bounds(self.bounds),
            first=corner,
            values=arguments.frozen(np.column_stack([rows + corner[0], cols + corner[1]])),
        )

    @classmethod
    @geography.refuse_ambiguous_edges
    def from_bounds(
        cls,
        lat0: float,
        lat1: float,
        lon0: float,
        lon1: float,
        n_rows: int,
        n_cols: int,
        cell_size: float | tuple[float, float] | None = None,
    ) -> Grid:
        """A grid of cells equal in degrees over a box on the globe, with distances in km.

        Parameters
        ----------
        lat0, lat1, lon0, lon1 : float
            South, north, west and east edge in degrees (WGS 84).
        n_rows, n_cols : int
        cell_size : float or (height, width), optional
            In km. By default the true height and width of the middle cell on the WGS 84 ellipsoid;
            give the nominal size if a publication computed with that.

        Raises
        ------
        ValueError
            If the edges are not south < north and west < east in degrees; or if they are given
            without names and would make a box that is no larger when read in the order of
            ``total_bounds``, which is (west, south, east, north).

        Examples
        --------
        >>> manhattan = Grid.from_bounds(40.7044, 40.7942, -74.0205, -73.9374, 20, 14)
        >>> tuple(round(side, 4) for side in manhattan.cell_shape)
        (0.4986, 0.5013)
        """
        bounds = geography.check_bounds((lat0, lat1, lon0, lon1))
        n_rows, n_cols = arguments.whole("n_rows", n_rows, 1), arguments.whole("n_cols", n_cols, 1)
        size = (
            geography.geodesic_cell_size(bounds, n_rows, n_cols) if cell_size is None else cell_size
        )
        return cls(n_rows, n_cols, size, unit="km", bounds=bounds)

    @classmethod
    def covering(cls, points: Any, cell_size: float = 500.0) -> Grid:
        """The grid of square cells of a length in metres that holds all points.

        The cells are equal in degrees. Along the middle meridian and the middle parallel of the
        points there are ceil(extent / cell_size) cells, on the WGS 84 ellipsoid, and the box of the
        points is widened equally on both sides until these cells have the side `cell_size`. Towards
        the pole the cells are narrower: by 0.1 % at latitude 50, 5 km from the middle. Points on
        the edge are inside. Distances are in km.

        Parameters
        ----------
        points : GeoSeries, GeoDataFrame, or array_like of (lat, lon), shape (n, 2)
            In any CRS; arrays are in degrees (WGS 84), and so are the columns lat and lon (also
            latitude, longitude, lng) of a frame. Geometries need not be points: the outline of a
            city will do.
        cell_size : float
            In metres.

        Raises
        ------
        ValueError
            If a position is missing, if there is no position, or if geometries have no CRS; if
            cells that are equal in degrees cannot hold the points, because these are at a pole or
            on both sides of longitude 180; or if there would be more than :math:`2^{26}` cells (the
            subclass `TooLarge`).

        Examples
        --------
        >>> grid = Grid.covering([[40.71, -74.01], [40.79, -73.94]], cell_size=500)
        >>> grid.n_rows, grid.n_cols, grid.cell_size, grid.unit
        (18, 12, 0.5, 'km')
        """
        size = arguments.positive("cell_size", cell_size)
        n_rows, n_cols, bounds = geography.cover(places.extent(points), size)
        return cls(n_rows, n_cols, size / 1000, unit="km", bounds=bounds)

    def __repr__(self) -> str:
        where = f", bounds={self.bounds}" if self.bounds else ""
        where += f", first={self.first}" if self.first != (0, 0) else ""
        cells = f"{self.n_rows}, {self.n_cols}, cell_size={self.cell_size}"
        return f"Grid({cells}, unit={self.unit!r}{where})"

    @override
    def _key(self) -> tuple[Any, ...]:
        key = (self.n_rows, self.n_cols, self.cell_shape, self.bounds)
        # Recorded seeds are hashes of this key. It existed before grids had a first cell, so the
        # default one must not appear in it.
        return key if self.first == (0, 0) else (*key, self.first)

    @property
    def cell_shape(self) -> tuple[float, float]:
        """Height (south to north) and width (west to east) of a cell, in `unit`."""
        return (
            self.cell_size
            if isinstance(self.cell_size, tuple)
            else (self.cell_size, self.cell_size)
        )

    def centers(self) -> Floats:
        """Northing and easting of cell centres from the corner, shape (k, 2), in `unit`."""
        return (self.values + 0.5) * self.cell_shape

    @override
    def distances(self) -> Floats:
        return self._distances_between(np.arange(len(self)), np.arange(len(self)))

    def _distances_between(self, some: Ints, others: Ints) -> Floats:
        """Return the distances between the cells of two lists of codes."""
        limits.require_dense("the matrix of distances", len(some), len(others))
        # A distance depends on the offsets in rows and columns only. It is looked up in a table of
        # all offsets, so that equal offsets have distances that are equal to the last bit.
        height, width = self.cell_shape
        lengths = np.hypot(
            (np.arange(self.n_rows) * height)[:, None], np.arange(self.n_cols) * width
        )
        row, col = np.divmod(some, self.n_cols)
        other_row, other_col = np.divmod(others, self.n_cols)
        between: Floats = lengths[
            np.abs(row[:, None] - other_row), np.abs(col[:, None] - other_col)
        ]
        return between

    @override
    def codes(self, labels: Any, *, name: str = "labels") -> Ints:
        """Return codes of (row, column) pairs or of points.

        The columns row and col of a frame are cells; other columns, and geometries, are read as by
        `locate`. In arrays of shape (n, 2), pairs of integers are (row, column), and pairs of
        floats, even of whole numbers, are (lat, lon) in degrees on a grid with bounds. Pairs and
        points outside the grid raise `AlphabetMismatch`.
        """
        read = places.read_points(labels, name, pair_names.ALL, places.CELLS, self.unit)
        pairs, kind = read
        # Without names integers are cells and floats are points.
        if kind in pair_names.PLACES or (kind is None and pairs.dtype.kind == "f"):
            if self.bounds is None and kind not in ("unit", "lengths"):
                raise ValueError(
                    f"{name} must be pairs of integers, (row, column): the grid has no bounds, so "
                    "no place on the globe"
                )
            if kind == "unit":
                plane.refuse_whole(pairs, name)
            return plane.located(self, read, "raise", name)
        # Integers are (row, column), counted from `first`.
        cells = arguments.integers(name, pairs, ndim=2)
        offsets = cells - self.first
        bad = ((offsets < 0) | (offsets >= [self.n_rows, self.n_cols])).any(axis=1)
        if bad.any():
            cell = tuple(map(int, cells[bad][0]))
            start = f" from {self.first}" if self.first != (0, 0) else ""
            degrees = "; (lat, lon) in degrees are floats" if self.bounds else ""
            size = f"{self.n_rows} x {self.n_cols} cells"
            raise AlphabetMismatch(f"{name} contains {cell}: outside {size}{start}{degrees}")
        return offsets[:, 0] * self.n_cols + offsets[:, 1]

    @override
    def are_codes(self, labels: Any) -> bool:
        is_list = isinstance(labels, (list, tuple, range, np.ndarray))
        return is_list and arguments.ndim(labels) == 1 and len(labels) > 0

    def nearest(self, cells: Ints) -> Ints:
        """Return the nearest cells of the grid to any (row, column) pairs, shape (n, 2)."""
        first = np.array(self.first)
        last = np.add(first, [self.n_rows - 1, self.n_cols - 1])
        return np.clip(cells, first, last).astype(np.int64)

    def locate(
        self, points: Any = None, lon: Any = None, outside: Outside = "raise", *, lat: Any = None
    ) -> Ints:
        """Codes of the cells that hold the points; a cell holds its south and west edge.

        The northernmost and the easternmost edge belong to the last cells. Mechanisms take these
        codes with ``codes=True``.

        Parameters
        ----------
        points : GeoSeries, GeoDataFrame, frame, or array_like of (lat, lon), shape (n, 2)
            Geometries in any CRS. Columns lat and lon (also latitude, longitude, lng) of a frame
            are degrees; columns x and y are lengths in the grid's unit from its south-west corner,
            for which the grid needs no bounds. Arrays are in degrees (WGS 84). If `lon` is given,
            `points` are the latitudes alone, shape (n,).
        lon : array_like, shape (n,), optional
        outside : {"raise", "nearest", "drop"}
            What to do with points outside the bounds. Reports of planar mechanisms need "nearest",
            because these mechanisms move noise that leaves the grid to the nearest cell. "drop"
            leaves people out, so that the result is shorter, and whatever is estimated from it is
            about the people inside.
        lat : array_like, shape (n,), optional
            Latitudes by name, with `lon`.

        Returns
        -------
        ndarray of int, shape (n,) or shorter

        Raises
        ------
        ValueError
            If degrees are given for a grid that has no bounds, if geometries have no CRS or are not
            points, or if the columns of a frame have other names. The error is the subclass
            `AlphabetMismatch` if a position is missing, if it is outside and `outside` is "raise",
            if it is not on the globe and `outside` is "nearest", or if latitude and longitude are
            exchanged.

        Examples
        --------
        >>> grid = Grid.from_bounds(40.0, 40.2, -74.0, -73.8, 2, 2)
        >>> grid.locate([(40.05, -73.95), (40.15, -73.95), (40.2, -73.8)])
        array([0, 2, 3])
        >>> grid.locate([(40.05, -73.95), (40.15, -75)], outside="nearest")
        array([0, 2])
        """
        # Latitudes may come as `points` or by name.
        points = lat if points is None else points
        # The call locate(points, "nearest") has the value of `outside` in the place of `lon`.
        if isinstance(lon, str):
            lon, outside = None, lon
        if lon is not None:
            read = places.Pairs(np.column_stack(places.coordinates(points, lon)), None)
        else:
            read = places.read_points(points, "points", pair_names.PLACES, places.FORMS, self.unit)
        return plane.located(self, read, outside, "points")

    def to_geodataframe(self, values: ArrayLike, name: str = "value") -> GeoDataFrame:
        """One row per cell (row, col, values, its rectangle) in code order.

        With bounds the rectangles are in degrees, EPSG:4326; without bounds they are in `unit` from
        the corner of cell (0, 0), and the frame has no coordinate reference system.

        Parameters
        ----------
        values : array_like, shape (k,)
        name : str
            Name of the column that holds them.

        Returns
        -------
        geopandas.GeoDataFrame, k rows

        Examples
        --------
        >>> frame = Grid(2, 2, cell_size=0.5).to_geodataframe([0.1, 0.2, 0.3, 0.4])
        >>> frame.geometry.area.sum()
        np.float64(1.0)
        """
        # The values may be of any type, also texts.
        arguments.refuse_labels("values", values)
        numbers = np.asarray(values)
        if numbers.shape != (len(self),):
            raise AlphabetMismatch(
                f"values must have one number for each of the {len(self)} cells, got "
                f"{numbers.shape}"
            )
        frame = {"row": self.values[:, 0], "col": self.values[:, 1], name: numbers}
        return grid_frames.rectangles(frame, self.edges(), in_degrees=self.bounds is not None)

    def edges(self) -> tuple[Floats, Floats]:
        """Edges of the rows, shape (n_rows + 1,), and of the columns.

        They are in degrees if the grid has bounds, else in `unit`.
        """
        height, width = self.cell_shape
        row, col = self.first
        rows, columns = (row, row + self.n_rows), (col, col + self.n_cols)
        # Without bounds the edges are lengths from the corner of cell (0, 0).
        south, north, west, east = self.bounds or (
            *(end * height for end in rows),
            *(end * width for end in columns),
        )
        return np.linspace(south, north, self.n_rows + 1), np.linspace(west, east, self.n_cols + 1)

    @classmethod
    def from_geodataframe(
        cls,
        frame: GeoDataFrame,
        name: str = "value",
        cell_size: float | tuple[float, float] | None = None,
    ) -> tuple[Grid, Floats]:
        """The grid and the values of a frame that `to_geodataframe` made.

        Rows may stand in any order. A frame does not hold the cell size. By default this is the
        size of the rectangles, or, if these are in degrees, the true size in km of the middle cell.

        Examples
        --------
        >>> grid = Grid(2, 3, cell_size=0.5)
        >>> again, values = Grid.from_geodataframe(grid.to_geodataframe(range(6)))
        >>> again == grid, values
        (True, array([0., 1., 2., 3., 4., 5.]))
        """
        first, (n_rows, n_cols), cells = grid_frames.cells_of_frame(frame, name)
        west, south, east, north = (float(edge) for edge in frame.total_bounds)
        if frame.crs is None:
            # Without a CRS the rectangles are in the unit of the grid.
            measured = ((north - south) / n_rows, (east - west) / n_cols)
            size = measured if cell_size is None else cell_size
            grid = cls(n_rows, n_cols, size, first=first)
        else:
            edges = {"lat0": south, "lat1": north, "lon0": west, "lon1": east}
            grid = cls.from_bounds(**edges, n_rows=n_rows, n_cols=n_cols, cell_size=cell_size)
        return grid, cells[name].to_numpy(dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class UnboundedGrid(Unbounded, Grid):
    """The cells of a plane that has no border: ``Grid(None, None, cell_size=0.5)``."""

    # `dataclasses.replace` must not pass these on: they cannot be read, or are not accepted.
    n_rows: int = field(init=False)
    n_cols: int = field(init=False)
    bounds: Bounds | None = field(init=False, default=None)
    first: tuple[int, int] = field(init=False, default=(0, 0))

    lacking = {"n_rows": "number of rows", "n_cols": "number of columns"}  # noqa: RUF012

    def __init__(
        self,
        n_rows: int | None = None,
        n_cols: int | None = None,
        cell_size: float | tuple[float, float] = 1.0,
        unit: str = "",
        bounds: Bounds | None = None,
        first: tuple[int, int] = (0, 0),
    ):
        if (n_rows, n_cols) != (None, None):
            raise ValueError(
                f"n_rows and n_cols must both be None, or none of them, got {n_rows!r} and "
                f"{n_cols!r}"
            )
        if bounds is not None or first != (0, 0):
            raise ValueError(
                f"bounds and first must be left out of a grid without an end, got {bounds} and "
                f"{first}"
            )
        self._keep(cell_size=cell_size, unit=arguments.text("unit", unit))
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the size of a cell."""
        self._keep(cell_size=arguments.sides("cell_size", self.cell_size))

    def __repr__(self) -> str:
        return f"Grid(None, None, cell_size={self.cell_size}, unit={self.unit!r})"

    @override
    def _key(self) -> tuple[Any, ...]:
        return (self.cell_shape,)

    @override
    def labels_of(self, secrets: ArrayLike) -> Ints:
        cells = arguments.integers("secrets", secrets, ndim=2)
        if cells.shape[1] != 2:
            raise ValueError(
                f"secrets must be (row, column) pairs, shape (n, 2), got {cells.shape}"
            )
        return cells

    @override
    def window(self, labels: Ints) -> Grid:
        # The bounding box of the reports: every maximum likelihood estimate is 0 outside it.
        (south, west), (north, east) = labels.min(axis=0).tolist(), labels.max(axis=0).tolist()
        refuse_if_too_wide((north - south + 1) * (east - west + 1), self)
        return Grid(
            north - south + 1, east - west + 1, self.cell_size, self.unit, first=(south, west)
        )
