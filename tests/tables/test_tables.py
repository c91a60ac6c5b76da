"""`Tally.from_table`: the same tally from every engine,
and nothing counted as something that it is not.
"""

import datetime
import pickle
from collections import Counter

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch

LABELS = ["bike", "bus", "car", "train"]
MECHANISM = ik.RandomizedResponse(ik.Alphabet(LABELS), epsilon=1.0)


def of_epsilon(epsilon):
    return ik.RandomizedResponse(ik.Alphabet(LABELS), epsilon)


def seen(tally):
    """What a tally holds, whatever the order of its parts: mechanism, report and count."""
    return Counter(
        {
            (part.mechanism, *np.atleast_1d(report).tolist()): int(count)
            for part in tally.parts
            for report, count in zip(part.reports, part.counts, strict=True)
        }
    )


def frames(data, folder, schema=None):
    """The same rows in every kind of table."""
    table = pa.table(data, schema=schema)
    pandas = table.to_pandas()
    half = len(table) // 2
    for i, part in enumerate([table[:half], table[half:]]):
        pyarrow.parquet.write_table(part, folder / f"part-{i}.parquet", row_group_size=7)
    return {
        "pandas": pandas,
        "pandas of Arrow": table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": pl.from_arrow(table),
        "polars lazy": pl.from_arrow(table).lazy(),
        "arrow": table,
        "arrow dataset": pyarrow.dataset.dataset(folder, format="parquet"),
        "arrow reader": table.to_reader(max_chunksize=11),
        "arrow scanner": pyarrow.dataset.dataset(folder, format="parquet").scanner(batch_size=5),
        "duckdb": duckdb.from_arrow(table),
        "dask": dask.dataframe.from_pandas(pandas, npartitions=3),
        "glob": str(folder / "part-*.parquet"),
        "folder": folder,
        "paths": [folder / "part-0.parquet", folder / "part-1.parquet"],
    }


ENGINES = [
    *(
        "pandas",
        "pandas of Arrow",
        "polars",
        "polars lazy",
        "arrow",
        "arrow dataset",
        "arrow reader",
        "arrow scanner",
    ),
    *("duckdb", "dask", "glob", "folder", "paths"),
]


