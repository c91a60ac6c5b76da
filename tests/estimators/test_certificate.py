"""The gap is a bound on what any other distribution could gain:
always, everywhere, for every estimator.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from ibukit._ground.rounding import gamma
from ibukit.tally.likelihood import gap_of, log_likelihood_of
from instances import (
    INSTANCES,
    NAMES,
    Bent,
    TransposedAdjoint,
    distributions,
    tallies,
    unchecked,
    with_operator,
)
from oracles import naive


def mean_log_likelihood(tally, theta):
    with np.errstate(divide="ignore"):
        return float(tally.frequencies @ np.log(tally.forward(theta)))


def assert_bounded(tally, theta, other):
    """For one theta or several:
    mean log-likelihood of `other` <= that of theta + gap, up to the sums' rounding.
    """
    if np.ndim(theta) == 2:
        for each in theta:
            assert_bounded(tally, each, other)
        return
    gap = ik.gap(tally, theta)
    assert gap >= 0
    if math.isinf(gap):
        return
    ours, theirs = mean_log_likelihood(tally, theta), mean_log_likelihood(tally, other)
    excess = theirs - ours - gap
    assert excess <= 1e-14 * (1 + abs(ours)), (
        f"a distribution is better by {excess:.3g} than the gap {gap:.3g} allows"
    )


@given(data=st.data(), tally=tallies())
def test_no_distribution_beats_another_by_more_than_its_gap(data, tally):
    theta, other = data.draw(distributions(tally.k)), data.draw(distributions(tally.k))
    assert_bounded(tally, theta, other)
    for vertex in np.eye(tally.k):
        assert_bounded(tally, theta, vertex)


@given(data=st.data(), tally=tallies())
def test_the_maximum_is_within_n_gaps(data, tally):
    phi, best = data.draw(distributions(tally.k)), ik.mle(tally)
    assert_bounded(tally, phi, best.distribution)
    # L* <= L(best) + n gap(best), so L* - L(phi) <= n gap(phi) may be asked of L(best) only
    with np.errstate(divide="ignore"):
        at_phi = float(tally.counts @ np.log(tally.forward(phi)))
    assert best.log_likelihood - at_phi <= tally.n * ik.gap(tally, phi) + 1e-13 * (
        tally.n + abs(best.log_likelihood)
    )


@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_the_gap_bounds_in_every_channel(instance, rng):
    best = ik.mle(instance.tally)
    for alpha in (0.05, 1.0, 20.0):
        for _ in range(20):
            # the least alphas leave some probabilities at 0 to a double
            theta, other = rng.dirichlet(np.full(instance.tally.k, alpha), 2)
            assert_bounded(instance.tally, theta, other)
            assert_bounded(instance.tally, theta, best.distribution)


@pytest.mark.ledger("D-E22")
@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_the_gap_is_the_oracle_s(instance, rng):
    for _ in range(5):
        theta = rng.dirichlet(np.ones(instance.tally.k))
        expected = naive.gap(instance.matrix, instance.counts, theta)
        assert ik.gap(instance.tally, theta) == pytest.approx(expected, rel=1e-11, abs=1e-13)


def broken(instance, kind):
    """The instance's tally with a channel that is wrong in one way."""
    bends = {
        "adjoint too small": {"adjoint": lambda g: 0.99 * g},
        "adjoint forgets a report": {"weights": lambda w: w * (np.arange(len(w)) > 0)},
        "forward too large": {"forward": lambda p: 1.02 * p},
    }
    return with_operator(instance.tally, Bent(instance.tally.operator, **bends[kind]))


@pytest.mark.parametrize("kind", ["adjoint too small", "adjoint forgets a report"])
@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_the_bound_sees_a_wrong_adjoint(instance, kind, rng):
    wrong, best = broken(instance, kind), ik.mle(instance.tally).distribution
    # near the maximiser the bound is nearly attained, so there it is that an error shows
    candidates = [
        0.999 * best + 0.001 * rng.dirichlet(np.ones(instance.tally.k)) for _ in range(20)
    ]
    assert_bounded(instance.tally, candidates, best)
    with pytest.raises(AssertionError, match="a distribution is better by"):
        assert_bounded(wrong, candidates, best)


