"""An estimate answers in labels:
one probability, tables, a map, JSON, HTML, drawings, and as a distribution.
"""

import copy
import json
import math
import re
from dataclasses import replace
from datetime import date

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pyarrow as pa
import pytest

import ibukit as ik
from ibukit import plotting

WORDS = ik.Alphabet(
    [
        "Private",
        "State-gov",
        "<b>none</b>",
        "Self-employed, not incorporated, without any employees",
    ]
)
LINE = ik.Line(17, 20, unit="year")
GRID = ik.Grid(2, 3, cell_size=0.5)


def estimate_over(alphabet, counts=None):
    counts = np.arange(len(alphabet), 0, -1) * 100 if counts is None else counts
    return ik.mle(ik.RandomizedResponse(alphabet, 2.0).tally_counts(counts))


OVER = {"labels": estimate_over(WORDS), "line": estimate_over(LINE), "grid": estimate_over(GRID)}
OFF = ik.inv(ik.RandomizedResponse(WORDS, 1.0).tally_counts([97, 1, 1, 1]), post="none")
kinds = pytest.mark.parametrize("name", OVER)


pytestmark = pytest.mark.usefixtures("closed_figures")


def labels_of(estimate):
    return [
        tuple(label) if isinstance(label, list) else label
        for label in estimate.alphabet.values.tolist()
    ]


# One label


@kinds
def test_each_label_has_its_probability(name):
    estimate = OVER[name]
    assert [estimate[label] for label in labels_of(estimate)] == estimate.distribution.tolist()
    assert all(type(estimate[label]) is float for label in labels_of(estimate))
    assert len(set(estimate.distribution)) == len(estimate), "a mix-up must be seen"


@pytest.mark.parametrize(
    ("name", "label", "said"),
    [
        (
            "labels",
            "Privat",
            "label 'Privat' is not in the alphabet of 4 labels; did you mean 'Private'",
        ),
        ("labels", 0, "label 0 is not in"),
        ("labels", None, "label None is not in"),
        ("labels", math.nan, "label nan is not in"),
        ("labels", ["Private"], "to_series"),
        ("labels", slice(2), "to_series"),
        ("line", 21, r"label 21 is not in Line\(17, 20"),
        ("line", 17.5, "label 17.5 is not in"),
        ("line", "17", "label '17' is not in"),
        ("grid", (2, 0), r"label \(2, 0\) is not in Grid"),
        ("grid", 3, "label 3 is not in Grid"),
        ("grid", (0, 1, 2), r"label \(0, 1, 2\) is not in Grid"),
    ],
)
def test_an_unknown_label_is_named(name, label, said):
    with pytest.raises(ik.errors.AlphabetMismatch, match=said):
        OVER[name][label]


def test_outside_the_part_in_use_of_a_line_without_end_there_is_nothing():
    estimate = ik.mle(ik.LinearGeometric(ik.Line(0, None), 1.0).tally([3, 3, 5]))
    assert estimate[3] == estimate.distribution[0] > 0
    assert estimate[1000] == 0.0
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"label -1 is not in Line\(0, None\)"):
        estimate[-1]


@kinds
def test_it_has_a_length_and_is_not_gone_through(name):
    assert len(OVER[name]) == len(OVER[name].distribution)
    with pytest.raises(TypeError, match="not iterable"):
        list(OVER[name])


# Tables


@kinds
def test_a_series_is_indexed_by_labels(name):
    estimate = OVER[name]
    series = estimate.to_series()
    assert series.index.tolist() == labels_of(estimate)
    assert series.tolist() == estimate.distribution.tolist()
    assert series[labels_of(estimate)[1]] == estimate.distribution[1]
    assert series.index.names == (["row", "col"] if name == "grid" else ["label"])
    series.iloc[0] = 2.0  # the reader's own
    assert estimate.distribution[0] != 2.0