def some_reports(rng, n=300):
    """Reports, some of them missing and some unknown, with epsilons and counts."""
    reports = rng.choice([*LABELS, "?", None], n, p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05])
    epsilons = rng.choice([0.5, 1.0, 2.0, None], n, p=[0.3, 0.3, 0.3, 0.1])
    return {
        "report": reports.tolist(),
        "eps": epsilons.tolist(),
        "n": rng.integers(0, 5, n).tolist(),
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_tally(engine, tmp_path):
    data = some_reports(np.random.default_rng(1))
    table = frames(data, tmp_path)[engine]
    expected, lost = Counter(), Counter()
    for report, epsilon, n in zip(*data.values(), strict=True):
        reason = "missing" if None in (report, epsilon) else "unknown" if report == "?" else None
        if reason is None:
            expected[of_epsilon(epsilon), LABELS.index(report)] += n
        else:
            lost[reason] += n
    tally = ik.Tally.from_table(
        table, of_epsilon, count="n", epsilon="eps", unknown="drop", missing="drop"
    )
    assert seen(tally) == +expected
    assert tally.dropped == lost


@pytest.mark.parametrize("engine", ENGINES)
def test_without_counts_each_row_is_a_report(engine, tmp_path):
    reports = np.random.default_rng(2).choice(LABELS, 100).tolist()
    tally = ik.Tally.from_table(frames({"r": reports}, tmp_path)[engine], MECHANISM, report="r")
    assert seen(tally) == Counter((MECHANISM, LABELS.index(report)) for report in reports)
    assert tally.dropped == {}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", ["texts", "lists", "columns"])
def test_rows_of_bits_come_in_three_forms(engine, form, tmp_path):
    mechanism = ik.Rappor(5, 1.0)
    rows = mechanism.randomize(np.arange(5).repeat(8), np.random.default_rng(3))
    expected = seen(mechanism.tally(rows))
    columns = ["b0", "b1", "b2", "b3", "b4"]
    data = {
        "texts": {"report": ["".join(map(str, row)) for row in rows.tolist()]},
        "lists": {"report": rows.tolist()},
        "columns": dict(zip(columns, rows.T.tolist(), strict=True)),
    }[form]
    report = columns if form == "columns" else "report"
    table = frames(data, tmp_path)[engine]
    if (engine, form) == ("dask", "lists"):  # Dask makes texts of lists, "[0 1 0 1 1]"
        with pytest.raises(AlphabetMismatch, match="rows of 5 bits, as text or in as many columns"):
            ik.Tally.from_table(table, mechanism, report=report)
    else:
        assert seen(ik.Tally.from_table(table, mechanism, report=report)) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_points_are_found_in_the_grid_and_those_outside_are_unknown(engine, tmp_path):
    grid = ik.Grid.from_bounds(40.0, 40.2, -74.0, -73.8, 2, 2)
    mechanism = ik.PlanarLaplace(grid, 0.5)
    data = {"lat": [40.05, 40.15, 40.15, 41.0, None], "lon": [-73.95, -73.95, -73.85, -73.9, -73.9]}
    table = frames(data, tmp_path)[engine]
    tally = ik.Tally.from_table(table, mechanism, ("lat", "lon"), unknown="drop", missing="drop")
    assert seen(tally) == Counter([(mechanism, 0), (mechanism, 2), (mechanism, 3)])
    assert tally.dropped == {"missing": 1, "unknown": 1}


def test_coordinates_that_are_no_numbers_are_unknown(tmp_path):
    mechanism = ik.PlanarLaplace(ik.Grid.from_bounds(40.0, 40.2, -74.0, -73.8, 2, 2), 0.5)
    table = pd.DataFrame({"lat": ["40.05", "x"], "lon": [-73.95, -73.95]})
    table.to_csv(tmp_path / "a.csv", index=False)
    for place, n in ((tmp_path / "a.csv", 1), (table.replace("40.05", 40.05), 1)):
        tally = ik.Tally.from_table(place, mechanism, ("lat", "lon"), unknown="drop")
        assert (tally.n, tally.dropped) == (n, {"unknown": 1})
    with pytest.raises(AlphabetMismatch, match=r"'lat', 'lon' contains \('x', -73.95\)"):
        ik.Tally.from_table(table, mechanism, ("lat", "lon"))


@pytest.mark.parametrize(
    ("points", "advice"),
    [
        ([(-73.95, 40.05)], "longitude, latitude\\): name the column of the latitude first"),
        (
            [("x", "y"), ("-73.95", "40.05")],
            "longitude, latitude\\): name the column of the latitude first",
        ),
        (
            [(41.0, -73.95)],
            'correct such rows, or say unknown="nearest" .* or unknown="drop" to leave',
        ),
        ([("x", None)], "."),
    ],
)
def test_longitude_before_latitude_is_told_from_a_place_outside(points, advice):
    mechanism = ik.TruncatedPlanarGeometric(
        ik.Grid.from_bounds(40.0, 40.2, -74.0, -73.8, 2, 2), 1.0
    )
    table = pd.DataFrame(points, columns=["a", "b"])
    with pytest.raises(ValueError, match=advice):
        ik.Tally.from_table(table, mechanism, ("a", "b"))


@pytest.mark.parametrize("engine", ENGINES)
def test_integers_on_a_line_stay_integers(engine, tmp_path):
    mechanism = ik.LinearGeometric(ik.Line(17, 30), 0.5)
    table = frames({"report": [-3, 17, 17, 45, None]}, tmp_path)[engine]
    tally = ik.Tally.from_table(table, mechanism, missing="drop")
    assert seen(tally) == Counter({(mechanism, -3): 1, (mechanism, 17): 2, (mechanism, 45): 1})


def test_labels_of_a_line_are_no_codes():
    table = pd.DataFrame({"report": [17, 18, 18, 30]})
    tally = ik.Tally.from_table(table, ik.TruncatedGeometric(ik.Line(17, 30), 0.5))
    assert tally.parts[0].reports.tolist() == [0, 1, 13]
    with pytest.raises(
        AlphabetMismatch,
        match=r"'report' contains 31, which is not a report of Trunc.*Line\(17, 30\)",
    ):
        ik.Tally.from_table(
            pd.DataFrame({"report": [31]}), ik.TruncatedGeometric(ik.Line(17, 30), 0.5)
        )


def test_cells_are_pairs_with_or_without_an_end():
    table = pl.DataFrame({"row": [0, 1, 1, 9], "col": [0, 1, 1, 0]})
    grid = ik.Grid(2, 3)
    tally = ik.Tally.from_table(
        table, ik.RandomizedResponse(grid, 1.0), ["row", "col"], unknown="drop"
    )
    assert (tally.parts[0].reports.tolist(), tally.counts.tolist()) == ([0, 4], [1, 2])
    assert tally.dropped == {"unknown": 1}
    placed = ik.RandomizedResponse(ik.Grid.from_bounds(40.0, 40.2, -74.0, -73.7, 2, 3), 1.0)
    tally = ik.Tally.from_table(table, placed, ["row", "col"], unknown="drop")
    assert (tally.parts[0].reports.tolist(), tally.counts.tolist()) == ([0, 4], [1, 2])
    plane = ik.PlanarGeometric(ik.Grid(None, None), 1.0)
    assert ik.Tally.from_table(table, plane, ["row", "col"]).parts[0].reports.tolist() == [
        [0, 0],
        [1, 1],
        [9, 0],
    ]


def test_a_thousand_epsilons_make_one_pooled_tally():
    rng = np.random.default_rng(4)
    epsilons = rng.choice(np.linspace(0.5, 2.0, 1000), 20_000)
    table = pl.DataFrame({"report": rng.choice(LABELS, 20_000), "eps": epsilons})
    tally = ik.Tally.from_table(table, of_epsilon, epsilon="eps")
    assert tally.n == 20_000
    assert {part.mechanism.epsilon for part in tally.parts} == set(epsilons)
    assert ik.mle(tally).gap < 1e-8


def test_a_column_says_which_mechanism(tmp_path):
    weak, strong = of_epsilon(0.5), of_epsilon(3.0)
    data = {"report": ["car", "car", "bus", "car"], "app": ["old", "new", "new", "beta"]}
    given = {"old": weak, "new": strong}
    for table in frames(data, tmp_path).values():
        tally = ik.Tally.from_table(table, given, by="app", unknown="drop")
        assert seen(tally) == Counter([(weak, 2), (strong, 2), (strong, 1)])
        assert tally.dropped == {"unknown": 1}
    with pytest.raises(
        AlphabetMismatch, match="'app' contains 'beta', for which there is no mechanism"
    ):
        ik.Tally.from_table(data | {} and pd.DataFrame(data), given, by="app")


def test_missing_is_null_and_nan_in_every_engine():
    holes = [1.0, None, float("nan")]
    tables = [
        pd.DataFrame({"report": holes}),
        pd.DataFrame({"report": pd.array([1, None, None], dtype="Int64")}),
        pd.DataFrame({"report": pd.Categorical([1, None, None])}),
        pl.DataFrame({"report": holes}),
        pa.table({"report": holes}),
        duckdb.from_arrow(pa.table({"report": holes})),
        dask.dataframe.from_pandas(pd.DataFrame({"report": holes}), npartitions=2),
    ]
    mechanism = ik.RandomizedResponse(3, 1.0)
    for table in tables:
        tally = ik.Tally.from_table(table, mechanism, missing="drop", unknown="raise")
        assert (tally.counts.tolist(), tally.dropped) == ([1], {"missing": 2})
        with pytest.raises(ValueError, match=r"'report' has missing values.*missing=.drop."):
            ik.Tally.from_table(table, mechanism, unknown="drop")


DICTIONARIES = pa.chunked_array(
    [pa.array(part).dictionary_encode() for part in (["bus", "car"], ["car", None])]
)


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(["bus", "car", "car", None], ["train", "car", "bus"]),
        pl.Series(["bus", "car", "car", None], dtype=pl.Categorical),
        pl.Series(["bus", "car", "car", None], dtype=pl.Enum(["car", "bus"])),
        DICTIONARIES,
    ],
    ids=["pandas", "polars", "enum", "dictionaries"],
)
def test_categories_are_their_labels(column):
    kind = {pl.Series: pl.DataFrame, pa.ChunkedArray: pa.table}.get(type(column), pd.DataFrame)
    tally = ik.Tally.from_table(kind({"report": column}), MECHANISM, missing="drop")
    assert seen(tally) == Counter({(MECHANISM, 1): 1, (MECHANISM, 2): 2})


