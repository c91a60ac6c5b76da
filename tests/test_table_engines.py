"""`Tally.from_table`: the engines count, and what travels and what is read is little."""

import dask.dataframe
import duckdb
import pandas as pd
import pytest

import ibukit as ik
from ibukit.tables.columns import Columns

LABELS = ["bike", "bus", "car", "train"]
MECHANISM = ik.RandomizedResponse(LABELS, epsilon=1.0)


@pytest.fixture
def lengths(monkeypatch):
    """How many rows are converted to Python each time."""
    found, piece = [], Columns.piece
    monkeypatch.setattr(Columns, "piece", lambda self, rows: found.append(len(rows)) or piece(self, rows))
    return found


def test_only_distinct_reports_travel(lengths):
    """What is converted to Python is as long as the list of labels, not as the table."""
    table = duckdb.sql("SELECT ['bike', 'bus', 'car'][1 + i % 3] AS report FROM range(100000) AS t(i)")
    assert ik.Tally.from_table(table, MECHANISM).n == 100_000
    assert lengths == [3]


def made_by_dask(i, columns=None):
    """The partitions of a frame, which say which columns they are asked for."""
    rows = {"report": [LABELS[i % 4], None, "?"] * 100, "n": [1, 2, 3] * 100, "a_lot": range(300)}
    return pd.DataFrame(rows)[list(columns or rows)].astype({"report": "category"} if i % 2 else {})


def test_dask_counts_on_its_workers_and_reads_only_what_is_asked_for(lengths):
    """40 partitions, of which every other one has categories of its own, are added up in two levels."""
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
    frame = dask.dataframe.from_pandas(pd.DataFrame({"report": ["car"] * 4, "n": [1, 2, 3, -4]}), npartitions=3)
    with pytest.raises(ValueError, match="'n' must hold counts, whole numbers from 0 on, it contains -4"):
        ik.Tally.from_table(frame, MECHANISM, count="n")
