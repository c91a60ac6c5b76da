"""Subset selection: its law, its size, its way through every estimator, and what it refuses."""

import math

import numpy as np
import pytest

import ibukit as ik
from ibukit.mechanisms.categorical import bit_reports
from ibukit.testing import check_mechanism
from oracles import estimation, naive

SIZES = [(2, 1), (3, 1), (3, 2), (5, 2), (5, 4), (8, 3), (10, 5)]
EPSILONS = [1e-3, 0.5, 2.0, 20.0]
sizes = pytest.mark.parametrize(("k", "size"), SIZES)


@sizes
@pytest.mark.parametrize("eps", EPSILONS)
def test_the_matrix_follows_the_formula(k, size, eps):
    mechanism = ik.SubsetSelection(k, eps, size)
    matrix = mechanism.matrix()
    assert mechanism.m == math.comb(k, size) == matrix.shape[1]
    np.testing.assert_allclose(matrix, estimation.subset_selection(k, eps, size), rtol=1e-12)
    rows = np.array(estimation.all_sets(k, size))
    # the reports' codes are the places of the rows, which the tally sorts
    np.testing.assert_allclose(mechanism.tally(rows[::-1]).matrix(), matrix, rtol=1e-12)
    marginals = matrix @ rows
    np.testing.assert_allclose(np.diag(marginals), mechanism.p_one, rtol=1e-12)
    np.testing.assert_allclose(
        marginals[~np.eye(k, dtype=bool)], mechanism.p_zero, rtol=1e-12, atol=1e-16
    )
    assert mechanism.p_one + mechanism.p_hidden == pytest.approx(1, rel=1e-15)
    exact = estimation.fraction_of_exp(eps)
    in_fractions = size * (k - size) * (exact - 1) / ((k - 1) * (size * exact + k - size))
    assert mechanism.contrast == pytest.approx(float(in_fractions), rel=1e-14)


@pytest.mark.ledger("D-D2.1", "D-A2.4")
@pytest.mark.parametrize(
    "kind", [ik.RandomizedResponse, ik.OptimizedUnaryEncoding, ik.SubsetSelection]
)
@pytest.mark.parametrize("k", [2, 3, 4, 5, 6, 8, 10])
@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_the_level_is_epsilon_the_rank_full_and_every_entry_positive(kind, k, eps):
    mechanism = kind(k, eps)
    assert ik.privacy.epsilon_ldp(mechanism) == pytest.approx(eps, rel=1e-9)
    assert np.linalg.matrix_rank(mechanism.matrix()) == k == ik.theory.identifiable(mechanism).rank
    assert mechanism.matrix().min() > 0
    # a level that is not attained, and a matrix that tells two secrets apart from no other, are
    # seen
    assert ik.privacy.epsilon_ldp(kind(k, eps * 1.001)) != pytest.approx(eps, rel=1e-9)
    merged = np.r_[mechanism.matrix(), mechanism.matrix()[:1]]
    assert ik.theory.identifiable(merged).rank == k < len(merged)
    with pytest.raises(
        ik.errors.NotInvertible, match="different distributions give the same reports"
    ):
        ik.theory.asymptotic_mse(merged, ik.uniform(k + 1))


@pytest.mark.parametrize(
    "mechanism", [ik.SubsetSelection(7, 1.0, size) for size in (1, 3, 6)], ids=lambda m: m.size
)
def test_any_size_keeps_the_contract(mechanism, rng):
    check_mechanism(mechanism, rng=rng, n=20_000, attained=True)


def test_a_wrong_sampler_is_noticed(rng):
    class Careless(ik.SubsetSelection):
        def draw(self, secrets, rng):
            return np.roll(super().draw(secrets, rng), 1, axis=1)

    with pytest.raises(AssertionError, match="does not follow the stated probabilities"):
        check_mechanism(Careless(7, 1.0, 3), rng=rng, n=20_000)


