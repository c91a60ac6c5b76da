"""Tallies and estimates of groups: one pass, one table, each group as if it were alone."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch, ConvergenceError
from ibukit.solvers.dense.many_tallies import gaps_of_many, maximise_many

LABELS = ["a", "b", "c", "d"]
MECHANISMS = {v: ik.RandomizedResponse(LABELS, float(v)) for v in (1, 2, 3)}


@pytest.fixture
def frame(rng):
    n = 3000
    return pd.DataFrame(
        {
            "country": rng.choice(["NL", "DE", "FR"], n),
            "day": rng.integers(0, 4, n),
            "version": rng.integers(1, 4, n),
            "report": rng.choice(LABELS, n, p=[0.5, 0.3, 0.15, 0.05]),
        }
    )


def _groups(frame, **more):
    return ik.Tally.from_table(frame, MECHANISMS, by="version", groups=["country", "day"], **more)


def test_likelihoods_of_groups_count_reports_too_far_for_a_double():
    table = pd.DataFrame({"report": [0, 1, 2, 2000, 1, 2], "day": [1, 1, 1, 1, 2, 2]})
    groups = ik.Tally.from_table(table, ik.LinearGeometric(ik.Line(0, 2), 1.0), groups="day")
    estimates = ik.mle(groups)
    for day, tally in groups.items():
        expected = ik.mle(tally).log_likelihood
        assert estimates[day].log_likelihood == pytest.approx(expected, rel=1e-9)
    assert estimates[1].log_likelihood < -1990


def test_each_group_has_the_tally_of_its_own_rows(frame):
    groups = _groups(frame)
    assert len(groups) == 12
    assert list(groups) == sorted(groups)
    for (country, day), tally in groups.items():
        rows = frame[(frame.country == country) & (frame.day == day)]
        alone = ik.Tally.from_table(rows, MECHANISMS, by="version")
        assert [part.mechanism for part in tally.parts] == [p.mechanism for p in alone.parts]
        assert np.array_equal(tally.counts, alone.counts)


def test_the_order_of_rows_and_the_kind_of_table_do_not_matter(frame, tmp_path):
    frame.to_parquet(tmp_path / "reports.parquet")
    first = _groups(frame)
    for table in (frame.sample(frac=1, random_state=1), str(tmp_path / "reports.parquet")):
        again = _groups(table)
        assert list(again) == list(first)
        assert all(np.array_equal(again[group].counts, first[group].counts) for group in first)


def test_the_table_is_that_of_single_estimates(frame):
    groups = _groups(frame)
    estimates = ik.mle(groups)
    table = estimates.to_frame(level=0.9)
    assert list(table) == ["probability", "lower", "upper", "identified"]
    assert table.index.names == ["country", "day", "label"]
    assert len(table) == len(groups) * len(LABELS)
    for group, tally in groups.items():
        alone = ik.mle(tally)
        assert ik.gap(tally, estimates[group]) <= 1e-9
        assert alone.gap <= 1e-9
        assert estimates[group].log_likelihood == pytest.approx(alone.log_likelihood, abs=1e-6)
        expected = alone.to_frame(level=0.9, method="wald")
        np.testing.assert_allclose(
            table.loc[group].to_numpy(float), expected.to_numpy(float), atol=1e-6
        )


def test_profile_intervals_of_groups_are_those_of_single_estimates(frame):
    groups = _groups(frame[frame.country == "NL"])
    lower, upper = ik.mle(groups).intervals(0.95, method="profile")
    for place, tally in enumerate(groups.values()):
        low, high = ik.mle(tally).interval(0.95, method="profile")
        np.testing.assert_allclose([lower[place], upper[place]], [low, high], atol=1e-5)


def test_days_add_by_group(frame):
    whole = _groups(frame)
    days = [_groups(frame[frame.day == day]) for day in range(4)]
    added = sum(days)
    assert list(added) == list(whole)
    twice = whole + days[0]
    assert twice["NL", 0].n == 2 * whole["NL", 0].n
    assert twice["NL", 1].n == whole["NL", 1].n
    assert added.n == len(frame)


def test_groups_are_saved_pickled_and_copied_whole(frame, tmp_path):
    frame.loc[:9, "country"] = None
    groups = _groups(frame, missing="drop")
    groups.save(tmp_path / "groups")
    read = ik.TallyGroups.load(tmp_path / "groups")
    for again in (read, pickle.loads(pickle.dumps(groups)), copy.deepcopy(groups)):
        assert (again.names, list(again)) == (groups.names, list(groups))
        assert dict(again.dropped) == {"missing": 10}
        assert all(np.array_equal(again[group].counts, groups[group].counts) for group in groups)


@pytest.mark.parametrize("estimator", [ik.mle, ik.ibu])
def test_estimates_of_groups_can_be_pickled(frame, estimator):
    estimates = estimator(_groups(frame))
    again = pickle.loads(pickle.dumps(estimates))
    pd.testing.assert_frame_equal(again.to_frame(), estimates.to_frame())
    for group, estimate in estimates.items():
        assert again[group].log_likelihood == estimate.log_likelihood


def test_missing_groups_are_refused_or_dropped_and_counted(frame):
    frame.loc[:9, "country"] = None
    with pytest.raises(ValueError, match=r"'country'.*missing values.*missing=\"drop\""):
        _groups(frame)
    groups = _groups(frame, missing="drop")
    assert dict(groups.dropped) == {"missing": 10}
    assert groups.n == len(frame) - 10


def test_rows_of_bits_have_groups_too(rng):
    mechanism = ik.Rappor(LABELS, 2.0)
    rows = mechanism.randomize(rng.choice(LABELS, 200), rng)
    table = pd.DataFrame({"report": ["".join(map(str, row)) for row in rows.astype(int)]})
    table["city"] = np.arange(200) % 2
    groups = ik.Tally.from_table(table, mechanism, groups="city")
    for city in (0, 1):
        alone = mechanism.tally(rows[city::2])
        assert np.array_equal(groups[city].counts, alone.counts)
        assert np.allclose(ik.mle(groups)[city].distribution, ik.mle(alone).distribution)


def test_other_estimators_answer_with_one_table(frame):
    line = ik.TruncatedGeometric(ik.Line(0, 3), 2.0)
    table = frame.assign(report=frame.report.map(LABELS.index))
    groups = ik.Tally.from_table(table, line, groups="country")
    for estimator in (ik.smooth, ik.ibu, ik.inv):
        estimates = estimator(groups)
        assert list(estimates) == ["DE", "FR", "NL"]
        alone = estimator(groups["FR"])
        of_group = estimates.to_frame(level=None).loc["FR"].probability
        assert np.array_equal(of_group, alone.distribution)


def test_a_direction_that_the_reports_leave_open_is_not_called_identified():
    merged = ik.compose(ik.RandomizedResponse(3, 1.0), [[1, 0], [0, 1], [0, 1]])
    table = pd.DataFrame({"report": [0, 1] * 50, "group": ["x"] * 100})
    estimates = ik.mle(ik.Tally.from_table(table, merged, groups="group"))
    alone = ik.mle(ik.Tally.from_table(table, merged)).identified
    assert np.array_equal(estimates.to_frame().identified, alone)
    assert not alone.all()


def test_many_tallies_are_certified(rng):
    matrix = rng.dirichlet(np.ones(9), size=5)
    frequencies = rng.multinomial(40, np.full(9, 1 / 9), size=300) / 40
    theta, gaps, steps = maximise_many(matrix, frequencies, 1e-10)
    assert gaps.max() <= 1e-10
    assert np.allclose(gaps_of_many(matrix, frequencies, theta), gaps)
    assert steps.max() < 40


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ([], ValueError, "groups must name a column, or several, got none"),
        ("town", ValueError, "groups must name a column of the table, got 'town'"),
        (["day", "day"], ValueError, "groups must name each column once"),
        (3, TypeError, "groups must be columns, got 3"),
        ([["day"]], ValueError, "groups must name a column of the table"),
        ([None], ValueError, "groups must name columns of the table, got None"),
        ("tags", ValueError, "groups must name columns of strings.*lists.*make them strings"),
    ],
)
def test_bad_groups_are_refused(frame, groups, error, message):
    frame["tags"] = [[1]] * len(frame)
    with pytest.raises(error, match=message):
        ik.Tally.from_table(frame, MECHANISMS, by="version", groups=groups)


def test_bad_uses_of_groups_are_refused(frame):
    groups = _groups(frame)
    with pytest.raises(KeyError, match="group 'NL' is not among the 12 groups"):
        _ = groups["NL"]
    with pytest.raises(KeyError, match="is not among the 12 groups"):
        _ = ik.mle(groups)["XX", 1]
    other = ik.Tally.from_table(frame, MECHANISMS, by="version", groups="country")
    with pytest.raises(ValueError, match="groups can be added only if the same columns name them"):
        _ = groups + other
    with pytest.raises(ValueError, match="tol must"):
        ik.mle(groups, tol=-1)
    with pytest.raises(ValueError, match="level must"):
        ik.mle(groups).to_frame(level=2)
    with pytest.raises(ValueError, match="method must be one of"):
        ik.mle(groups).to_frame(method="exactly")
    with pytest.raises(ConvergenceError, match="tol=1e-30"):
        ik.mle(groups, tol=1e-30)
    with pytest.raises(ValueError, match="groups must hold at least one group"):
        ik.mle(ik.TallyGroups(["country"], {}))
    unbounded = ik.LinearGeometric(ik.Line(0, 3), 1.0).tally([0, 1])
    mixed = ik.TallyGroups(["x"], {"a": groups["NL", 0], "b": unbounded})
    with pytest.raises(AlphabetMismatch, match=r"groups must be over one alphabet.*'b'"):
        ik.mle(mixed)


def test_the_command_line_writes_one_table(frame, tmp_path, capsys):
    from ibukit.cli import main

    frame.to_csv(tmp_path / "reports.csv", index=False)
    one = ["--mechanism", "k-rr", "--epsilon", "2", "--labels", ",".join(LABELS)]
    columns = ["--column", "report", "--groups", "country,day", "--interval", "0.95"]
    out = tmp_path / "out.csv"
    command = ["estimate", str(tmp_path / "reports.csv"), *one, *columns]
    assert main([*command, "--out", str(out)]) == 0
    table = pd.read_csv(out)
    expected = ik.mle(
        ik.Tally.from_table(frame, ik.RandomizedResponse(LABELS, 2.0), groups=["country", "day"])
    ).to_frame()
    assert list(table) == ["country", "day", "label", *expected]
    np.testing.assert_allclose(table.probability, expected.probability, atol=1e-8)
    assert main([*command, "--out", str(tmp_path / "out.json")]) != 0
    assert "--out must end in .csv or .parquet with --groups" in capsys.readouterr().err


def test_a_void_interval_is_called_void():
    table = pd.DataFrame({"report": ["a"] * 2 + ["a", "b"] * 5000, "group": [1] * 2 + [2] * 10_000})
    groups = ik.Tally.from_table(table, ik.RandomizedResponse(["a", "b"], 1.0), groups="group")
    frame = ik.mle(groups).to_frame()
    assert frame.loc[1][["lower", "upper"]].to_numpy().tolist() == [[0, 1], [0, 1]]
    assert frame.loc[1].method.str.contains("void").all()
    assert (frame.loc[2].method == "wald").all()
    assert "method" not in ik.mle(groups).to_frame(method="profile")


def test_unknown_reports_of_several_groups_are_counted_once_in_the_message():
    unknown = ["v", "w", "x", "y", "z"]
    table = pd.DataFrame({"report": [*unknown, *unknown], "day": [1] * 5 + [2] * 5})
    with pytest.raises(
        AlphabetMismatch, match=r"contains '.', '.', '.' and 2 more, which are not reports of"
    ):
        ik.Tally.from_table(table, MECHANISMS[1], groups="day")


def test_what_was_dropped_adds_as_groups_do():
    table = pd.DataFrame({"report": ["a", "b", None, "?", None], "day": [1, 1, 1, 2, 2]})
    table.loc[len(table)] = ["c", 2]
    options = {"groups": "day", "missing": "drop", "unknown": "drop"}
    one, other = (
        ik.Tally.from_table(rows, MECHANISMS[1], **options) for rows in (table[:3], table[3:])
    )
    assert (dict(one.dropped), dict(other.dropped)) == (
        {"missing": 1},
        {"missing": 1, "unknown": 1},
    )
    for both in (one + other, sum([one, other])):
        assert dict(both.dropped) == {"missing": 2, "unknown": 1}


DIRTY = pd.DataFrame(
    {
        "report": ["10", "01", None, "?", "10", None, "01", "?", "10", None],
        "group": ["x", "x", "x", "x", "y", "y", "y", "y", None, "z"],
        "version": [1, 2, 2, 1, 2, 1, 9, 1, 1, 1],
        "w": [1.0, 0.5, 2.0, 0.25, 1.0, 3.0, 0.5, 4.0, 1.0, 1.0],
    }
)
RAPPORS = {version: ik.Rappor(2, float(version)) for version in (1, 2)}
TEXTS = {version: ik.RandomizedResponse(["10", "01"], float(version)) for version in (1, 2)}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mechanisms", [TEXTS, RAPPORS], ids=["labels", "bits"])
@pytest.mark.parametrize("kind", ["pandas", "csv", "dask"])
def test_each_group_knows_what_was_dropped_of_its_own_rows(kind, mechanisms, weighted, tmp_path):
    options = {"by": "version", "missing": "drop", "unknown": "drop"}
    options |= {"count": "w", "weighted": True} if weighted else {}
    table = DIRTY
    if kind == "csv":
        table = tmp_path / "dirty.csv"
        DIRTY.to_csv(table, index=False)
    elif kind == "dask":
        table = pytest.importorskip("dask.dataframe").from_pandas(DIRTY, npartitions=3)
    groups = ik.Tally.from_table(table, mechanisms, groups="group", **options)
    assert list(groups) == ["x", "y"]
    for name, tally in groups.items():
        rows = DIRTY[DIRTY.group == name]
        alone = ik.Tally.from_table(rows, mechanisms, **options)
        assert dict(tally.dropped) == dict(alone.dropped) != {}
    groups.save(tmp_path / "groups")
    again = ik.TallyGroups.load(tmp_path / "groups")
    # A missing group, and one of which nothing is left, are in the total alone.
    lost = sum(DIRTY.w[8:]) if weighted else 2
    total = sum(again.values()).dropped
    assert total["missing"] + lost == groups.dropped["missing"] == again.dropped["missing"]
    assert total["unknown"] == groups.dropped["unknown"] == again.dropped["unknown"]
    assert dict(ik.mle(groups)["x"].tally.dropped) == dict(groups["x"].dropped)
