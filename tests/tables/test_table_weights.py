"""Weights in `Tally.from_table`:
sums of numbers, from every engine, and only where they are asked for.
"""

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import ibukit as ik

LABELS = ["bike", "bus", "car"]
MECHANISM = ik.RandomizedResponse(LABELS, epsilon=1.0)
ENGINES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "arrow": pa.table,
    "arrow dataset": lambda data: pyarrow.dataset.dataset(pa.table(data)),
    "arrow stream": lambda data: pa.table(data).to_reader(max_chunksize=7),
    "duckdb": lambda data: duckdb.from_arrow(pa.table(data)),
    "dask": lambda data: dask.dataframe.from_pandas(pd.DataFrame(data), npartitions=3),
}


def survey(n=200):
    rng = np.random.default_rng(1)
    reports = rng.choice([*LABELS, "?", None], n, p=[0.4, 0.3, 0.2, 0.05, 0.05])
    return {"report": reports.tolist(), "w": rng.gamma(2.0, 1.0, n).tolist()}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_adds_the_weights(engine):
    data = survey()
    tally = ik.Tally.from_table(
        ENGINES[engine](data), MECHANISM, count="w", weighted=True, unknown="drop", missing="drop"
    )
    sums = pd.DataFrame(data).groupby("report", dropna=False).w.sum()
    np.testing.assert_allclose(tally.counts, sums[LABELS], rtol=1e-12)
    assert tally.dropped == pytest.approx(
        {"missing": sums[sums.index.isna()].sum(), "unknown": sums["?"]}
    )
    assert tally.counts.dtype == np.float64


def test_weights_in_a_file_and_with_many_mechanisms(tmp_path):
    table = pd.DataFrame(
        {"report": ["car", "bus", "car", "car"], "w": [0.25, 1.5, 2, 0.5], "eps": [1.0, 1, 1, 2]}
    )
    table.to_csv(tmp_path / "a.csv", index=False)
    tally = ik.Tally.from_table(
        tmp_path / "a.csv",
        lambda eps: ik.RandomizedResponse(LABELS, eps),
        count="w",
        epsilon="eps",
        weighted=True,
    )
    assert [part.counts.tolist() for part in tally.parts] == [[1.5, 2.25], [0.5]]
    assert tally.n == 4.25


def test_weights_mean_what_they_mean_where_counts_are_given():
    table = pd.DataFrame({"report": ["bike", "bus", "car", "bus"], "w": [10.5, 3.25, 4.0, 1.0]})
    ours = ik.Tally.from_table(table, MECHANISM, count="w", weighted=True)
    theirs = MECHANISM.tally_counts([10.5, 4.25, 4.0], weighted=True)
    assert ours.counts.tolist() == theirs.counts.tolist()
    again = MECHANISM.tally(table.report, counts=table.w, weighted=True)
    assert again.counts.tolist() == theirs.counts.tolist()
    # Rows are reports wherever they are rows; of sums nobody knows the weights.
    np.testing.assert_allclose(ik.mle(ours).standard_errors(), ik.mle(again).standard_errors())
    assert (ours.effective_n, again.effective_n) == (pytest.approx(18.75**2 / 137.8125),) * 2
    assert theirs.effective_n is None
    with pytest.raises(ValueError, match="got weights; mle, gap, and ibu"):
        ik.posterior(ours, 1.0)


def test_rows_of_bits_and_lines_without_an_end_take_weights():
    bits = ik.Rappor(3, 1.0)
    table = pl.DataFrame({"report": ["010", "110", "010"], "w": [0.5, 1.25, 0.25]})
    tally = ik.Tally.from_table(table, bits, count="w", weighted=True)
    assert (tally.counts.tolist(), tally.n) == ([0.75, 1.25], 2.0)
    line = ik.LinearGeometric(ik.Line(None, None), 1.0)
    table = pl.DataFrame({"report": [-3, 5, -3], "w": [0.5, 1.25, 0.0]})
    assert ik.Tally.from_table(table, line, count="w", weighted=True).counts.tolist() == [0.5, 1.25]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bad", [-0.5, float("inf"), float("nan"), None])