@kinds
def test_a_frame_holds_intervals_and_what_is_identified(name):
    estimate = OVER[name]
    frame = estimate.to_frame(level=0.8)
    assert list(frame) == ["probability", "lower", "upper", "identified"]
    assert frame.index.tolist() == labels_of(estimate)
    lower, upper = estimate.interval(0.8)
    assert frame["lower"].tolist() == lower.tolist()
    assert frame["upper"].tolist() == upper.tolist()
    assert frame["identified"].dtype == bool
    assert (estimate.to_frame()["upper"] >= frame["upper"]).all(), "95 % is the default"
    assert list(estimate.to_frame(level=None)) == ["probability"]


def test_a_frame_says_what_is_not_identified():
    merged = ik.compose(ik.RandomizedResponse(3, epsilon=1.0), [[1, 0], [0, 1], [0, 1]])
    frame = ik.ibu(merged.tally_counts([50, 50])).to_frame()
    assert frame["identified"].tolist() == [True, False, False]
    assert frame["lower"].tolist()[1:] == [0.0, 0.0]
    assert frame["upper"].tolist()[1:] == pytest.approx(
        [1 - frame["lower"].tolist()[0]] * 2, abs=1e-8
    )
    wald = ik.ibu(merged.tally_counts([50, 50])).to_frame(method="wald")
    assert wald["upper"].tolist()[1:] == [1.0, 1.0]


def test_a_map_has_its_cells():
    estimate = OVER["grid"]
    frame = estimate.to_geodataframe(level=0.9)
    assert list(frame) == ["row", "col", "probability", "lower", "upper", "identified", "geometry"]
    grid, values = ik.Grid.from_geodataframe(frame, name="probability")
    assert grid == GRID
    assert values.tolist() == estimate.distribution.tolist()
    assert frame["lower"].tolist() == estimate.interval(0.9)[0].tolist()
    assert list(estimate.to_geodataframe()) == ["row", "col", "probability", "geometry"]
    for other in ("labels", "line"):
        with pytest.raises(ik.errors.AlphabetMismatch, match=r"must be a Grid.* to_frame\(\)"):
            OVER[other].to_geodataframe()


@pytest.mark.parametrize("call", ["to_frame", "standard_errors", "covariance", "interval"])
def test_without_reports_the_error_says_so(call):
    bare = replace(OVER["labels"], tally=None)
    with pytest.raises(ValueError, match="estimate has no tally"):
        getattr(bare, call)()
    with pytest.raises(ValueError, match="estimate has no tally"):
        bare.plot(level=0.9)
    assert bare["Private"] == OVER["labels"]["Private"]
    assert json.loads(bare.to_json())["n"] is None
    assert len(bare.to_frame(level=None)) == 4


@pytest.mark.parametrize("call", ["to_frame", "standard_errors", "covariance", "interval"])
def test_off_the_simplex_numbers_are_shown_and_have_no_errors(call):
    assert OFF.distribution.min() < 0
    with pytest.raises(ValueError, match="off the simplex"):
        getattr(OFF, call)()
    assert OFF.to_series().tolist() == OFF.distribution.tolist()
    assert OFF["State-gov"] < 0
    read = json.loads(OFF.to_json())
    assert (read["status"], read["gap"]) == ("OFF_SIMPLEX", "inf")
    assert "OFF_SIMPLEX" in OFF._repr_html_()
    assert OFF.plot().get_xlim()[0] < 0
    with pytest.raises(ik.errors.InvalidDistribution):
        ik.total_variation(OFF, OVER["labels"])


# JSON and HTML


def no_constant(name):
    raise ValueError(f"{name} is not JSON")


@kinds
def test_json_holds_what_is_printed(name):
    estimate = OVER[name]
    read = json.loads(estimate.to_json(), parse_constant=no_constant)
    labels = [tuple(label) if isinstance(label, list) else label for label in read.pop("labels")]
    assert labels == labels_of(estimate)
    assert read == {
        "probabilities": estimate.distribution.tolist(),
        "gap": estimate.gap,
        "status": estimate.status.name,
        "n_iter": estimate.n_iter,
        "method": estimate.method,
        "log_likelihood": estimate.log_likelihood,
        "n": estimate.tally.n,
        "dropped": {},
    }