def test_the_bound_sees_a_matrix_used_for_its_transpose():
    # the second column's largest entry is far above the second row's
    matrix = np.array([[0.1, 0.8, 0.1], [0.34, 0.33, 0.33], [0.3, 0.2, 0.5]])
    tally = ik.MatrixMechanism(matrix).tally_counts([10, 80, 10])
    best = ik.mle(tally).distribution
    wrong = with_operator(tally, TransposedAdjoint(matrix))
    simplex = np.array([(a, b, 10 - a - b) for a in range(11) for b in range(11 - a)]) / 10
    assert_bounded(tally, simplex, best)
    with pytest.raises(AssertionError, match="a distribution is better by"):
        assert_bounded(wrong, simplex, best)


@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_the_comparison_with_the_oracle_sees_a_wrong_forward(instance):
    theta = ik.uniform(instance.tally.k)
    expected = naive.gap(instance.matrix, instance.counts, theta)
    wrong = ik.gap(broken(instance, "forward too large"), theta)
    assert wrong != pytest.approx(expected, rel=1e-11, abs=1e-13)


def test_zero_at_the_maximiser():
    identity = ik.MatrixMechanism(np.eye(3)).tally_counts([5, 3, 2])
    assert ik.gap(identity, [0.5, 0.3, 0.2]) <= 1e-14
    fitted = ik.MatrixMechanism([[0.9, 0.1], [0.3, 0.7]]).tally_counts([60, 40])
    assert ik.gap(fitted, [0.5, 0.5]) <= 1e-14
    alone = ik.MatrixMechanism([[0.2, 0.8]]).tally_counts([1, 2])
    assert ik.gap(alone, [1.0]) <= 1e-14
    # on the boundary: the closed form of k-RR with one probability cut off at 0
    total = np.exp(1.0) + 2
    truth, lie = np.exp(1.0) / total, 1 / total
    level = 0.9 / (1 + 2 * lie / (truth - lie))
    theta = np.array([0.6 / level, 0.3 / level, 0.0]) - lie / (truth - lie) * np.array([1, 1, 0])
    assert ik.gap(ik.RandomizedResponse(3, 1.0).tally_counts([60, 30, 10]), theta) <= 1e-14


def test_positive_away_from_it_and_as_large_as_the_oracle_says():
    tally = ik.MatrixMechanism([[0.9, 0.1], [0.3, 0.7]]).tally_counts([60, 40])
    # p = (0.54, 0.46): g_0 = 0.6 * 0.9 / 0.54 + 0.4 * 0.1 / 0.46
    assert ik.gap(tally, [0.4, 0.6]) == pytest.approx(math.log(1 + 0.04 / 0.46), rel=1e-14)


def test_infinite_where_a_seen_report_is_impossible():
    tally = ik.MatrixMechanism([[1.0, 0.0], [0.5, 0.5]]).tally_counts([3, 1])
    assert ik.gap(tally, [1.0, 0.0]) == math.inf
    assert ik.gap(tally, [0.0, 1.0]) == pytest.approx(math.log(1.5))
    unseen = ik.MatrixMechanism([[1.0, 0.0], [0.5, 0.5]]).tally_counts([3, 0])
    assert ik.gap(unseen, [1.0, 0.0]) <= 1e-14


@pytest.mark.parametrize("tiny", [1e-300, 1e-310, 1e-320, 5e-324])
def test_never_small_because_a_ratio_overflows(tiny):
    tally = ik.MatrixMechanism(np.eye(2)).tally_counts([1, 1])
    # the other report has half the mass: theta loses log(1 / 2 tiny) / 2 - log(2) / 2 on average
    assert ik.gap(tally, [1 - tiny, tiny]) >= (math.log(0.5) - math.log(tiny)) / 2 - math.log(2) / 2
    geometric = unchecked(ik.LinearGeometric, 3, 800.0).tally([0, 1, 1, 2])
    assert ik.gap(geometric, [1 - 2 * tiny, tiny, tiny]) > 300


