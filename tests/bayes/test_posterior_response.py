"""The posterior under k-RR by line integrals:
right for any size, or an error by name, and for k-RR only.
"""

import importlib
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import ibukit as ik
from ibukit.bayes import _count_recursion
from ibukit.channels import ResponseChannel
from tests.oracles import posterior as oracle

response = importlib.import_module("ibukit.bayes._randomized_response")
OF = ("distribution", "frequencies")
FALSE_ALARM = 1e-6


def assert_same(found, expected, rel):
    """Two posteriors: means, deviations, evidence."""
    np.testing.assert_allclose(found.mean, expected.mean, rtol=rel)
    np.testing.assert_allclose(
        found.standard_deviations, expected.standard_deviations, rtol=rel, atol=1e-9
    )
    assert found.log_evidence == pytest.approx(expected.log_evidence, rel=rel, abs=1e-10)


# Against other ways


@st.composite
def small_cases(draw):
    k = draw(st.integers(2, 4))
    counts = draw(
        st.lists(st.integers(0, {2: 12, 3: 5, 4: 2}[k]), min_size=k, max_size=k).filter(any)
    )
    log_alpha = st.floats(-3, 3)
    alpha = draw(st.one_of(log_alpha, st.lists(log_alpha, min_size=k, max_size=k)))
    return draw(st.floats(-4, 1.5)), counts, 10 ** np.broadcast_to(alpha, k)


@pytest.mark.ledger("D-T3.1")
@given(small_cases())
def test_the_integrals_are_the_sums_over_all_splits(case):
    log_epsilon, counts, alpha = case
    tally = ik.RandomizedResponse(len(counts), 10**log_epsilon).tally_counts(counts)
    for of in OF:
        assert_same(
            ik.posterior(tally, alpha, of), ik.posterior(tally, alpha, of, method="enumerate"), 1e-9
        )


@pytest.mark.ledger("D-T3.1")
@pytest.mark.parametrize("alpha", [0.01, 0.5, 1.0, 30.0, (0.2, 3.0, 0.7)])
@pytest.mark.parametrize("counts", [(20, 9, 0), (60, 0, 0), (0, 5, 35)])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_the_integrals_are_those_over_the_simplex(epsilon, counts, alpha):
    mechanism, alpha = ik.RandomizedResponse(3, epsilon), np.broadcast_to(alpha, 3)
    expected = oracle.by_quadrature(mechanism.matrix(), counts, alpha)
    for of in OF:
        found = ik.posterior(mechanism.tally_counts(counts), alpha, of)
        np.testing.assert_allclose(found.mean, expected[of], atol=1e-12)
        variances = expected[f"{of} squared"] - expected[of] ** 2
        np.testing.assert_allclose(found.standard_deviations**2, variances, atol=1e-12)
        assert np.exp(found.log_evidence) == pytest.approx(expected["evidence"], rel=1e-9)


@pytest.mark.parametrize("alpha", [(0.5, 0.5), (0.3, 40.0), (1e5, 1e5)])
@pytest.mark.parametrize(
    "counts",
    [
        pytest.param((520_000, 480_000), marks=pytest.mark.slow),
        (52_000, 48_000),
        (99_999, 1),
        (0, 1000),
    ],
)
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 2.0, 14.0])
def test_many_reports_of_two_secrets(epsilon, counts, alpha):
    mechanism = ik.RandomizedResponse(2, epsilon)
    expected = oracle.of_two_secrets(mechanism.matrix(), counts, alpha)
    for of in OF:
        found = ik.posterior(mechanism.tally_counts(counts), alpha, of)
        # the oracle has the logarithms of a million likelihoods
        np.testing.assert_allclose(found.mean, expected[of], rtol=2e-8)
        np.testing.assert_allclose(
            found.standard_deviations, expected[f"{of} variance"] ** 0.5, rtol=2e-6, atol=1e-12
        )
        assert found.log_evidence == pytest.approx(expected["log evidence"], rel=1e-10)


