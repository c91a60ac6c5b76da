"""Data sets of the book: tables of counts with their alphabets, verified by SHA-256."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import TypeVar
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.grid import Bounds, Grid
from ibukit.domain.labels import aligned_counts
from ibukit.errors import DataChanged

if TYPE_CHECKING:
    import pandas as pd
    from geopandas import GeoDataFrame

PACKAGE = Path(__file__).parent
# The data is inside the wheel, or beside the package in a checkout.
DATA = PACKAGE / "_data" if (PACKAGE / "_data").is_dir() else PACKAGE.parent / "data"

GOWALLA = "check-ins of Gowalla: SNAP loc-gowalla (Cho, Myers and Leskovec, KDD 2011)"
ADULT = "UCI Adult (Becker and Kohavi, 1996), CC BY 4.0"
PRIVIC = "check-ins of Gowalla as gridded in the PRIVIC authors' published files (MIT licence)"
TAXI = (
    "NYC TLC yellow-cab trip records 2018-2020, a sample of 360,000: a substitute for the paper's "
    "table"
)

# The alphabet of a data set, for type checkers: a line, a grid, or any other.
Space = TypeVar("Space", bound=Alphabet, covariant=True, default=Alphabet)


@dataclass(frozen=True, eq=False)
class Dataset(arguments.ReadOnlyArrays, Generic[Space]):
    """Counts of people (or check-ins, or trips) over an alphabet.

    Attributes
    ----------
    name : str
    counts : ndarray of int, shape (k,)
        Read-only; mappings and Series are aligned by their labels.
    alphabet : Alphabet
    source : str
    landmarks : mapping of name to (lat, lon)
        Places to be named on a map, in degrees, accurate to 100 m; empty if there is no map.

    Examples
    --------
    >>> load_adult_ages()
    Dataset(adult_ages: n=48842 over Line(0, 99, unit='year'))
    """

    name: str
    counts: Ints
    alphabet: Space
    source: str
    landmarks: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            counts: NDArray[Any] | Mapping[Any, int] | pd.Series[Any],
            alphabet: Space,
            source: str,
            landmarks: Mapping[str, tuple[float, float]] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if arguments.labelled("counts", self.counts) is not None:
            counts = aligned_counts("counts", self.counts, self.alphabet)
            self._keep(counts=arguments.frozen(counts))

    @property
    def n(self) -> int:
        """Number of people, check-ins or trips."""
        return int(self.counts.sum())

    @cached_property
    def distribution(self) -> Floats:
        """Counts divided by their sum, shape (k,)."""
        return arguments.frozen(self.counts / self.n)

    def __repr__(self) -> str:
        return f"Dataset({self.name}: n={self.n} over {self.alphabet!r})"


def load_adult_ages(subset: Literal["all", "train"] = "all") -> Dataset[Line]:
    """Ages of the people in UCI Adult, over 0..99 years as in the consistency paper.

    Parameters
    ----------
    subset : {"all", "train"}
        All 48,842 people (Fig. 1 of the consistency paper), or the 32,561 of the training file
        (used in the frequency-estimation paper).

    Returns
    -------
    Dataset
        On Line(0, 99); ages 17 to 90 occur (in the training file all of them but 89).

    Raises
    ------
    DataChanged
        If the table does not have the recorded hash.
    ValueError
        If `subset` is unknown.

    Examples
    --------
    >>> ages = load_adult_ages()
    >>> ages.n, int(ages.counts.argmax())
    (48842, 36)
    """
    rows = _read(_subset({"all": "adult/ages.csv", "train": "adult/ages_train.csv"}, subset))
    line = Line(0, 99, unit="year")
    counts = np.zeros(len(line), dtype=np.int64)
    counts[line.codes([int(row["age"]) for row in rows])] = [int(row["count"]) for row in rows]
    name = "adult_ages" if subset == "all" else "adult_ages_train"
    return Dataset(name, arguments.frozen(counts), line, ADULT)


def load_adult_workclass(subset: Literal["all", "train"] = "all") -> Dataset:
    """Work class of the people in UCI Adult, nine values with the discrete metric.

    Parameters
    ----------
    subset : {"all", "train"}
        All 48,842 people, or the 32,561 of the training file (used in the frequency-estimation
        paper).

    Returns
    -------
    Dataset
        Over the nine labels, "?" among them, the most frequent first.

    Raises
    ------
    DataChanged
        If the table does not have the recorded hash.
    ValueError
        If `subset` is unknown.

    Examples
    --------
    >>> load_adult_workclass().alphabet.values[0]
    np.str_('Private')
    >>> load_adult_workclass("train").n
    32561
    """
    files = {"all": "adult/workclass.csv", "train": "adult/workclass_train.csv"}
    rows = _read(_subset(files, subset))
    labels = Alphabet([row["workclass"] for row in rows])
    name = "adult_workclass" if subset == "all" else "adult_workclass_train"
    return Dataset(name, _counts(rows, "count"), labels, ADULT)


def load_gowalla(city: str) -> Dataset[Grid]:
    """Check-ins of Gowalla, counted on the grid of cells that a paper uses.

    ========================  ===========  =========  ==============================================
    city                      rows x cols  check-ins  remark
    ========================  ===========  =========  ==============================================
    ``manhattan``             20 x 14         98,061  the degrees the paper prints; it counts 98,060
    ``manhattan_exact_km``    20 x 14         98,060  a box of 10 km x 7 km from the same corner
    ``paris``                 12 x 16         10,991
    ``san_francisco``         16 x 24        123,026
    ``san_francisco_24x17``   17 x 24        123,026  the same box in 17 rows
    ``privic_paris``          11 x 15         10,078  as the PRIVIC authors' program reads it
    ``privic_san_francisco``  16 x 24        123,025  likewise
    ========================  ===========  =========  ==============================================

    Parameters
    ----------
    city : str
        One of the names above.

    Returns
    -------
    Dataset
        Over a `Grid`. Distances are in km, on the basis of the papers' nominal cell of 0.5 km (the
        true cells of Manhattan are 0.499 km x 0.501 km). In the two ``privic_`` tables they are in
        cells, as in that paper, and the bounds are the box of the cells' printed centres.

    Raises
    ------
    DataChanged
        If the table does not have the recorded hash.
    ValueError
        If `city` is unknown.

    Notes
    -----
    The PRIVIC files count rows from the north and columns from the east; here row 0 is in the south
    and column 0 in the west, as everywhere in this package. Their cell number c is our code
    k - 1 - c. Their program takes the first line of data for a header, so one check-in is lost.

    Examples
    --------
    >>> manhattan = load_gowalla("manhattan")
    >>> len(manhattan.alphabet), manhattan.n
    (280, 98061)
    """
    if not arguments.is_one_of(city, _CITIES):
        raise ValueError(f"city must be one of {', '.join(_CITIES)}, got {city!r}")
    return _CITIES[city](city)


def load_places(city: str) -> GeoDataFrame:
    """Outlines of a city for a map, to 100 m: shores, parks, streets, landmarks.

    Parameters
    ----------
    city : str
        As `load_gowalla` takes it.

    Returns
    -------
    geopandas.GeoDataFrame
        In degrees, EPSG:4326. Columns kind ("land", "water", "park", "canal", "street" or
        "landmark"), name, source, approximate (set by hand) and geometry. If there are areas of
        land, everything else is water. ``attrs["attribution"]`` must be printed with the map.

    Examples
    --------
    >>> load_places("paris").query("kind == 'water'").name.tolist()
    ['Seine']
    """
    if not arguments.is_one_of(city, _CITIES):
        raise ValueError(f"city must be one of {', '.join(_CITIES)}, got {city!r}")
    # geopandas takes a second to import.
    from geopandas import GeoDataFrame

    file = next(name for name in ("manhattan", "paris", "san_francisco") if name in city)
    features = json.loads(_content(f"places/{file}.geojson"))
    columns = ["kind", "name", "source", "approximate", "geometry"]
    frame = GeoDataFrame.from_features(features["features"], crs=4326, columns=columns)
    frame["approximate"] = frame["approximate"].notna()
    frame.attrs["attribution"] = features["attribution"]
    return frame


def load_privic_island(stated: int = 0) -> Floats:
    """The PRIVIC authors' distribution of Paris with a planted lonely cell.

    The cells are in the order of ``privic_paris``. Their cell number c is entry 164 - c: the lonely
    cell A (93) is entry 71, the crowded cell B (52) entry 112. The vector is returned as the
    authors give it: the entries sum to 1.000000003, so pass it through `normalize` if you need a
    distribution.

    Parameters
    ----------
    stated : int
        Selects one of the authors' nine vectors of the attack, in which additional people claim to
        be at A. It is the percentage of adversaries under which their README lists the vector: one
        of 0, 5, 10, 15, 20, 24, 29, 34, 38. The true share is a tenth of it, as the chapter on the
        attack shows.

    Returns
    -------
    ndarray, shape (165,)

    Raises
    ------
    DataChanged
        If the table does not have the recorded hash.
    ValueError
        If there is no vector of that name.

    Examples
    --------
    >>> island = load_privic_island()
    >>> float(island[71]), round(float(island.sum()), 9)
    (0.01, 1.000000003)
    >>> float(load_privic_island(stated=38)[71])
    0.05
    """
    rows, column = _read("privic/paris_island_adversaries.csv"), f"percent_{stated}"
    if column not in rows[0]:
        known = ", ".join(
            name.removeprefix("percent_") for name in rows[0] if name.startswith("percent_")
        )
        raise ValueError(f"stated must be one of {known}, got {stated!r}")
    mass = np.array([float(row[column]) for row in rows])
    return arguments.frozen(mass[::-1].copy())


def load_privic_epsilons() -> dict[str, Floats]:
    """Tight epsilons per cell in the PRIVIC authors' program, one for each beta.

    Returns
    -------
    dict
        Arrays of 25 numbers under "beta", "paris" and "san_francisco".

    Examples
    --------
    >>> load_privic_epsilons()["beta"][:2]
    array([0.2, 0.4])
    """
    rows = _read("privic/tight_epsilons.csv")
    return {
        name: np.array([float(row[name]) for row in rows])
        for name in ("beta", "paris", "san_francisco")
    }


def load_taxi_distances() -> Dataset[Line]:
    """Distances of New York taxi trips in 1,000 bins of 0.03 miles.

    They are a substitute for the table of 434,195 trips in the frequency-estimation paper, which
    could not be obtained. The range of 30 miles is our choice.

    Examples
    --------
    >>> len(load_taxi_distances().alphabet)
    1000
    """
    rows = _read("taxi/distances_1000_bins.csv")
    line = Line(0, len(rows) - 1, unit="0.03 miles")
    return Dataset("taxi_distances", _counts(rows, "count"), line, TAXI)


def load_taxi_payments() -> Dataset:
    """Payment types of New York taxi trips, a substitute for the paper's table.

    Examples
    --------
    >>> load_taxi_payments().n
    360000
    """
    rows = _read("taxi/payments.csv")
    return Dataset(
        "taxi_payments", _counts(rows, "count"), Alphabet([row["label"] for row in rows]), TAXI
    )


def _gowalla(
    bounds: Bounds, landmarks: Mapping[str, tuple[float, float]]
) -> Callable[[str], Dataset[Grid]]:
    def load(city: str) -> Dataset[Grid]:
        # The tables list cells with their counts; cells without check-ins may be missing.
        rows = _read(f"gowalla/{city}.csv")
        cells = [(int(row["row"]), int(row["col"])) for row in rows]
        n_rows, n_cols = (max(axis) + 1 for axis in zip(*cells, strict=True))
        grid = Grid(n_rows, n_cols, cell_size=0.5, unit="km", bounds=bounds)
        counts = np.zeros(len(grid), dtype=np.int64)
        counts[grid.codes(cells)] = _counts(rows, "count")
        return Dataset(f"gowalla_{city}", arguments.frozen(counts), grid, GOWALLA, dict(landmarks))

    return load


def _privic(
    bounds: Bounds, landmarks: Mapping[str, tuple[float, float]]
) -> Callable[[str], Dataset[Grid]]:
    def load(city: str) -> Dataset[Grid]:
        rows = _read(f"privic/{city.removeprefix('privic_')}.csv")
        n_rows, n_cols = (max(int(row[axis]) for row in rows) + 1 for axis in ("i", "j"))
        # Their cells start in the north-east and run west, then south: the reverse of our order.
        counts = arguments.frozen(_counts(rows, "count_as_read")[::-1].copy())
        grid = Grid(n_rows, n_cols, unit="cell", bounds=bounds)
        return Dataset(f"gowalla_{city}", counts, grid, PRIVIC, dict(landmarks))

    return load


_MANHATTAN = {
    "Times Square": (40.758, -73.985),
    "Grand Central": (40.753, -73.977),
    "Union Square": (40.736, -73.991),
    "Wall Street": (40.707, -74.011),
    "Metropolitan Museum": (40.779, -73.963),
}
_PARIS = {
    "Eiffel Tower": (48.858, 2.294),
    "Arc de Triomphe": (48.874, 2.295),
    "Louvre": (48.861, 2.336),
    "Gare de Lyon": (48.844, 2.374),
}
_SAN_FRANCISCO = {
    "Union Square": (37.788, -122.407),
    "Oracle Park": (37.779, -122.389),
    "Mission Dolores": (37.764, -122.427),
    "Twin Peaks": (37.754, -122.448),
}
# San Francisco in degrees: south, north, west, east.
_BAY = (37.7228, 37.7946, -122.5153, -122.3789)
_CITIES: dict[str, Callable[[str], Dataset[Grid]]] = {
    "manhattan": _gowalla((40.7044, 40.7942, -74.0205, -73.9374), _MANHATTAN),
    # A box of 10 km of latitude and 7 km of longitude from the same south-west corner.
    "manhattan_exact_km": _gowalla((40.7044, 40.794231, -74.0205, -73.937439), _MANHATTAN),
    "paris": _gowalla((48.8286, 48.8798, 2.2855, 2.3909), _PARIS),
    "san_francisco": _gowalla(_BAY, _SAN_FRANCISCO),
    "san_francisco_24x17": _gowalla(_BAY, _SAN_FRANCISCO),
    "privic_paris": _privic((48.8286, 48.87557, 2.2855, 2.3845), _PARIS),
    "privic_san_francisco": _privic(_BAY, _SAN_FRANCISCO),
}


def _subset(files: dict[str, str], subset: str) -> str:
    if not arguments.is_one_of(subset, files):
        raise ValueError(f'subset must be "all" or "train", got {subset!r}')
    return files[subset]


def _counts(rows: list[dict[str, str]], column: str) -> Ints:
    return arguments.frozen(np.array([int(row[column]) for row in rows], dtype=np.int64))


def _read(name: str) -> list[dict[str, str]]:
    """Return the rows of a table whose hash is the recorded one."""
    return list(csv.DictReader(_content(name).decode("utf-8").splitlines()))


def _content(name: str) -> bytes:
    """Return the content of a file; raise DataChanged if its hash is not the recorded one."""
    # The hash is computed at each call: files are small, and a changed table would change results
    # unnoticed.
    content = (DATA / name).read_bytes()
    sums = (line.split() for line in (DATA / "SHA256SUMS").read_text("utf-8").splitlines())
    recorded = {file: digest for digest, file in sums}
    actual = hashlib.sha256(content).hexdigest()
    if actual != recorded.get(name):
        raise DataChanged(
            f"{DATA / name} has SHA-256 {actual}, recorded is {recorded.get(name)}: restore the "
            "file; write a new hash into SHA256SUMS only if you changed the file on purpose"
        )
    return content