def test_json_holds_intervals_and_what_was_left_out():
    table = pa.table({"report": ["a", "b", "a", None, "a"]})
    estimate = ik.mle(
        ik.Tally.from_table(table, ik.RandomizedResponse(["a", "b"], 1.0), missing="drop")
    )
    read, frame = json.loads(estimate.to_json(level=0.9)), estimate.to_frame(level=0.9)
    assert read["dropped"] == {"missing": 1}
    assert {name: read[name] for name in ("lower", "upper", "identified")} == frame.drop(
        columns="probability"
    ).to_dict("list")


def test_json_holds_the_method_of_each_interval_beside_that_of_the_estimate():
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([1.5, 2.0, 3.0], weighted=True)
    estimate = ik.mle(tally)
    read, frame = json.loads(estimate.to_json(level=0.9)), estimate.to_frame(level=0.9)
    assert read["interval_method"] == frame["method"].tolist()
    assert read["method"] == estimate.method


@pytest.mark.parametrize(
    ("labels", "read"),
    [
        ([0.5, math.inf, -math.inf], [0.5, "inf", "-inf"]),
        (
            np.array(["2020-01-01", "2020-02-01"], dtype="datetime64[D]"),
            ["2020-01-01", "2020-02-01"],
        ),
        ([date(2020, 1, 1), "no date"], ["2020-01-01", "no date"]),
        (['a "quote"', "é\n"], ['a "quote"', "é\n"]),
    ],
)
def test_json_is_valid_for_labels_of_every_kind(labels, read):
    estimate = estimate_over(ik.Alphabet(labels))
    assert json.loads(estimate.to_json(), parse_constant=no_constant)["labels"] == read


def test_infinite_numbers_are_no_bare_tokens():
    mechanism = ik.MatrixMechanism([[0.6, 0.4, 0.0], [0.4, 0.6, 0.0], [0.0, 0.0, 1.0]])
    estimate = ik.inv(mechanism.tally_counts([90, 9, 1]))
    read = json.loads(estimate.to_json(), parse_constant=no_constant)
    assert (float(read["gap"]), float(read["log_likelihood"])) == (math.inf, -math.inf)
    with pytest.raises(ValueError, match="Infinity is not JSON"):
        json.loads(json.dumps(math.inf), parse_constant=no_constant)


def test_html_is_escaped_and_short():
    shown = OVER["labels"]._repr_html_()
    assert "&lt;b&gt;none&lt;/b&gt;" in shown
    assert "<b>" not in shown
    assert shown.count("<tr>") == 1 + 4
    assert "(1, 2)" in OVER["grid"]._repr_html_()
    many = estimate_over(ik.Alphabet([f"label {i}" for i in range(1000)]), np.arange(1000) + 1)
    shown = many._repr_html_()
    assert shown.count("<tr>") == 1 + 10 + 1
    assert "label 999<" in shown
    assert "label 0<" not in shown
    assert "990 others" in shown


def test_the_probabilities_of_an_html_table_sum_to_one(rng):
    for k in (5, 20, 21, 300):
        # The most probable labels stand anywhere.
        estimate = estimate_over(ik.Alphabet([f"{i}" for i in range(k)]), rng.permutation(k) + 1)
        shown = re.findall(r"<td>([^<]+)</td>", estimate._repr_html_())
        assert sum(map(float, shown)) == pytest.approx(1, abs=5e-4)


# Equality


def test_equal_estimates_are_equal():
    estimate = OVER["labels"]
    for same in (estimate_over(WORDS), copy.deepcopy(estimate), replace(estimate)):
        assert same == estimate
        assert hash(same) == hash(estimate)
    assert estimate != "an estimate"
    assert len({estimate, estimate_over(WORDS), OVER["line"]}) == 2