def test_a_million_reports_of_two_secrets():
    test_many_reports_of_two_secrets(2.0, (520_000, 480_000), (0.5, 0.5))


@pytest.mark.slow
def test_twenty_secrets_by_gibbs(rng):
    mechanism, alpha = ik.RandomizedResponse(20, 1.5), np.linspace(0.2, 2.0, 20)
    tally = mechanism.simulate(rng.multinomial(2000, rng.dirichlet(alpha)), rng)
    most = stats.norm.isf(FALSE_ALARM / 80)
    for of in OF:
        drawn = ik.posterior(tally, alpha, of, method="gibbs", rng=np.random.default_rng(7))
        exact = ik.posterior(tally, alpha, of)
        assert np.abs(exact.mean - drawn.mean).max() > 0
        assert (np.abs(exact.mean - drawn.mean) <= most * drawn.standard_errors()).all()
        np.testing.assert_allclose(exact.standard_deviations, drawn.standard_deviations, rtol=0.15)
        # the check sees another prior
        other = ik.posterior(tally, 1.3 * alpha, of)
        assert (np.abs(other.mean - drawn.mean) > most * drawn.standard_errors()).any()


# Limits and invariances


@pytest.mark.parametrize("counts", [(5, 3, 0, 0), (5000, 3, 1, 0)])
def test_with_hardly_any_noise_the_posterior_is_the_conjugate_one(counts):
    alpha = np.array([0.5, 2.0, 0.1, 1e-3])
    tally, n = ik.RandomizedResponse(4, 37.0).tally_counts(counts), sum(counts)
    found, of_f = ik.posterior(tally, alpha), ik.posterior(tally, alpha, "frequencies")
    conjugate = stats.dirichlet(alpha + counts)
    np.testing.assert_allclose(
        found.mean, (np.array(counts) + alpha) / (n + alpha.sum()), atol=1e-12
    )
    np.testing.assert_allclose(found.standard_deviations, conjugate.var() ** 0.5, rtol=1e-9)
    np.testing.assert_allclose(of_f.mean, np.array(counts) / n, atol=1e-12)
    assert of_f.standard_deviations.max() < 1e-7


def test_with_hardly_any_truth_the_posterior_is_the_prior():
    alpha = np.array([0.5, 2.0, 0.1])
    found = ik.posterior(ik.RandomizedResponse(3, 1e-9).tally_counts([60, 30, 10]), alpha)
    np.testing.assert_allclose(found.mean, alpha / alpha.sum(), atol=1e-7)
    np.testing.assert_allclose(
        found.standard_deviations, stats.dirichlet(alpha).var() ** 0.5, atol=1e-7
    )


def test_names_and_groups_of_secrets_do_not_matter(rng):
    counts = np.r_[rng.multinomial(500, rng.dirichlet(np.full(8, 0.5))), 0, 0]
    tally = ik.RandomizedResponse(10, 1.0).tally_counts(counts)
    order = rng.permutation(10)
    once = ik.posterior(tally, 0.5)
    again = ik.posterior(ik.RandomizedResponse(10, 1.0).tally_counts(counts[order]), 0.5)
    np.testing.assert_allclose(again.mean, once.mean[order], rtol=1e-12)
    # secrets with the same prior and count share a row of the integrals; here none do
    apart = ik.posterior(tally, 0.5 * (1 + 1e-13 * np.arange(10)))
    np.testing.assert_allclose(apart.mean, once.mean, rtol=1e-10)
    np.testing.assert_allclose(apart.standard_deviations, once.standard_deviations, rtol=1e-10)


# Extremes


