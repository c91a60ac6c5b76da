"""Reports of several mechanisms as one model:
every channel's own normal matrix against the product written out.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from ibukit.channels import (
    DenseChannel,
    LineChannel,
    ResponseChannel,
    StackedChannel,
    _gram_kernels,
)
from ibukit.solvers.pooled import STRUCTURED, PooledModel
from test_kernels import bit_channel, source

K = 9


def dense(rng):
    return DenseChannel(rng.random((K, 14)) * 10 ** rng.uniform(-100, 0, 14))


def dense_with_zeros(rng):
    columns = np.where(rng.random((K, 5)) < 0.6, rng.random((K, 5)), 0)
    columns[3] = 0.5
    return DenseChannel(columns)


def response(rng):
    return ResponseChannel(K, np.array([0, 3, 4, 8]), 0.6, 0.05)


def line(rng):
    """Several reports at an end, one place without any, factors of any size."""
    return LineChannel(K, 0.7, np.array([0, 0, 0, 3, 4, 4, 8, 8]), 10 ** rng.uniform(-150, 0, 8))


def steep_line(rng):
    return LineChannel(K, 1e-30, np.arange(K), np.ones(K))


def flat_line(rng):
    return LineChannel(K, 1 - 1e-12, np.arange(K), np.ones(K))


CHANNELS = [dense, dense_with_zeros, response, line, steep_line, flat_line]
channels = pytest.mark.parametrize("make", CHANNELS, ids=lambda make: make.__name__)
POOLS = {
    "all": CHANNELS,
    "twice the same": [line, line],
    "line and response": [line, response],
    "bare": [],
}
pools = pytest.mark.parametrize("pool", POOLS)


def pooled(pool, rng):
    parts = tuple(make(rng) for make in POOLS[pool])
    model = PooledModel.of(parts, K)
    matrix = np.array([model.forward(unit) for unit in np.eye(K)]).reshape(K, -1)
    return parts, model, matrix


@channels
def test_scaling_makes_the_largest_entry_of_each_report_one(make, rng):
    channel = make(rng)
    raw = np.array([channel.forward(unit) for unit in np.eye(K)])
    matrix = np.array([channel.unit_columns().forward(unit) for unit in np.eye(K)])
    assert channel.size == raw.shape[1]
    np.testing.assert_allclose(matrix, raw / raw.max(axis=0), rtol=1e-14)
    assert np.abs(matrix.max(axis=0) - 1).max() <= 1e-15


@channels
@pytest.mark.parametrize("rows", [None, [0], [2, 3, 7], list(range(K))], ids=str)
@pytest.mark.parametrize(
    "prepare",
    [lambda channel: channel.unit_columns(), lambda channel: channel],
    ids=["scaled", "raw"],
)
def test_gram_of_one_channel_is_the_product_written_out(make, prepare, rows, rng):
    channel = prepare(make(rng))
    w = 10 ** rng.uniform(-6, 3, channel.size)
    matrix = np.array([channel.forward(unit) for unit in np.eye(K)])
    gram = PooledModel((channel,), K).gram(w, None if rows is None else np.array(rows))
    expected = (matrix * w) @ matrix.T
    expected = expected if rows is None else expected[np.ix_(rows, rows)]
    assert gram.flags.f_contiguous
    np.testing.assert_allclose(np.tril(gram), np.tril(expected), rtol=1e-12)


@pools
def test_a_pool_is_its_channels_one_after_the_other(pool, rng):
    parts, model, matrix = pooled(pool, rng)
    sizes = [part.size for part in parts]
    assert matrix.shape == (K, sum(sizes))
    each = [np.array([part.unit_columns().forward(unit) for unit in np.eye(K)]) for part in parts]
    np.testing.assert_allclose(
        matrix, np.concatenate([np.empty((K, 0)), *each], axis=1), rtol=1e-14
    )
    theta, w = rng.normal(size=K), rng.random(sum(sizes))
    # of the sum without signs; three roundings of 2^-50 may meet, and that of the sum
    assert (
        np.abs(model.forward(theta) - theta @ matrix) <= 5e-15 * (np.abs(theta) @ np.abs(matrix))
    ).all()
    np.testing.assert_allclose(model.adjoint(w), matrix @ w, rtol=1e-13)


@pools
@pytest.mark.parametrize("rows", [None, [1, 2, 8]], ids=str)
def test_gram_diagonal_and_rows_of_a_pool(pool, rows, rng):
    _, model, matrix = pooled(pool, rng)
    w = 10 ** rng.uniform(-6, 3, matrix.shape[1])
    which = np.arange(K) if rows is None else np.array(rows)
    gram = model.gram(w, None if rows is None else which)
    expected = ((matrix * w) @ matrix.T)[np.ix_(which, which)]
    np.testing.assert_allclose(np.tril(gram), np.tril(expected), rtol=1e-12)
    assert (model.diagonal(w) >= np.diag((matrix * w) @ matrix.T) * (1 - 1e-12)).all()
    np.testing.assert_allclose(model.rows(which), matrix[which], rtol=1e-14)
    # a factor takes the place of what it was made from: the next must be a new one
    gram[:] = np.nan
    again = model.gram(w, None if rows is None else which)
    np.testing.assert_allclose(np.tril(again), np.tril(expected), rtol=1e-12)


@pools
def test_a_support_is_the_pool_on_some_secrets(pool, rng):
    """With a matrix in the pool from its rows, without one from passes over all secrets."""
    _, model, matrix = pooled(pool, rng)
    which, x, w = np.array([1, 2, 8]), rng.random(3), rng.random(matrix.shape[1])
    support, rows = model.support(which), matrix[which]
    np.testing.assert_allclose(support.forward(x), x @ rows, rtol=1e-13)
    np.testing.assert_allclose(support.adjoint(w), rows @ w, rtol=1e-13)
    np.testing.assert_allclose(np.tril(support.gram(w)), np.tril(rows * w @ rows.T), rtol=1e-12)


def test_other_channels_have_no_structure(rng):
    channel, _ = bit_channel(rng)
    assert not isinstance(StackedChannel((channel,), 13, ()), STRUCTURED)


@given(
    st.integers(1, 40),
    st.lists(st.sampled_from([0.0, 1e-300, 0.3, 0.999999, 1.0]) | st.floats(0, 1), max_size=4),
    st.integers(0, 2**32),
)
def test_gram_of_lines(k, decays, seed):
    """Against the product written out, for none, one or several lines, compiled and not."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, k + 3, len(decays))
    starts, positions = np.cumsum([0, *sizes]), rng.integers(0, k, sizes.sum())
    w = rng.random(len(positions)) * (rng.random(len(positions)) < 0.7)
    before = rng.random((k, k))
    fast, slow = before.copy(), before.copy()
    lines = np.array(decays, dtype=float), starts, positions
    _gram_kernels.add_lines(fast, w, *lines)
    source(_gram_kernels.add_lines)(slow, w, *lines)
    np.testing.assert_allclose(fast, slow, rtol=1e-14)
    kernel = np.repeat(lines[0], sizes) ** np.abs(np.arange(k)[:, None] - positions)
    upper = np.triu_indices(k)
    np.testing.assert_allclose(
        (fast - before)[upper], ((kernel * w) @ kernel.T)[upper], rtol=1e-11, atol=1e-14
    )
    below = np.tril_indices(k, -1)
    assert np.array_equal(fast[below], before[below])


@pytest.mark.parametrize("k", [310, 400])
def test_a_pool_of_hundreds_of_secrets_is_certified(k, rng):
    p = rng.dirichlet(np.full(k, 0.2))
    mechanisms = [
        ik.RandomizedResponse(k, 5.0),
        ik.TruncatedGeometric(k, 0.1),
        ik.LinearGeometric(k, 0.5),
    ]
    tally = sum(mechanism.simulate(rng.multinomial(5000, p), rng) for mechanism in mechanisms)
    estimate, dense = ik.mle(tally, tol=1e-11), ik.mle(tally, tol=1e-11, method="dense")
    assert estimate.method.startswith("mle, interior point with structured normal equations")
    assert estimate.gap <= 1e-11
    assert abs(estimate.log_likelihood - dense.log_likelihood) <= tally.n * 2e-11 + 1e-12 * abs(
        dense.log_likelihood
    )
