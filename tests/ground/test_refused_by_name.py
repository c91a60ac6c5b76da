"""What cannot be read for certain is refused: which argument, which value, and what to do.

Each case has the fragments of its message: the name of the argument, the value or what is wrong
with it, and the remedy where there is one that is safe.
"""

import geopandas
import numpy as np
import pandas as pd
import pytest
from shapely.geometry import Point, box

import ibukit as ik

KRR = ik.RandomizedResponse(["a", "b", "c"], epsilon=2.0)
TALLY = KRR.tally_counts([50, 30, 20])
ESTIMATE = ik.mle(TALLY)
LINE = ik.RandomizedResponse(ik.Line(0, 9), epsilon=1.0)
BITS = ik.Rappor(["a", "b", "c"], epsilon=1.0)
GRID = ik.Grid.from_bounds(48.84, 48.88, 2.30, 2.36, n_rows=4, n_cols=6)
PLANE = ik.PlanarLaplace(GRID, epsilon=2.0)
TABLE = pd.DataFrame(
    {
        "report": ["a", "b", "c", "a"],
        "eps": [1.0, 2.0, 1.0, 2.0],
        "n": [1, 2, 3, 4],
        "v": ["x", "y", "x", "y"],
    }
)


def table(frame=TABLE, mechanism=KRR, **options):
    return ik.Tally.from_table(frame, mechanism, **options)


def of_epsilon(epsilon):
    return ik.RandomizedResponse(["a", "b", "c"], epsilon)


def points(**columns):
    return PLANE.tally_points(pd.DataFrame(columns))


