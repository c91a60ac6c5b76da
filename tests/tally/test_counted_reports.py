"""A tally as a table: every distinct report with its count, and read again from it."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ibukit as ik
from mechanism_cases import KINDS, PROTOCOLS, name

RNG = np.random.default_rng(4)


@pytest.mark.parametrize("mechanism", [*KINDS, *PROTOCOLS], ids=name)
def test_the_table_of_a_tally_has_all_reports_and_is_read_again(mechanism):
    tally = mechanism.simulate(np.full(mechanism.k, 3), RNG)
    frame = tally.to_frame()
    assert frame["count"].sum() == tally.counts.sum()
    columns = [name for name in frame.columns if name != "count"]
    report = columns[0] if len(columns) == 1 else columns
    for table in (frame, pa.table(tally)):
        again = ik.Tally.from_table(table, mechanism, report=report, count="count")
        assert np.array_equal(again.counts, tally.counts)
        assert np.array_equal(again.parts[0].reports, tally.parts[0].reports)


def test_several_mechanisms_stand_one_below_the_other():
    labels = ["no", "yes"]
    coin, bits = ik.RandomizedResponse(labels, 1.0), ik.Rappor(labels, 1.0)
    tally = coin.tally(["yes", "no", "yes"]) + bits.tally([[0, 1], [1, 1]], codes=True)
    frame = tally.to_frame()
    assert frame["report"].tolist() == ["no", "yes", "01", "11"]
    assert frame["count"].tolist() == [1, 2, 1, 1]
    assert frame["mechanism"].tolist() == [repr(coin)] * 2 + [repr(bits)] * 2


def test_a_notebook_shows_the_most_frequent_reports_and_escapes_their_names():
    mechanism = ik.RandomizedResponse(["<b>a</b>", *(f"label {i}" for i in range(14))], 1.0)
    html = mechanism.tally_counts(np.arange(1, 16))._repr_html_()
    assert "&lt;b&gt;" not in html.split("<table")[0]
    assert "<b>a" not in html
    assert html.count("<tr") == 1 + 10
    assert "and 5 other reports" in html
    assert "Tally(n=120, k=15" in html


def test_labels_of_mixed_types_are_texts_in_arrow():
    tally = ik.RandomizedResponse(["a", 1, (2, 3)], 1.0).tally_counts([5, 4, 3])
    assert pa.table(tally)["report"].to_pylist() == ["a", "1", "(2, 3)"]
    assert pa.table(ik.mle(tally))["label"].to_pylist() == ["a", "1", "(2, 3)"]


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([5, 4, 3])
    with pytest.raises(ik.errors.MissingExtra, match=r"pip install \"ibukit\[tables\]\""):
        tally.__arrow_c_stream__()
    assert isinstance(tally.to_frame(), pd.DataFrame)