def test_truth_values_are_not_the_numbers_0_and_1():
    table = pd.DataFrame({"report": [True, False, True]})
    for alphabet in (2, ik.Alphabet([0, 1]), ik.Alphabet(["no", "yes"])):
        with pytest.raises(AlphabetMismatch, match=r"'report' contains .*(True|False)"):
            ik.Tally.from_table(table, ik.RandomizedResponse(alphabet, 1.0))
    truth = ik.RandomizedResponse(ik.Alphabet([False, True]), 1.0)
    assert ik.Tally.from_table(table, truth).counts.tolist() == [1, 2]
    with pytest.raises(AlphabetMismatch, match="contains 1, 0"):
        ik.Tally.from_table(pd.DataFrame({"report": [1, 0]}), truth)


def test_days_are_labels_and_moments_are_not_days():
    days = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]
    mechanism = ik.RandomizedResponse(ik.Alphabet(np.array(days, dtype=object)), 1.0)
    for table in (pl.DataFrame({"report": days}), duckdb.from_arrow(pa.table({"report": days}))):
        assert ik.Tally.from_table(table, mechanism).counts.tolist() == [1, 1]
    with pytest.raises(AlphabetMismatch, match="Timestamp"):
        ik.Tally.from_table(pd.DataFrame({"report": pd.to_datetime(days)}), mechanism)
    assert mechanism.tally(np.array(days, dtype="datetime64[D]")).counts.tolist() == [1, 1]


