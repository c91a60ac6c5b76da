"""Bins of two dimensions, and matrices that are no conditional probabilities."""

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch, InvalidDistribution, MatrixUncertain

RNG = np.random.default_rng(11)
# 2 x 3 true bins, 4 x 2 reported ones.
FOUR = RNG.dirichlet(np.ones(8), 6).reshape(2, 3, 4, 2) * RNG.uniform(0.4, 0.9, (2, 3, 1, 1))
TWO = FOUR.reshape(6, 8)
COUNTS = np.round(1000 * np.einsum("ij,ijab->ab", np.array([[1, 2, 3], [4, 2, 1]]), FOUR))
BACKGROUND = RNG.uniform(5, 40, (4, 2))
ROWS = pd.MultiIndex.from_product([["low", "high"], [10, 20, 30]])
COLUMNS = pd.MultiIndex.from_product([list("wxyz"), ["l", "r"]])
TABLE = pd.DataFrame(TWO, index=ROWS, columns=COLUMNS)
RIGHT = ik.unfold(COUNTS.ravel(), TWO)
RIGHT_OVER = ik.unfold(COUNTS.ravel(), TWO, background=BACKGROUND.ravel())


def frame(values):
    return pd.DataFrame(values, index=list("wxyz"), columns=["l", "r"])


@pytest.mark.parametrize("counts", [COUNTS, COUNTS.tolist(), pd.DataFrame(COUNTS)])
@pytest.mark.parametrize("matrix", [FOUR, FOUR.tolist()], ids=["array", "lists"])
def test_four_dimensions(counts, matrix):
    found = ik.unfold(counts, matrix)
    np.testing.assert_array_equal(found.counts, RIGHT.counts)
    assert found.alphabet == ik.Grid(2, 3)
    over = ik.unfold(counts, matrix, background=BACKGROUND)
    np.testing.assert_array_equal(over.counts, RIGHT_OVER.counts)
    efficient = ik.unfold(counts, matrix, efficiency=FOUR.sum(axis=(2, 3)))
    np.testing.assert_allclose(efficient.counts, RIGHT.counts, rtol=1e-9)
    stopped = ik.unfold(counts, matrix, background=BACKGROUND.tolist(), stop=ik.Steps(3))
    right = ik.unfold(COUNTS.ravel(), TWO, background=BACKGROUND.ravel(), stop=ik.Steps(3))
    np.testing.assert_array_equal(stopped.counts, right.counts)


def test_exact_counts_give_back_the_true_bins():
    np.testing.assert_allclose(
        ik.unfold(1000 * np.einsum("ij,ijab->ab", [[1, 2, 3], [4, 2, 1.0]], FOUR), FOUR, tol=1e-12)
        .counts.reshape(2, 3)
        .round(2),
        [[1000, 2000, 3000], [4000, 2000, 1000]],
    )


def test_a_smooth_unfolding_has_neighbours_in_both_directions():
    tally = ik.unfold(COUNTS, FOUR).tally
    assert ik.smooth(tally, penalty=1e9).distribution == pytest.approx(np.full(6, 1 / 6), abs=1e-3)


@pytest.mark.parametrize(
    "counts",
    [
        frame(COUNTS),
        frame(COUNTS).loc[list("zxyw"), ["r", "l"]],
        pd.Series(COUNTS.ravel(), index=COLUMNS),
        pd.Series(COUNTS.ravel(), index=COLUMNS).sample(frac=1, random_state=2).to_dict(),
    ],
    ids=["frame", "shuffled frame", "series", "dict"],
)
def test_labels_of_two_dimensions(counts):
    for matrix in (TABLE, TABLE.sample(frac=1, axis=1, random_state=4)):
        found = ik.unfold(counts, matrix)
        np.testing.assert_allclose(found.counts, RIGHT.counts, rtol=1e-7)
        assert list(found.to_frame().index) == ROWS.tolist()
        over = ik.unfold(counts, matrix, background=frame(BACKGROUND).loc[list("xwzy")])
        np.testing.assert_allclose(over.counts, RIGHT_OVER.counts, rtol=1e-6)


