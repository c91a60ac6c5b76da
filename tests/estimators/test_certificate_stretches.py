"""Certificates of many rows of bits, which are read in stretches, against all rows at once."""

import math

import numpy as np
import pytest

import ibukit as ik
from ibukit._ground.rounding import gamma
from ibukit.channels import BitChannel, Channel, bits
from ibukit.channels.base import slices_of
from ibukit.estimators.certificate import certified
from ibukit.tally.likelihood import gap_of, log_likelihood_of, ratios
from instances import with_operator


def many_rows(k, n, rng):
    """Rows of different counts, so that each stretch has a weight of its own."""
    mechanism = ik.Rappor(k, 1.0)
    rows = rng.integers(0, 2, (n, k))
    return mechanism.tally(rows) + mechanism.tally(rows[: n // 3])


@pytest.mark.parametrize("length", [1, 2047, 2048, 2049, 32 * 2048, 32 * 2048 + 1, 10**6 + 3])
def test_stretches_are_all_of_it_in_order(length):
    pieces = list(slices_of(length))
    assert np.array_equal(
        np.concatenate([np.arange(length)[piece] for piece in pieces]), np.arange(length)
    )
    assert len(pieces) <= 32


# of 1000 bits a row's probability is below the least double, and its factor is kept as a logarithm
@pytest.mark.parametrize(("k", "n"), [(30, 20_000), (1000, 9000), (8, 500)])
def test_likelihood_and_gap_are_those_of_all_rows(k, n, rng):
    tally = many_rows(k, n, rng)
    assert (tally.log_scale < 0).all() == (k == 1000)
    theta = rng.dirichlet(np.full(k, 0.3))
    p = tally.operator.forward(theta)
    g = tally.operator.adjoint(tally.frequencies / p)
    expected = float(tally.counts @ (np.log(p) + tally.log_scale))
    estimate = certified(tally, theta, ik.Status.STOPPED, 1, "somebody's")
    assert estimate.log_likelihood == pytest.approx(expected, rel=1e-13)
    assert estimate.gap == ik.gap(tally, theta)
    # The gap is raised by a bound on rounding, and not by more.
    assert 0 < estimate.gap - math.log(g.max()) < 2 * gamma(tally.operator.n_roundings + 8)
    in_stretches, g_in_stretches = ratios(tally, theta)
    np.testing.assert_allclose(in_stretches, p, rtol=1e-14)
    np.testing.assert_allclose(g_in_stretches, g, rtol=1e-13)
    assert gap_of(in_stretches, g_in_stretches) == pytest.approx(math.log(g.max()), rel=1e-12)
    assert log_likelihood_of(tally, in_stretches) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("secret", [0, 13])
def test_one_impossible_row_in_any_stretch_is_seen(secret, rng):
    tally = many_rows(14, 60_000, rng)
    operator = tally.operator
    assert len(list(slices_of(len(tally.counts), operator.min_rows_per_slice))) >= 2
    certain = BitChannel(14, operator.packed, 1.0, 0.0, np.ones(len(operator.packed)))
    other = with_operator(tally, certain)
    # the first stretch has no row with bit 0 set, and the last has only such rows
    theta = np.eye(14)[secret]
    for at in (theta, np.where(np.arange(14) == secret, np.nan, 0.1)):
        estimate = certified(other, at, ik.Status.STOPPED, 1, "somebody's")
        assert estimate.log_likelihood == -math.inf
        assert estimate.gap == math.inf


def test_only_bits_are_cut(monkeypatch, rng):
    cut = []
    monkeypatch.setattr(
        bits, "slices_of", lambda length, _: cut.append(length) or [slice(0, 1), slice(1, length)]
    )
    rows, response = many_rows(8, 50, rng), ik.RandomizedResponse(8, 1.0).tally(np.arange(8))
    theta = rng.dirichlet(np.ones(8))
    for tally in (rows, response, rows + response):
        whole, found = (
            Channel.score(tally.operator, theta, tally.counts),
            tally.operator.score(theta, tally.counts),
        )
        assert found.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-13)
        np.testing.assert_allclose(found.g, whole.g, rtol=1e-13)
        assert found.least == pytest.approx(whole.least, rel=1e-14)
    assert cut == [len(rows.counts)] * 2