def test_what_was_dropped_stays_with_the_tally():
    def counted(reports):
        table = pd.DataFrame({"report": reports})
        return ik.Tally.from_table(table, MECHANISM, unknown="drop", missing="drop")

    tally = (
        counted(["car", "?"]) + counted(["bus", None, "!"]) + MECHANISM.tally_counts([1, 0, 0, 0])
    )
    assert tally.dropped == {"missing": 1, "unknown": 2}
    assert pickle.loads(pickle.dumps(tally)).dropped == tally.dropped
    assert repr(tally).endswith("; dropped 1 missing, 2 unknown)")
    assert "dropped" not in repr(counted(["car"]))
    with pytest.raises(TypeError):
        tally.dropped["unknown"] = 0


def test_labels_in_csv_are_text_and_numbers_are_read(tmp_path):
    (tmp_path / "a.csv").write_text("report,eps\n01,1.0\n1,2\n,1\n01,1\n")
    labels = ik.Alphabet(["1", "01"])
    tally = ik.Tally.from_table(
        tmp_path / "a.csv",
        lambda eps: ik.RandomizedResponse(labels, eps),
        epsilon="eps",
        missing="drop",
    )
    first, second = (ik.RandomizedResponse(labels, epsilon) for epsilon in (1.0, 2.0))
    assert seen(tally) == Counter({(first, 1): 2, (second, 0): 1})
    assert tally.dropped == {"missing": 1}
    line = ik.RandomizedResponse(ik.Line(0, 3), 1.0)
    assert ik.Tally.from_table(tmp_path / "a.csv", line, missing="drop").counts.tolist() == [3]


