"""Many mechanisms on one line in one channel: its rows, what is pooled, and the maximiser."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from ibukit.channels import DenseChannel, LineChannel, LinePoolChannel
from ibukit.channels.pools import _line_pool_kernels, line_pools
from test_kernels import source
from test_response_pools import check_maximiser, stacked

K, M = 9, 6
SECRETS = np.arange(K)


@pytest.fixture(autouse=True)
def small_pools(monkeypatch):
    """M lines of K positions are just enough for a pool."""
    monkeypatch.setattr(line_pools, "MIN_POSITIONS_POOLED", K * M)


def lines(rng):
    """Channels of 0 to 6 reports, several of them at a place or at an end."""
    sizes = rng.integers(0, 7, M)
    return [
        LineChannel(K, decay, rng.integers(0, K, size), rng.random(size))
        for decay, size in zip(rng.uniform(0, 1, len(sizes)), sizes, strict=True)
    ]


def test_a_pool_is_each_mechanisms_own_rows(rng):
    channels = lines(rng)
    (pool,) = stacked(*channels).blocks
    assert isinstance(pool, LinePoolChannel)
    own = np.concatenate([channel.rows(SECRETS) for channel in channels], axis=1)
    theta, w = rng.dirichlet(np.ones(K)), rng.random(pool.size)
    np.testing.assert_allclose(pool.rows(SECRETS[::-1]), own[::-1], rtol=1e-14)
    np.testing.assert_allclose(pool.forward(theta), theta @ own, rtol=1e-13)
    np.testing.assert_allclose(pool.adjoint(w), own @ w, rtol=1e-13)
    np.testing.assert_allclose(pool.gram(w), own * w @ own.T, rtol=1e-12)
    scaled = pool.unit_columns().rows(SECRETS)
    np.testing.assert_allclose(scaled, own / own.max(axis=0), rtol=1e-14)
    np.testing.assert_allclose(pool.scaled(w).rows(SECRETS), pool.rows(SECRETS) * w, rtol=1e-15)


def test_many_neighbours_of_the_packages_own_class_are_pooled(rng):
    class Other(LineChannel):
        pass

    line, other = LineChannel(K, 0.5, SECRETS, np.ones(K)), Other(K, 0.5, SECRETS, np.ones(K))
    dense = DenseChannel(np.full((K, 2), 0.5))
    few, enough = [line] * (M - 1), [line] * M
    blocks = stacked(*few, dense, *enough, other, dense).blocks
    assert [type(block) for block in blocks] == [
        *[LineChannel] * len(few), DenseChannel, LinePoolChannel, Other, DenseChannel,
    ]  # fmt: skip


@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**32))
def test_loops_are_sums_of_the_terms_written_out(k, m, seed):
    """Each loop, compiled and not, against all powers and their numbers of steps."""
    rng = np.random.default_rng(seed)
    decays, sizes = rng.uniform(0, 1, m), rng.integers(0, 5, m)
    starts = np.cumsum([0, *sizes])
    line, positions = (decays, starts, rng.integers(0, k, starts[-1])), np.arange(k)[:, None]
    theta, w = rng.random(k), rng.random(starts[-1])
    steps = np.abs(positions - line[2])
    powers = np.repeat(decays, sizes) ** steps
    for loops in (lambda loop: loop, source):
        at_reports = loops(_line_pool_kernels.at_reports)(theta, *line)
        np.testing.assert_allclose(at_reports, theta @ powers, rtol=1e-13)
        p, p_steps = loops(_line_pool_kernels.at_reports_with_steps)(theta, *line)
        assert np.array_equal(p, at_reports)
        np.testing.assert_allclose(p_steps, theta @ (powers * steps), rtol=1e-12, atol=1e-300)
        at_secrets = loops(_line_pool_kernels.at_secrets)(w, *line, k)
        np.testing.assert_allclose(at_secrets, powers @ w, rtol=1e-13)
        g, g_steps = loops(_line_pool_kernels.at_secrets_with_steps)(w, *line, k)
        np.testing.assert_allclose(g, at_secrets, rtol=1e-15)
        np.testing.assert_allclose(g_steps, (powers * steps) @ w, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("method", ["auto", "pooled", "dense", "active-set", "ibu"])
def test_a_pool_has_the_maximiser_of_its_rows_written_out(method, rng):
    law = rng.dirichlet(np.ones(K))
    line = ik.Line(0, K - 1)
    tally = sum(
        kind(line, level).simulate(rng.multinomial(30, law), rng)
        for level in np.linspace(0.5, 3, M)
        for kind in (ik.TruncatedGeometric, ik.LinearGeometric)
    )
    assert [type(block) for block in tally.operator.blocks] == [LinePoolChannel]
    check_maximiser(tally, method)


def test_one_line_is_no_pool(monkeypatch):
    monkeypatch.setattr(line_pools, "MIN_POSITIONS_POOLED", 1)
    line = LineChannel(K, 0.5, SECRETS, np.ones(K))
    assert stacked(line).blocks == (line,)


@pytest.mark.parametrize("m", [19, 20])
def test_zeros_are_exact_on_both_sides_of_the_limit(m, monkeypatch, rng):
    """The system of a support is formed without its rows; the zeros are those of a matrix."""
    monkeypatch.setattr(line_pools, "MIN_POSITIONS_POOLED", 20 * 80)
    law = np.repeat([1.0, 0.0, 2.0, 0.0], 20)
    tally = sum(
        ik.LinearGeometric(ik.Line(0, 79), level).simulate(
            rng.multinomial(60, law / law.sum()), rng
        )
        for level in np.linspace(0.5, 3, m)
    )
    assert len(tally.operator.blocks) == (19 if m == 19 else 1)
    found, peer = ik.mle(tally, 1e-11, method="pooled"), ik.mle(tally, 1e-11, method="dense")
    assert 0 < (peer.distribution == 0).sum() < 79
    assert np.array_equal(found.distribution == 0, peer.distribution == 0)
    np.testing.assert_allclose(found.distribution, peer.distribution, atol=1e-7)
