"""The closed form of randomized response against the same in exact fractions,
and at the ends of the doubles.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from ibukit._ground.arguments import frozen
from ibukit.channels import ResponseChannel
from ibukit.solvers.responses import _water_filling_kernels, water_filling
from instances import unchecked
from test_kernels import source

MIN_LEVEL, MAX_LEVEL = 1e-17, 700.0
# down to where a double cannot hold e^eps - 1 beside 1, and up to where it can hardly hold e^-eps
EPSILONS = [
    MIN_LEVEL,
    1e-16,
    2e-16,
    3e-16,
    1e-15,
    1e-14,
    1e-12,
    1e-8,
    1e-3,
    1.0,
    30.0,
    300.0,
    MAX_LEVEL,
]


def exactly(q, contrast, off):
    """The maximiser from the doubles in q, without rounding:
    secrets join in the order of their counts.
    """
    q, contrast, off = (
        [Fraction(float(x)) for x in q],
        Fraction(float(contrast)),
        Fraction(float(off)),
    )
    left = sorted(range(len(q)), key=lambda z: q[z])
    while True:
        beta = sum(q[z] for z in left) / (contrast + len(left) * off)
        if q[left[0]] > beta * off:
            break
        del left[0]
    theta = np.zeros(len(q))
    for z in left:
        theta[z] = (q[z] / beta - off) / contrast
    return theta


def channel_of(k, eps, seen=None):
    """Randomized response as its mechanism has it, of levels, too, that it refuses to draw from."""
    return unchecked(ik.RandomizedResponse, k, eps).channel(np.arange(k) if seen is None else seen)


@given(
    st.lists(st.sampled_from([1, 1, 2, 3, 50]) | st.integers(1, 10**7), min_size=2, max_size=40),
    st.floats(1e-6, 50),
)
def test_the_same_as_without_rounding(counts, eps):
    k = len(counts)
    q = np.array(counts) / sum(counts)
    channel = channel_of(k, eps)
    contrast = channel.diagonal - channel.off
    theta, exact = water_filling.maximise(channel, q), exactly(q, contrast, channel.off)
    # what is subtracted, q / beta and off, is larger than their difference by the factor off /
    # contrast
    assert np.abs(theta - exact).max() <= 1e-14 * (1 + channel.off / contrast)
    assert abs(theta.sum() - 1) <= 1e-14
    assert (theta >= 0).all()


def test_fractions_see_a_wrong_level():
    q = np.array([0.4, 0.3, 0.2, 0.1])
    channel = channel_of(4, 1.0)
    contrast = channel.diagonal - channel.off
    exact = exactly(q, contrast, channel.off)
    assert np.array_equal(exact > 0, [True, True, True, False])
    all_four = (q * (contrast + 4 * channel.off) - channel.off) / contrast
    assert all_four[3] < 0 < all_four[2]
    assert np.abs(exact - np.maximum(all_four, 0) / np.maximum(all_four, 0).sum()).max() > 1e-2


def test_equal_counts_get_equal_shares_and_ties_stay_together():
    theta = ik.mle(ik.RandomizedResponse(6, 0.7).tally_counts([30, 10, 30, 4, 10, 4])).distribution
    assert theta[0] == theta[2] > theta[1] == theta[4] >= theta[3] == theta[5]
    for eps in EPSILONS:
        alike = ik.mle(unchecked(ik.RandomizedResponse, 7, eps).tally_counts([3] * 7)).distribution
        np.testing.assert_allclose(alike, 1 / 7, rtol=1e-12)


@pytest.mark.parametrize("eps", EPSILONS)
@pytest.mark.parametrize("k", [2, 3, 30, 1000])
def test_certified_from_the_smallest_epsilon_to_the_largest(k, eps, rng):
    mechanism = unchecked(ik.RandomizedResponse, k, eps)
    one = np.zeros(k, int)
    one[k // 2] = 7
    lists = [
        one,
        np.arange(k),
        rng.integers(0, 3, k) + one,
        rng.integers(0, 10**7, k),
        np.arange(k) // 2 + 1,
    ]
    for counts in lists:
        estimate = ik.mle(mechanism.tally_counts(counts), tol=1e-13)
        assert estimate.method.startswith("mle, closed form")
        theta = estimate.distribution
        assert estimate.status is ik.Status.CLOSED_FORM
        assert estimate.n_iter == 0
        assert (theta >= 0).all()
        assert abs(theta.sum() - 1) <= 1e-12
        assert estimate.gap <= 1e-13
        # who is reported more often has no less
        assert (np.diff(theta[np.argsort(counts, kind="stable")]) >= 0).all()


def test_one_secret_that_everyone_reports_has_all():
    theta = ik.mle(ik.RandomizedResponse(4, 0.1).tally_counts([0, 0, 9, 0])).distribution
    assert theta.tolist() == [0, 0, 1, 0]


def test_secrets_that_nobody_reported_have_nothing(rng):
    k, seen = 50, np.array([3, 10, 11, 40])
    q = np.array([0.4, 0.3, 0.2, 0.1])
    theta = water_filling.maximise(channel_of(k, 1.5, seen), q)
    assert np.array_equal(np.flatnonzero(theta), seen[: (theta > 0).sum()])
    channel = channel_of(k, 1.5, seen)
    np.testing.assert_allclose(
        theta[seen], exactly(q, channel.diagonal - channel.off, channel.off), rtol=1e-12
    )


def test_without_any_contrast_every_distribution_is_a_maximiser():
    channel = ResponseChannel(5, np.array([1, 3]), 0.2, 0.2)
    assert (water_filling.maximise(channel, np.array([0.9, 0.1])) == 0.2).all()


@pytest.mark.parametrize("size", [1, 2, 1023, 1024, 1025, 5000])
def test_kernels_are_their_sources(size, rng):
    q = rng.dirichlet(np.full(size, 0.3)) + 1e-9
    q = frozen(q / q.sum())
    contrast, off = 0.2, 0.8 / size
    level, fill = _water_filling_kernels.water_level, _water_filling_kernels.fill
    beta = level(q, float(q.sum()), contrast, off)
    assert beta == pytest.approx(source(level)(q, float(q.sum()), contrast, off), rel=1e-14)
    # the level's equation, by numpy's sums
    kept = q > beta * off
    assert beta == pytest.approx(q[kept].sum() / (contrast + kept.sum() * off), rel=1e-13)
    fast, slow = np.zeros(size), np.zeros(size)
    reports = frozen(rng.permutation(size))
    fill(fast, reports, q, beta, contrast, off)
    source(fill)(slow, reports, q, beta, contrast, off)
    np.testing.assert_allclose(fast, slow, rtol=1e-14)
    expected = np.maximum(q / beta - off, 0) / contrast
    np.testing.assert_allclose(fast[reports], expected, rtol=1e-11, atol=1e-18)


@pytest.mark.slow
def test_a_million_secrets():
    k = 10**6
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.full(k, 0.05))
    tally = ik.RandomizedResponse(k, 6.0).simulate(rng.multinomial(10**7, p), rng)
    estimate = ik.mle(tally, tol=1e-12)
    assert estimate.gap == ik.gap(tally, estimate.distribution) <= 1e-12
    assert abs(estimate.distribution.sum() - 1) <= 1e-13
    assert 100 < (estimate.distribution > 0).sum() < k / 2


@pytest.mark.parametrize("seed", range(200))
def test_costs_are_what_other_rows_are(seed):
    """Over {cost . theta = 1}, with secrets that nobody reported, cheap ones and dear ones."""
    rng = np.random.default_rng(seed)
    k, contrast = int(rng.integers(2, 12)), rng.choice([1e-3, 0.1, 0.5])
    seen = np.flatnonzero(rng.random(k) < 0.8)
    seen = seen if len(seen) else np.array([0])
    channel = ResponseChannel(k, seen, 0.05 + contrast, 0.05)
    q = rng.dirichlet(np.full(len(seen), rng.choice([0.3, 3.0]))) + 1e-9
    q /= q.sum()
    cost = [
        rng.uniform(0.2, 2, k),
        np.where(np.arange(k) < k // 2, 1.0, rng.choice([0.01, 0.999])),
    ][seed % 2]
    theta = water_filling.maximise_at(channel, q, cost)
    assert theta.min() >= 0
    assert cost @ theta == pytest.approx(1, abs=1e-11)
    excess = (channel.adjoint(q / channel.forward(theta)) / cost).max() - 1
    assert excess <= 1e-8, "no other distribution fits better"
    without = water_filling.maximise(channel, q)
    off = (channel.adjoint(q / channel.forward(without / (cost @ without))) / cost).max() - 1
    assert off >= excess - 1e-8


def test_a_report_that_nobody_sends_is_impossible():
    """Where k-RR always tells the truth, and nobody has the secret that was reported."""
    channel = ResponseChannel(3, np.array([0, 2]), 1.0, 0.0)
    found = channel.score(np.array([0.5, 0.5, 0.0]), np.array([3, 1]))
    assert (found.log_likelihood, found.least) == (-np.inf, 0.0)
