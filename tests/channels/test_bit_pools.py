"""Small unary encodings in one channel: the rows of the pool, and the maximiser."""

from dataclasses import replace

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import (
    BitChannel,
    BitPoolChannel,
    DenseChannel,
    ResponseChannel,
    StackedChannel,
)
from ibukit.channels.pools import bit_pools
from ibukit.solvers.maximum import maximise
from ibukit.solvers.problem import Problem

K = 12
LEVELS = (0.5, 1.0, 3.0)
KINDS = (ik.OptimizedUnaryEncoding, ik.Rappor, ik.SubsetSelection)


def pooled(kind, rng, n=120):
    theta = np.exp(-0.5 * np.arange(K))
    counts = rng.multinomial(n, theta / theta.sum(), len(LEVELS))
    return sum(kind(K, level).simulate(own, rng) for level, own in zip(LEVELS, counts, strict=True))


def written_out(tally):
    return DenseChannel(tally.matrix())


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_is_each_mechanisms_own_rows(kind, rng):
    tally = pooled(kind, rng)
    (pool,) = tally.operator.blocks
    assert isinstance(pool, BitPoolChannel)
    theta, w = rng.dirichlet(np.ones(K)), rng.random(len(tally.counts))
    parts = [part.channel for part in tally.parts]
    own = np.concatenate([part.rows(np.arange(K)) for part in parts], axis=1)
    np.testing.assert_allclose(pool.rows(np.arange(K)), own, rtol=1e-15)
    np.testing.assert_allclose(pool.forward(theta), theta @ own, rtol=1e-13)
    np.testing.assert_allclose(pool.adjoint(w), own @ w, rtol=1e-13)
    # The levels are told apart: with the entries of the first mechanism it is another channel.
    wrong = BitPoolChannel(
        K,
        pool.packed,
        np.full(pool.size, parts[0].one),
        np.full(pool.size, parts[0].zero),
        pool.scale,
    )
    assert np.abs(wrong.forward(theta) / (theta @ own) - 1).max() > 0.01


@pytest.mark.parametrize("method", ["auto", "bits", "dense", "active-set", "ibu"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_has_the_maximiser_of_its_rows_written_out(kind, method, rng):
    tally = pooled(kind, rng, 400)
    estimate = ik.mle(tally, tol=1e-11, method=method)
    rows = written_out(tally)
    peer = maximise(rows, tally.counts, 1e-12, "dense").theta
    np.testing.assert_allclose(estimate.distribution, peer, atol=2e-5)
    # The certificate is that of the rows at the vector that is returned.
    g = rows.adjoint(tally.frequencies / rows.forward(estimate.distribution))
    assert np.log(g.max()) <= 1e-11
    np.testing.assert_allclose(estimate.gap, max(0, np.log(g.max())), atol=1e-12)
    # With the levels in the wrong order there is another maximiser.
    (pool,) = tally.operator.blocks
    wrong = replace(pool, one=pool.one[::-1], zero=pool.zero[::-1])
    assert ik.gap(tally, maximise(wrong, tally.counts).theta) > 1e-4


def test_only_small_neighbours_of_the_packages_own_class_are_pooled(monkeypatch, rng):
    class Other(BitChannel):
        pass

    def bits(rows, kind=BitChannel):
        packed = np.packbits(rng.integers(0, 2, (rows, 9), dtype=np.uint8), axis=1)
        return kind(9, packed, 0.4, 0.1, np.ones(rows))

    monkeypatch.setattr(bit_pools, "MAX_BYTES_POOLED", 40)
    krr = ResponseChannel(9, np.arange(9), 0.5, 0.0625)
    channels = (
        bits(3),
        bits(20),
        bits(21),
        bits(4),
        krr,
        bits(5),
        bits(6, Other),
        bits(7),
        bits(8),
    )
    sizes = [channel.size for channel in channels]
    stack = StackedChannel(channels, 9, tuple(np.cumsum(sizes)[:-1].tolist()))
    # 20 rows of 2 bytes are pooled with the 3 before; 21 are too many.
    assert [block.size for block in stack.blocks] == [23, 21, 4, 9, 5, 6, 15]
    assert [type(block) is BitPoolChannel for block in stack.blocks] == [
        True, False, False, False, False, False, True,
    ]  # fmt: skip
    theta, counts = rng.dirichlet(np.ones(9)), rng.integers(1, 9, stack.size)
    np.testing.assert_allclose(
        stack.forward(theta),
        np.concatenate([channel.forward(theta) for channel in channels]),
        1e-13,
    )
    parts = Problem(stack, counts).parts
    assert np.array_equal(np.concatenate([own for _, own in parts]), counts)
    assert [len(own) for _, own in parts] == [channel.size for channel, _ in parts]


def test_a_report_that_only_the_set_bits_can_produce_is_pooled_too(rng):
    packed = np.packbits(np.eye(3, dtype=np.uint8), axis=1)
    sharp = BitChannel(3, packed, 1.0, 0.0, np.ones(3))
    blunt = BitChannel(3, packed, 0.5, 0.25, np.ones(3))
    stack = StackedChannel((sharp, blunt), 3, (3,))
    score = stack.score(np.array([0.5, 0.5, 0.0]), np.ones(6))
    assert score.least == 0
    assert score.log_likelihood == -np.inf
    assert stack.score(np.full(3, 1 / 3), np.ones(6)).least == pytest.approx(1 / 3)