@pytest.mark.parametrize(
    ("counts", "matrix", "background", "message"),
    [
        (COUNTS, TWO, None, r"counts must have one number .*\(4, 2\).*a matrix of four"),
        (COUNTS.T, FOUR, None, r"counts must have shape \(4, 2\), got shape \(2, 4\)"),
        (COUNTS.tolist(), TWO, None, "counts must have one number"),
        (COUNTS.ravel(), FOUR, BACKGROUND.T, r"background must have shape \(4, 2\), got shape"),
        (frame(COUNTS), TWO, None, "counts must have one number .*got a frame.*MultiIndex"),
        (frame(COUNTS), FOUR, None, "counts must have one number .*got a frame"),
        (frame(COUNTS).T, TABLE, None, "counts|l"),
        (frame(COUNTS).rename(index={"w": "q"}), TABLE, None, "q"),
        (COUNTS, TABLE, None, "counts must have one number"),
        (COUNTS.ravel(), FOUR[0], None, r"matrix must have two dimensions, or four .*\(3, 4, 2\)"),
        (COUNTS.ravel(), FOUR[..., None], None, "matrix must have two dimensions, or four"),
        ([[1, 2], [3]], FOUR, None, "counts must have rows of the same length"),
        (COUNTS, [[[[0.5]], [[0.5, 0.5]]]], None, "matrix must have two dimensions, or four"),
    ],
)
def test_bins_that_do_not_fit_are_refused(counts, matrix, background, message):
    with pytest.raises((AlphabetMismatch, InvalidDistribution), match=message):
        ik.unfold(counts, matrix, background=background)


def test_cells_without_a_number_are_refused():
    with pytest.raises(ValueError, match="counts must be finite and not negative, got nan"):
        ik.unfold(frame(COUNTS).mask(frame(COUNTS) == COUNTS[2, 1]), TABLE)
    with pytest.raises(AlphabetMismatch, match="background must have a number for each report"):
        ik.unfold(frame(COUNTS), TABLE, background=frame(BACKGROUND).drop(index="y"))


JOINT = np.array([[0.30, 0.10, 0.00], [0.05, 0.20, 0.05], [0.00, 0.10, 0.20]])
CONDITIONAL = JOINT / JOINT.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (JOINT, "sum to 1 in all, as joint frequencies do: divide each row by its sum"),
        (100 * JOINT, "sum to 100 in all, as percentages of secret and report do: divide"),
        (100 * CONDITIONAL, "its rows sum to 100, as percentages do: pass matrix / 100"),
        (
            np.rint(1000 * JOINT),
            r"whole numbers, as counts of trials are: take MatrixMechanism\.from_trials",
        ),
    ],
    ids=["joint", "joint percent", "percent", "trials"],
)
@pytest.mark.parametrize(
    "act",
    [
        lambda m: ik.unfold([300, 400, 300], m),
        lambda m: ik.unfold([300, 400, 300], m, background=[1, 1, 1]),
        lambda m: ik.unfold([300, 400, 300], m, stop=ik.Steps(4)),
        lambda m: ik.unfold([300, 400, 300], pd.DataFrame(m)),
        ik.MatrixMechanism,
        lambda m: ik.mle(ik.MatrixMechanism(m).tally_counts([3, 4, 3])),
    ],
)
def test_each_kind_of_wrong_matrix_has_its_sentence(matrix, message, act):
    with pytest.raises(InvalidDistribution, match=message) as caught:
        act(matrix)
    # What is told first must not be what gives a wrong estimate.
    first = str(caught.value).split(":")[-1].split(";")[0]
    assert "efficiency=True" not in first


def test_the_advice_is_right_if_followed():
    counts = np.array([300, 400, 300])
    right = ik.unfold(counts, CONDITIONAL).counts
    for matrix in (JOINT, 100 * JOINT, np.rint(1000 * JOINT)):
        found = ik.unfold(counts, matrix / matrix.sum(axis=1, keepdims=True)).counts
        np.testing.assert_allclose(found, right, rtol=1e-9)
    np.testing.assert_allclose(ik.unfold(counts, 100 * CONDITIONAL / 100).counts, right)
    # Counts of trials keep their uncertainty, which `unfold` would not see.
    measured = ik.MatrixMechanism.from_trials(np.rint(1000 * JOINT))
    with pytest.raises(MatrixUncertain, match="take mle"):
        ik.unfold(counts, measured)
    shares = ik.mle(measured.tally_counts(counts)).distribution
    np.testing.assert_allclose(1000 * shares, right, rtol=1e-6)
    # Whoever does mean efficiencies may say so.
    assert ik.unfold(counts, JOINT, efficiency=True).total > 3000