@pytest.mark.parametrize("epsilon", [5e-15, 1e-3, 3.0, 36.0])
@pytest.mark.parametrize("alpha", [1e-6, 0.5, 1e6, 1e15, 1e150, 1e300])
@pytest.mark.parametrize("k", [2, 300])
@pytest.mark.parametrize("n", [1, 10**5])
def test_extremes_are_numbers(n, k, alpha, epsilon):
    counts = np.zeros(k, dtype=np.int64)
    counts[:2] = n - n // 3, n // 3
    tally = ik.RandomizedResponse(k, epsilon).tally_counts(counts)
    with np.errstate(all="raise", under="ignore"):
        found = ik.posterior(tally, alpha, "frequencies")
    for array in (found.mean, found.standard_deviations):
        assert ((array >= 0) & (array <= 1)).all()
    assert found.mean.sum() == pytest.approx(1, abs=1e-9)
    assert np.isfinite(found.log_evidence)
    mean = ik.posterior_mean(tally, alpha).distribution
    assert mean.sum() == pytest.approx(1, abs=1e-12)


def test_numbers_that_are_off_are_never_returned(monkeypatch):
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([50, 30, 20])
    right = ik.posterior_mean(tally, 0.5).distribution
    told, noise = response.report_moments, np.random.default_rng(1)

    def noisy(*arguments):
        *rest, v = told(*arguments)
        ratios = rest[3]
        ratios *= 1 + size * noise.standard_normal(ratios.shape)
        return *rest, v

    monkeypatch.setattr(response, "report_moments", noisy)
    monkeypatch.setattr(response, "MAX_POINTS", 5000)
    size = 1e-5
    with pytest.raises(ik.errors.TooLarge, match="with an error of"):
        ik.posterior_mean(tally, 0.5)
    size = 1e-13
    np.testing.assert_allclose(ik.posterior_mean(tally, 0.5).distribution, right, rtol=1e-10)


def test_too_many_steps_are_refused_before_they_are_taken(monkeypatch):
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([50, 30, 20])
    monkeypatch.setattr(response, "MAX_RECURSION_STEPS", 1000)
    with pytest.raises(
        ik.errors.TooLarge,
        match=r"in \S+ steps \(at most 1e\+03\) .*; take method='gibbs' with an rng",
    ):
        ik.posterior_mean(tally, 0.5)


@pytest.mark.parametrize("limit", ["MAX_RECURSION_STEPS", "MAX_BYTES", "MAX_POINTS"])
def test_just_as_much_as_may_be_is_taken(limit, monkeypatch):
    alpha, counts = np.full(3, 0.5), np.array([2, 3, 5])
    taken = {"MAX_RECURSION_STEPS": 7 * 5, "MAX_BYTES": 160 * 7 * 3, "MAX_POINTS": 7}[
        limit
    ]  # equal parameters once
    monkeypatch.setattr(response, limit, taken)
    response._check_size(7, alpha, counts)
    monkeypatch.setattr(response, limit, taken - 1)
    with pytest.raises(ik.errors.TooLarge, match="points"):
        response._check_size(7, alpha, counts)


# For whom


class Silent(ik.RandomizedResponse):
    """A law of its own, which says nothing."""

    truth = lie = 1 / 3


class Shifted(ResponseChannel):
    """Another channel than the one it inherits from."""

    def forward(self, theta):
        return super().forward(np.roll(theta, 1))

    def adjoint(self, w):
        return np.roll(super().adjoint(w), -1)


class Turned(ik.RandomizedResponse):
    """k-RR of the next secret."""

    def channel(self, reports):
        return Shifted(self.k, reports, self.truth, self.lie)

    def make_matrix(self):
        return np.roll(super().make_matrix(), -1, axis=0)


class Bold(ik.RandomizedResponse):
    """k-RR with other probabilities, which its channel knows."""

    truth, lie = 0.8, 0.1


def by_integrals(tally):
    return response.randomized_response_posterior(tally, np.full(tally.k, 0.5)) is not None


