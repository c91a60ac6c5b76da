"""`Tally.from_table`: the engines count, and what travels and what is read is little."""

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import ibukit as ik
from ibukit.tables import arrow, arrow_views
from ibukit.tables.columns import Columns
from ibukit.tables.parquet import ParquetFiles
from ibukit.tables.paths import DataFile

LABELS = ["bike", "bus", "car", "train"]
MECHANISM = ik.RandomizedResponse(LABELS, epsilon=1.0)


@pytest.fixture
def lengths(monkeypatch):
    """How many rows are converted to Python each time."""
    found, piece = [], Columns.piece
    monkeypatch.setattr(
        Columns, "piece", lambda self, rows: found.append(len(rows)) or piece(self, rows)
    )
    return found


def test_only_distinct_reports_travel(lengths):
    """What is converted to Python is as long as the list of labels, not as the table."""
    table = duckdb.sql(
        "SELECT ['bike', 'bus', 'car'][1 + i % 3] AS report FROM range(100000) AS t(i)"
    )
    assert ik.Tally.from_table(table, MECHANISM).n == 100_000
    assert lengths == [3]


def made_by_dask(i, columns=None):
    """The partitions of a frame, which say which columns they are asked for."""
    rows = {"report": [LABELS[i % 4], None, "?"] * 100, "n": [1, 2, 3] * 100, "a_lot": range(300)}
    return pd.DataFrame(rows)[list(columns or rows)].astype({"report": "category"} if i % 2 else {})


def test_dask_counts_on_its_workers_and_reads_only_what_is_asked_for(lengths):
    """40 partitions, of which every other one has categories of its own,
    are added up in two levels.
    """
    asked = []

    def made(i, columns=None):
        asked.append(tuple(columns or ()))
        return made_by_dask(i, columns)

    meta = made_by_dask(0).astype({"report": "str"})[:0]
    frame = dask.dataframe.from_map(made, range(40), meta=meta, enforce_metadata=False)
    with dask.config.set(scheduler="sync"):
        tally = ik.Tally.from_table(frame, MECHANISM, count="n", unknown="drop", missing="drop")
    assert tally.counts.tolist() == [1000] * 4
    assert tally.dropped == {"missing": 8000, "unknown": 12000}
    assert lengths == [6]
    assert set(asked) == {("report", "n")}


def test_an_empty_partition_of_dask_adds_nothing():
    table = pd.DataFrame({"report": ["car", "bus", "car", None], "n": [1, 2, 3, 4]})
    frame = dask.dataframe.from_pandas(table, npartitions=4)
    some = ik.Tally.from_table(frame[frame.n == 3], MECHANISM, count="n")
    assert (some.parts[0].reports.tolist(), some.n) == ([2], 3)
    with pytest.raises(ValueError, match="at least one report"):
        ik.Tally.from_table(frame[frame.n == 5], MECHANISM, count="n")


def test_a_bad_count_in_a_partition_of_dask_is_named():
    frame = dask.dataframe.from_pandas(
        pd.DataFrame({"report": ["car"] * 4, "n": [1, 2, 3, -4]}), npartitions=3
    )
    with pytest.raises(
        ValueError, match="'n' must hold counts, whole numbers from 0 on, but it contains -4"
    ):
        ik.Tally.from_table(frame, MECHANISM, count="n")


@pytest.fixture
def dataset(tmp_path):
    """Three files, of 1, 2 and 3 row groups of 50 reports, in folders that are a column to Hive."""
    reports = np.random.default_rng(1).choice(LABELS, 300)
    for i, part in enumerate(np.split(reports, [50, 150])):
        folder = tmp_path / f"day={i}"
        folder.mkdir()
        table = pa.table({"report": part, "n": np.full(len(part), i, dtype=np.int32)})
        pq.write_table(table, folder / "a.parquet", row_group_size=50)
    return ds.dataset(tmp_path, format="parquet")


def counted_apart(dataset, column="report"):
    """The counts by Arrow alone."""
    found = dataset.to_table()[column].cast(pa.string()).to_pylist()
    return [found.count(label) for label in LABELS]


@pytest.fixture
def readers(monkeypatch):
    """Who read a dataset: DuckDB, DuckDB what Arrow reads for it, or Arrow."""
    found = []
    for name, kind in (("ParquetFiles", "files"), ("ByDuckDB", "scan")):
        make = getattr(arrow, name)
        monkeypatch.setattr(
            arrow, name, lambda *args, make=make, kind=kind: found.append(kind) or make(*args)
        )
    return found


def test_duckdb_reads_the_files_of_a_dataset(dataset, readers, lengths):
    tally = ik.Tally.from_table(dataset, MECHANISM)
    assert tally.counts.tolist() == counted_apart(dataset)
    assert (readers, lengths) == (["files"], [4])


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
def test_texts_as_polars_writes_them_are_counted_by_duckdb(kind, readers, lengths):
    texts = pa.array([*LABELS * 50, None], pa.string()).cast(kind)
    tally = ik.Tally.from_table(ds.dataset(pa.table({"report": texts})), MECHANISM, missing="drop")
    assert tally.counts.tolist() == [50] * 4
    if kind != pa.string_view() or arrow_views.has_whole_views():
        assert (readers, lengths) == (["scan"], [5])


