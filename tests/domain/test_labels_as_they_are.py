"""Labels stay what they are: large integers, tuples, other Unicode forms; integers in order."""

import unicodedata

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.domain.alphabet import consecutive
from ibukit.mechanisms.saturation import add_saturating

TOP = 2**63 - 1
PAIRS = [("f", "old"), ("f", "young"), ("m", "old"), ("m", "young")]


# Integers in order are a line


@pytest.mark.parametrize(
    "labels",
    [
        [3, 4, 5],
        (3, 4, 5),
        np.arange(3, 6),
        np.arange(3, 6, dtype=np.uint8),
        pd.RangeIndex(3, 6),
        pd.Index([3, 4, 5]),
        pd.Series([3, 4, 5]),
        [np.int32(3), 4, np.int64(5)],
        range(3, 6),
    ],
)
def test_consecutive_integers_are_a_line_whatever_holds_them(labels):
    assert ik.RandomizedResponse(labels, 1.0).alphabet == ik.Line(3, 5)
    if not isinstance(labels, range):
        assert consecutive(labels) == ik.Line(3, 5)


@pytest.mark.parametrize(
    "labels",
    [[3, 5, 4], [3, 5], [5, 4, 3], ["3", "4"], [3.0, 4.0], [True, False], [3, "4"], [0, None]],
)
def test_all_else_is_labels(labels):
    alphabet = ik.RandomizedResponse(labels, 1.0).alphabet
    assert type(alphabet) is ik.Alphabet
    assert list(alphabet.values) == labels


@pytest.mark.parametrize("axis", [np.arange(3), pd.Index([0, 1, 2]), pd.RangeIndex(3), [0, 1, 2]])
def test_a_frame_numbered_in_any_way_is_over_a_line(axis):
    mechanism = ik.MatrixMechanism(pd.DataFrame(np.eye(3), index=axis, columns=axis))
    assert mechanism.alphabet == ik.Line(0, 2)
    assert ik.emd([1, 0, 0], [0, 0, 1], mechanism.alphabet) == 2
    ages = ik.MatrixMechanism(pd.DataFrame(np.eye(3), index=pd.Index([17, 18, 19])))
    assert ages.alphabet == ik.Line(17, 19)


# Durations and half precision


def test_durations_are_no_integers():
    days = [np.timedelta64(1, "D"), np.timedelta64(2, "D")]
    assert ik.Alphabet(days) == ik.Alphabet(np.array(days))
    if days[0] != 1:  # to an older numpy they are equal
        assert ik.Alphabet([days[0], 1]).labels_of([0, 1]).tolist() == [days[0], 1], (
            "1 is not made a duration"
        )
    for refused in (lambda: ik.Line(*days), lambda: ik.RandomizedResponse(days[1], 1.0)):
        with pytest.raises(ValueError, match=r"must be a whole number, got np\.timedelta64"):
            refused()


def test_half_precision_is_widened_for_tables():
    labels = np.array([0.1, 0.2, 0.3], dtype=np.float16)
    mechanism = ik.RandomizedResponse(labels, 1.0)
    assert ik.mle(mechanism.tally(labels)).to_frame().index.tolist() == labels.tolist()
    table = pd.DataFrame({"report": labels, "group": labels})
    groups = ik.Tally.from_table(table, mechanism, groups="group")
    assert list(groups) == labels.tolist()


# Integers at the ends of 64 bits


@pytest.mark.parametrize(
    "labels",
    [
        [2**63 + 5, 7, -3],
        [-1, 2**63, 2**63 + 1],
        [2**80, 1, 2],
        [2**63 + 5, 7, np.int64(3)],
        [2**64 - 1, 2**64 - 2, 2**63 - 1],
        [2**63 - 1, 2**63, 2**63 + 1],
        [2**63, 2**63 + 1, 2**63 + 2],
    ],
)
def test_integers_on_both_sides_of_64_bits_stay_exact(labels):
    mechanism = ik.RandomizedResponse(labels, 1.0)
    assert list(mechanism.alphabet.values) == labels
    tally = mechanism.tally([labels[0]] * 3 + [labels[2]])
    assert tally.counts.tolist() == [3, 1]
    assert ik.mle(tally).to_series().index.tolist() == labels