@pytest.mark.parametrize("bits_at_once", [2**26, 10_000], ids=["one block", "blocks"])
def test_each_of_many_bits_has_its_probability(bits_at_once, rng, monkeypatch):
    """With so many sets all rows differ, and a chi-square test of rows would see nothing."""
    monkeypatch.setattr(bit_reports, "BITS_AT_ONCE", bits_at_once)
    mechanism = ik.SubsetSelection(301, 1.0)
    counts = np.zeros(301, dtype=int)
    counts[[0, 300]] = 3000, 1000
    secrets = np.repeat(np.arange(301), counts)
    expected = np.full((4000, 301), mechanism.p_zero)
    expected[np.arange(4000), secrets] = mechanism.p_one
    part = mechanism.simulate(counts, rng).parts[0]
    simulated = np.unpackbits(np.repeat(part.reports, part.counts, axis=0), axis=1, count=301)
    for rows in (mechanism.randomize(secrets, rng), simulated):
        assert (rows.sum(axis=1) == mechanism.size).all()
        z = (rows.sum(axis=0) - expected.sum(axis=0)) / np.sqrt(
            (expected * (1 - expected)).sum(axis=0)
        )
        # 301 bits beyond 6 standard deviations: once in a million runs
        assert np.abs(z).max() < 6
        assert 0.5 < z.var() < 2
        # the rest of a set is uniform: its bits are two by two almost independent, a little against
        # each other
        pairs = (rows[:, 1:299:2] & rows[:, 2:300:2]).mean()
        size, own = mechanism.size, mechanism.p_one
        both = (own * (size - 1) * (size - 2) + (1 - own) * size * (size - 1)) / (300 * 299)
        assert abs(pairs - both) < 6 * np.sqrt(both / (4000 * 149))
        assert abs(pairs - 1.1 * both) > 6 * np.sqrt(both / (4000 * 149))


def worst_case(k, eps, size):
    """The asymptotic error at uniform secrets, without constants, in fractions."""
    e = estimation.fraction_of_exp(eps)
    return (size * e + k - size) ** 2 / (size * (k - size))


@pytest.mark.parametrize("k", [2, 3, 4, 7, 10, 31])
def test_the_default_size_is_the_best_of_all(k):
    for eps in (1e-3, 0.1, 0.5, 1.0, math.log(2), 1.5, 2.0, 4.0, 20.0):
        size = ik.SubsetSelection(k, eps).size
        assert size == min(range(1, k), key=lambda w: (worst_case(k, eps, w), w))
        assert size in {max(1, math.floor(k / (math.exp(eps) + 1)) + more) for more in (0, 1)}
        errors = [
            ik.theory.asymptotic_mse(ik.SubsetSelection(k, eps, w), ik.uniform(k))
            for w in range(1, k)
        ]
        assert errors[size - 1] == pytest.approx(min(errors), rel=1e-12)


