"""The iteration itself: against the oracle step by step, its laws,
and what it accepts as a start.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from ibukit.tally.likelihood import gap_of
from instances import (
    INSTANCES,
    NAMES,
    Bent,
    Trace,
    TransposedAdjoint,
    distributions,
    matrices,
    tallies,
    with_operator,
)
from oracles import naive

ABSOLUTE = 1e-12


def assert_iterates_equal(tally, matrix, counts, steps, start=None):
    ours = ik.ibu(tally, start=start, stop=ik.Steps(steps))
    theirs = naive.ibu(matrix, counts, steps, start)
    assert np.abs(ours.distribution - theirs).max() <= ABSOLUTE
    assert ours.n_iter == steps


def assert_never_falls(tally, start=None, steps=15):
    trace = Trace(steps)
    ik.ibu(tally, start=start, stop=trace)
    values = np.array(trace.log_likelihoods)
    # what rounding can move a sum of n logarithms by
    slack = 1e-13 * (np.abs(values[0]) + tally.n)
    assert (np.diff(values) >= -slack).all(), f"L falls by {-np.diff(values).min():.3g}"
    for theta in trace.distributions:
        assert (theta >= 0).all()
        assert abs(theta.sum() - 1) <= 1e-12


@pytest.mark.ledger("A-Alg1", "E-D2.5")
@pytest.mark.parametrize("steps", [1, 10, 1000])
@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_iterates_are_those_of_the_oracle(instance, steps):
    assert_iterates_equal(instance.tally, instance.matrix, instance.counts, steps)


@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_iterates_from_another_start(instance, rng):
    start = rng.dirichlet(np.ones(instance.tally.k))
    kept = start.copy()
    for steps in (0, 10):
        assert_iterates_equal(instance.tally, instance.matrix, instance.counts, steps, start)
        assert np.array_equal(start, kept), "the caller's array was changed"
        assert start.flags.writeable, "the caller's array was frozen"


@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_the_comparison_with_the_oracle_sees_one_part_in_a_thousand_million(instance):
    push = 1 + 1e-9 * (np.arange(instance.tally.k) % 2)
    spoilt = with_operator(
        instance.tally, Bent(instance.tally.operator, adjoint=lambda g: g * push)
    )
    with pytest.raises(AssertionError):
        assert_iterates_equal(spoilt, instance.matrix, instance.counts, 10)


def test_the_law_of_rising_likelihood_sees_a_matrix_used_for_its_transpose():
    matrix = np.array([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    tally = ik.MatrixMechanism(matrix).tally_counts([10, 30, 60])
    assert_never_falls(tally)
    with pytest.raises(AssertionError):
        assert_never_falls(with_operator(tally, TransposedAdjoint(matrix)))


@pytest.mark.ledger("A-Alg1")
@given(data=st.data(), tally=tallies())
def test_the_likelihood_never_falls_and_the_simplex_is_kept(data, tally):
    assert_never_falls(tally, data.draw(distributions(tally.k, full_support=True)))


@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_the_likelihood_never_falls_in_any_channel(instance):
    assert_never_falls(instance.tally, steps=300)


@given(data=st.data(), matrix=matrices())
def test_relabelling_the_secrets_permutes_the_answer(data, matrix):
    k, m = matrix.shape
    order = np.array(data.draw(st.permutations(range(k))))
    counts = np.array(data.draw(st.lists(st.integers(1, 50), min_size=m, max_size=m))) * matrix.any(
        axis=0
    )
    start = data.draw(distributions(k, full_support=True))
    ours = ik.ibu(ik.MatrixMechanism(matrix).tally_counts(counts), start=start, stop=ik.Steps(20))
    permuted = ik.MatrixMechanism(matrix[order]).tally_counts(counts)
    theirs = ik.ibu(permuted, start=start[order], stop=ik.Steps(20))
    assert np.abs(theirs.distribution - ours.distribution[order]).max() <= ABSOLUTE
    assert theirs.log_likelihood == pytest.approx(ours.log_likelihood, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    "mechanism",
    [
        ik.RandomizedResponse(6, 1.0),
        ik.TruncatedGeometric(6, 0.4),
        ik.LinearGeometric(6, 0.4),
        ik.Rappor(6, 1.0),
        ik.PlanarGeometric(ik.Grid(2, 3), 1.0),
        ik.MatrixMechanism(naive.k_rr(6, 1.0)),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_splitting_and_adding_a_tally_is_the_identity(mechanism, rng):
    reports = mechanism.randomize(rng.integers(0, 6, 500), rng)
    whole = mechanism.tally(reports)
    shuffled = reports[rng.permutation(500)]
    cuts = np.sort(rng.choice(np.arange(1, 500), 3, replace=False))
    pooled = sum(mechanism.tally(share) for share in np.split(shuffled, cuts))
    assert np.array_equal(pooled.counts, whole.counts)
    first, second = ik.ibu(whole, stop=ik.Steps(100)), ik.ibu(pooled, stop=ik.Steps(100))
    assert np.array_equal(first.distribution, second.distribution)
    assert first.log_likelihood == second.log_likelihood


@pytest.mark.parametrize(
    "mechanism",
    [
        ik.RandomizedResponse(5, 36.0),
        ik.TruncatedGeometric(5, 36.0),
        ik.Exponential(5, 72.0),
        ik.LinearLaplace(5, 72.0),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_without_noise_the_answer_is_the_empirical_distribution(mechanism):
    counts = np.array([10, 0, 25, 5, 1])
    for estimate in (
        ik.ibu(mechanism.tally_counts(counts)),
        ik.mle(mechanism.tally_counts(counts)),
    ):
        assert np.abs(estimate.distribution - counts / counts.sum()).max() <= ABSOLUTE


@pytest.mark.ledger("A-D02", "A-E1")
def test_both_forms_of_the_log_likelihood(rng):
    matrix = rng.dirichlet(np.ones(4), 3)
    mechanism = ik.MatrixMechanism(matrix)
    reports = mechanism.randomize(rng.integers(0, 3, 200), rng)
    tally = mechanism.tally(reports)
    seen, counts = np.unique(reports, return_counts=True)
    assert np.array_equal(tally.frequencies, counts / 200)
    assert tally.frequencies.sum() == pytest.approx(1, abs=1e-15)
    estimate = ik.ibu(tally, stop=ik.Steps(7))
    theta = estimate.distribution
    one_term_a_user = sum(np.log(sum(theta[x] * matrix[x, z] for x in range(3))) for z in reports)
    one_term_a_report = 200 * sum(
        q * np.log(theta @ matrix[:, z]) for z, q in zip(seen, tally.frequencies, strict=True)
    )
    assert estimate.log_likelihood == pytest.approx(one_term_a_user, rel=1e-12)
    assert estimate.log_likelihood == pytest.approx(one_term_a_report, rel=1e-12)


@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_the_log_likelihood_is_the_oracle_s(instance):
    estimate = ik.ibu(instance.tally, stop=ik.Steps(3))
    expected = naive.log_likelihood(instance.matrix, instance.counts, estimate.distribution)
    assert estimate.log_likelihood == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("far", [100, 400, 10_000])
def test_the_log_likelihood_of_a_report_whose_probability_underflows(far):
    # seen from a report far to the right all secrets are e^-eps(z - x) away, less than the least
    # double
    mechanism, theta = ik.LinearGeometric(3, 5.0), np.array([0.2, 0.3, 0.5])
    estimate = ik.ibu(mechanism.tally([far]), start=theta, stop=ik.Steps(0))
    weights = theta @ np.exp(5.0 * np.array([-2, -1, 0]))
    expected = math.log(math.tanh(2.5)) - 5.0 * (far - 2) + math.log(weights)
    assert estimate.log_likelihood == pytest.approx(expected, rel=1e-13)


def test_only_frequencies_matter():
    mechanism = ik.RandomizedResponse(4, 1.0)
    counts = np.array([4, 1, 2, 1])
    once, often = (ik.ibu(mechanism.tally_counts(c * counts), stop=ik.Steps(50)) for c in (1, 1024))
    assert np.array_equal(once.distribution, often.distribution)
    assert once.gap == often.gap


@pytest.mark.parametrize(
    ("start", "error", "words"),
    [
        ([0.5, 0.5, 0.0], ik.errors.InvalidDistribution, "start must not have zeros, but entry 2"),
        ([0.5, 0.25, 0.2], ik.errors.InvalidDistribution, "start must sum to 1.*0.95"),
        (
            [1.5, -0.25, -0.25],
            ik.errors.InvalidDistribution,
            "start must not have negative or NaN entries, got -0.25 at 1",
        ),
        (
            [np.nan, 0.5, 0.5],
            ik.errors.InvalidDistribution,
            "start must not have negative or NaN entries, got nan at 0",
        ),
        (
            [0.5, 0.5],
            ik.errors.AlphabetMismatch,
            "start must have one probability for each of the 3 elements, got 2",
        ),
        (
            [[0.5, 0.25, 0.25]],
            ik.errors.InvalidDistribution,
            r"start must be a non-empty vector, got shape \(1, 3\)",
        ),
        ("uniform", ik.errors.InvalidDistribution, "start must be an array of numbers, got str"),
    ],
)
def test_bad_starts(start, error, words):
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2])
    with pytest.raises(error, match=words):
        ik.ibu(tally, start=start)


def test_a_start_under_which_a_report_underflows_is_refused():
    tally = ik.MatrixMechanism(np.eye(2)).tally_counts([1, 1])
    with pytest.raises(
        ik.errors.InvalidDistribution, match="start must leave every seen report a probability"
    ):
        ik.ibu(tally, start=[1 - 1e-320, 1e-320])
    # tiny entries as such are fine where another secret explains the report, as after a long
    # earlier run
    estimate = ik.ibu(ik.RandomizedResponse(2, 1.0).tally_counts([9, 1]), start=[1.0, 1e-300])
    assert estimate.gap <= 1e-6


@pytest.mark.erratum("B3")
def test_a_start_with_zeros_can_be_stuck_away_from_the_maximum():
    # matrix (4) of the consistency paper; reports {2}, and the empirical distribution as the start
    matrix = [[0.10, 0.45, 0.45], [0.45, 0.10, 0.45], [0.45, 0.45, 0.10]]
    counts, q = [0, 1, 0], [0.0, 1.0, 0.0]
    stuck = naive.ibu(matrix, counts, 1000, start=q)
    assert stuck.tolist() == q
    assert naive.log_likelihood(matrix, counts, stuck) == pytest.approx(np.log(0.10))
    tally = ik.MatrixMechanism(matrix).tally_counts(counts)
    assert ik.gap(tally, stuck) == pytest.approx(np.log(4.5))
    assert ik.ibu(tally).log_likelihood == pytest.approx(np.log(0.45), abs=1e-6)
    with pytest.raises(ik.errors.InvalidDistribution, match="start must not have zeros"):
        ik.ibu(tally, start=q)


def test_what_is_handed_out_does_not_change():
    estimate = ik.ibu(ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2]))
    with pytest.raises(ValueError, match="read-only"):
        estimate.distribution[0] = 1
    with pytest.raises(AttributeError):
        estimate.gap = 0.0
    assert repr(estimate).startswith("Estimate(ibu, Gap(tol=1e-06): k=3, n_iter=")
    assert "\n" not in repr(estimate)


def test_no_step_when_the_start_is_good_enough():
    tally = ik.MatrixMechanism([[0.9, 0.1], [0.3, 0.7]]).tally_counts([60, 40])
    estimate = ik.ibu(tally)  # the uniform distribution fits exactly
    assert estimate.n_iter == 0
    by_hand = gap_of(tally.forward([0.5, 0.5]), tally.adjoint(tally.frequencies / [0.6, 0.4]))
    assert estimate.gap == pytest.approx(by_hand, abs=1e-14)


@pytest.mark.ledger("A-P1")
def test_where_the_likelihood_is_strictly_concave_every_start_leads_to_the_same_maximiser(rng):
    tally = ik.RandomizedResponse(5, 1.0).tally_counts([30, 25, 20, 15, 10])
    ends = [
        ik.ibu(
            tally, start=rng.dirichlet(np.full(5, 0.5)), stop=ik.Gap(1e-10), strict=True
        ).distribution
        for _ in range(20)
    ]
    assert np.ptp(ends, axis=0).max() <= 1e-4
    assert np.abs(ends - ik.mle(tally).distribution).max() <= 1e-4


# Matrix (12) of the consistency paper: secrets 1 and 3 look the same to everyone.
TWINS = ik.MatrixMechanism([[0.45, 0.10, 0.45], [0.05, 0.90, 0.05], [0.45, 0.10, 0.45]])


@pytest.mark.ledger("A-X12")
def test_a_unique_maximiser_without_strict_concavity(rng):
    tally = TWINS.tally([1, 1, 1, 1])
    for _ in range(20):
        estimate = ik.ibu(tally, start=rng.dirichlet(np.ones(3)), stop=ik.Gap(1e-9), strict=True)
        assert estimate.distribution == pytest.approx([0, 1, 0], abs=1e-6)
    # not strictly concave: along the twins' difference nothing changes
    assert tally.forward([0.5, 0.25, 0.25]) == pytest.approx(
        tally.forward([0.25, 0.25, 0.5]), rel=1e-14
    )


@pytest.mark.ledger("A-F5b")
def test_many_maximisers_and_each_start_keeps_its_own(rng):
    tally = TWINS.tally([1, 1, 1, 1, 0, 2])
    ends = []
    for _ in range(20):
        start = rng.dirichlet(np.ones(3))
        first, second, third = ik.ibu(
            tally, start=start, stop=ik.Gap(1e-12), strict=True
        ).distribution
        assert second == pytest.approx(17 / 24, abs=1e-5)
        assert first / third == pytest.approx(start[0] / start[2], rel=1e-10)
        ends.append(first)
    assert np.ptp(ends) > 0.1, "the maximisers differ"


def test_weights_give_what_counts_in_their_proportion_give():
    mechanism, counts = ik.RandomizedResponse(3, 1.0), np.array([50, 30, 20])
    weighted = ik.ibu(mechanism.tally_counts(counts / 7, weighted=True), stop=ik.Steps(20))
    np.testing.assert_allclose(
        weighted.distribution,
        ik.ibu(mechanism.tally_counts(counts), stop=ik.Steps(20)).distribution,
        rtol=1e-12,
    )
