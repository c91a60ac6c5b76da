"""Several mechanisms at once: the papers' generalised update, and its equivalents."""

import math

import numpy as np
import pytest

import ibukit as ik
from instances import Trace
from oracles import naive

ABSOLUTE = 1e-14
K = 4
LINE = ik.Line(0, K - 1)
# mechanism, its matrix by the oracle
MECHANISMS = [
    (ik.RandomizedResponse(LINE, 0.5), naive.k_rr(K, 0.5)),
    (ik.RandomizedResponse(LINE, 2.0), naive.k_rr(K, 2.0)),
    (ik.TruncatedGeometric(LINE, 0.7), naive.truncated_geometric(K, 0.7)),
    (ik.Rappor(LINE, 1.0), naive.rappor(K, 1.0)),
    (ik.MatrixMechanism(naive.exponential(naive.line_distances(K), 1.0), LINE), None),
]


@pytest.fixture
def groups(rng):
    """Tally, oracle's matrix and counts of every group of users."""
    made = []
    for mechanism, matrix in MECHANISMS:
        dense = mechanism.entries if matrix is None else matrix
        counts = rng.integers(0, 30, dense.shape[1])
        made.append((mechanism.tally_counts(counts), dense, counts))
    return made


def algorithm_1(groups, n_iter):
    """Free-will paper, Algorithm 1:
    theta'_x = 1/n sum_A n_A sum_z q^A_z theta_x A_xz / sum_u theta_u A_uz.
    """
    n = sum(int(counts.sum()) for _, _, counts in groups)
    theta = np.full(K, 1 / K)
    for _ in range(n_iter):
        new = np.zeros(K)
        for _, matrix, counts in groups:
            n_group = int(counts.sum())
            for z in np.flatnonzero(counts):
                q = counts[z] / n_group
                total = math.fsum(theta[u] * matrix[u, z] for u in range(K))
                for x in range(K):
                    new[x] += n_group / n * q * theta[x] * matrix[x, z] / total
        theta = new
    return theta


def one_term_a_user(groups, n_iter):
    """Free-will paper, eq. (18): an average over the users, each through their own mechanism."""
    columns = [
        matrix[:, z]
        for _, matrix, counts in groups
        for z in np.repeat(np.arange(len(counts)), counts)
    ]
    theta = np.full(K, 1 / K)
    for _ in range(n_iter):
        theta = sum(theta * column / (theta @ column) for column in columns) / len(columns)
    return theta


@pytest.mark.ledger("C-Alg1")
@pytest.mark.parametrize("steps", [1, 10, 100])
def test_gibu_is_algorithm_1(groups, steps):
    ours = ik.gibu([tally for tally, _, _ in groups], stop=ik.Steps(steps))
    assert np.abs(ours.distribution - algorithm_1(groups, steps)).max() <= ABSOLUTE
    assert ours.n_iter == steps


@pytest.mark.ledger("C-E18")
@pytest.mark.parametrize("steps", [1, 10, 100])
def test_gibu_is_an_average_over_the_users(groups, steps):
    ours = ik.gibu([tally for tally, _, _ in groups], stop=ik.Steps(steps))
    assert np.abs(ours.distribution - one_term_a_user(groups, steps)).max() <= ABSOLUTE


def test_the_comparison_sees_a_report_counted_under_the_wrong_mechanism(groups):
    exchanged = list(groups)
    (first, matrix_a, counts_a), (second, matrix_b, counts_b) = groups[:2]
    exchanged[:2] = [(first, matrix_b, counts_a), (second, matrix_a, counts_b)]
    ours = ik.gibu([tally for tally, _, _ in groups], stop=ik.Steps(10))
    assert np.abs(ours.distribution - algorithm_1(exchanged, 10)).max() > 1e-3


@pytest.mark.ledger("E-D2.6")
@pytest.mark.parametrize("steps", [1, 10, 100])
def test_gibu_is_ibu_on_the_stacked_channel(groups, steps):
    n = sum(tally.n for tally, _, _ in groups)
    stacked = np.concatenate([tally.n / n * matrix for tally, matrix, _ in groups], axis=1)
    one = ik.MatrixMechanism(stacked).tally_counts(
        np.concatenate([counts for _, _, counts in groups])
    )
    ours = ik.gibu([tally for tally, _, _ in groups], stop=ik.Steps(steps))
    theirs = ik.ibu(one, stop=ik.Steps(steps))
    assert np.abs(ours.distribution - theirs.distribution).max() <= ABSOLUTE
    assert ours.gap == pytest.approx(theirs.gap, abs=1e-13)