CASES = {
    # Alphabets and parameters of mechanisms.
    "a set has no order": (
        lambda: ik.RandomizedResponse({"a", "b"}, 1.0),
        "alphabet",
        "set",
        "sorted",
    ),
    "a text is no list": (lambda: ik.RandomizedResponse("abc", 1.0), "alphabet", "'abc'", "list("),
    "a label twice": (
        lambda: ik.RandomizedResponse(["a", "b", "a"], 1.0),
        "'a' at index 0 and 2",
        "fromkeys",
    ),
    "a missing label": (
        lambda: ik.RandomizedResponse(["a", np.nan], 1.0),
        "nan at index 1",
        "leave it out",
    ),
    "a missing date": (
        lambda: ik.RandomizedResponse(pd.to_datetime(["2024-01-01", None]), 1.0),
        "NaT at index 1",
        "leave it out",
    ),
    "no secrets": (lambda: ik.RandomizedResponse(0, 1.0), "alphabet", "at least 1", "got 0"),
    "a level below 0": (lambda: ik.RandomizedResponse(3, -1.0), "epsilon", "above 0", "-1.0"),
    "a level as a text": (lambda: ik.RandomizedResponse(3, "1"), "epsilon", "number", "'1'"),
    "several levels": (
        lambda: ik.RandomizedResponse(3, pd.Series([1.0, 2.0])),
        "epsilon",
        "number",
    ),
    "a line backwards": (lambda: ik.Line(9, 0), "last", "first=9, last=0"),
    "half a value": (lambda: ik.Line(0, 2.5), "last", "whole number", "2.5"),
    "cells without a size": (lambda: ik.Grid(2, 2, cell_size=-1), "cell_size", "-1"),
    "no rows": (lambda: ik.Grid(0, 2), "n_rows", "at least 1"),
    "hashing to one value": (lambda: ik.LocalHashing(["a", "b"], 1.0, g=1), "g", "at least 2"),
    "no mechanisms": (lambda: ik.FreeWill([]), "mechanisms", "none"),
    "mechanisms of other secrets": (
        lambda: ik.FreeWill([KRR, LINE]),
        "mechanisms",
        "same secrets",
        "Line(0, 9)",
    ),
    # Counts and reports.
    "a count below 0": (lambda: KRR.tally_counts([1, -2, 3]), "counts", "-2 at index 1"),
    "half a report": (lambda: KRR.tally_counts([1, 0.5, 3]), "counts", "0.5 at index 1"),
    "a missing count": (
        lambda: KRR.tally_counts([1, np.nan, 3]),
        "counts",
        "index 1",
        "enter it, or remove it",
    ),
    "truth values": (lambda: KRR.tally_counts([True, False, True]), "counts", "bool"),
    "too few counts": (lambda: KRR.tally_counts([1, 2]), "counts", "3 elements", "got 2"),
    "a count of another label": (
        lambda: KRR.tally_counts({"a": 1, "d": 2}),
        "counts",
        "'d'",
        "rename",
    ),
    "a label counted twice": (
        lambda: KRR.tally_counts(pd.Series([1, 2, 3], index=["a", "b", "a"])),
        "counts",
        "'a' twice",
        "add its counts up",
    ),
    "counts of two columns": (
        lambda: KRR.tally_counts(pd.DataFrame({"x": [1, 2, 3], "y": [1, 2, 3]})),
        "counts",
        "2 columns",
        "take one",
    ),
    "a report that is none": (lambda: KRR.tally(["a", "z"]), "reports", "'z'", "codes=True"),
    "a missing report": (
        lambda: KRR.tally(["a", None]),
        "reports",
        "index 1",
        "only if they are like the others",
    ),
    "one report": (lambda: KRR.tally("a"), "reports", "'a', which is one", "list"),
    "a frame of reports": (
        lambda: KRR.tally(pd.DataFrame({"r": ["a"], "s": ["b"]})),
        "reports",
        "(1, 2)",
        "one column",
    ),
    "a report with too few bits": (lambda: BITS.tally([[0, 1]]), "reports", "(n, 3)", "(1, 2)"),
    "a bit that is none": (lambda: BITS.tally([[0, 1, 2]]), "reports", "0 and 1", "got 2"),
    "a text with too few bits": (lambda: BITS.tally(["01"]), "reports", "3 bits", "'01'"),
    "more ones than reports": (
        lambda: BITS.tally_sums([5, 6, 20], 10),
        "sums",
        "20 at index 2",
        "not of ones",
    ),
    "sums of some labels": (
        lambda: BITS.tally_sums({"a": 1, "b": 2}, 10),
        "sums",
        "got 2",
        "has the sum 0",
    ),
    # Tables.
    "a column that is not there": (
        lambda: table(report="answer"),
        "report",
        "'answer'",
        "the columns are",
    ),
    "counts that are texts": (
        lambda: table(TABLE.assign(n=list("wxyz")), count="n"),
        "'n'",
        "String",
    ),
    "a level below 0 in a column": (
        lambda: table(TABLE.assign(eps=-1.0), of_epsilon, epsilon="eps"),
        "'eps'",
        "-1.0",
        "above 0",
    ),
    "levels for one mechanism": (lambda: table(epsilon="eps"), "mechanism", "'eps'", "lambda eps"),
    "a key without a mechanism": (
        lambda: table(mechanism={"x": KRR}, by="v"),
        "'v'",
        "'y'",
        "add one",
        "only if they are like the others",
    ),
    "mechanisms without a key": (
        lambda: table(mechanism={"x": KRR, "y": KRR}),
        "mechanism",
        "by must name the column",
    ),
    "a word that is none": (lambda: table(unknown="ignore"), "unknown", "'ignore'", '"raise"'),
    "a missing report in a column": (
        lambda: table(TABLE.assign(report=["a", None, "b", "c"])),
        "'report'",
        "missing",
        "only if they are like the others",
    ),
    "a series for a table": (lambda: table(TABLE["report"]), "table", "Series", "tally(reports)"),
    "a folder that is not there": (lambda: table("/none/x.parquet"), "table", "no file was found"),
    "groups that are not there": (lambda: table(groups="country"), "groups", "'country'"),
    "a weight below 0": (
        lambda: table(TABLE.assign(n=[-1.0, 1, 1, 1]), count="n", weighted=True),
        "'n'",
        "-1.0",
    ),
    # Matrices and likelihoods.
    "rows that do not sum to 1": (
        lambda: ik.MatrixMechanism([[0.5, 0.4], [0.1, 0.9]]),
        "matrix",
        "row 0 sums to 0.9",
        "if the columns are the secrets",
    ),
    "a transposed matrix": (
        lambda: ik.MatrixMechanism([[0.9, 0.3], [0.1, 0.7]]),
        "matrix",
        "1.2",
        "matrix.T",
    ),
    "percent": (
        lambda: ik.MatrixMechanism([[90.5, 9.5], [20.0, 80.0]]),
        "matrix",
        "100",
        "matrix / 100",
    ),
    "NaN in a matrix": (
        lambda: ik.MatrixMechanism([[np.nan, 1], [0.5, 0.5]]),
        "matrix",
        "row 0, column 0",
    ),
    "one row": (
        lambda: ik.MatrixMechanism([0.5, 0.5]),
        "matrix",
        "(2,)",
        "one row for each secret",
    ),
    "joint frequencies": (
        lambda: ik.unfold([600, 400], [[0.5, 0.1], [0.1, 0.3]]),
        "matrix",
        "joint",
        "divide each row by its sum",
    ),
    "logarithms of likelihoods": (
        lambda: ik.Tally.from_likelihoods([[-1.0, -2.0], [-3.0, -1.0]]),
        "L",
        "-1.0 at row 0",
    ),
    "an observation that nothing explains": (
        lambda: ik.Tally.from_likelihoods([[0, 0], [1, 1]]),
        "L",
        "row 0",
        "before taking exp",
    ),
    # Questions and distributions.
    "a question of another label": (lambda: ESTIMATE.interval(of="d"), "of", "'d'", "rename"),
    "a label twice in a question": (lambda: ESTIMATE.interval(of=["a", "a"]), "of", "['a', 'a']"),
    "a weight that is NaN": (lambda: ESTIMATE.interval(of=[1, np.nan, 0]), "of", "index 1"),
    "too few weights": (lambda: ESTIMATE.interval(of=[1, 0]), "of", "3 secrets", "(2,)"),
    "districts without a grid": (
        lambda: ESTIMATE.interval(of=geopandas.GeoSeries([box(0, 0, 1, 1)])),
        "of",
        "Grid",
    ),
    "a level in percent": (lambda: ESTIMATE.interval(level=95), "level", "(0, 1)", "95"),
    "a method that is none": (
        lambda: ESTIMATE.interval(method="likelihood"),
        "method",
        "'likelihood'",
        "'profile'",
    ),
    "a target that is none": (lambda: ESTIMATE.interval(target="people"), "target", "'people'"),
    "a start that sums to 1.5": (
        lambda: ik.ibu(TALLY, start=[0.5, 0.5, 0.5]),
        "start",
        "1.5",
        "normalize",
    ),
    "a start over other labels": (
        lambda: ik.ibu(TALLY, start=pd.Series([0.2, 0.3, 0.5], index=["x", "y", "z"])),
        "start",
        "'x'",
        "rename",
    ),
    "a distance to fewer labels": (
        lambda: ik.total_variation(ESTIMATE, [0.5, 0.5]),
        "q",
        "3 elements",
        "got 2",
    ),
    "a distance to other labels": (
        lambda: ik.total_variation(ESTIMATE, pd.Series([0.5, 0.5], index=["a", "d"])),
        "q",
        "'d'",
    ),
    "a prior below 0": (lambda: ik.posterior(TALLY, alpha=-1), "alpha", "-1.0", "Jeffreys"),
    # Points.
    "points without names": (
        lambda: points(p=[48.86], q=[2.33]),
        "points",
        "['p', 'q']",
        "lat and lon",
    ),
    "points without a CRS": (
        lambda: PLANE.tally_points(geopandas.GeoSeries([Point(2.33, 48.86)])),
        "points",
        "CRS",
        "set_crs(4326)",
    ),
    "areas for points": (
        lambda: PLANE.tally_points(geopandas.GeoSeries([box(2.33, 48.86, 2.34, 48.87)], crs=4326)),
        "points",
        "Polygon",
        "centroid",
    ),
    "points off the map": (lambda: points(lat=[50.0], lon=[2.33]), "points", "index 0", "unit"),
    # Estimators and checks.
    "a file for a tally": (lambda: ik.mle("reports.csv"), "tally", "str", "mechanism.tally"),
    "an array for a tally": (lambda: ik.mle(np.array([1, 2])), "tally", "ndarray", "tally_counts"),
    "no tolerance": (lambda: ik.mle(TALLY, tol=0), "tol", "above 0", "got 0"),
    "a solver that is none": (
        lambda: ik.mle(TALLY, method="newton"),
        "method",
        "'newton'",
        "'auto'",
    ),
    "a number for a rule": (lambda: ik.ibu(TALLY, stop=100), "stop", "100", "Steps(10)"),
    "a smooth alphabet": (lambda: ik.smooth(TALLY), "tally", "neighbours", "mle(tally)"),
    "an interval wider than all": (lambda: ik.plan(KRR, width=2), "width", "2", "excludes nothing"),
    "other secrets added": (lambda: TALLY + LINE.tally_counts([1] * 10), "tallies", "Line(0, 9)"),
    "a pool of one": (lambda: ESTIMATE.pool_test(), "tally", "at least two"),
    "a report of a pool": (
        lambda: ik.mle(TALLY + of_epsilon(1.0).tally_counts([1, 2, 3])).given(["a"]),
        "mechanism",
        "pools the reports of 2",
    ),
    "a seed for a generator": (lambda: KRR.randomize(["a"], 0), "rng", "got 0", "default_rng"),
    "one secret released": (lambda: KRR.release("a"), "secrets", "'a', which is one"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused_with_argument_value_and_remedy(case):
    call, *fragments = CASES[case]
    with pytest.raises((ValueError, TypeError, FileNotFoundError)) as found:
        call()
    message = str(found.value)
    assert [fragment for fragment in fragments if fragment not in message] == [], message
    # A message that a person reads to its end.
    assert len(message) < 700


def test_there_are_enough_cases():
    assert len(CASES) >= 60
