"""Small k-ary randomised responses in one channel: what is pooled, and the maximiser."""

from itertools import pairwise

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import DenseChannel, ResponseChannel, ResponsePoolChannel, StackedChannel
from ibukit.channels.pools import response_pools
from ibukit.solvers.maximum import maximise

K = 9
SEEN = np.arange(K)


def stacked(*channels):
    sizes = [channel.size for channel in channels]
    return StackedChannel(channels, channels[0].k, tuple(np.cumsum(sizes)[:-1].tolist()))


def check_maximiser(tally, method):
    """Compare the estimate with the maximiser for the rows of the tally, written out."""
    estimate = ik.mle(tally, tol=1e-11, method=method)
    rows = DenseChannel(tally.matrix())
    peer = maximise(rows, tally.counts, 1e-12, "dense").theta
    np.testing.assert_allclose(estimate.distribution, peer, atol=2e-5)
    g = rows.adjoint(tally.frequencies / rows.forward(estimate.distribution))
    assert np.log(g.max()) <= 1e-11


def test_a_pool_is_each_mechanisms_own_rows(rng):
    channels = [
        ResponseChannel(K, SEEN, 0.6, 0.05),
        ResponseChannel(K, SEEN[::3], 0.3, 0.0875),
        ResponseChannel(K, SEEN[::-1], 0.2, 0.1),
    ]
    (pool,) = stacked(*channels).blocks
    assert isinstance(pool, ResponsePoolChannel)
    own = np.concatenate([channel.rows(SEEN) for channel in channels], axis=1)
    theta, w = rng.dirichlet(np.ones(K)), rng.random(pool.size)
    assert np.array_equal(pool.rows(SEEN), own)
    np.testing.assert_allclose(pool.forward(theta), theta @ own, rtol=1e-14)
    np.testing.assert_allclose(pool.adjoint(w), own @ w, rtol=1e-14)
    np.testing.assert_allclose(pool.gram(w), own * w @ own.T, rtol=1e-13)
    scaled = pool.unit_columns().rows(SEEN)
    np.testing.assert_allclose(scaled, own / own.max(axis=0), rtol=1e-15)


def test_only_small_neighbours_that_point_at_their_secret_are_pooled(monkeypatch):
    class Other(ResponseChannel):
        pass

    monkeypatch.setattr(response_pools, "MAX_SECRETS_POOLED", K)
    krr, liar = ResponseChannel(K, SEEN, 0.5, 0.0625), ResponseChannel(K, SEEN, 0.1, 0.1125)
    dense = DenseChannel(np.full((K, 2), 0.5))
    stack = stacked(krr, krr, liar, krr, dense, krr, krr, krr, Other(K, SEEN, 0.5, 0.0625))
    assert [type(block) for block in stack.blocks] == [
        ResponsePoolChannel, ResponseChannel, ResponseChannel, DenseChannel, ResponsePoolChannel,
        Other,
    ]  # fmt: skip
    monkeypatch.setattr(response_pools, "MAX_SECRETS_POOLED", K - 1)
    assert stacked(krr, krr).blocks == (krr, krr)


def test_a_report_that_points_away_from_its_secret_is_refused():
    """Its contrast would be subtracted, and the bound on rounding would not hold."""
    with pytest.raises(ValueError, match="off is larger than diagonal"):
        ResponsePoolChannel.of([ResponseChannel(2, np.arange(2), 0.2, 0.8)])


@pytest.mark.parametrize("method", ["auto", "pooled", "dense", "active-set", "ibu"])
def test_a_pool_has_the_maximiser_of_its_rows_written_out(method, rng):
    law = rng.dirichlet(np.ones(K))
    tally = sum(
        ik.RandomizedResponse(K, level).simulate(rng.multinomial(300, law), rng)
        for level in (0.5, 1, 3)
    )
    check_maximiser(tally, method)


def test_a_pool_beside_another_mechanism_is_solved_by_structure(rng):
    line = ik.LinearGeometric(ik.Line(0, K - 1), 1.0).simulate([40] * K, rng)
    tally = line + sum(ik.RandomizedResponse(K, e).simulate([40] * K, rng) for e in (0.5, 1, 3))
    assert any(isinstance(block, ResponsePoolChannel) for block in tally.operator.blocks)
    found = ik.mle(tally, 1e-11, method="pooled")
    assert "mechanisms: 4" in found.method
    assert found.gap <= 1e-11
    dense = ik.mle(tally, 1e-11, method="dense")
    np.testing.assert_allclose(found.distribution, dense.distribution, atol=1e-5)


def test_one_secret_more_than_is_pooled_has_the_same_answer(rng):
    """Both sides of the limit are certified, and the log-likelihoods agree."""
    limit = response_pools.MAX_SECRETS_POOLED
    for k in (limit, limit + 1):
        tally = sum(
            ik.RandomizedResponse(k, level).simulate([3] * k, rng) for level in (3.0, 4.0, 6.0)
        )
        found = ik.mle(tally)
        assert len(tally.operator.blocks) == (1 if k == limit else 3)
        channels = [part.channel for part in tally.parts]
        ends = np.cumsum([0, *(channel.size for channel in channels)])
        alone = sum(
            channel.score(found.distribution, tally.counts[a:b]).log_likelihood
            for channel, (a, b) in zip(channels, pairwise(ends), strict=True)
        )
        whole = tally.operator.score(found.distribution, tally.counts).log_likelihood
        np.testing.assert_allclose(whole, alone, rtol=1e-13)
