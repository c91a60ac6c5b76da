"""Geometric and Laplace noise on a line against loops and quadrature over the papers' formulas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

import ibukit as ik
from oracles import naive

sizes = pytest.mark.parametrize("k", [2, 3, 8])
epsilons = pytest.mark.parametrize("eps", [1e-3, 0.05, 1.0, 20.0])


def level(tally, secrets):
    """The tight metric level of the columns of a tally of integers: max of log ratio / distance."""
    logs = np.log(tally.matrix())
    return max(
        np.abs(logs[x] - logs[y]).max() / abs(secrets[x] - secrets[y])
        for x in range(len(secrets))
        for y in range(len(secrets))
        if x != y
    )


@pytest.mark.ledger("A-D05", "C-D2", "B-E5")
@sizes
@epsilons
def test_truncated_geometric_follows_the_formula(k, eps):
    mechanism = ik.TruncatedGeometric(k, eps)
    # 1 - a loses digits to the subtraction in the oracle where epsilon is small
    np.testing.assert_allclose(
        mechanism.matrix(), naive.truncated_geometric(k, eps), rtol=1e-15 / min(eps, 1) + 1e-13
    )
    assert abs(mechanism.matrix().sum(axis=1) - 1).max() < 1e-12
    assert ik.privacy.epsilon_metric(mechanism) == pytest.approx(eps, rel=1e-9)


@pytest.mark.ledger("A-D05", "C-D2")
@sizes
@pytest.mark.parametrize("eps", [0.5, 1.0, 20.0])
def test_truncated_is_the_untruncated_moved_to_the_ends(k, eps):
    window = np.arange(-90, k + 90)  # beyond, a^90 / (1 + a) is below e^-45
    untruncated = naive.geometric(range(k), window, eps)
    clipped = np.array(
        [untruncated[:, np.clip(window, 0, k - 1) == z].sum(axis=1) for z in range(k)]
    ).T
    np.testing.assert_allclose(ik.TruncatedGeometric(k, eps).matrix(), clipped, rtol=1e-12)


def test_truncated_geometric_reports_the_line_and_the_untruncated_integers(rng):
    line = ik.Line(-40, -38)
    secrets = np.repeat([-40, -39, -38], 2000)
    assert set(ik.TruncatedGeometric(line, 0.5).randomize(secrets, rng)) == {-40, -39, -38}
    integers = ik.LinearGeometric(line, 0.5).randomize(secrets, rng)
    assert integers.min() < -45
    assert np.median(integers) == -39
    tally = ik.LinearGeometric(line, 0.5).tally([-40])
    assert tally.forward([1, 0, 0]) > tally.forward([0, 1, 0])


@pytest.mark.ledger("A-D04", "B-E4")
@pytest.mark.erratum("B6")
@pytest.mark.parametrize("eps", [0.5, math.log(2), 3.0])
def test_geometric_noise_is_a_distribution_on_all_integers(eps):
    mechanism = ik.LinearGeometric(ik.Line(2, 6), eps)
    window = np.arange(-100, 110)
    tally = mechanism.tally(window)
    np.testing.assert_allclose(
        tally.matrix(), naive.geometric(range(2, 7), window, eps), rtol=1e-12
    )
    # the two tails beyond the window hold less than e^-50
    assert np.abs(tally.matrix().sum(axis=1) - 1).max() < 1e-12
    assert level(tally, range(2, 7)) == pytest.approx(eps, rel=1e-9)
    # neither reading of the printed (1 - a)/a ^|i - j| is one, already on the 61 integers around i
    a, near = math.exp(-eps), np.abs(np.arange(-30, 31))
    assert ((1 - a) / a**near).sum() > 1e5
    assert abs((((1 - a) / a) ** near).sum() - 1) > 1


@pytest.mark.ledger("A-D04")
@epsilons
def test_geometric_noise_attains_epsilon_on_any_window(eps):
    for line in (ik.Line(0, 1), ik.Line(-5, 5)):
        mechanism = ik.LinearGeometric(line, eps)
        assert level(mechanism.tally(np.arange(-15, 16)), line.values) == pytest.approx(
            eps, rel=1e-9
        )
        # outside the line every report tells the secrets apart as much as the end does
        assert level(mechanism.tally([-15]), line.values) == pytest.approx(eps, rel=1e-9)


@pytest.mark.erratum("B5")
def test_epsilon_zero_is_not_a_mechanism_one_could_invert():
    for mechanism in (ik.TruncatedGeometric, ik.LinearGeometric):
        with pytest.raises(ValueError, match="epsilon must be a finite number above 0, got 0"):
            mechanism(5, 0.0)
    # at a = 1 all rows are the same: every distribution of the secrets gives the same reports
    limit = naive.truncated_geometric(5, 0.0)
    assert np.linalg.matrix_rank(limit) == 1
    np.testing.assert_allclose(ik.TruncatedGeometric(5, 1e-9).matrix(), limit, atol=1e-8)
    assert np.linalg.matrix_rank(ik.TruncatedGeometric(5, 0.1).matrix()) == 5


@given(
    st.lists(st.integers(-60, 60), min_size=1, max_size=12),
    st.integers(1, 12),
    st.floats(0.01, 3),
    st.data(),
)
def test_sweeps_and_loops_agree(reports, k, eps, data):
    first = data.draw(st.integers(-20, 20))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    theta = rng.dirichlet(np.ones(k))
    tally = ik.LinearGeometric(ik.Line(first, first + k - 1), eps).tally(reports)
    dense = naive.geometric(range(first, first + k), sorted(set(reports)), eps)
    w = rng.random(dense.shape[1])
    np.testing.assert_allclose(tally.forward(theta), theta @ dense, rtol=1e-11)
    np.testing.assert_allclose(tally.adjoint(w), dense @ w, rtol=1e-11)
    assert not tally.log_scale.any()


@given(st.integers(2, 40), st.floats(0.01, 5), st.integers(0, 2**32))
def test_truncated_sweeps_and_loops_agree(k, eps, seed):
    rng = np.random.default_rng(seed)
    mechanism, dense = ik.TruncatedGeometric(k, eps), naive.truncated_geometric(k, eps)
    theta, w = rng.dirichlet(np.ones(k)), rng.random(k)
    np.testing.assert_allclose(mechanism.forward(theta), theta @ dense, rtol=1e-11)
    np.testing.assert_allclose(mechanism.adjoint(w), dense @ w, rtol=1e-11)
    seen = np.unique(rng.integers(0, k, 4))
    tally = mechanism.tally(seen)
    np.testing.assert_allclose(tally.forward(theta), theta @ dense[:, seen], rtol=1e-11)
    np.testing.assert_allclose(tally.adjoint(w[seen]), dense[:, seen] @ w[seen], rtol=1e-11)


@pytest.mark.parametrize("far", [-(10**12), -5000, -470, -455, 459, 475, 3000, 10**9])
def test_reports_far_out_are_possible_and_known_in_logarithms(far, rng):
    k, eps = 6, 1.0
    theta = rng.dirichlet(np.ones(k))
    tally = ik.LinearGeometric(k, eps).tally([far, 2])
    log_p = np.log(tally.forward(theta)) + tally.log_scale
    a = math.exp(-eps)
    noise = math.log((1 - a) / (1 + a)) - eps * np.abs(np.arange(k)[:, None] - sorted([far, 2]))
    np.testing.assert_allclose(log_p, logsumexp(np.log(theta)[:, None] + noise, axis=0), rtol=1e-13)
    estimate = ik.ibu(tally, stop=ik.Steps(3))
    expected = logsumexp(np.log(estimate.distribution)[:, None] + noise, axis=0).sum()
    assert estimate.log_likelihood == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("eps", [1e-3, 1e-4, 1e-7])
def test_noise_of_tiny_epsilon_is_laplace_in_the_limit(eps, rng):
    """Where every report is seen once or twice, chi-square tests see nothing."""
    mechanism, counts = ik.LinearGeometric(5, eps), np.full(5, 2000)
    part = mechanism.simulate(counts, rng).parts[0]
    simulated = np.repeat(part.reports, part.counts)
    for reports in (simulated, mechanism.randomize(np.repeat(np.arange(5), counts), rng)):
        assert len(reports) == 10_000
        assert stats.kstest(reports * eps, stats.laplace.cdf).pvalue > 1e-6
        # a fifth more noise would be seen
        assert stats.kstest(reports * eps * 1.2, stats.laplace.cdf).pvalue < 1e-6


@pytest.mark.ledger("A-D11")
@sizes
@pytest.mark.parametrize("eps", [1e-3, 0.05, 1.0, 20.0])
def test_linear_laplace_is_the_integral_of_the_density(k, eps):
    mechanism = ik.LinearLaplace(k, eps)
    np.testing.assert_allclose(mechanism.matrix(), naive.linear_laplace(k, eps), rtol=1e-12)
    assert abs(mechanism.matrix().sum(axis=1) - 1).max() < 1e-12
    attained = ik.privacy.epsilon_metric(mechanism)
    assert attained <= eps * (1 + 1e-12)
    assert (attained >= eps * (1 - 1e-12)) == (k >= 3)


@pytest.mark.parametrize("mechanism", [ik.TruncatedGeometric, ik.LinearLaplace])
@given(k=st.integers(2, 30), eps=st.floats(0.01, 10), shift=st.integers(-1000, 1000))
def test_lines_may_be_shifted_and_mirrored(mechanism, k, eps, shift):
    matrix = mechanism(k, eps).matrix()
    assert np.array_equal(mechanism(ik.Line(shift, shift + k - 1), eps).matrix(), matrix)
    np.testing.assert_allclose(matrix[::-1, ::-1], matrix, rtol=1e-14)


@pytest.mark.parametrize("mechanism", [ik.LinearGeometric, ik.TruncatedGeometric, ik.LinearLaplace])
@pytest.mark.parametrize(
    "alphabet",
    [ik.Grid(2, 2), ik.Alphabet([0, 1, 2]), [0, 1, 2], np.array(["a", "b"])],
    ids=repr,
)
def test_noise_on_integers_needs_a_line(mechanism, alphabet):
    with pytest.raises(TypeError, match=r"alphabet must be a Line, .*got .*take Line\(first"):
        mechanism(alphabet, 1.0)


@pytest.mark.parametrize("mechanism", [ik.TruncatedGeometric, ik.LinearLaplace])
def test_at_least_two_secrets(mechanism):
    with pytest.raises(ValueError, match="number of secrets must be at least 2, got 1"):
        mechanism(1, 1.0)


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        ([1, 2.5], r"reports must be whole numbers, got 2\.5 at index 1"),
        ([np.nan], "reports must be whole numbers, got nan at index 0"),
        ([np.inf], "reports must be whole numbers, got inf at index 0"),
        (["1"], "reports must be whole numbers, got an array of type"),
        ([[1, 2]], r"reports must have 1 dimension\(s\), got shape \(1, 2\)"),
        ([2**63], "reports must fit in 64 signed bits, got 9223372036854775808"),
        ([], "the tally is empty"),
    ],
)
def test_reports_that_are_no_integers(reports, message):
    with pytest.raises(ValueError, match=message):
        ik.LinearGeometric(4, 1.0).tally(reports)
