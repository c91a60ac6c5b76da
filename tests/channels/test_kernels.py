"""The compiled sweeps against their own Python source and against sums written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibukit._ground.arguments import frozen
from ibukit.channels import (
    BitChannel,
    DenseChannel,
    LineChannel,
    ResponseChannel,
    _bit_kernels,
    _line_kernels,
)
from ibukit.channels.base import AugmentedChannel, ScaledChannel, SubsetChannel
from ibukit.channels.line import split_factor

seeds = st.integers(0, 2**32)


def source(kernel):
    """The Python function behind a kernel; the kernel itself where compilation is switched off."""
    return getattr(kernel, "py_func", kernel)


ONE_ULP = 2.0**-52


@given(st.integers(1, 60), st.floats(0, 1), seeds)
def test_sweep(k, decay, seed):
    theta = np.random.default_rng(seed).random(k)
    fast = _line_kernels.sweep(theta, decay)
    np.testing.assert_allclose(fast, source(_line_kernels.sweep)(theta, decay), rtol=4 * ONE_ULP)
    weights = decay ** np.abs(np.arange(k)[:, None] - np.arange(k))
    np.testing.assert_allclose(fast, theta @ weights, rtol=1e-13)


@given(st.integers(1, 60), st.floats(0, 1), seeds)
def test_sweep_with_steps(k, decay, seed):
    theta = np.random.default_rng(seed).random(k)
    sums, steps = _line_kernels.sweep_with_steps(theta, decay)
    distance = np.abs(np.arange(k)[:, None] - np.arange(k))
    weights = decay**distance
    np.testing.assert_allclose(sums, theta @ weights, rtol=1e-13)
    np.testing.assert_allclose(steps, theta @ (weights * distance), rtol=1e-12)


@given(st.integers(1, 12), st.integers(1, 9), seeds)
def test_bytes_are_looked_up_and_gathered(n, n_bytes, seed):
    rng = np.random.default_rng(seed)
    rows = frozen(
        rng.integers(0, 256, (n, n_bytes), dtype=np.uint8)
    )  # as in a channel: compiled once
    table, w = rng.random((n_bytes, 264)), rng.random(n)
    found = _bit_kernels.look_up(rows, table)
    np.testing.assert_allclose(found, source(_bit_kernels.look_up)(rows, table), rtol=4 * ONE_ULP)
    np.testing.assert_allclose(found, table[np.arange(n_bytes), rows].sum(axis=1), rtol=1e-14)
    gathered, expected = table.copy(), table.copy()
    _bit_kernels.gather(rows, w, gathered)
    np.add.at(expected, (np.broadcast_to(np.arange(n_bytes), rows.shape), rows), w[:, None])
    np.testing.assert_allclose(gathered, expected, rtol=1e-14)
    again = table.copy()
    source(_bit_kernels.gather)(rows, w, again)
    np.testing.assert_allclose(gathered, again, rtol=4 * ONE_ULP)


def unit_rows(bits):
    """Rows of bits whose channel is the bits themselves."""
    return BitChannel(bits.shape[1], np.packbits(bits, axis=1), 1.0, 0.0, np.ones(len(bits)))


@given(st.integers(1, 12), st.integers(1, 70), seeds)
def test_bit_sums(n, k, seed):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (n, k), dtype=np.uint8)
    theta, w = rng.random(k), rng.random(n)
    np.testing.assert_allclose(unit_rows(bits).forward(theta), bits @ theta, rtol=1e-13)
    np.testing.assert_allclose(unit_rows(bits).adjoint(w), w @ bits, rtol=1e-13)


def test_every_bit_of_every_byte():
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    for bit in range(8):
        assert np.array_equal(unit_rows(bits).forward(np.eye(8)[bit]), bits[:, bit])
    for value in range(256):
        assert np.array_equal(unit_rows(bits).adjoint(np.eye(256)[value]), bits[value])


def line_channel(rng):
    k = 9
    positions = np.array([0, 0, 0, 3, 4, 8, 8])  # several reports beyond an end share its position
    scale = rng.random(7)
    dense = scale * 0.7 ** np.abs(np.arange(k)[:, None] - positions)
    return LineChannel(k, 0.7, positions, scale), dense


def bit_channel(rng):
    k = 13  # does not fill its second byte
    bits = rng.integers(0, 2, (6, k), dtype=np.uint8)
    scale = rng.random(6)
    dense = scale * np.where(bits.T, 1.7, 0.4)
    return BitChannel(k, np.packbits(bits, axis=1), 1.7, 0.4, scale), dense


def response_channel(rng):
    k, seen = 6, np.array([1, 2, 5])
    dense = np.where(np.arange(k)[:, None] == seen, 0.6, 0.08)
    return ResponseChannel(k, seen, 0.6, 0.08), dense


def dense_channel(rng):
    dense = rng.random((5, 8))
    return DenseChannel(dense), dense


@pytest.mark.parametrize("make", [line_channel, bit_channel, response_channel, dense_channel])
def test_channels_are_their_matrices(make, rng):
    channel, dense = make(rng)
    k, s = dense.shape
    theta, w = rng.normal(size=k), rng.normal(size=s)
    # with signs, so that a dropped or doubled term cannot hide; errors relative to the sums without
    # signs
    assert (np.abs(channel.forward(theta) - theta @ dense) <= 1e-14 * (np.abs(theta) @ dense)).all()
    assert (np.abs(channel.adjoint(w) - dense @ w) <= 1e-14 * (dense @ np.abs(w))).all()
    np.testing.assert_allclose([channel.forward(row) for row in np.eye(k)], dense, rtol=1e-14)
    np.testing.assert_allclose(
        np.transpose([channel.adjoint(row) for row in np.eye(s)]), dense, rtol=1e-14
    )


def test_rows_of_bits_are_read_from_the_bits(monkeypatch, rng):
    channel, dense = bit_channel(rng)
    # Through `forward` each of k rows would take a pass over k secrets.
    monkeypatch.setattr(BitChannel, "forward", None)
    secrets = np.array([12, 0, 7, 7, 8])
    np.testing.assert_allclose(channel.rows(secrets), dense[secrets], rtol=1e-15)
    factor, new, some = rng.random(6), rng.random(6), np.array([4, 1, 1])
    scaled = ScaledChannel(channel, factor)
    np.testing.assert_allclose(scaled.rows(secrets), dense[secrets] * factor, rtol=1e-15)
    taken = SubsetChannel(channel, some)
    np.testing.assert_allclose(taken.rows(secrets), dense[secrets][:, some], rtol=1e-15)
    two_more = AugmentedChannel(channel, new[None]).with_one_more(factor)
    np.testing.assert_allclose(
        two_more.rows(np.array([13, 2, 14, 13])), [new, dense[2], factor, new], rtol=1e-15
    )


def test_a_gram_matrix_of_bits_takes_no_pass_for_each_secret(monkeypatch, rng):
    channel, dense = bit_channel(rng)
    factor, new, w = rng.random((3, 6))
    more = channel.with_one_more(new).scaled(factor).take(np.array([4, 1, 0]))
    matrix = (np.vstack([dense, new]) * factor)[:, [4, 1, 0]]
    # Through `forward` and `adjoint` each secret would take a pass over the rows; one pass is left
    # for the secret that was added.
    monkeypatch.setattr(BitChannel, "forward", None)
    np.testing.assert_allclose(channel.gram(w), dense * w @ dense.T, rtol=1e-14)
    np.testing.assert_allclose(more.gram(w[:3]), matrix * w[:3] @ matrix.T, rtol=1e-14)


def test_factors_too_small_for_a_double_are_kept_apart():
    logs = np.array([0.0, -300.0, -460.0, -461.0, -1e6, -1e15])
    factor, rest = split_factor(logs)
    assert np.array_equal(factor, [*np.exp(logs[:3]), 1, 1, 1])
    assert np.array_equal(rest, [0, 0, 0, *logs[3:]])
