"""The doors by which data come in, and what each of them reads.

The words that a door takes are read from here, and the page *From your file to a tally* of the book
is written from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Door:
    """A function that reads reports, or counts of them.

    Parameters
    ----------
    reads : str
        What the function takes, in words.
    unknown, missing : str
        What becomes of what the mechanism cannot report, and of what is not there.
    words : mapping of str to tuple of str
        The words that each argument of the function takes, the default first.
    """

    reads: str
    unknown: str
    missing: str
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


REFUSED = "refused, with an error that names the first of them"

DOORS = {
    "Mechanism.tally": Door(
        "one report after another: labels in a list, an array, a Series or an Arrow array, or "
        "codes with `codes=True`. Rows of bits may also be strings, such as "
        '"0101", or "0x05" in hexadecimal digits; if a report consists of a number and some bits, '
        "the number comes first. Over a grid reports are pairs (row, column), or points in the "
        "forms that `Grid.locate` reads; if the mechanism itself reports points, use "
        "`tally_points`",
        REFUSED,
        REFUSED,
    ),
    "FiniteMechanism.tally_counts": Door(
        "how often each report was seen: a Series, a mapping or a `value_counts()`, which are read "
        "by their labels, or an array in the order of the reports. With `weighted=True` the counts "
        "are weights",
        REFUSED,
        "a label that you leave out counts as never reported",
    ),
    "Grid.locate": Door(
        "points: a GeoSeries or GeoDataFrame with a coordinate reference system (CRS); a frame "
        "with the columns lat and lon (also latitude, longitude, lng), in degrees, or x and y, in "
        "the grid's unit from its south-west corner; an array of (lat, lon). With `codes=True` "
        "mechanisms take the codes that `locate` returns; `Mechanism.tally` also reads points in "
        "all these forms",
        "refused, moved to the nearest cell, or left out; the argument `outside` decides",
        REFUSED,
        {"outside": ("raise", "nearest", "drop")},
    ),
    "PlanarLaplace.tally_points": Door(
        "points in the plane: a frame with the columns x and y, in the grid's unit from its "
        "south-west corner, or lat and lon (also latitude, longitude, lng), in degrees; a "
        "GeoSeries or GeoDataFrame with a CRS; an array of (x, y), which is refused if its points "
        "lie outside the grid but, read as degrees, would lie inside",
        "refused, counted where they are, or left out; the argument `outside` decides",
        REFUSED,
        {"outside": ("raise", "keep", "drop")},
    ),
    "Rappor.tally_sums": Door(
        "the number of 1s for each bit, and the total number of reports; some estimates need "
        "nothing else. The bits' counts come in a Series or a mapping, which are read by their "
        "labels, or in an array in the order of the secrets",
        REFUSED,
        REFUSED,
    ),
    "Tally.from_table": Door(
        "columns of a frame (pandas, Polars, Arrow, DuckDB, Dask, Spark), of Parquet or CSV files,"
        " of a folder, or of all files whose names match a pattern. Folders with names such as "
        "`version=1` become columns, and names that begin with `_` or `.` are skipped. A string is "
        "read as the label, number or key that it spells. Rows of bits may be strings or lists, or "
        "may have a column for each bit. On a grid there are two columns, in any order: lat and "
        "lon, x and y, or row and col; a GeoDataFrame has one column of geometries instead. If two "
        "columns have other names, integers in them are read as (row, column) and floats as "
        "(lat, lon), but mechanisms that report points refuse such columns. Eastings and "
        "northings are refused, because nothing shows which CRS they use. One mechanism serves all "
        "rows, or the values of some columns say which mechanism belongs to a row; with `groups` "
        "each group gets a tally of its own",
        "refused, moved to the nearest cell of a grid, or left out and counted in `dropped`; "
        "the argument `unknown` decides. Rows left out are assumed to be like the others. "
        "Mechanisms that report points keep points outside the grid where they are, and do not "
        "count them as unknown",
        "refused, or left out and counted in `dropped`; the argument `missing` decides. Rows left "
        "out are assumed to be like the others",
        {"unknown": ("raise", "nearest", "keep", "drop"), "missing": ("raise", "drop")},
    ),
    "Tally.from_likelihoods": Door(
        "likelihoods of what was observed, with a row for each observation and a column for each "
        "secret; each row need be known only up to a factor of its own. Frames and Series are read "
        "by their labels, arrays by position, and matrices may be sparse; weights go in with "
        "`weighted=True`",
        REFUSED,
        REFUSED,
    ),
    "MatrixMechanism.from_trials": Door(
        "counts of trials (whole numbers), with a row for each secret and a column for each "
        "report. Frames are read by their labels, arrays by position",
        REFUSED,
        REFUSED,
    ),
    "scale.tally": Door(
        "Dask partitions, or files on disk that hold rows of bits;"
        " in both cases the reports stay where they are stored",
        REFUSED,
        REFUSED,
    ),
    "unfold": Door(
        "a matrix and binned counts, which may be expected or weighted. Frames and Series are read "
        "by their labels, arrays by position. Two-dimensional bins need either a four-dimensional "
        "matrix or labels",
        REFUSED,
        REFUSED,
    ),
    "regress": Door(
        "covariates, as numbers or by a formula, with a row for each person, and one report per "
        "row, in any form that `Mechanism.tally` reads. All rows may share one mechanism, or each "
        "row may have its own. If `data` is given, the arguments may name its columns",
        REFUSED,
        REFUSED,
    ),
    "ibukit estimate": Door(
        "CSV (gzipped or not), Parquet, folders or patterns of such files, or standard input; "
        "takes mechanisms by name, from a matrix file that names its secrets and reports, or from "
        "a file of parameters",
        "refused, with an error that names the line, or treated as `Tally.from_table` treats them; "
        "the option `--unknown` decides",
        "refused, with an error that names the line, or left out; the option `--missing` decides",
        {"--unknown": ("raise", "nearest", "keep", "drop"), "--missing": ("raise", "drop")},
    ),
}


def words_of(door: str, argument: str) -> tuple[str, ...]:
    """Return the words that an argument of a door takes, the default first."""
    return DOORS[door].words[argument]