@pytest.mark.parametrize(
    ("mechanism", "known"),
    [
        (ik.RandomizedResponse(3, 1.0), True),
        (Bold(3, 1.0), True),
        (Silent(3, 1.0), False),
        (Turned(3, 1.0), False),
        (ik.MatrixMechanism(ik.RandomizedResponse(3, 1.0).matrix()), False),
    ],
    ids=lambda case: type(case).__name__,
)
def test_whatever_inherits_gets_its_own_posterior(mechanism, known):
    tally = mechanism.tally_counts([6, 3, 1])
    assert by_integrals(tally) is known
    plain = ik.MatrixMechanism(mechanism.matrix()).tally_counts([6, 3, 1])
    for of in OF:
        assert_same(ik.posterior(tally, 0.5, of), ik.posterior(plain, 0.5, of), 1e-10)


def test_a_pool_of_two_levels_is_not_k_rr():
    levels = [ik.RandomizedResponse(3, epsilon).tally_counts([3, 2, 1]) for epsilon in (1.0, 2.0)]
    assert not by_integrals(levels[0] + levels[1])
    assert by_integrals(levels[0] + levels[0])


def test_intervals_are_those_of_the_totals():
    alpha, tally = np.full(3, 0.5), ik.RandomizedResponse(3, 1.0).tally_counts([6, 3, 1])
    law = _count_recursion.posterior_of_totals(tally, alpha)
    lower, upper = ik.posterior(tally, alpha).interval(0.9)
    np.testing.assert_allclose(lower, law.quantiles("distribution", 0.05), rtol=1e-12)
    np.testing.assert_allclose(upper, law.quantiles("distribution", 0.95), rtol=1e-12)
    many = ik.posterior(
        ik.RandomizedResponse(9, 1.0).tally_counts(np.full(9, 5000)), 0.5, "frequencies"
    )
    with pytest.raises(ik.errors.TooLarge, match="take method='gibbs'"):
        many.interval(0.9)


@pytest.mark.parametrize(("part", "promised"), [(0, 1e-15), (1, 1e-12), (2, 1e-12)])
def test_two_rules_are_one_where_means_and_deviations_agree_as_promised(part, promised):
    """Of what is tiny: what is larger is compared relative to itself."""
    one = [np.full(3, 1e-9) for _ in range(3)]
    for far, same in ((0.99, True), (1.01, False)):
        other = [values + promised * far * (i == part) for i, values in enumerate(one)]
        off = response._Moments(*one, 0.0).difference(response._Moments(*other, 0.0))
        assert (off <= response.TOLERANCE) == same


def test_the_exponent_is_right_on_both_sides_of_where_its_series_ends():
    """Its imaginary part is 2 power (w - arctan w), here by exact fractions of 40 terms."""
    w = np.array([0.01, 0.09999, 0.1, 0.2])
    found = response._log_prior(w, 3.0, 3.0).imag / 6
    for x, bend in zip(w, found, strict=True):
        exact = sum(
            Fraction(float(x)) ** (2 * i + 1) * Fraction((-1) ** (i + 1), 2 * i + 1)
            for i in range(1, 40)
        )
        # the series to the last digits; beyond it the difference loses three
        assert bend == pytest.approx(float(exact), rel=1e-15 if x < 0.1 else 1e-12, abs=0)


def test_a_coarse_first_step_is_halved_until_the_means_are_the_same(monkeypatch):
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([20, 9, 4])
    fine = ik.posterior(tally, 0.7)
    monkeypatch.setattr(response, "STEP_PER_WIDTH", 16 * response.STEP_PER_WIDTH)
    assert_same(ik.posterior(tally, 0.7), fine, 1e-9)


@pytest.mark.parametrize("b", [1000.0, 1010.0, 1500.0])
def test_stirlings_series_has_all_digits_from_its_least_sum_on(b):
    prior = round(response.MIN_STIRLING)
    with localcontext(prec=60):
        exact = Decimal(math.factorial(prior - 1)).ln() + Decimal(b) - prior * Decimal(b).ln()
    assert response._log_centre(float(prior), b) == pytest.approx(float(exact), abs=5e-13)