def test_a_line_may_end_where_64_bits_end():
    line = ik.Line(TOP - 4, TOP)
    assert list(line.values) == [TOP - 4 + i for i in range(5)]
    assert line.distances()[0].tolist() == [0, 1, 2, 3, 4]


def test_sums_saturate_and_do_not_wrap_round():
    values = np.array([TOP, TOP - 1, -TOP, 0, 5])
    noise = np.array([1, 1, -5, 7, -9])
    assert add_saturating(values, noise).tolist() == [TOP, TOP, -(2**63), 7, -4]


@pytest.mark.parametrize("end", [TOP, -TOP])
def test_noise_stays_on_its_side(end):
    rng = np.random.default_rng(1)
    line = ik.LinearGeometric(ik.Line(None, None), 0.5)
    plane = ik.PlanarGeometric(ik.Grid(None, None), 0.5)
    gauss = ik.DiscreteGaussian(ik.Line(None, None), 3.0)
    draws = {
        "line": line.randomize([end] * 500, rng),
        "line released": line.release([end] * 500),
        "plane": plane.randomize([[end, 0]] * 500, rng)[:, 0],
        "plane released": plane.release([[end, 0]] * 500)[:, 0],
        "gauss": gauss.randomize([end] * 500, rng),
    }
    for name, reports in draws.items():
        assert (np.sign(reports) == np.sign(end)).all(), name
    if end == TOP:
        # Half of the noise, and the zeros, stop at the end.
        assert (draws["line"] == TOP).mean() > 0.4


def test_a_saturated_report_keeps_its_likelihood():
    """What is beyond the end is as probable as the end, times a constant that no secret changes."""
    mechanism = ik.LinearGeometric(ik.Line(TOP - 6, TOP), 0.5)
    rows = mechanism.channel(np.array([TOP])).rows(np.arange(7))[:, 0]
    a = np.exp(-0.5)
    tails = a ** np.arange(6, -1, -1) / (1 + a)
    np.testing.assert_allclose(tails / rows, (tails / rows)[0], rtol=1e-12)


# Tuples


def test_tuples_are_labels_as_a_multiindex_has_them():
    frame = pd.DataFrame(PAIRS * 3 + PAIRS[:1], columns=["sex", "age"])
    of_list = ik.RandomizedResponse(PAIRS, 1.5)
    of_index = ik.RandomizedResponse(pd.MultiIndex.from_tuples(PAIRS), 1.5)
    assert of_list == of_index
    expected = [4, 3, 3, 3]
    for mechanism in (of_list, of_index):
        assert (
            mechanism.tally(list(frame.itertuples(index=False, name=None))).counts.tolist()
            == expected
        )
        assert mechanism.tally_counts(frame.value_counts()).counts.tolist() == expected
        found = ik.Tally.from_table(frame, mechanism, report=["sex", "age"])
        assert found.counts.tolist() == expected
    assert ik.RandomizedResponse([(), ("x",), ("x", "y")], 1.0).tally([(), ("x",)]).n == 2


def test_labels_in_several_columns_of_a_file(tmp_path):
    frame = pd.DataFrame({"sex": ["f", "m", "m"], "year": [1, 2, 2]})
    frame.to_csv(tmp_path / "r.csv", index=False)
    mechanism = ik.RandomizedResponse([("f", 1), ("m", 1), ("m", 2)], 1.5)
    tally = ik.Tally.from_table(tmp_path / "r.csv", mechanism, report=["sex", "year"])
    assert tally.counts.tolist() == [1, 2]
    frame.assign(year=2).to_csv(tmp_path / "r.csv", index=False)
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"contains \('f', '2'\)"):
        ik.Tally.from_table(tmp_path / "r.csv", mechanism, report=["sex", "year"])


