"""What people hand in by mistake: the error says which argument, which value, and what to do."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import ibukit as ik
from ibukit.errors import InvalidDistribution, TooLarge

SQUARE = np.array([[0.9, 0.1], [0.3, 0.7]])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (SQUARE.T, r"row 0 sums to 1\.2; its columns do: is it transposed\? Pass matrix\.T"),
        (
            SQUARE * 0.9,
            (
                r"row 0 sums to 0\.9; each row must have .* if the columns are the secrets, .* only"
                r" if .* pass efficiency=True"
            ),
        ),
        (SQUARE * 0.5, r"row 0 sums to 0\.5; its entries sum to 1 in all, .* by its sum"),
        (SQUARE * 10, r"row 0 sums to 10; .* counts of trials .* number of its trials"),
        (SQUARE * 100, r"row 0 sums to 100; its rows sum to 100, .* pass matrix / 100"),
        (SQUARE * 50, r"row 0 sums to 50; its entries sum to 100 in all, .* by its sum"),
        (SQUARE * (1 + 1e-6), r"row 0 sums to 1\.000001; if that is rounding, normalize=True"),
        (
            SQUARE.astype(complex),
            "got complex ones; if the imaginary parts do not matter, pass its real part",
        ),
        ([[0.9, 0.1j], [0.3, 0.7]], "got complex ones"),
        ([[0.9, 0.1], [1.0]], "rows of different lengths: row 0 has 2 entries, row 1 has 1"),
        (
            [["0.9", "0.1"], ["0.3", "0.7"]],
            "must be a rectangular array of numbers, got list with other entries",
        ),
        (
            pd.DataFrame({"a": ["x"]}),
            "must be a rectangular array of numbers, got ndarray with other entries",
        ),
        ("matrix.csv", "must be a rectangular array of numbers, got str with other entries"),
        (
            [0.5, 0.5],
            r"got shape \(2,\); it has one row for each secret and one column for each report",
        ),
        (np.empty((0, 2)), r"got shape \(0, 2\)"),
        ([], r"got shape \(0,\)"),
        (None, r"must be a rectangular array of numbers|got shape \(\)"),
        (np.ma.masked_greater(SQUARE, 0.8), "must not have masked entries"),
        (sparse.csr_array(-SQUARE), r"got -0\.9 at row 0, column 0"),
    ],
    ids=str,
)
def test_what_is_no_matrix_of_probabilities(matrix, message):
    with pytest.raises(InvalidDistribution, match=f"^matrix .*{message}"):
        ik.MatrixMechanism(matrix)


def test_a_sparse_matrix_that_is_too_large():
    with pytest.raises(TooLarge, match=r"matrix of shape \(1000000, 1000000\) takes 8e\+12 bytes"):
        ik.MatrixMechanism(sparse.csr_array((1_000_000, 1_000_000)))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"alphabet": ["x", "y", "z"]},
            ik.errors.AlphabetMismatch,
            "one row for each of the 3 secrets, got 2 rows",
        ),
        (
            {"alphabet": ["a", "c"]},
            ik.errors.AlphabetMismatch,
            "matrix has a row for 'b', which is not in",
        ),
        (
            {"reports": ["u", "w"]},
            ik.errors.AlphabetMismatch,
            "matrix has a column for 'v', which is not in",
        ),
        (
            {"reports": ["u"]},
            ik.errors.AlphabetMismatch,
            "reports must have one label for each of the 2 columns, got 1",
        ),
        ({"normalize": "yes"}, TypeError, "normalize must be True or False, got 'yes'"),
        (
            {"efficiency": [0.9, 0.3]},
            InvalidDistribution,
            r"efficiencies, or each to 1 .*row 0 sums to 1",
        ),
        (
            {"efficiency": -0.5},
            InvalidDistribution,
            r"efficiency must be above 0 and at most 1, got -0\.5 at index 0",
        ),
        (
            {"efficiency": np.nan},
            InvalidDistribution,
            "efficiency must be above 0 and at most 1, got nan",
        ),
    ],
    ids=str,
)
def test_options_of_a_matrix(options, error, message):
    table = pd.DataFrame(SQUARE, index=["a", "b"], columns=["u", "v"])
    if options.get("efficiency") == [0.9, 0.3]:
        table = table * np.array([[1.0], [0.5]])
    with pytest.raises(error, match=message):
        ik.MatrixMechanism(table, **options)


def test_efficiencies_of_a_transposed_matrix():
    response = np.array([[0.6, 0.2, 0.1], [0.1, 0.3, 0.1], [0.1, 0.1, 0.5]])
    with pytest.raises(
        InvalidDistribution, match=r"its columns do: is it transposed\? Pass matrix\.T"
    ):
        ik.MatrixMechanism(response.T, efficiency=[0.9, 0.5, 0.7])
    with pytest.raises(
        ik.errors.AlphabetMismatch, match="matrix has as many columns: is it transposed"
    ):
        ik.MatrixMechanism(response[:, :2].T, efficiency=[0.8, 0.4, 0.2])


@pytest.mark.parametrize("function", [ik.mle, ik.ibu, ik.gap, ik.smooth, ik.inv])
def test_counts_are_no_tally(function):
    with pytest.raises(
        TypeError,
        match=r"tally must be a Tally, .*got list; from counts and a matrix: unfold\(counts",
    ):
        function([60, 40], SQUARE) if function in (ik.mle, ik.gap) else function([60, 40])
    with pytest.raises(TypeError, match=r"as mechanism\.tally\(reports\) makes it, got float$"):
        function(1.5, SQUARE) if function in (ik.mle, ik.gap) else function(1.5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((label for label in "ab"), r"got generator; pass list\(values\)"),
        ({"a", "b"}, r"got set; pass sorted\(values\)"),
        ({"a": 1, "b": 2}, r"got dict; pass list\(values\)"),
        (None, "a sequence of labels, got None"),
        (7, r"a sequence of labels, for 0\.\.k-1 that is Line\(0, k - 1\), got 7"),
        (2.5, r"a sequence of labels, got 2\.5"),
        ("abc", "a sequence of labels, got the text 'abc'"),
        ([["a", 1], ["b", 2]], r"got shape \(2, 2\); join labels of several parts into one"),
        ([], r"got shape \(0,\)$"),
    ],
    ids=["generator", "set", "dict", "None", "number", "fraction", "text", "lists", "empty"],
)
def test_what_is_no_sequence_of_labels(values, message):
    with pytest.raises(ValueError, match=f"^values must be .*{message}"):
        ik.Alphabet(values)


def test_distances_that_are_no_array():
    with pytest.raises(
        ValueError,
        match=r"distances must be an array of shape \(2, 2\), got function; a function beco",
    ):
        ik.Alphabet(["a", "b"], distances=lambda x, y: 1.0)
    with pytest.raises(ValueError, match=r"distances must be an array of shape \(2, 2\), got str$"):
        ik.Alphabet(["a", "b"], distances="near")


@pytest.mark.parametrize(("first", "last"), [(0, 10**12), (-(2**50), 2**50)])
def test_a_line_that_is_too_long(first, last):
    with pytest.raises(
        TooLarge,
        match=rf"last must lie closer to first.* got first={first}, last={last}; count in",
    ):
        ik.Line(first, last)
    with pytest.raises(TooLarge, match="more than can be listed"):
        ik.RandomizedResponse(last, 1.0)


def test_what_can_be_listed_is():
    assert len(ik.Alphabet(pd.Series(["a", "b"]))) == len(ik.Alphabet(np.array(["a", "b"]))) == 2
    assert len(ik.Alphabet(range(3))) == 3
    assert len(ik.Line(-5, 10**6)) == 10**6 + 6
