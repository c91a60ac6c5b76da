"""Alphabets: labels, codes, distances."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from oracles import naive

TRIANGLE = [[0, 1, 2], [1, 0, 1.5], [2, 1.5, 0]]


def test_an_alphabet_without_distances_has_the_discrete_metric():
    assert np.array_equal(ik.Alphabet(list("abcd")).distances(), 1 - np.eye(4))


def test_given_distances_are_kept_and_cannot_be_changed():
    given_distances = np.array(TRIANGLE)
    alphabet = ik.Alphabet(["a", "b", "c"], distances=given_distances, unit="m")
    given_distances[0, 1] = 7
    assert np.array_equal(alphabet.distances(), TRIANGLE)
    assert alphabet.unit == "m"
    with pytest.raises(ValueError, match="read-only"):
        alphabet.distances()[0, 1] = 7


@given(st.lists(st.text(max_size=3), min_size=1, max_size=12, unique=True), st.data())
def test_codes_are_the_inverse_of_values(labels, data):
    alphabet = ik.Alphabet(labels)
    codes = data.draw(st.lists(st.integers(0, len(labels) - 1), max_size=8))
    assert alphabet.codes(alphabet.values[codes]).tolist() == codes


@pytest.mark.parametrize(
    ("alphabet", "labels", "culprit"),
    [
        (ik.Alphabet(["red", "green"]), ["red", "blue"], "'blue'"),
        (ik.Line(3, 8), [3, 9], "9"),
        (ik.Line(3, 8), [2, 8], "2"),
        (ik.Grid(2, 3), [[0, 0], [2, 1]], r"\(2, 1\)"),
        (ik.Grid(2, 3), [[0, -1]], r"\(0, -1\)"),
    ],
)
def test_a_label_outside_the_alphabet_is_named(alphabet, labels, culprit):
    with pytest.raises(ik.errors.AlphabetMismatch, match=rf"labels contains {culprit}"):
        alphabet.codes(labels)


@pytest.mark.parametrize(
    ("values", "distances", "message"),
    [
        ([], None, r"values .* shape \(0,\)"),
        ([["a", "b"]], None, r"values .* shape \(1, 2\)"),
        (["a", "a"], None, "values must all be different"),
        (["a", "b"], [[0, 1, 2], [1, 0, 2]], r"distances must have shape \(2, 2\), got \(2, 3\)"),
        (["a", "b"], [[0, 1], [2, 0]], "distances must be finite, symmetric"),
        (["a", "b"], [[0, -1], [-1, 0]], "distances .* above zero elsewhere"),
        (["a", "b"], [[0, 0], [0, 0]], "distances .* above zero elsewhere"),
        (["a", "b"], [[1, 1], [1, 0]], "distances .* zero on the diagonal"),
        (["a", "b"], [[0, np.nan], [np.nan, 0]], "distances must be finite"),
        (["a", "b"], [[0, np.inf], [np.inf, 0]], "distances must be finite"),
    ],
)
def test_what_is_not_an_alphabet_is_refused(values, distances, message):
    with pytest.raises(ValueError, match=message):
        ik.Alphabet(values, distances)


def test_a_line_is_its_integers_with_unit_steps():
    line = ik.Line(-3, 4, unit="year")
    assert len(line) == 8
    assert line.values.tolist() == list(range(-3, 5))
    assert np.array_equal(line.distances(), naive.line_distances(8))
    assert line.codes([-3, 0, 4]).tolist() == [0, 3, 7]
    assert line.codes([]).tolist() == []


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        (3, 2, "first=3, last=2"),
        (0.5, 2, "first must be a whole number, got 0.5"),
        (0, 2.0, r"last must be a whole number, got 2\.0"),
        (0, "2", "last must be a whole number, got '2'"),
        (True, 2, "first must be a whole number, got True"),
        (-(2**60), 2, "first must be at least"),
    ],
)
def test_what_is_not_a_line_is_refused(first, last, message):
    with pytest.raises(ValueError, match=message):
        ik.Line(first, last)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("red", "labels must be a list, an array or a Series, got 'red', which is one"),
        ({"red"}, "labels must be a list, an array or a Series, got a set"),
        (
            (label for label in ["red"]),
            "labels must be a list, an array or a Series, got a generator",
        ),
        ({"red": 1}, "labels must be a list, an array or a Series, got a dict"),
        (None, "labels must be a list, an array or a Series, got None"),
        (5, r"labels must have 1 dimension, got shape \(\)"),
        (np.array([["red"]]), r"labels must have 1 dimension, got shape \(1, 1\)"),
        ([["red"]], r"labels contains \['red'\], which is not in the alphabet"),
    ],
)
def test_labels_are_a_sequence(labels, message):
    with pytest.raises((ValueError, ik.errors.AlphabetMismatch), match=message):
        ik.Alphabet(["red", "green"]).codes(labels)


def test_labels_of_a_line_must_be_whole():
    with pytest.raises(ValueError, match=r"labels must be whole numbers, got 0\.5 at index 1"):
        ik.Line(0, 3).codes([1, 0.5])
    with pytest.raises(ValueError, match="labels must be whole numbers, got an array of type"):
        ik.Line(0, 3).codes(["1"])


ALPHABETS = [
    ik.Alphabet(["a", "b", "c"]),
    ik.Alphabet(["b", "a", "c"]),
    ik.Alphabet(["a", "b", "c"], TRIANGLE),
    ik.Alphabet([0, 1, 2]),
    ik.Line(0, 2),
    ik.Line(1, 3),
    ik.Grid(1, 3),
    ik.Grid(3, 1),
    ik.Grid(1, 3, cell_size=2.0),
    ik.Grid(1, 3, bounds=(0, 1, 0, 3)),
]


def test_alphabets_are_equal_if_labels_order_and_distances_are():
    for i, one in enumerate(ALPHABETS):
        again = pickle.loads(pickle.dumps(one))
        assert again == one
        assert hash(again) == hash(one)
        assert [one == other for other in ALPHABETS] == [i == j for j in range(len(ALPHABETS))]
    assert ik.Line(0, 2, unit="year") == ik.Line(0, 2, unit="km")
    assert ik.Line(0, 2) != "Line(0, 2)"


def test_values_cannot_be_changed():
    for alphabet in ALPHABETS:
        with pytest.raises(ValueError, match="read-only"):
            alphabet.values[0] = alphabet.values[-1]


@pytest.mark.parametrize(
    ("alphabet", "message"),
    [
        (0, "at least 1, got 0"),
        (2.5, "whole number, got 2.5"),
        ("abc", "got (the text )?'abc'"),
        (None, "got None"),
    ],
)
@pytest.mark.parametrize(
    "mechanism", [ik.RandomizedResponse, ik.Exponential, ik.TruncatedGeometric, ik.LinearLaplace]
)
def test_an_alphabet_or_a_number_of_secrets_is_needed(mechanism, alphabet, message):
    with pytest.raises(ValueError, match=f"alphabet must be .*{message}"):
        mechanism(alphabet, 1.0)


def test_a_number_k_means_the_line_from_0():
    for mechanism in (
        ik.RandomizedResponse,
        ik.Rappor,
        ik.Exponential,
        ik.TruncatedGeometric,
        ik.LinearLaplace,
    ):
        assert mechanism(4, 1.0).alphabet == ik.Line(0, 3)