def test_a_set_of_one_is_k_rr():
    for eps in (0.1, 2.0):
        one = ik.SubsetSelection(6, eps, 1)
        # the row of secret x has its bit at place x, so the largest code is that of secret 0
        np.testing.assert_allclose(one.matrix()[:, ::-1], naive.k_rr(6, eps), rtol=1e-12)
        theta = np.array([0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
        same = ik.RandomizedResponse(6, eps)
        assert ik.theory.asymptotic_mse(one, theta) == pytest.approx(
            ik.theory.asymptotic_mse(same, theta), rel=1e-12
        )
        assert ik.theory.inv_squared_error(one, theta) == pytest.approx(
            ik.theory.inv_squared_error(same, theta)
        )


@sizes
def test_inversion_is_unbiased_by_the_pseudo_inverse_and_its_error_known(k, size, rng):
    mechanism = ik.SubsetSelection(k, 0.8, size)
    matrix = estimation.subset_selection(k, 0.8, size)
    counts = rng.integers(1, 30, mechanism.m)
    v = ik.inv(mechanism.tally_counts(counts), post="none").distribution
    assert v == pytest.approx(counts / counts.sum() @ np.linalg.pinv(matrix), abs=1e-11)
    assert v.sum() == pytest.approx(1, abs=1e-12)
    theta = rng.dirichlet(np.ones(k))
    assert mechanism.invert(mechanism._all_reports, theta @ matrix) == pytest.approx(
        theta, abs=1e-12
    )
    squares = (np.linalg.pinv(matrix) ** 2).sum(axis=1)
    error = (theta @ matrix) @ squares - theta @ theta
    assert ik.theory.inv_squared_error(mechanism, theta) == pytest.approx(error, rel=1e-10)
    pooled = ik.theory.compound_squared_error([mechanism, mechanism], theta)
    assert pooled == pytest.approx(error, rel=1e-10)


def dense(tally, mechanism):
    """The same reports through the same channel, written out."""
    part = tally.parts[0]
    rows = np.unpackbits(part.reports, axis=1, count=mechanism.k)
    matrix = estimation.subset_selection(mechanism.k, mechanism.epsilon, mechanism.size)
    codes = {row: code for code, row in enumerate(estimation.all_sets(mechanism.k, mechanism.size))}
    counts = np.zeros(mechanism.m, dtype=int)
    for row, count in zip(rows.tolist(), part.counts, strict=True):
        counts[codes[tuple(row)]] = count
    return ik.MatrixMechanism(matrix, mechanism.alphabet).tally_counts(counts)


def test_every_estimator_takes_it_alone_and_pooled(rng):
    mechanism, other = ik.SubsetSelection(9, 1.0), ik.RandomizedResponse(9, 0.5)
    counts = rng.multinomial(5000, rng.dirichlet(np.ones(9)))
    tally, more = mechanism.simulate(counts, rng), other.simulate(counts, rng)
    again = mechanism.simulate(counts, rng)
    assert len((tally + again).parts) == 1
    assert (
        len((tally + ik.SubsetSelection(9, 1.0, mechanism.size + 1).simulate(counts, rng)).parts)
        == 2
    )
    for alone, written_out in (
        (tally, dense(tally, mechanism)),
        (tally + more, dense(tally, mechanism) + more),
    ):
        best = ik.mle(alone)
        assert best.gap <= 1e-9
        reference = ik.mle(written_out)
        assert abs(best.log_likelihood - reference.log_likelihood) <= alone.n * (
            best.gap + reference.gap
        )
        np.testing.assert_allclose(best.distribution, reference.distribution, atol=1e-3)
        for method in ("bits", "dense", "ibu", "active-set"):
            found = ik.mle(alone, method=method)
            assert found.gap <= 1e-9
            assert abs(found.log_likelihood - best.log_likelihood) <= alone.n * 2e-9
        steps = [ik.ibu(each, stop=ik.Steps(40)).distribution for each in (alone, written_out)]
        np.testing.assert_allclose(*steps, rtol=1e-10)
        assert ik.gibu([tally, more], stop=ik.Gap(1e-4)).gap <= 1e-4
        assert ik.theory.strictly_concave(alone)
        assert ik.theory.mle_set(alone).unique


def test_large_sets_go_to_the_packed_bits(rng):
    mechanism = ik.SubsetSelection(60, 1.0)
    counts = rng.multinomial(20_000, rng.dirichlet(np.ones(60)))
    for tally in (
        mechanism.simulate(counts, rng),
        mechanism.simulate(counts, rng) + ik.Rappor(60, 1.0).simulate(counts, rng),
    ):
        found = ik.mle(tally)
        assert "packed bits" in found.method
        assert found.gap <= 1e-9


def test_thousands_of_secrets_do_not_underflow(rng):
    k = 3000
    mechanism = ik.SubsetSelection(k, 0.5)
    tally = mechanism.tally(mechanism.randomize(rng.integers(0, k, 5), rng))
    theta = rng.dirichlet(np.ones(k))
    rows = np.unpackbits(tally.parts[0].reports, axis=1, count=k)
    size = mechanism.size
    log_total = math.log(math.comb(k - 1, size - 1)) + math.log(math.exp(0.5) + (k - size) / size)
    expected = np.log(rows @ theta * math.exp(0.5) + (1 - rows) @ theta) - log_total
    np.testing.assert_allclose(np.log(tally.forward(theta)) + tally.log_scale, expected, rtol=1e-12)
    assert expected.max() < math.log(5e-324)
    answer = ik.theory.identifiable(mechanism)
    assert (answer.rank, np.isfinite(answer.singular_values).all()) == (k, True)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0, "size must be at least 1, got 0"),
        (5, r"size must be at most k - 1 = 4, got 5: all 5 secrets say nothing"),
        (2.0, r"size must be a whole number, got 2\.0"),
        (True, "size must be a whole number, got True"),
    ],
)
def test_sizes_that_are_refused(size, message):
    with pytest.raises(ValueError, match=message):
        ik.SubsetSelection(5, 1.0, size)


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        (
            [[1, 0, 1, 0], [1, 1, 1, 0]],
            "reports must be sets of 2 secrets, the row at index 1 has 3 ones",
        ),
        ([[0, 0, 0, 0]], "reports must be sets of 2 secrets, the row at index 0 has 0 ones"),
        ([[0, 1]], r"reports must be bit rows of shape \(n, 4\), got shape \(1, 2\)"),
        ([[0, 2, 0, 0]], "reports must be rows of 0 and 1, got 2"),
    ],
)
def test_reports_that_are_no_sets(reports, message):
    with pytest.raises(ik.errors.AlphabetMismatch, match=message):
        ik.SubsetSelection(4, 0.5).tally(reports)


def test_what_is_too_large_or_too_small():
    many = ik.SubsetSelection(30, 0.5)
    for ask in (many.matrix, lambda: many.tally_counts(np.zeros(3))):
        with pytest.raises(
            ValueError,
            match=r"the sets of 11 among 30 secrets are too many to list .*use tally\(rows\)",
        ):
            ask()
    with pytest.raises(ValueError, match=r"epsilon must be at most 37\.42, got 800"):
        ik.SubsetSelection(3, 800.0)
    with pytest.raises(ValueError, match="number of secrets must be at least 2, got 1"):
        ik.SubsetSelection(1, 1.0)