BITS = ik.Rappor(3, 1.0)
TABLE = pd.DataFrame(
    {"report": ["car", "bus"], "eps": [1.0, -2.0], "n": [1, -1], "m": [1.0, 0.5], "b": [0, 1]}
)
REFUSED = {
    "no such column": (TABLE, MECHANISM, {"report": "repot"}, ["repot", "'report', 'eps', 'n'"]),
    "no such epsilon": (TABLE, of_epsilon, {"epsilon": "e"}, ["'e'", "'eps'"]),
    "negative counts": (TABLE, MECHANISM, {"count": "n"}, ["'n'", "-1"]),
    "halves": (TABLE, MECHANISM, {"count": "m"}, ["'m'", "0.5"]),
    "texts for counts": (TABLE, MECHANISM, {"count": "report"}, ["'report'", "counts", "String"]),
    "a bad epsilon": (TABLE, of_epsilon, {"epsilon": "eps"}, ["'eps'", "-2.0", "epsilon must be"]),
    "text for epsilon": (
        TABLE,
        of_epsilon,
        {"epsilon": "report"},
        ["'report'", "numbers", "'car'"],
    ),
    "a mechanism and a column of epsilons": (TABLE, MECHANISM, {"epsilon": "eps"}, ["lambda eps"]),
    "a function alone": (TABLE, of_epsilon, {}, ["mechanism", "epsilon"]),
    "no mapping": (TABLE, MECHANISM, {"by": "b"}, ["mapping", "'b'"]),
    "both, and one mechanism": (
        TABLE,
        MECHANISM,
        {"by": "b", "epsilon": "eps"},
        ["function of the values of 'b' and of 'eps'"],
    ),
    "a wrong word": (TABLE, MECHANISM, {"unknown": "ignore"}, ["unknown", "'ignore'"]),
    "nothing left": (
        TABLE,
        MECHANISM,
        {"report": "n", "unknown": "drop"},
        ["at least one", "2 unknown were dropped"],
    ),
    "no rows": (TABLE[:0], MECHANISM, {}, ["at least one report"]),
    "two columns for one": (TABLE, MECHANISM, {"report": ["n", "b"]}, ["one column", "['n', 'b']"]),
    "one column for cells": (
        TABLE,
        ik.RandomizedResponse(ik.Grid(2, 2), 1.0),
        {"report": "b"},
        ["row and column"],
    ),
    "a short row of bits": (pd.DataFrame({"report": ["010", "01"]}), BITS, {}, ["'01'", "3 bits"]),
    "no bit": (pd.DataFrame({"report": ["010", "01x"]}), BITS, {}, ["'01x'"]),
    "a letter that is two bytes": (pd.DataFrame({"report": ["01é"]}), BITS, {}, ["01é"]),
    "columns that are not bits": (TABLE, BITS, {"report": ["n", "m", "b"]}, ["0.5"]),
    "a list": ([1, 2], MECHANISM, {}, ["table", "list"]),
    "a series": (TABLE["report"], MECHANISM, {}, ["mechanism.tally"]),
    "one name twice": (
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        MECHANISM,
        {"report": "a"},
        ["different names"],
    ),
    "one name twice in Dask": (
        dask.dataframe.from_pandas(pd.DataFrame([[1, 2]], columns=["a", "a"]), npartitions=1),
        *(MECHANISM, {"report": "a"}, ["different names"]),
    ),
    "a file that is not there": (
        "not-there.parquet",
        MECHANISM,
        {},
        ["not-there.parquet", "no file"],
    ),
    "another format": (__file__, MECHANISM, {}, [".py", "Parquet"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_counted_says_why(what):
    table, mechanism, options, words = REFUSED[what]
    with pytest.raises((ValueError, TypeError, FileNotFoundError)) as caught:
        ik.Tally.from_table(table, mechanism, **options)
    assert [word for word in words if word not in str(caught.value)] == []


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(ValueError, match=r"bad.parquet cannot be read: [^\n]+$"):
        ik.Tally.from_table(tmp_path / "bad.parquet", MECHANISM)
    for content, error in (
        ("car,1\nbus,1,2\n", "line 3 of .*a.csv must have 2"),
        ("car,1\n?,1\n", "line 3 of .*a.csv: .*'[?]'"),
    ):
        (tmp_path / "a.csv").write_text("report,n\n" + content)
        with pytest.raises(ValueError, match=error):
            ik.Tally.from_table(tmp_path / "a.csv", MECHANISM)


def test_several_texts_have_the_same_columns(tmp_path):
    (tmp_path / "1.csv").write_text("report,n\ncar,2\n")
    (tmp_path / "2.csv").write_text("n,report\n3,car\n1,bus\n")
    tally = ik.Tally.from_table(tmp_path / "*.csv", MECHANISM, count="n")
    assert seen(tally) == Counter({(MECHANISM, 1): 1, (MECHANISM, 2): 5})
    (tmp_path / "2.csv").write_text("n,report\n3,car\n1,?\n")
    with pytest.raises(
        AlphabetMismatch, match=r"line 3 of .*2\.csv: column 'report' contains '\?'"
    ):
        ik.Tally.from_table(tmp_path, MECHANISM, count="n")
    (tmp_path / "2.csv").write_text("report\ncar\n")
    with pytest.raises(ValueError, match="same columns"):
        ik.Tally.from_table(tmp_path, MECHANISM)


@pytest.mark.parametrize("package", ["duckdb", "pyarrow"])
def test_a_package_that_is_not_there_is_named(package, tmp_path, monkeypatch):
    pyarrow.parquet.write_table(pa.table({"report": ["car"]}), tmp_path / "a.parquet")
    query = duckdb.sql("SELECT 'car' AS report")
    monkeypatch.setitem(__import__("sys").modules, package, None)
    table = str(tmp_path / "a.parquet") if package == "duckdb" else query
    with pytest.raises(ik.errors.MissingExtra, match=rf'{package}.*pip install "ibukit\[tables\]"'):
        ik.Tally.from_table(table, MECHANISM)
