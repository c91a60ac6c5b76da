"""k-RR, RAPPOR and OUE against loops over the papers' formulas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import ibukit as ik
from ibukit.mechanisms.categorical import bit_reports
from instances import unchecked
from oracles import naive

UNARY = [(ik.Rappor, naive.rappor), (ik.OptimizedUnaryEncoding, naive.oue)]
LOCAL = [
    pytest.param(ik.RandomizedResponse, naive.k_rr, marks=pytest.mark.ledger("A-D03", "C-D1")),
    pytest.param(ik.Rappor, naive.rappor, marks=pytest.mark.ledger("A-D06", "C-E15")),
    (ik.OptimizedUnaryEncoding, naive.oue),
]
sizes = pytest.mark.parametrize("k", [2, 3, 7])
epsilons = pytest.mark.parametrize("eps", [1e-3, 0.5, 2.0, 20.0])


@pytest.mark.parametrize(("mechanism", "formula"), LOCAL)
@sizes
@epsilons
def test_matrix_follows_the_formula_and_attains_epsilon(mechanism, formula, k, eps):
    channel = mechanism(k, eps)
    # the oracle subtracts from 1, which costs it digits at large epsilon
    np.testing.assert_allclose(
        channel.matrix(), formula(k, eps), rtol=1e-12 * math.exp(eps / 2), atol=0
    )
    assert abs(channel.matrix().sum(axis=1) - 1).max() < 1e-12
    assert ik.privacy.epsilon_ldp(channel) == pytest.approx(eps, rel=1e-9)


@pytest.mark.ledger("A-L2")
@pytest.mark.parametrize("k", [2, 4, 7, 10])
@pytest.mark.parametrize("eps", [0.1, 1.0, 3.0])
def test_rappor_in_closed_form(k, eps):
    rows = np.array(naive.all_bit_rows(k))
    expected = [
        [naive.rappor_closed_form(bits, x, eps) for bits in rows.tolist()] for x in range(k)
    ]
    np.testing.assert_allclose(ik.Rappor(k, eps).matrix(), expected, rtol=1e-12)
    # all rows are different and sorted as binary numbers, so they are the columns of the tally in
    # order
    np.testing.assert_allclose(ik.Rappor(k, eps).tally(rows).matrix(), expected, rtol=1e-12)


@sizes
def test_unary_reports_are_listed_as_binary_numbers(k):
    mechanism = ik.Rappor(k, 1.0)
    assert mechanism.m == 2**k
    for code, row in enumerate(naive.all_bit_rows(k)):
        only = np.zeros(mechanism.m, dtype=int)
        only[code] = 1
        assert np.array_equal(
            mechanism.tally_counts(only).parts[0].reports, mechanism.tally([row]).parts[0].reports
        )


@pytest.mark.parametrize(("mechanism", "formula"), UNARY)
@given(k=st.integers(2, 20), seed=st.integers(0, 2**32), eps=st.floats(0.01, 5))
def test_bit_rows_fast_and_slow(mechanism, formula, k, seed, eps):
    rng = np.random.default_rng(seed)
    rows = np.unique(rng.integers(0, 2, (6, k)), axis=0)
    dense = formula(k, eps, rows.tolist())
    tally = mechanism(k, eps).tally(rows)
    theta, w = rng.dirichlet(np.ones(k)), rng.random(len(rows))
    np.testing.assert_allclose(tally.forward(theta), theta @ dense, rtol=1e-11)
    np.testing.assert_allclose(tally.adjoint(w), dense @ w, rtol=1e-11)
    assert not tally.log_scale.any()


@given(k=st.integers(2, 50), seed=st.integers(0, 2**32), eps=st.floats(0.01, 20))
def test_randomized_response_fast_and_slow(k, seed, eps):
    rng = np.random.default_rng(seed)
    mechanism, dense = ik.RandomizedResponse(k, eps), naive.k_rr(k, eps)
    theta, w = rng.dirichlet(np.ones(k)), rng.random(k)
    np.testing.assert_allclose(mechanism.forward(theta), theta @ dense, rtol=1e-12)
    np.testing.assert_allclose(mechanism.adjoint(w), dense @ w, rtol=1e-12)
    seen = np.unique(rng.integers(0, k, 5))
    tally = mechanism.tally(seen)
    np.testing.assert_allclose(tally.forward(theta), theta @ dense[:, seen], rtol=1e-12)
    np.testing.assert_allclose(tally.adjoint(w[seen]), dense[:, seen] @ w[seen], rtol=1e-12)


@pytest.mark.parametrize(
    "mechanism", [ik.Rappor(2000, 1.0), ik.OptimizedUnaryEncoding(20_000, 4.0)]
)
def test_thousands_of_bits_do_not_underflow(mechanism, rng):
    k = mechanism.k
    rows = mechanism.randomize(rng.integers(0, k, 4), rng)
    tally = mechanism.tally(rows)
    theta = rng.dirichlet(np.ones(k))
    log_p = np.log(tally.forward(theta)) + tally.log_scale
    expected = []
    for row in np.unpackbits(tally.parts[0].reports, axis=1, count=k).astype(bool):
        # the logarithm of every bit's probability: an ordinary one, and one that is the secret's
        # own
        other = np.where(row, math.log(mechanism.p_zero), math.log(1 - mechanism.p_zero))
        own = np.where(row, math.log(mechanism.p_one), math.log(1 - mechanism.p_one))
        expected.append(logsumexp(np.log(theta) + other.sum() - other + own))
    np.testing.assert_allclose(log_p, expected, rtol=1e-12)
    assert max(expected) < math.log(5e-324)
    w = rng.random(4)
    assert np.isfinite(tally.adjoint(w)).all()
    assert w @ tally.forward(theta) == pytest.approx(theta @ tally.adjoint(w), rel=1e-10)


def test_the_log_likelihood_of_thousands_of_bits_is_the_true_one(rng):
    mechanism = ik.Rappor(2000, 1.0)
    tally = mechanism.simulate(np.full(2000, 1), rng)
    estimate = ik.ibu(tally, stop=ik.Steps(1))
    log_p = np.log(tally.forward(estimate.distribution)) + tally.log_scale
    assert estimate.log_likelihood == pytest.approx(tally.counts @ log_p, rel=1e-12)
    # a report costs about 2000 times the entropy of a coin with p_zero, 0.66 nats
    assert -1500 < estimate.log_likelihood / tally.n < -1200


@pytest.mark.parametrize("mechanism", [ik.Rappor(301, 1.0), ik.OptimizedUnaryEncoding(301, 3.0)])
@pytest.mark.parametrize("bits_at_once", [2**26, 10_000], ids=["one block", "blocks"])
def test_each_of_many_bits_has_its_probability(mechanism, bits_at_once, rng, monkeypatch):
    """With so many bits all rows differ, and a chi-square test of rows would see nothing."""
    monkeypatch.setattr(bit_reports, "BITS_AT_ONCE", bits_at_once)
    counts = np.zeros(301, dtype=int)
    counts[[0, 300]] = 3000, 1000
    secrets = np.repeat(np.arange(301), counts)
    expected = np.full((4000, 301), mechanism.p_zero)
    expected[np.arange(4000), secrets] = mechanism.p_one
    part = mechanism.simulate(counts, rng).parts[0]
    simulated = np.unpackbits(np.repeat(part.reports, part.counts, axis=0), axis=1, count=301)
    for rows in (mechanism.randomize(secrets, rng), simulated):
        assert rows.shape == (4000, 301)
        deviation = np.sqrt((expected * (1 - expected)).sum(axis=0))
        z = (rows.sum(axis=0) - expected.sum(axis=0)) / deviation
        # 301 bits beyond 6 standard deviations: once in a million runs; their mean is 0 +- 1 /
        # sqrt(301)
        assert np.abs(z).max() < 6
        assert abs(z.mean()) < 6 / math.sqrt(301)
        assert 0.5 < z.var() < 2
        # bits are flipped independently: the number of ones in a row varies as the sum of their
        # variances
        ones = rows[:, 1:-1].sum(axis=1)
        assert 0.8 < ones.var() / (299 * mechanism.p_zero * (1 - mechanism.p_zero)) < 1.25


@pytest.mark.parametrize("mechanism", [ik.Rappor, ik.OptimizedUnaryEncoding])
def test_many_bits_are_not_listed(mechanism):
    with pytest.raises(ValueError, match=r"2\^17 reports are too many to list .*use tally\(rows\)"):
        mechanism(17, 1.0).matrix()
    with pytest.raises(ValueError, match="too many to list"):
        mechanism(17, 1.0).tally_counts(np.zeros(2**17, dtype=int))


@pytest.mark.parametrize("mechanism", [ik.Rappor(3, 1.0), ik.OptimizedUnaryEncoding(3, 1.0)])
@pytest.mark.parametrize(
    ("reports", "message"),
    [
        ([[0, 1]], r"reports must be bit rows of shape \(n, 3\), got shape \(1, 2\)"),
        ([0, 1, 1], r"shape \(n, 3\), got shape \(3,\)"),
        ([[0, 1, 2]], "reports must be rows of 0 and 1, got 2"),
        ([[0, -1, 1]], "reports must be rows of 0 and 1, got -1"),
        ([[0, 0.5, 1]], r"reports must be rows of 0 and 1, got 0\.5"),
        ([[0, np.nan, 1]], "reports must be rows of 0 and 1, got nan"),
        ([["0", "1", "1"]], "reports must be rows of 0 and 1, got 0"),
    ],
)
def test_reports_that_are_no_bit_rows(mechanism, reports, message):
    with pytest.raises(ik.errors.AlphabetMismatch, match=message):
        mechanism.tally(reports)


@pytest.mark.parametrize("mechanism", [ik.Rappor, ik.OptimizedUnaryEncoding])
def test_hardly_any_noise_leaves_the_right_probabilities(mechanism):
    almost = unchecked(mechanism, 3, 600.0)
    tally = almost.tally([[1, 0, 0]])
    log_p = np.log(tally.forward([0.2, 0.3, 0.5])) + tally.log_scale
    assert log_p == pytest.approx(math.log(0.2 * almost.p_one), rel=1e-12)


@pytest.mark.parametrize("mechanism", [ik.RandomizedResponse, ik.Rappor, ik.OptimizedUnaryEncoding])
def test_at_least_two_secrets(mechanism):
    with pytest.raises(ValueError, match="number of secrets must be at least 2, got 1"):
        mechanism(1, 1.0)
