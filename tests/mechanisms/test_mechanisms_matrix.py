"""Mechanisms given as matrices, and post-processing by another channel."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import ibukit as ik
from ibukit.testing import check_mechanism
from oracles import naive


def rows(rng, k, m):
    """A positive row-stochastic matrix."""
    return rng.dirichlet(np.ones(m), k) * 0.9 + 0.1 / m


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.4], [0.5, 0.5]], r"matrix must have rows that sum to 1 .*row 0 sums to 0\.9;"),
        ([[0.5, 0.5], [0.5, 0.5 + 1e-8]], r"row 1 sums to 1\.00000001"),
        (
            [[0.0, 1.0], [1.5, -0.5]],
            r"matrix must not have negative or NaN entries, got -0\.5 at row 1, column 1",
        ),
        ([[0.0, 1.0], [np.nan, 1.0]], "got nan at row 1, column 0"),
        ([[np.inf, 0.0], [0.0, 1.0]], "row 0 sums to inf"),
        ([0.5, 0.5], r"matrix must have two dimensions, got shape \(2,\)"),
        (np.empty((0, 3)), r"matrix must have two dimensions, got shape \(0, 3\)"),
        (np.empty((3, 0)), r"matrix must have two dimensions, got shape \(3, 0\)"),
    ],
)
def test_what_is_not_row_stochastic_is_refused(matrix, message):
    with pytest.raises(ik.errors.InvalidDistribution, match=message):
        ik.MatrixMechanism(matrix)


def test_rows_are_taken_as_they_are_and_kept():
    given_rows = np.array([[0.25, 0.75], [0.5, 0.5 + 1e-10]])
    mechanism = ik.MatrixMechanism(given_rows)
    given_rows[0] = 0.5
    assert np.array_equal(mechanism.matrix(), [[0.25, 0.75], [0.5, 0.5 + 1e-10]])


def test_the_alphabet_must_have_one_secret_for_each_row():
    with pytest.raises(
        ik.errors.AlphabetMismatch, match="one row for each of the 3 secrets, got 2 rows"
    ):
        ik.MatrixMechanism(np.eye(2), ik.Line(0, 2))
    assert ik.MatrixMechanism(np.eye(2), ik.Alphabet(["a", "b"])).alphabet.codes(["b"]) == [1]


def test_epsilon_is_that_of_the_matrix(rng):
    matrix = rows(rng, 4, 6)
    assert ik.MatrixMechanism(matrix).epsilon == pytest.approx(naive.epsilon_ldp(matrix), rel=1e-12)
    assert ik.MatrixMechanism(np.eye(3)).epsilon == np.inf


def test_equal_matrices_over_equal_alphabets_are_the_same_mechanism(rng):
    matrix = rows(rng, 3, 3)
    one, same = ik.MatrixMechanism(matrix), ik.MatrixMechanism(matrix.tolist(), ik.Line(0, 2))
    assert one == same
    assert hash(one) == hash(same)
    assert len((one.tally([0, 1]) + same.tally([1])).parts) == 1
    assert one != ik.MatrixMechanism(matrix, ik.Line(1, 3))
    assert one != ik.MatrixMechanism(matrix[::-1])


def test_a_report_that_no_secret_can_produce_is_not_patched_over():
    mechanism = ik.MatrixMechanism([[0.5, 0.5, 0, 0], [0.25, 0.75, 0, 0]])
    with pytest.raises(
        ik.errors.ImpossibleReport,
        match="reports contains 2, which no secret can produce under Matrix",
    ):
        mechanism.tally([0, 1, 2])
    with pytest.raises(ik.errors.ImpossibleReport, match="reports contains 3"):
        mechanism.tally_counts([1, 0, 0, 7])
    assert mechanism.tally_counts([1, 0, 0, 0]).n == 1


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32))
def test_composing_multiplies_and_never_weakens_privacy(k, m, width, seed):
    rng = np.random.default_rng(seed)
    first, second = rows(rng, k, m), rows(rng, m, width)
    mechanism = ik.MatrixMechanism(first)
    composed = ik.compose(mechanism, second)
    np.testing.assert_allclose(composed.matrix(), naive.compose(first, second), rtol=1e-13)
    assert composed.epsilon <= mechanism.epsilon + 1e-12
    assert ik.privacy.epsilon_metric(composed) <= ik.privacy.epsilon_metric(mechanism) + 1e-12


@pytest.mark.parametrize(
    "mechanism",
    [ik.TruncatedGeometric(6, 0.3), ik.PlanarLaplace(ik.Grid(2, 3), 1.0), ik.Exponential(6, 1.0)],
    ids=lambda mechanism: type(mechanism).__name__,
)
@given(seed=st.integers(0, 2**32), width=st.integers(1, 8))
def test_composing_keeps_metric_privacy_and_the_alphabet(mechanism, seed, width):
    composed = ik.compose(mechanism, rows(np.random.default_rng(seed), 6, width))
    assert composed.alphabet == mechanism.alphabet
    assert composed.m == width
    assert ik.privacy.epsilon_metric(composed) <= mechanism.epsilon * (1 + 1e-12)


def test_composing_with_a_mechanism_and_with_the_identity(rng):
    first, second = ik.RandomizedResponse(4, 1.0), ik.RandomizedResponse(4, 2.0)
    assert np.array_equal(ik.compose(first, np.eye(4)).matrix(), first.matrix())
    both = ik.compose(first, second)
    np.testing.assert_allclose(
        both.matrix(), naive.compose(naive.k_rr(4, 1.0), naive.k_rr(4, 2.0)), rtol=1e-14
    )
    check_mechanism(both, rng=rng, n=5000)


def test_five_by_five_cells_truncated_to_four_by_four(rng):
    """The consistency paper's example (section 6.4) of a mechanism from
    which theta cannot be identified.
    """
    large, small = ik.Grid(5, 5, cell_size=1.0), ik.Grid(4, 4, cell_size=1.0)
    truncate = np.eye(16)[small.codes(np.minimum(large.values, 3))]
    mechanism = ik.compose(ik.TruncatedPlanarGeometric(large, 0.5), truncate)
    assert mechanism.matrix().shape == (25, 16)
    assert np.linalg.matrix_rank(mechanism.matrix()) == 16
    # remapping twice is remapping once, to the small grid
    oracle = naive.truncated_planar_geometric(5, 5, 1.0, 1.0, 0.5)
    np.testing.assert_allclose(mechanism.matrix(), oracle @ truncate, rtol=1e-12)
    same = [x for x, cell in enumerate(large.values) if cell.max() < 4]
    direct = ik.TruncatedPlanarGeometric(small, 0.5).matrix()
    np.testing.assert_allclose(mechanism.matrix()[same], direct, rtol=1e-12)
    assert ik.privacy.epsilon_metric(mechanism) <= 0.5 * (1 + 1e-12)
    check_mechanism(mechanism, rng=rng, n=5000)
    with pytest.raises(ik.errors.NotInvertible, match="rank 16 for 25 secrets"):
        ik.inv(mechanism.tally_counts(np.ones(16, dtype=int)))


@pytest.mark.ledger("B-D4")
@given(st.lists(st.integers(0, 9), min_size=1, max_size=20), st.floats(0.01, 5))
def test_a_counting_query_followed_by_geometric_noise_is_a_mechanism(query, eps):
    """F(x) in 0..n for each x;
    the noise turns the count i into j with probability C_ij, a stochastic matrix.
    """
    noise = ik.TruncatedGeometric(10, eps)
    mechanism = ik.compose(ik.MatrixMechanism(np.eye(10)[query]), noise)
    assert np.array_equal(mechanism.matrix(), noise.matrix()[query])
    assert (mechanism.matrix() >= 0).all()
    assert np.abs(mechanism.matrix().sum(axis=1) - 1).max() < 1e-12


def test_channels_that_do_not_fit_are_named():
    with pytest.raises(
        ik.errors.AlphabetMismatch,
        match="channel must have one row for each of the 4 reports, got 3 rows",
    ):
        ik.compose(ik.RandomizedResponse(4, 1.0), np.eye(3))
    with pytest.raises(
        ik.errors.AlphabetMismatch, match=r"of the 2\.82e\+4515 reports, got 3 rows"
    ):
        ik.compose(ik.Rappor(15_000, 1.0), np.eye(3))
    with pytest.raises(ik.errors.InvalidDistribution, match=r"row 2 sums to 0\.5"):
        ik.compose(ik.RandomizedResponse(3, 1.0), np.diag([1, 1, 0.5]))


@pytest.mark.parametrize("tiny", [1e-210, 1e-290, 2e-310])
def test_a_report_that_is_next_to_impossible_under_every_secret(tiny):
    mechanism = ik.MatrixMechanism([[0.5, 0.5, tiny / 4], [0.2, 0.8, tiny]])
    assert mechanism.forward([0.0, 1.0])[2] == pytest.approx(tiny, rel=1e-14)
    assert mechanism.adjoint([0.0, 0.0, 1.0]) == pytest.approx([tiny / 4, tiny], rel=1e-14)
    tally = mechanism.tally_counts([40, 60, 3])
    with_it, without = ik.mle(tally), ik.mle(mechanism.tally_counts([40, 60, 0]))
    assert with_it.gap <= 1e-9
    # three who are four times as likely to have the second secret
    assert with_it.distribution[1] > without.distribution[1]
    theta = with_it.distribution
    expected = [40, 60, 3] @ np.r_[
        np.log(theta @ [[0.5, 0.5], [0.2, 0.8]]), np.log(tiny) + np.log(theta @ [0.25, 1])
    ]
    assert with_it.log_likelihood == pytest.approx(expected, rel=1e-12)


TABLE = pd.DataFrame(
    [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]],
    index=["Private", "State"],
    columns=["low", "middle", "high"],
)


def test_the_labels_of_a_table_are_those_of_secrets_and_reports():
    mechanism = ik.MatrixMechanism(TABLE)
    assert mechanism.alphabet == ik.Alphabet(["Private", "State"])
    assert mechanism.report_alphabet == ik.Alphabet(["low", "middle", "high"])
    assert np.array_equal(mechanism.matrix(), TABLE.to_numpy())
    # rows and columns are found by their labels, wherever they stand
    shuffled = TABLE.loc[["State", "Private"], ["high", "low", "middle"]]
    again = ik.MatrixMechanism(shuffled, ["Private", "State"], reports=["low", "middle", "high"])
    assert again == mechanism
    assert ik.MatrixMechanism(shuffled) != mechanism
    assert dataclasses.replace(mechanism) == mechanism
    assert "reports=Alphabet" in repr(mechanism)


def test_numbers_are_no_labels():
    plain = ik.MatrixMechanism(TABLE.to_numpy())
    assert ik.MatrixMechanism(TABLE.reset_index(drop=True).T.reset_index(drop=True).T) == plain
    assert plain.report_alphabet == ik.Line(0, 2)
    assert ik.RandomizedResponse(3, 1.0).alphabet == ik.MatrixMechanism(np.eye(3)).report_alphabet
    # numbered columns beside named rows are numbers, and not the rows' names in their order
    square = pd.DataFrame(np.eye(2), index=[1, 0])
    assert ik.MatrixMechanism(square).report_alphabet == ik.Line(0, 1)
    assert ik.MatrixMechanism(square).alphabet == ik.Alphabet([1, 0])


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.coo_matrix, sparse.dia_array])
def test_a_sparse_matrix_is_written_out(form):
    matrix = np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])
    assert ik.MatrixMechanism(form(matrix)) == ik.MatrixMechanism(matrix)


def test_rounding_is_taken_out_on_request_alone(rng):
    exact = rows(rng, 4, 50)
    for rough in (exact.astype(np.float32), exact.round(8), exact.round(6)):
        with pytest.raises(
            ik.errors.InvalidDistribution,
            match="if that is rounding, normalize=True divides it out",
        ):
            ik.MatrixMechanism(rough)
        mended = ik.MatrixMechanism(rough, normalize=True)
        np.testing.assert_allclose(mended.matrix().sum(axis=1), 1, rtol=1e-9)
        np.testing.assert_allclose(mended.matrix(), exact, atol=1e-6)
        assert "normalize=True" in repr(mended)
        assert dataclasses.replace(mended) == mended
    assert "normalize" not in repr(ik.MatrixMechanism(exact))
    with pytest.raises(
        ik.errors.InvalidDistribution, match=r"row 0 sums to 0\.99; each row must have"
    ):
        ik.MatrixMechanism(exact * 0.99, normalize=True)


def test_rounding_beside_efficiencies(rng):
    seen = np.array([0.9, 0.5, 0.2, 1.0])
    exact = rows(rng, 4, 50)
    for rough in (exact.astype(np.float32), (exact * seen[:, None]).astype(np.float32)):
        with pytest.raises(ik.errors.InvalidDistribution, match="normalize=True"):
            ik.MatrixMechanism(rough, efficiency=seen)
        mended = ik.MatrixMechanism(rough, efficiency=seen, normalize=True)
        np.testing.assert_allclose(mended.matrix().sum(axis=1), seen, rtol=1e-9)
        assert np.array_equal(mended.efficiency, seen)


def test_efficiencies_are_kept_and_told(rng):
    exact = rows(rng, 3, 4)
    lossy = ik.MatrixMechanism(exact * 0.5, efficiency=True)
    np.testing.assert_allclose(lossy.efficiency, 0.5, rtol=1e-14)
    assert lossy == pickle.loads(pickle.dumps(lossy)) == dataclasses.replace(lossy)
    assert lossy == ik.MatrixMechanism(exact, efficiency=0.5)
    assert lossy != ik.MatrixMechanism(exact)
    assert "efficiency=<0.5 to 0.5>" in repr(lossy)
    # where nothing gets lost there are none
    for sure in (True, False, None, 1.0, np.ones(3)):
        assert ik.MatrixMechanism(exact, efficiency=sure) == ik.MatrixMechanism(exact)
        assert ik.MatrixMechanism(exact, efficiency=sure).among_seen.efficiency is None
    merged = ik.compose(lossy, [[1, 0], [1, 0], [0, 1], [0, 1]])
    np.testing.assert_allclose(merged.efficiency, 0.5, rtol=1e-14)


def test_weights_come_back_by_the_share_of_reports_that_is_seen(rng):
    """<adjoint(w), theta> = <w, forward(theta)>, where a third to two thirds get lost."""
    mechanism = ik.MatrixMechanism(rows(rng, 4, 5), efficiency=rng.uniform(1 / 3, 2 / 3, 4))
    theta, w = rng.dirichlet(np.ones(4)), rng.normal(size=5)
    assert mechanism.adjoint(w) @ theta == pytest.approx(w @ mechanism.forward(theta), rel=1e-12)
    np.testing.assert_allclose(mechanism.adjoint(np.ones(5)), mechanism.efficiency, rtol=1e-12)