# Numbers as texts


@pytest.mark.parametrize("kind", [str, object])
def test_a_column_of_texts_may_hold_numbers(kind):
    mechanism = ik.HadamardResponse(["a", "b", "c"], 1.0)
    reports = pd.Series([0, 3, 3, 1]).astype(str).astype(kind)
    tally = ik.Tally.from_table(pd.DataFrame({"report": reports}), mechanism)
    assert tally.counts.tolist() == [1, 1, 2]
    texts = ik.RandomizedResponse(["1", "2"], 1.0)
    with pytest.raises(ik.errors.AlphabetMismatch, match="contains 1"):
        ik.Tally.from_table(pd.DataFrame({"report": [1, 2]}), texts)


# What looks alike


def test_two_unicode_forms_of_a_label_are_told_apart():
    composed, decomposed = (unicodedata.normalize(form, "Málaga") for form in ("NFC", "NFD"))
    mechanism = ik.RandomizedResponse([composed, "Lugo"], 1.0)
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"Ma\\u0301laga.*M\\xe1laga.*NFC"):
        mechanism.tally([decomposed])


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"a", "b"}, "sequence of labels, in order, got set; pass sorted"),
        ({"a": 1, "b": 2}, "sequence of labels, in order, got dict; pass list"),
        ("abc", "got the text"),
        (None, "got None"),
        (["a", "a"], "must all be different"),
        (["a", float("nan")], "must all be different"),
        (pd.Series([pd.NaT, pd.Timestamp("2026-01-01")]), "not missing"),
        (np.array(["NaT", "2026-01-01"], "datetime64[D]"), "not missing"),
        ([("a", 1), ("a", 1)], "must all be different"),
        ([], "non-empty"),
        ([["a"], ["b"]], "join labels"),
        (2.5, "whole number"),
    ],
)
def test_what_is_no_alphabet_is_named(labels, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ik.RandomizedResponse(labels, 1.0)


@pytest.mark.parametrize("unit", ["ns", "us", "s", "h", "D", "W", "M", "Y"])
@pytest.mark.parametrize("kind", [list, np.asarray, pd.Series, pd.DatetimeIndex])
def test_moments_of_every_unit_are_those_of_an_index(unit, kind, tmp_path):
    # These two Thursdays, with which weeks of numpy begin, are the first days of years.
    index = pd.DatetimeIndex(["1970-01-01", "2032-01-01"], name="label")
    labels = index.to_numpy().astype(f"M8[{unit}]")
    mechanism = ik.RandomizedResponse(kind(labels), 1.0)
    assert mechanism.alphabet == ik.Alphabet(index)
    reports = labels[[0, 1, 1]]
    days = [moment.date() for moment in pd.DatetimeIndex(reports)]
    pd.DataFrame({"report": days}).to_csv(tmp_path / "days.csv", index=False)
    moments = (reports, list(reports), pd.Series(reports), pd.DatetimeIndex(reports), days)
    for same in moments:
        assert mechanism.tally(same).counts.tolist() == [1, 2]
        table = pd.DataFrame({"report": same})
        assert ik.Tally.from_table(table, mechanism).counts.tolist() == [1, 2]
    assert ik.Tally.from_table(tmp_path / "days.csv", mechanism).counts.tolist() == [1, 2]
    tally = mechanism.tally_counts({labels[1]: 2, labels[0]: 1})
    assert tally.counts.tolist() == [1, 2]
    estimate = ik.mle(tally)
    assert estimate[labels[1]] == estimate[index[1]] == estimate.distribution[1]
    assert ik.emd(estimate, estimate.to_series(), mechanism.alphabet) == 0
    # releases of pandas count moments in different units
    assert estimate.to_series().index.tolist() == index.tolist()
    other = np.datetime64("1970-01-01T00:00:00.000000001", "ns")
    with pytest.raises(ik.errors.AlphabetMismatch, match="not in the alphabet"):
        mechanism.tally([other])