def test_each_difference_is_seen():
    estimate = OVER["labels"]
    other_labels = ik.Alphabet([*WORDS.values[:3], "other"])
    changes = {
        "distribution": np.roll(estimate.distribution, 1),
        "log_likelihood": -1.0,
        "gap": 0.5,
        "status": ik.Status.STOPPED,
        "n_iter": 7,
        "method": "another",
        "alphabet": other_labels,
        "tally": None,
    }
    for name, value in changes.items():
        assert replace(estimate, **{name: value}) != estimate, name
    more = ik.RandomizedResponse(WORDS, 2.0).tally_counts([400, 300, 200, 101])
    noisier = ik.RandomizedResponse(WORDS, 2.1).tally_counts([400, 300, 200, 100])
    for tally in (more, noisier, estimate.tally + noisier):
        assert replace(estimate, tally=tally) != estimate
    # in which order reports were pooled does not matter
    pooled = [
        replace(estimate, tally=tally)
        for tally in (estimate.tally + noisier, noisier + estimate.tally)
    ]
    assert pooled[0] == pooled[1]


# In the place of a distribution


@kinds
def test_an_estimate_stands_for_its_distribution(name):
    estimate = OVER[name]
    k = len(estimate)
    truth = ik.uniform(k)
    p = estimate.distribution
    assert ik.emd(estimate, truth, estimate.alphabet) == ik.emd(p, truth, estimate.alphabet)
    assert ik.emd(truth, estimate, estimate.alphabet) == ik.emd(truth, p, estimate.alphabet)
    assert ik.total_variation(estimate, truth) == ik.total_variation(p, truth) > 0
    assert ik.squared_l2(truth, estimate) == ik.squared_l2(truth, p) > 0
    assert ik.gap(estimate.tally, estimate) == ik.gap(estimate.tally, p)
    assert np.array_equal(ik.check_distribution(estimate), p)


@kinds
def test_an_estimate_is_no_array_which_would_drop_its_labels(name):
    estimate = OVER[name]
    with pytest.raises(TypeError):
        np.subtract(estimate, np.zeros(len(estimate)))
    with pytest.raises(TypeError):
        np.asarray(estimate, dtype=float)


@kinds
def test_an_estimate_is_an_arrow_table_with_its_labels(name):
    estimate = OVER[name]
    table = pa.table(estimate)
    series = estimate.to_series()
    assert table.column_names == [*series.index.names, "probability"]
    again = table.to_pandas().set_index(list(series.index.names))["probability"]
    assert again.to_dict() == series.to_dict()
    assert ik.total_variation(again, estimate) == 0


def test_estimates_over_other_secrets_are_not_compared():
    other = estimate_over(ik.Line(30, 33))
    for call in (
        lambda: ik.emd(OVER["line"], other, LINE),
        lambda: ik.emd(other, ik.uniform(4), LINE),
        lambda: ik.total_variation(OVER["line"], other),
        lambda: ik.squared_l2(OVER["line"], OVER["labels"]),
        lambda: plotting.distributions(LINE, {"other": other}),
        lambda: plotting.heatmap(ik.Grid(2, 2), other),
    ):
        with pytest.raises(ik.errors.AlphabetMismatch, match="got an estimate over"):
            call()
    with pytest.raises(ik.errors.AlphabetMismatch):
        ik.total_variation(OVER["line"], OVER["grid"])
    # a bare number of secrets speaks of codes
    coded = estimate_over(ik.Line(0, 3))
    assert ik.total_variation(coded, OVER["line"]) == pytest.approx(0)
    assert ik.emd(OVER["line"], coded, 4) == pytest.approx(0)


def test_an_unfolded_estimate_answers_in_labels_too():
    ask = {"matrix": [[0.6, 0.2], [0.1, 0.3]], "background": [10, 30]}
    found, again = ik.unfold([80, 80], **ask), ik.unfold([80, 80], **ask)
    assert found == again
    assert replace(found, total=found.total + 1) != found
    assert replace(found, background=found.background + 1) != found
    assert found[0] == found.distribution[0]
    assert found.to_frame()["identified"].tolist() == [True, True]
    assert json.loads(found.to_json())["n"] is None, "with a background there is no tally"
    without = ik.unfold([70, 50], ask["matrix"])
    assert without.covariance() == pytest.approx(ik.mle(without.tally).covariance(), rel=1e-9)
    assert ik.mle(without.tally) != without