@pytest.mark.ledger("C-Alg1")
def test_the_pooled_likelihood_never_falls(groups):
    trace = Trace(500)
    pooled = sum(tally for tally, _, _ in groups)
    ik.ibu(pooled, stop=trace)
    assert (np.diff(trace.log_likelihoods) >= -1e-13 * abs(trace.log_likelihoods[0])).all()
    assert trace.gaps[-1] < trace.gaps[0]


@pytest.mark.ledger("C-T1", "C-Alg1")
def test_gibu_tends_to_the_maximiser_of_the_sum_of_the_likelihoods(groups):
    tallies = [tally for tally, _, _ in groups]
    ours, best = ik.gibu(tallies, stop=ik.Gap(1e-11)), ik.mle(sum(tallies), tol=1e-12)
    n = sum(tally.n for tally in tallies)
    assert abs(ours.log_likelihood - best.log_likelihood) <= n * (
        ours.gap + best.gap
    ) + 1e-12 * abs(best.log_likelihood)
    assert np.abs(ours.distribution - best.distribution).max() <= 1e-5
    # the likelihood that is maximised is the sum of the groups'
    total = sum(
        naive.log_likelihood(matrix, counts, best.distribution) for _, matrix, counts in groups
    )
    assert best.log_likelihood == pytest.approx(total, rel=1e-12)


def test_gibu_is_ibu_of_the_sum(groups):
    tallies = [tally for tally, _, _ in groups]
    start = [0.1, 0.2, 0.3, 0.4]
    ours = ik.gibu(iter(tallies), start=start, stop=ik.Steps(30))
    theirs = ik.ibu(sum(tallies), start=start, stop=ik.Steps(30))
    assert np.array_equal(ours.distribution, theirs.distribution)
    assert (ours.n_iter, ours.log_likelihood, ours.gap) == (
        theirs.n_iter,
        theirs.log_likelihood,
        theirs.gap,
    )


def test_the_order_of_the_groups_does_not_matter(groups):
    tallies = [tally for tally, _, _ in groups]
    forth, back = (ik.gibu(order, stop=ik.Steps(100)) for order in (tallies, tallies[::-1]))
    assert np.abs(forth.distribution - back.distribution).max() <= ABSOLUTE


def test_one_group_is_plain_ibu():
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2])
    assert np.array_equal(ik.gibu([tally]).distribution, ik.ibu(tally).distribution)


@pytest.mark.ledger("C-X14")
def test_two_mechanisms_whose_average_says_nothing():
    # eq. (14) of the free-will paper, at the frequencies that an unlimited number of reports would
    # have
    truthful, lying = [[0.75, 0.25], [0.25, 0.75]], [[0.25, 0.75], [0.75, 0.25]]
    theta, n = np.array([0.9, 0.1]), 1_000_000
    one, two = (
        ik.MatrixMechanism(matrix).tally_counts(np.rint(n / 2 * theta @ matrix).astype(int))
        for matrix in (truthful, lying)
    )
    assert np.abs(ik.gibu([one, two]).distribution - theta).max() <= 1e-2
    assert ik.mle(one + two).distribution == pytest.approx(theta, abs=1e-6)
    average = ik.MatrixMechanism(np.full((2, 2), 0.5))
    mixed = average.tally_counts(np.rint(n / 2 * theta @ np.add(truthful, lying)).astype(int))
    assert np.array_equal(ik.ibu(mixed, start=[0.3, 0.7]).distribution, [0.3, 0.7]), (
        "[IBU]_M returns its start"
    )
    with pytest.raises(ik.errors.NotInvertible, match="rank 1 for 2 secrets"):
        ik.inv(mixed)


def test_nothing_to_pool():
    with pytest.raises(ValueError, match="tallies must hold at least one tally, got none"):
        ik.gibu([])


def test_different_secrets_do_not_pool():
    one = ik.RandomizedResponse(ik.Line(0, 3), 1.0).tally([1])
    for other in (ik.Line(1, 4), ik.Line(0, 4), ik.Alphabet(["a", "b", "c", "d"])):
        with pytest.raises(
            ik.errors.AlphabetMismatch,
            match=r"tallies can be added only over the same secrets.*Line\(0, 3\)",
        ):
            ik.gibu([one, ik.RandomizedResponse(other, 1.0).tally([1], codes=True)])


def test_stop_and_strict_are_passed_on():
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2])
    with pytest.raises(ik.ConvergenceError) as caught:
        ik.gibu([tally, tally], stop=ik.Gap(1e-12), max_iter=3, strict=True)
    assert caught.value.estimate.n_iter == 3
    with pytest.raises(TypeError, match="steps"):
        ik.gibu([tally], steps=3)