def test_what_is_not_a_number_certifies_nothing():
    assert gap_of(np.array([0.5, 0.5]), np.array([1.0, np.nan])) == math.inf
    assert gap_of(np.array([0.5, 0.0]), np.array([1.0, 1.0])) == math.inf
    assert gap_of(np.array([0.5, np.nan]), np.array([1.0, 1.0])) == math.inf
    assert gap_of(np.array([0.5, 0.5]), np.array([1.0, 1 - 1e-16])) == 0


ESTIMATORS = {
    "ibu": lambda tally: ik.ibu(tally, stop=ik.Gap(1e-3)),
    "ibu, few steps": lambda tally: ik.ibu(tally, stop=ik.Steps(3)),
    "ibu, max_iter": lambda tally: ik.ibu(tally, stop=ik.Gap(1e-14), max_iter=9),
    "gibu": lambda tally: ik.gibu([tally], stop=ik.Change(1e-4)),
    "mle": ik.mle,
    "inv, project": ik.inv,
    "inv, normalize": lambda tally: ik.inv(tally, post="normalize"),
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", ["k-RR", "truncated geometric", "RAPPOR", "exponential"])
def test_every_estimator_certifies_the_vector_that_it_returns(name, estimator):
    instance = INSTANCES[NAMES.index(name)]
    estimate = ESTIMATORS[estimator](instance.tally)
    assert estimate.gap == ik.gap(instance.tally, estimate.distribution)
    # The gap is the exact one and a bound on rounding, in which a few units stand for each term.
    exact = naive.gap(instance.matrix, instance.counts, estimate.distribution)
    rounding = gamma(instance.tally.operator.n_roundings + 16)
    assert exact * (1 - 1e-10) - 1e-15 <= estimate.gap <= exact * (1 + 1e-10) + 2 * rounding
    assert estimate.log_likelihood == pytest.approx(
        naive.log_likelihood(instance.matrix, instance.counts, estimate.distribution), rel=1e-12
    )
    assert estimate.alphabet == instance.tally.alphabet


@pytest.mark.erratum("A7")
def test_the_papers_stopping_rule_does_not_reach_the_maximiser():
    # Algorithm 1 with |Delta L| < delta is said to return an MLE; a small step is no proof
    k = 50
    theta = np.exp(-(((np.arange(k) - 20) / 8) ** 2))
    counts = np.rint(10_000 * (theta / theta.sum()) @ naive.truncated_geometric(k, 0.1)).astype(int)
    counts[::3] += 12
    tally = ik.TruncatedGeometric(k, 0.1).tally_counts(counts)
    stopped, best = ik.ibu(tally, stop=ik.Change(1e-2)), ik.mle(tally)
    assert stopped.status is ik.Status.CONVERGED
    # less than a hundredth of a nat in the last step, more than a hundred such steps below the
    # maximum
    assert best.log_likelihood - stopped.log_likelihood > 100 * 1e-2
    assert stopped.gap > 1e-4
    assert best.log_likelihood - stopped.log_likelihood <= tally.n * stopped.gap


@pytest.mark.parametrize(
    ("distribution", "error", "words"),
    [
        (
            [0.5, 0.5, 0.5],
            ik.errors.InvalidDistribution,
            "distribution must sum to 1.*but sums to 1.5",
        ),
        (
            [1.5, -0.5, 0.0],
            ik.errors.InvalidDistribution,
            "distribution must not have negative or NaN entries, got -0.5",
        ),
        (
            [0.5, 0.5],
            ik.errors.AlphabetMismatch,
            "distribution must have one probability for each of the 3 elements, got 2",
        ),
    ],
)
def test_bad_distributions(distribution, error, words):
    with pytest.raises(error, match=words):
        ik.gap(ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2]), distribution)


def test_a_report_without_a_probability_leaves_no_likelihood():
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([2, 1, 3])
    assert log_likelihood_of(tally, np.array([0.5, 0.0, 0.5])) == -np.inf
