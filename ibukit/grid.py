"""A rectangular grid of cells, with or without a place on the globe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit import _validate
from ibukit._validate import Floats, Ints
from ibukit.alphabet import Alphabet, Unbounded, refuse_if_too_wide
from ibukit.errors import AlphabetMismatch

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

Bounds = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class Grid(Alphabet):
    """Cells of a rectangle with the Euclidean distance between their centres.

    Cell code r * n_cols + c is row r (0 is the south row) and column c (0 is the west column).

    Parameters
    ----------
    n_rows, n_cols : int, or both None
        None for the plane of cells that has no end. Secrets are then (row, column) pairs instead of codes,
        `PlanarGeometric` is the mechanism for it, and estimates are over the bounding box of the reports: outside,
        every maximum likelihood estimate is 0.
    cell_size : float or (height, width)
        Side of a cell in `unit`; a pair where cells are not square.
    unit : str
        Unit of `cell_size` and so of all distances, as "km": a label that comparisons leave out. Privacy parameters
        are then per `unit`.
    bounds : (lat0, lat1, lon0, lon1), optional
        South, north, west and east edge in degrees (WGS 84). The cells are then equal in degrees.
    first : (row, column)
        What the south-west cell is called: `values` and reports on the infinite grid count from there.

    Raises
    ------
    ValueError
        If a number of cells or a size is not positive, or the bounds are not increasing, or given without an end.
    TooLarge
        If a grid without an end is asked for its length, values, codes, centres or distances.

    Examples
    --------
    >>> grid = Grid(20, 14, cell_size=0.5)
    >>> len(grid), grid.distances()[0, 15].round(4)
    (280, np.float64(0.7071))
    """

    # what every alphabet has: here it follows from the numbers of cells. The unit, and what comes after it in the
    # signature, are taken by name where dataclasses write one for a class that inherits: fields have another order
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
            object.__setattr__(self, "__class__", UnboundedGrid)  # as for a line
            self.__init__(n_rows, n_cols, cell_size, unit, bounds, first)  # type: ignore[misc]
            return
        self._keep(n_rows=n_rows, n_cols=n_cols, cell_size=cell_size, unit=unit, bounds=bounds, first=first)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the numbers, and list the cells."""
        n_rows, n_cols = _validate.whole("n_rows", self.n_rows, 1), _validate.whole("n_cols", self.n_cols, 1)
        if len(self.first) != 2:
            raise ValueError(f"first must be a pair (row, column), got {self.first!r}")
        corner = tuple(_validate.whole("first", end, -(2**53)) for end in self.first)
        rows, cols = np.divmod(np.arange(n_rows * n_cols), n_cols)
        self._keep(
            n_rows=n_rows,
            n_cols=n_cols,
            cell_size=_check_size(self.cell_size),
            bounds=None if self.bounds is None else _check_bounds(self.bounds),
            first=corner,
            values=_validate.frozen(np.column_stack([rows + corner[0], cols + corner[1]])),
        )

    @classmethod
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
            In km. By default the true height and width of the middle cell on the WGS 84 ellipsoid; give the nominal
            size where a publication computed with that.

        Examples
        --------
        >>> manhattan = Grid.from_bounds(40.7044, 40.7942, -74.0205, -73.9374, 20, 14)
        >>> tuple(round(side, 4) for side in manhattan.cell_size)
        (0.4986, 0.5014)
        """
        bounds = _check_bounds((lat0, lat1, lon0, lon1))
        if cell_size is None:
            from pyproj import Geod  # with geopandas, which takes a second to import

            geod = Geod(ellps="WGS84")
            mid_lat, mid_lon = (lat0 + lat1) / 2, (lon0 + lon1) / 2
            height = geod.line_length([mid_lon, mid_lon], [lat0, lat1]) / 1000 / n_rows
            step = (lon1 - lon0) / n_cols
            width = geod.line_length([mid_lon - step / 2, mid_lon + step / 2], [mid_lat, mid_lat]) / 1000
            cell_size = (float(height), float(width))
        return cls(n_rows, n_cols, cell_size, unit="km", bounds=bounds)

    def __repr__(self) -> str:
        where = f", bounds={self.bounds}" if self.bounds else ""
        where += f", first={self.first}" if self.first != (0, 0) else ""
        return f"Grid({self.n_rows}, {self.n_cols}, cell_size={self.cell_size}, unit={self.unit!r}{where})"

    def _key(self) -> tuple[Any, ...]:
        key = (self.n_rows, self.n_cols, self.cell_shape, self.bounds)
        # seeds are made of this: a grid that begins at the corner keeps the key it had before there were others
        return key if self.first == (0, 0) else (*key, self.first)

    @property
    def cell_shape(self) -> tuple[float, float]:
        """Height (south to north) and width (west to east) of a cell, in `unit`."""
        return self.cell_size if isinstance(self.cell_size, tuple) else (self.cell_size, self.cell_size)

    def centers(self) -> Floats:
        """Coordinates of the cell centres, shape (k, 2).

        Northing and easting from the corner of cell (0, 0), in `unit`.
        """
        return np.asarray((self.values + 0.5) * np.array(self.cell_shape))

    def distances(self) -> Floats:
        """Euclidean distances between cell centres, shape (k, k), in `unit`."""
        # from the integer offsets, so that equal offsets give bitwise equal distances
        height, width = self.cell_shape
        rows = np.arange(self.n_rows)[:, None] - np.arange(self.n_rows)
        cols = np.arange(self.n_cols)[:, None] - np.arange(self.n_cols)
        north, east = np.abs(rows) * height, np.abs(cols) * width
        return np.asarray(np.hypot(north[:, None, :, None], east[None, :, None, :]).reshape(len(self), len(self)))

    def codes(self, labels: Any) -> Ints:
        """Codes of (row, column) pairs, shape (n, 2), or `AlphabetMismatch`."""
        cells = _validate.integers("labels", labels, ndim=2)
        if cells.shape[1] != 2:
            raise ValueError(f"labels must be (row, column) pairs, shape (n, 2), got {cells.shape}")
        away = cells - self.first
        bad = ((away < 0) | (away >= [self.n_rows, self.n_cols])).any(axis=1)
        if bad.any():
            start = f" from {self.first}" if self.first != (0, 0) else ""
            raise AlphabetMismatch(
                f"labels contains {tuple(map(int, cells[bad][0]))}: outside {self.n_rows} x {self.n_cols} cells{start}"
            )
        return np.asarray(away[:, 0] * self.n_cols + away[:, 1])

    def nearest(self, cells: Ints) -> Ints:
        """The nearest cells to (row, column) pairs anywhere, shape (n, 2)."""
        low = np.array(self.first)
        return np.asarray(np.clip(cells, low, np.add(low, [self.n_rows - 1, self.n_cols - 1])), dtype=np.int64)

    def locate(self, lat: ArrayLike, lon: ArrayLike, outside: Literal["raise", "drop"] = "raise") -> Ints:
        """Codes of the cells that hold the points; a cell holds its south and west edge.

        The northernmost and easternmost edge of the grid belong to the last cells.

        Parameters
        ----------
        lat, lon : array_like, shape (n,)
            Degrees (WGS 84).
        outside : {"raise", "drop"}
            What to do with points outside the bounds: an error, or leave them out (the result is then shorter).

        Returns
        -------
        ndarray of int, shape (n,) or shorter

        Raises
        ------
        AlphabetMismatch
            If a point is outside and `outside` is "raise", or a coordinate is not a number.
        ValueError
            If the grid has no bounds.

        Examples
        --------
        >>> grid = Grid.from_bounds(40.0, 40.2, -74.0, -73.8, 2, 2)
        >>> grid.locate([40.05, 40.15, 40.2], [-73.95, -73.95, -73.8])
        array([0, 2, 3])
        """
        if self.bounds is None:
            raise ValueError("locate needs a grid with bounds: make it by Grid.from_bounds(...)")
        if outside not in ("raise", "drop"):
            raise ValueError(f'outside must be "raise" or "drop", got {outside!r}')
        y, x = np.broadcast_arrays(np.atleast_1d(np.asarray(lat, float)), np.atleast_1d(np.asarray(lon, float)))
        if np.isnan(y).any() or np.isnan(x).any():
            raise AlphabetMismatch("lat and lon must be numbers, got NaN: leave points without a position out yourself")
        lat0, lat1, lon0, lon1 = self.bounds
        inside = (y >= lat0) & (y <= lat1) & (x >= lon0) & (x <= lon1)
        if not inside.all() and outside == "raise":
            i = int(np.argmin(inside))
            raise AlphabetMismatch(
                f"{(~inside).sum()} of {inside.size} points are outside the grid, the first is lat={y[i]}, lon={x[i]}; "
                'to leave them out say outside="drop"'
            )
        # searching the edges themselves, because (lat - lat0) / step can round across one
        row = np.searchsorted(np.linspace(lat0, lat1, self.n_rows + 1)[:-1], y[inside], side="right") - 1
        col = np.searchsorted(np.linspace(lon0, lon1, self.n_cols + 1)[:-1], x[inside], side="right") - 1
        return np.asarray(row * self.n_cols + col, dtype=np.int64)

    def to_geodataframe(self, values: ArrayLike, name: str = "value") -> GeoDataFrame:
        """One row per cell (row, col, values, its rectangle) in code order.

        With bounds the rectangles are in degrees, EPSG:4326; without, in `unit` from the corner of cell (0, 0) and
        the frame has no coordinate reference system.

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
        import geopandas
        import shapely

        numbers = np.asarray(values)
        if numbers.shape != (len(self),):
            raise AlphabetMismatch(
                f"values must have one number for each of the {len(self)} cells, got {numbers.shape}"
            )
        north, east = self.edges()
        rows, cols = self.values.T
        i, j = (self.values - self.first).T
        boxes = shapely.box(east[j], north[i], east[j + 1], north[i + 1])
        frame = {"row": rows, "col": cols, name: numbers}
        return geopandas.GeoDataFrame(frame, geometry=boxes, crs="EPSG:4326" if self.bounds else None)

    def edges(self) -> tuple[Floats, Floats]:
        """Edges of the rows, shape (n_rows + 1,), and of the columns.

        They are in degrees if the grid has bounds, else in `unit`.
        """
        height, width = self.cell_shape
        row, col = self.first
        plain = (row * height, (row + self.n_rows) * height, col * width, (col + self.n_cols) * width)
        south, north, west, east = self.bounds or plain
        return np.linspace(south, north, self.n_rows + 1), np.linspace(west, east, self.n_cols + 1)

    @classmethod
    def from_geodataframe(
        cls, frame: GeoDataFrame, name: str = "value", cell_size: float | tuple[float, float] | None = None
    ) -> tuple[Grid, Floats]:
        """The grid and the values of a frame that `to_geodataframe` made.

        Rows may stand in any order. A frame does not hold the cell size: by default it is that of the rectangles, and
        where these are in degrees the true one in km of the middle cell.

        Examples
        --------
        >>> grid = Grid(2, 3, cell_size=0.5)
        >>> again, values = Grid.from_geodataframe(grid.to_geodataframe(range(6)))
        >>> again == grid, values
        (True, array([0., 1., 2., 3., 4., 5.]))
        """
        missing = {"row", "col", name} - set(frame.columns)
        if missing:
            raise ValueError(f"frame must have the columns row, col and {name}; {sorted(missing)} missing")
        first = int(frame["row"].min()), int(frame["col"].min())
        n_rows, n_cols = int(frame["row"].max()) + 1 - first[0], int(frame["col"].max()) + 1 - first[1]
        cells = frame.sort_values(["row", "col"])
        expected = np.indices((n_rows, n_cols)).reshape(2, -1).T + first
        if not np.array_equal(cells[["row", "col"]].to_numpy(), expected):
            raise ValueError(f"frame must have each of the {n_rows} x {n_cols} cells once, it has {len(frame)} rows")
        west, south, east, north = (float(edge) for edge in frame.total_bounds)
        if frame.crs is None:
            size = cell_size or ((north - south) / n_rows, (east - west) / n_cols)
            grid = cls(n_rows, n_cols, size, first=first)
        elif frame.crs.equals("EPSG:4326"):
            grid = cls.from_bounds(south, north, west, east, n_rows, n_cols, cell_size)
        else:
            raise ValueError(f"frame must be in EPSG:4326 or have no CRS, it has {frame.crs}; use frame.to_crs(4326)")
        return grid, cells[name].to_numpy(dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class UnboundedGrid(Unbounded, Grid):
    """The cells of a plane that has no border: ``Grid(None, None, cell_size=0.5)``."""

    # not among what `dataclasses.replace` passes on: they cannot be read, or cannot be given
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
            raise ValueError(f"n_rows and n_cols must both be None, or none of them, got {n_rows!r} and {n_cols!r}")
        if bounds is not None or first != (0, 0):
            raise ValueError(f"bounds and first must be left out of a grid without an end, got {bounds} and {first}")
        self._keep(cell_size=cell_size, unit=unit)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the size of a cell."""
        self._keep(cell_size=_check_size(self.cell_size))

    def __repr__(self) -> str:
        return f"Grid(None, None, cell_size={self.cell_size}, unit={self.unit!r})"

    def _key(self) -> tuple[Any, ...]:
        return (self.cell_shape,)

    def labels_of(self, secrets: ArrayLike) -> Ints:
        """The secrets, which are (row, column) pairs, shape (n, 2)."""
        cells = _validate.integers("secrets", secrets, ndim=2)
        if cells.shape[1] != 2:
            raise ValueError(f"secrets must be (row, column) pairs, shape (n, 2), got {cells.shape}")
        return cells

    def window(self, labels: Ints) -> Grid:
        """The bounding box of some cells, shape (n, 2)."""
        (south, west), (north, east) = labels.min(axis=0).tolist(), labels.max(axis=0).tolist()
        refuse_if_too_wide((north - south + 1) * (east - west + 1), self)
        return Grid(north - south + 1, east - west + 1, self.cell_size, self.unit, first=(south, west))


def _check_size(cell_size: Any) -> float | tuple[float, float]:
    if not isinstance(cell_size, (tuple, list, np.ndarray)):
        return _validate.positive("cell_size", cell_size)
    if len(cell_size) != 2:
        raise ValueError(f"cell_size must be a number or a pair (height, width), got {cell_size!r}")
    height, width = (_validate.positive("cell_size", side) for side in cell_size)
    return height if height == width else (height, width)


def _check_bounds(bounds: Bounds) -> Bounds:
    if len(bounds) != 4:
        raise ValueError(f"bounds must be four numbers (lat0, lat1, lon0, lon1), got {bounds}")
    lat0, lat1, lon0, lon1 = (float(edge) for edge in bounds)
    if not (-90 <= lat0 < lat1 <= 90 and -180 <= lon0 < lon1 <= 180):
        raise ValueError(f"bounds must be south < north and west < east in degrees, got {bounds}")
    return lat0, lat1, lon0, lon1