def test_bad_weights_are_refused(engine, bad):
    table = ENGINES[engine]({"report": ["car", "bus", "car"], "w": [1.5, 2.0, bad]})
    with pytest.raises(
        ValueError, match=r"'w' must hold weights, finite numbers.*contains (-0.5|inf|a miss)"
    ):
        ik.Tally.from_table(table, MECHANISM, count="w", weighted=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_row_without_a_count_stands_for_is_unknown_so_it_is_refused(engine, weighted):
    table = ENGINES[engine]({"report": ["car", "bus"], "w": [1.0, None]})
    with pytest.raises(ValueError, match=r'missing="drop" does not cover it: fill it in, or rem'):
        ik.Tally.from_table(table, MECHANISM, count="w", weighted=weighted, missing="drop")


@pytest.mark.parametrize("column", ["strata", "clusters"])
def test_a_row_without_a_stratum_or_cluster_is_left_out_with_its_weight(column):
    table = pd.DataFrame(
        {"report": ["car", "bus", "bus"], "w": [1, 2, 4], "unit": ["a", None, "b"]}
    )
    options = {"count": "w", "weighted": True, column: "unit", "missing": "drop"}
    tally = ik.Tally.from_table(table, MECHANISM, **options)
    assert (tally.n, dict(tally.dropped)) == (5.0, {"missing": 2.0})


def test_without_being_asked_for_weights_are_refused_with_the_word_for_them():
    table = pd.DataFrame({"report": ["car", "bus"], "w": [1.5, 2.0]})
    with pytest.raises(
        ValueError, match=r"whole numbers from 0 on, but it contains 1.5; say weighted=True"
    ):
        ik.Tally.from_table(table, MECHANISM, count="w")
    with pytest.raises(ValueError, match="count must name the column of weights"):
        ik.Tally.from_table(table, MECHANISM, weighted=True)
    with pytest.raises(ValueError, match="counts must be given where weighted"):
        MECHANISM.tally(["car"], weighted=True)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("groups", [None, "g"])
def test_every_engine_counts_people_of_weight_0_in_the_sample(engine, groups):
    data = survey()
    weights = [w * (i % 3 > 0) for i, w in enumerate(data["w"])]
    units = {"s": ["ab"[i % 2] for i in range(200)], "g": ["xyz"[i % 3] for i in range(200)]}
    epsilons = {"eps": [1.0 + (i % 3 > 0) for i in range(200)]}
    found = ik.Tally.from_table(
        ENGINES[engine](data | units | epsilons | {"w": weights}),
        lambda eps: ik.RandomizedResponse(LABELS, eps),
        epsilon="eps",
        count="w",
        weighted=True,
        strata="s",
        groups=groups,
        unknown="drop",
        missing="drop",
    )
    known = [report in LABELS for report in data["report"]]
    for tally in [found] if groups is None else found.values():
        assert tally.survey.units.tolist() == [sum(known[::2]), sum(known[1::2])]
    # A group of people without weight has no tally, and neither has their mechanism.
    assert groups is None or list(found) == ["y", "z"]


@pytest.mark.parametrize("role", ["strata", "clusters"])
def test_a_row_without_its_stratum_or_cluster_is_missing(role):
    table = pd.DataFrame({"report": LABELS * 2, "w": [1.0, 2, 3, 4, 5, 6]})
    table["unit"] = ["a", "b", None, "a", "b", "a"]
    options = {"count": "w", "weighted": True, role: "unit"}
    with pytest.raises(ValueError, match="'report' or 'unit' has missing values"):
        ik.Tally.from_table(table, MECHANISM, report="report", **options)
    tally = ik.Tally.from_table(table, MECHANISM, report="report", missing="drop", **options)
    assert dict(tally.dropped) == {"missing": 3.0}
    assert tally.counts.tolist() == [5.0, 7.0, 6.0]