@pytest.mark.parametrize("kind", ["table", "reader", "dataset", "batch"])
@pytest.mark.parametrize("needs", [0, 10**6])
def test_views_are_counted_by_an_older_arrow_too(kind, needs, readers, monkeypatch):
    if needs == 0 and not arrow_views.has_whole_views():
        pytest.skip("this Arrow is an older one")
    monkeypatch.setattr(arrow_views, "MIN_ARROW_OF_VIEWS", needs)
    table = pa.table({"report": pa.array(LABELS * 50, pa.string()).cast(pa.string_view())})
    held = {
        "table": lambda: table,
        "reader": table.to_reader,
        "dataset": lambda: ds.dataset(table),
        "batch": lambda: table.to_batches()[0],
    }[kind]()
    assert ik.Tally.from_table(held, MECHANISM).counts.tolist() == [50] * 4
    # what is handed to DuckDB ends the process of an older Arrow
    assert readers == (["scan"] if needs == 0 and kind == "dataset" else [])


WITH_TEXT = pa.schema([("report", pa.string()), ("n", pa.string())])
MORE_THAN_FILES = {
    "some of its rows": lambda whole: whole.filter(ds.field("n") > 0),
    "a column from names of folders": lambda whole: ds.dataset(whole.files, partitioning="hive"),
    "other types": lambda whole: ds.dataset(whole.files, schema=WITH_TEXT),
    "dictionaries": lambda whole: ds.dataset(
        whole.files, format=ds.ParquetFileFormat(dictionary_columns=["report"]), schema=whole.schema
    ),
    "some row groups": lambda whole: ds.FileSystemDataset(
        [part.subset(row_group_ids=[0]) for part in whole.get_fragments()],
        whole.schema,
        whole.format,
        whole.filesystem,
    ),
    "in memory": lambda whole: ds.InMemoryDataset(whole.to_table()),
    "two in one": lambda whole: ds.dataset([ds.dataset(file) for file in whole.files]),
}


@pytest.mark.parametrize("what", MORE_THAN_FILES)
def test_a_dataset_that_is_more_than_its_files_is_read_by_arrow(what, dataset, readers, lengths):
    more = MORE_THAN_FILES[what](dataset)
    tally = (
        ik.Tally.from_table(more, {str(n): MECHANISM for n in range(3)}, by="n")
        if what == "other types"
        else None
    )
    tally = tally or ik.Tally.from_table(more, MECHANISM)
    assert tally.counts.tolist() == counted_apart(more)
    assert (readers, max(lengths) <= 12) == (["scan"], True)


def test_what_duckdb_would_have_otherwise_is_counted_by_arrow(
    dataset, readers, monkeypatch, tmp_path
):
    table = dataset.to_table()
    both = pa.table({"report": table["report"], "Report": table["report"].to_pylist()[::-1]})
    pq.write_table(both[:100], tmp_path / "both.parquet")
    read = ds.dataset(tmp_path / "both.parquet")
    for column in ("report", "Report"):
        assert ik.Tally.from_table(read, MECHANISM, column).counts.tolist() == counted_apart(
            read, column
        )
    days = ds.dataset(pa.table({"report": pa.array([1, 1, 0], pa.duration("s"))}))
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"(T|t)imedelta"):
        ik.Tally.from_table(days, MECHANISM)
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    assert ik.Tally.from_table(dataset, MECHANISM).counts.tolist() == counted_apart(dataset)
    assert readers == ["files"]  # which was not there


def test_a_dataset_that_cannot_be_read_says_so(dataset, tmp_path):
    (tmp_path / "day=1" / "a.parquet").write_bytes(b"no parquet")
    with pytest.raises(ValueError, match=r"day=1/a.parquet"):
        ik.Tally.from_table(dataset, MECHANISM)


def test_lists_in_a_frame_of_dask_are_rows_of_bits():
    """Where Dask is told not to make texts of Python's objects, it keeps lists."""
    mechanism = ik.Rappor(3, 1.0)
    table = pd.DataFrame({"report": [[0, 1, 0], [1, 1, 0], [0, 1, 0], None] * 5})
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dask.dataframe.from_pandas(table, npartitions=3)
        words = dask.dataframe.from_pandas(
            pd.DataFrame({"report": ["car", "bus", "car"] * 5}), npartitions=3
        )
        tally = ik.Tally.from_table(frame, mechanism, missing="drop")
        assert ik.Tally.from_table(words, MECHANISM).counts.tolist() == [5, 10]
    assert (tally.counts.tolist(), tally.dropped) == ([10, 5], {"missing": 5})


@pytest.mark.parametrize(
    "second", [["report", "other"], ["other", "report"], ["report"], ["report", "other", "more"]]
)
def test_files_whose_columns_are_in_another_order_are_read_by_name(second, tmp_path):
    columns = {"report": ["a", "b", "a"], "other": ["b", "b", "b"], "more": ["x", "y", "z"]}
    for name, order in (("1", ["report", "other"]), ("2", second)):
        pq.write_table(pa.table({key: columns[key] for key in order}), tmp_path / f"{name}.parquet")
    # today's DuckDB goes by names in either case, older ones did not
    files = [DataFile(str(file), {}) for file in sorted(tmp_path.iterdir())]
    assert ParquetFiles(files)._have_equal_schemas() == (second == ["report", "other"])
    tally = ik.Tally.from_table(tmp_path, ik.RandomizedResponse(["a", "b"], 1.0))
    assert tally.counts.tolist() == [4, 2]


@pytest.mark.parametrize("of", [lambda table: table, lambda table: table.to_reader()])
def test_intervals_in_arrow_are_refused_and_those_of_pandas_are_read(of):
    bins = pd.interval_range(0, 3)
    frame, mechanism = pd.DataFrame({"report": bins}), ik.RandomizedResponse(bins, 1.0)
    table = pa.Table.from_pandas(frame)
    with pytest.raises(
        ValueError, match=r"column 'report' must be of a type.*table\.to_pandas\(\)"
    ):
        ik.Tally.from_table(of(table), mechanism)
    assert ik.Tally.from_table(table.to_pandas(), mechanism).n == 3
