"""The average mechanism:
closed forms against sums of matrices and long arithmetic, and what an average of bits is.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from instances import distributions
from oracles import estimation, free_will, naive

LINEAR_KRR = [3.00, 3.54, 3.96, 4.34, 4.69, 5.06, 5.46, 5.93, 6.60, 8.08]
PLANAR_KRR = [3.05, 4.19, 4.81, 5.27, 5.67, 6.05, 6.44, 6.87, 7.40, 8.20]
# powers of ten first: failures should shrink to something readable
LEVELS = st.sampled_from([1e-12, 1e-6, 1e-3, 1.0, 5.0, 30.0]) | st.floats(1e-12, 30.0)

BLOOM = ik.BloomRappor(3, bits=15_000, hashes=2, cohorts=1000, f=0.5, p=0.25, q=0.75)


@st.composite
def mixtures(draw, least=1, most=5):
    """Levels, and the share of each."""
    levels = draw(st.lists(LEVELS, min_size=least, max_size=most))
    return levels, draw(distributions(len(levels)))


@pytest.mark.ledger("C-E11")
@given(st.integers(2, 8), mixtures())
def test_k_rrs_average_to_a_k_rr(k, mixture):
    levels, weights = mixture
    average = ik.average_mechanism(
        [ik.RandomizedResponse(k, epsilon) for epsilon in levels], weights
    )
    assert type(average) is ik.RandomizedResponse
    expected = free_will.average([naive.k_rr(k, epsilon) for epsilon in levels], weights)
    np.testing.assert_allclose(average.matrix(), expected, rtol=1e-12)
    # a level of 1e-12 hides in the matrix's last digits
    assert average.epsilon == pytest.approx(
        free_will.average_krr_level(k, levels, weights), rel=1e-12
    )


@pytest.mark.ledger("C-E11")
def test_equation_11_as_printed():
    levels = np.array([0.2, 1.0, 1.0, 3.0, 7.0])
    for k in (2, 5, 100):
        average = ik.average_mechanism([ik.RandomizedResponse(k, epsilon) for epsilon in levels])
        assert 1 / (k - 1 + np.exp(average.epsilon)) == pytest.approx(
            (1 / (k - 1 + np.exp(levels))).mean(), rel=1e-13
        )


def test_levels_at_both_ends_of_what_is_drawn():
    for levels in ([5e-15, 1e-14], [38.0, 38.1], [5e-15, 38.0], [1e-9, 38.0]):
        average = ik.average_mechanism([ik.RandomizedResponse(5, epsilon) for epsilon in levels])
        expected = (
            7.5e-15 if levels[1] == 1e-14 else free_will.average_krr_level(5, levels, [0.5, 0.5])
        )
        assert average.epsilon == pytest.approx(expected, rel=1e-12)


@pytest.mark.ledger("C-E16")
@pytest.mark.parametrize(
    ("mechanism", "matrix", "level"),
    [
        (ik.Rappor, naive.rappor, free_will.average_rappor_level),
        (ik.OptimizedUnaryEncoding, naive.oue, free_will.average_oue_level),
    ],
    ids=["RAPPOR", "OUE"],
)
@given(k=st.integers(2, 5), mixture=mixtures(most=3))
def test_bit_by_bit_unary_encodings_average_to_one(k, mixture, mechanism, matrix, level):
    levels, weights = mixture
    average = ik.average_mechanism([mechanism(k, epsilon) for epsilon in levels], weights)
    assert type(average) is mechanism
    joint = free_will.average([matrix(k, epsilon) for epsilon in levels], weights)
    bits = np.where(np.eye(k, dtype=bool), average.p_one, average.p_zero)
    np.testing.assert_allclose(bits, free_will.bit_marginals(joint), rtol=1e-12, atol=1e-15)
    assert average.epsilon == pytest.approx(level(levels, weights), rel=1e-12)


@pytest.mark.ledger("C-E16")
def test_equation_16_as_printed():
    levels = np.array([0.2, 1.0, 1.0, 3.0, 7.0])
    average = ik.average_mechanism([ik.Rappor(4, epsilon) for epsilon in levels])
    assert 1 / (1 + np.exp(average.epsilon / 2)) == pytest.approx(
        (1 / (1 + np.exp(levels / 2))).mean(), rel=1e-13
    )


@pytest.mark.erratum("C11")
def test_all_bits_together_do_not_have_the_law_of_the_average_rappor():
    averages = {}
    for levels in ((0.5, 3.0), (0.1, 10.0)):
        joint = free_will.average([naive.rappor(5, epsilon) for epsilon in levels], [0.5, 0.5])
        average = ik.average_mechanism([ik.Rappor(5, epsilon) for epsilon in levels])
        averages[levels] = np.abs(average.matrix() - joint).max()
        assert (
            np.abs(free_will.bit_marginals(average.matrix()) - free_will.bit_marginals(joint)).max()
            <= 1e-15
        )
    assert averages[0.5, 3.0] == pytest.approx(0.0545, abs=5e-5)
    assert averages[0.1, 10.0] == pytest.approx(0.2592, abs=5e-5)
    # k-RRs, whose reports are single letters, do have it
    joint = free_will.average([naive.k_rr(5, epsilon) for epsilon in (0.5, 3.0)], [0.5, 0.5])
    krr = ik.average_mechanism([ik.RandomizedResponse(5, epsilon) for epsilon in (0.5, 3.0)])
    assert np.abs(krr.matrix() - joint).max() <= 1e-15


@given(st.integers(2, 5), mixtures(most=3), st.data())
def test_subset_selections_of_one_size_average_to_one(k, mixture, data):
    levels, weights = mixture
    size = data.draw(st.integers(1, k - 1))
    average = ik.average_mechanism(
        [ik.SubsetSelection(k, epsilon, size) for epsilon in levels], weights
    )
    assert (type(average), average.size) == (ik.SubsetSelection, size)
    rows = np.unpackbits(average._all_reports, axis=1, count=k).tolist()
    matrices = [estimation.subset_selection(k, epsilon, size, rows) for epsilon in levels]
    np.testing.assert_allclose(average.matrix(), free_will.average(matrices, weights), rtol=1e-12)
    if size == 1:  # k-RR
        assert average.epsilon == pytest.approx(
            free_will.average_krr_level(k, levels, weights), rel=1e-12
        )


@pytest.mark.ledger("C-E11", "C-E16")
def test_the_average_levels_of_tables_iv_and_v():
    def level(kind, k, levels):
        return ik.average_mechanism([kind(k, epsilon) for epsilon in levels]).epsilon

    assert level(ik.Rappor, 100, np.arange(1, 11) / 10) == pytest.approx(0.547, abs=5e-4)
    assert level(ik.Rappor, 100, np.arange(1.0, 11.0)) == pytest.approx(4.108, abs=5e-4)
    assert level(ik.RandomizedResponse, 100, LINEAR_KRR) == pytest.approx(4.875, abs=5e-4)
    assert level(ik.RandomizedResponse, ik.Grid(24, 16), PLANAR_KRR) == pytest.approx(
        5.862, abs=5e-4
    )


LINE, GRID = ik.Line(0, 5), ik.Grid(2, 3)
SQUARE, WIDE = (np.random.default_rng(6).dirichlet(np.ones(m), 6) for m in (6, 9))
MIXED = [
    [
        (ik.RandomizedResponse(LINE, 1.0), naive.k_rr(6, 1.0)),
        (ik.MatrixMechanism(SQUARE, LINE), SQUARE),
    ],
    [(ik.TruncatedGeometric(LINE, e), naive.truncated_geometric(6, e)) for e in (0.02, 0.4, 2.0)],
    [
        (ik.RandomizedResponse(LINE, 3.0), naive.k_rr(6, 3.0)),
        (ik.TruncatedGeometric(LINE, 0.4), naive.truncated_geometric(6, 0.4)),
        (ik.LinearLaplace(LINE, 0.4), naive.linear_laplace(6, 0.4)),
        (ik.Exponential(LINE, 0.4), naive.exponential(naive.line_distances(6), 0.4)),
    ],
    [
        (
            ik.TruncatedPlanarGeometric(GRID, 1.0),
            naive.truncated_planar_geometric(2, 3, 1.0, 1.0, 1.0),
        ),
        (ik.RandomizedResponse(GRID, 2.0), naive.k_rr(6, 2.0)),
    ],
    [(ik.MatrixMechanism(WIDE), WIDE), (ik.MatrixMechanism(WIDE[::-1].copy()), WIDE[::-1])],
]
KINDS = ["k-RR and matrix", "geometric", "line", "plane", "more reports than secrets"]


@pytest.mark.parametrize("many", MIXED, ids=KINDS)
def test_others_average_as_matrices(many, rng):
    mechanisms, matrices = zip(*many, strict=True)
    for weights in (None, rng.dirichlet(np.ones(len(many)))):
        average = ik.average_mechanism(mechanisms, weights)
        assert type(average) is ik.MatrixMechanism
        assert average.alphabet == mechanisms[0].alphabet
        shares = np.full(len(many), 1 / len(many)) if weights is None else weights
        np.testing.assert_allclose(
            average.matrix(), free_will.average(matrices, shares), rtol=1e-11, atol=1e-15
        )


@pytest.mark.ledger("C-X14")
def test_two_that_tell_something_average_to_one_that_does_not():
    truthful, lying = ([[0.75, 0.25], [0.25, 0.75]], [[0.25, 0.75], [0.75, 0.25]])
    average = ik.average_mechanism([ik.MatrixMechanism(truthful), ik.MatrixMechanism(lying)])
    assert np.array_equal(average.matrix(), np.full((2, 2), 0.5))


@given(
    st.sampled_from([ik.RandomizedResponse, ik.Rappor, ik.OptimizedUnaryEncoding]),
    mixtures(least=2),
)
def test_a_level_lies_between_the_others_and_the_order_does_not_matter(kind, mixture):
    levels, weights = mixture
    mechanisms = [kind(4, epsilon) for epsilon in levels]
    average = ik.average_mechanism(mechanisms, weights).epsilon
    used = np.array(levels)[weights > 0]
    assert used.min() * (1 - 1e-12) <= average <= used.max() * (1 + 1e-12)
    assert ik.average_mechanism(mechanisms[::-1], weights[::-1]).epsilon == pytest.approx(
        average, rel=1e-13
    )
    # in two steps: the average of averages
    if weights[0] < 1:
        rest = ik.average_mechanism(mechanisms[1:], ik.normalize(weights[1:]))
        again = ik.average_mechanism([mechanisms[0], rest], [weights[0], 1 - weights[0]])
        assert again.epsilon == pytest.approx(average, rel=1e-11)


def test_of_equal_mechanisms_the_first_itself():
    for mechanism in (
        ik.RandomizedResponse(4, 0.1),
        ik.Rappor(4, 0.1),
        ik.MatrixMechanism(np.eye(2)),
    ):
        assert ik.average_mechanism([mechanism]) is mechanism
        assert ik.average_mechanism([mechanism] * 3, [0.2, 0.3, 0.5]) is mechanism


def test_a_share_of_nothing_changes_nothing():
    for kind in (
        ik.RandomizedResponse,
        ik.Rappor,
        ik.OptimizedUnaryEncoding,
        ik.TruncatedGeometric,
    ):
        alone, other = kind(4, 2.0), kind(4, 0.01)
        average = ik.average_mechanism([other, alone, kind(4, 20.0)], [0, 1, 0])
        np.testing.assert_allclose(average.matrix(), alone.matrix(), rtol=1e-14)


@pytest.mark.parametrize("weights", [[0, 1, 0], [0, 0.5, 0.5]])
def test_k_rrs_without_noise_average_to_one_if_the_others_weigh_nothing(weights):
    first, *exact = (ik.RandomizedResponse(4, epsilon) for epsilon in (0.1, np.inf, np.inf))
    assert ik.average_mechanism([first, *exact], weights).epsilon == np.inf
    assert ik.average_mechanism([first, *exact], [0.5, 0.5, 0]).epsilon < np.inf


def test_weights_as_far_off_as_they_may_be_still_make_rows_that_sum_to_one():
    noise = [ik.TruncatedGeometric(4, epsilon) for epsilon in (0.1, 1.0)]
    average = ik.average_mechanism(noise, [0.5, 0.5 + 0.9e-9])
    assert np.abs(average.matrix().sum(axis=1) - 1).max() <= 1e-15


def test_thousands_of_levels_over_a_long_alphabet_need_no_matrix():
    k, line = 10**6, ik.Line(1, 10**6)
    levels = np.linspace(1, 20, 2000)
    average = ik.average_mechanism([ik.RandomizedResponse(line, epsilon) for epsilon in levels])
    assert 1 / (k - 1 + np.exp(average.epsilon)) == pytest.approx(
        (1 / (k - 1 + np.exp(levels))).mean(), rel=1e-12
    )
    assert ik.average_mechanism([ik.Rappor(line, epsilon) for epsilon in levels]).k == k


class OwnEncoding(ik.Rappor):
    """A kind of unary encoding that nobody has averaged."""


KRR = ik.RandomizedResponse(ik.Line(0, 3), 1.0)


@pytest.mark.parametrize(
    ("mechanisms", "error", "said"),
    [
        ([], ValueError, "mechanisms must hold at least one mechanism, got none"),
        (KRR, TypeError, r"got one: pass \[RandomizedResponse"),
        ([KRR, 1.0], TypeError, "sequence of mechanisms, got 1.0 in it"),
        (
            [KRR, ik.RandomizedResponse(ik.Line(1, 4), 1.0)],
            ik.errors.AlphabetMismatch,
            r"same secrets, got .*0, 3.*1, 4",
        ),
        ([KRR, ik.RandomizedResponse(5, 1.0)], ik.errors.AlphabetMismatch, "same secrets"),
        (
            [KRR, ik.MatrixMechanism(np.full((4, 3), 1 / 3))],
            ik.errors.AlphabetMismatch,
            "got 4 reports of .* and 3 reports",
        ),
        (
            [KRR, ik.Rappor(4, 1.0)],
            ik.errors.AlphabetMismatch,
            "got 4 reports of .* and the bits of a Rappor",
        ),
        (
            [ik.MatrixMechanism(np.full((2, 4), 0.25)), ik.Rappor(2, 1.0)],
            ik.errors.AlphabetMismatch,
            "4 reports .* the bits of a Rappor of .*; pool the tallies with \\+ and use ibu or mle",
        ),
        (
            [ik.Rappor(4, 1.0), ik.OptimizedUnaryEncoding(4, 1.0)],
            ik.errors.AlphabetMismatch,
            "a Rappor of .* a OptimizedU",
        ),
        (
            [ik.SubsetSelection(4, 1.0, 1), ik.SubsetSelection(4, 1.0, 3)],
            ik.errors.AlphabetMismatch,
            "sets of 1 .* sets of 3",
        ),
        (
            [ik.SubsetSelection(3, 1.0, 1), ik.RandomizedResponse(3, 1.0)],
            ik.errors.AlphabetMismatch,
            "sets of 1 secrets",
        ),
        (
            [KRR, ik.LinearGeometric(4, 1.0)],
            ik.errors.AlphabetMismatch,
            "can be listed, but LinearGeometric.* does not; pool",
        ),
        (
            [BLOOM, replace(BLOOM, cohorts=1001)],
            ik.errors.AlphabetMismatch,
            r"got 2\.82e\+4518 reports of .* and 2\.82e\+4518 reports of",
        ),
        (
            [ik.PlanarGeometric(GRID, 1.0)],
            ik.errors.AlphabetMismatch,
            "can be listed, but PlanarGeometric.*use ibu or mle",
        ),
        (
            [OwnEncoding(3, 1.0), OwnEncoding(3, 2.0)],
            ik.errors.AlphabetMismatch,
            "must be RAPPORs, OUEs or subset sel",
        ),
    ],
)
def test_what_cannot_be_averaged_is_named(mechanisms, error, said):
    with pytest.raises(error, match=said):
        ik.average_mechanism(mechanisms)


@pytest.mark.parametrize(
    ("weights", "error", "said"),
    [
        (
            [0.5, 0.4],
            ik.errors.InvalidDistribution,
            "weights must sum to 1 .*but sums to 0.9; .*normalize",
        ),
        (
            [1.5, -0.5],
            ik.errors.InvalidDistribution,
            "weights must not have negative or NaN entries, got -0.5 at 1",
        ),
        (
            [0.5, np.nan],
            ik.errors.InvalidDistribution,
            "weights must not have negative or NaN entries, got nan",
        ),
        (
            [1.0],
            ik.errors.AlphabetMismatch,
            "weights must have one probability for each of the 2 elements, got 1",
        ),
        ([[0.5, 0.5]], ik.errors.InvalidDistribution, "weights must be a non-empty vector"),
        ("users", ik.errors.InvalidDistribution, "weights must be an array of numbers, got str"),
    ],
)
def test_weights_must_be_a_distribution(weights, error, said):
    with pytest.raises(error, match=said):
        ik.average_mechanism([KRR, ik.RandomizedResponse(4, 2.0)], weights)
