"""Gram matrices of rows of bits: pairs of set bits, or bits written out; no sum cancels."""

import numpy as np
import pytest

from ibukit.channels import BitChannel, BitPoolChannel, bits

K, N = 19, 300


def relative_errors(channel, w):
    rows = channel.rows(np.arange(K))
    gram = (rows * w) @ rows.T
    return np.abs(channel.gram(w) - gram) / gram


@pytest.fixture
def packed(rng):
    return np.packbits(rng.random((N, K)) < 0.2, axis=1)


@pytest.mark.parametrize("cost", [0, np.inf], ids=["pairs of set bits", "bits written out"])
@pytest.mark.parametrize(("one", "zero"), [(0.4, 0.1), (1e-9, 0.9), (0.3, 0.0), (0.0, 0.5)])
def test_every_entry_has_all_digits(one, zero, cost, packed, monkeypatch, rng):
    monkeypatch.setattr(bits, "COST_OF_PAIR", cost)
    w = rng.random(N)
    channel = BitChannel(K, packed, one, zero, rng.random(N))
    pool = BitPoolChannel(
        K, packed, np.where(w < 0.5, one, zero), np.where(w < 0.5, zero, one), rng.random(N)
    )
    for each in (channel, pool):
        assert relative_errors(each, w).max() < 1e-12


@pytest.mark.parametrize("together", [K, 100 * K])
def test_bits_are_written_out_some_rows_at_a_time(together, packed, monkeypatch, rng):
    monkeypatch.setattr(bits, "COST_OF_PAIR", np.inf)
    monkeypatch.setattr(bits, "MAX_BITS_TOGETHER", together)
    channel = BitChannel(K, packed, 0.4, 0.1, rng.random(N))
    assert relative_errors(channel, rng.random(N)).max() < 1e-12


def test_squares_of_scales_do_not_underflow(packed):
    channel = BitChannel(K, packed, 0.4, 0.1, np.full(N, 1e-200))
    plain = BitChannel(K, packed, 0.4, 0.1, np.full(N, 1e-60))
    assert channel.gram(np.full(N, 1e280)) == pytest.approx(plain.gram(np.ones(N)), rel=1e-12)


@pytest.mark.parametrize(("share", "is_few"), [(0.02, True), (0.5, False)])
def test_few_set_bits_are_visited_in_pairs(share, is_few, monkeypatch, rng):
    visited, add_pairs = [], bits._bit_kernels.add_pairs
    monkeypatch.setattr(
        bits._bit_kernels, "add_pairs", lambda *args: visited.append(1) or add_pairs(*args)
    )
    rows = np.packbits(rng.random((N, 100)) < share, axis=1)
    BitChannel(100, rows, 0.4, 0.1, np.ones(N)).gram(np.ones(N))
    assert bool(visited) == is_few
