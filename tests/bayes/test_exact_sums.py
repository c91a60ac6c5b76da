"""Exact quantiles of sums of probabilities: against enumeration, against integrals, and draws."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc, gammaln, poch

import ibukit as ik
from ibukit.bayes.sums import exact_sums, response
from ibukit.bayes.sums.response import ResponseSums
from ibukit.bayes.sums.two_secrets import TwoSecrets

TAILS = [1e-6, 0.025, 0.3, 0.5, 0.975, 1 - 1e-6]


def mixture(tally, alpha, inside):
    """The law of the sum as a mixture of beta laws, over all numbers t of reports that tell."""
    matrix = tally.matrix()
    low, contrast = matrix[0, 1], matrix[0, 0] - matrix[0, 1]
    counts = tally.counts
    weights, a, b = [], [], []
    for t in product(*(range(s + 1) for s in counts)):
        each = [
            comb(s, own) * poch(prior, own) * contrast**own * low ** (s - own)
            for s, own, prior in zip(counts, t, alpha, strict=True)
        ]
        total = alpha.sum() + sum(t)
        weights.append(np.exp(np.log(each).sum() - gammaln(total)))
        a.append(alpha[inside].sum() + np.array(t)[inside].sum())
        b.append(total - a[-1])
    return np.array(weights) / np.sum(weights), np.array(a), np.array(b)


@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.01, 30.0, [0.2, 3.0, 1.0, 0.7]])
@pytest.mark.parametrize("inside", [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 1], [0, 1, 1, 1]])
def test_the_law_is_that_of_all_numbers_of_reports_that_tell(alpha, inside):
    tally = ik.RandomizedResponse(4, 1.0).tally_counts([9, 5, 7, 2])
    alpha, inside = np.broadcast_to(alpha, 4).astype(float), np.array(inside) == 1
    found = exact_sums(tally, alpha).quantiles(inside, TAILS)
    weights, a, b = mixture(tally, alpha, inside)
    below = np.array([weights @ betainc(a, b, v) for v in found])
    # Below 1e-300 a quantile is 0, and near 1 it is 1: what is beyond is there.
    beyond = np.array([weights @ betainc(b, a, 1 - v) for v in found])
    ordinary = (found > 1e-300) & (found < 1 - 1e-9)
    np.testing.assert_allclose(below[ordinary], np.array(TAILS)[ordinary], rtol=1e-9)
    assert (np.minimum(below, beyond)[~ordinary] < 0.5).all()


def two_secrets(matrix, counts, alpha):
    """The distribution function of the first probability, by scipy's adaptive quadrature."""
    peak = None

    def density(v):
        fit = np.log(v * matrix[0] + (1 - v) * matrix[1]) @ counts
        prior = (alpha[0] - 1) * np.log(v) + (alpha[1] - 1) * np.log1p(-v)
        return np.exp(fit + prior - peak) if peak is not None else fit + prior

    peak = max(density(v) for v in np.linspace(0.001, 0.999, 999))
    total = quad(density, 0, 1, epsabs=0, epsrel=1e-11, limit=500)[0]
    return lambda v: quad(density, 0, v, epsabs=0, epsrel=1e-11, limit=500)[0] / total


@pytest.mark.parametrize("counts", [[14, 9, 3], [0, 0, 4], [400, 1500, 100]])
@pytest.mark.parametrize("alpha", [(1.0, 1.0), (1.5, 4.0)])
def test_two_secrets_under_any_matrix_have_the_law_of_an_integral(counts, alpha):
    matrix = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]])
    tally = ik.MatrixMechanism(matrix).tally_counts(counts)
    sums = exact_sums(tally, np.array(alpha))
    law = two_secrets(matrix, counts, alpha)
    for tail in (0.025, 0.5, 0.975):
        (v,) = sums.quantiles(np.array([True, False]), [tail])
        (rest,) = sums.quantiles(np.array([False, True]), [1 - tail])
        assert law(v) == pytest.approx(tail, rel=1e-8)
        assert v + rest == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_two_secrets_of_randomized_response_have_one_law_by_both_routes(epsilon):
    tally = ik.RandomizedResponse(2, epsilon).tally_counts([700, 300])
    alpha, first = np.array([0.5, 2.0]), np.array([True, False])
    by_gammas = exact_sums(tally, alpha)
    by_likelihood = TwoSecrets(tally.matrix(), alpha, tally.counts)
    assert type(by_gammas) is ResponseSums
    np.testing.assert_allclose(
        by_gammas.quantiles(first, TAILS), by_likelihood.quantiles(first, TAILS), rtol=1e-9
    )


def masses(tally, alpha, steps=1500):
    first, second = np.meshgrid(*[(np.arange(steps) + 0.5) / steps] * 2)
    theta = np.stack([first, second, 1 - first - second], axis=-1)[first + second < 1]
    log_density = np.log(theta @ tally.matrix()) @ tally.counts + np.log(theta) @ (alpha - 1)
    weights = np.exp(log_density - log_density.max())
    return theta, weights / weights.sum()


def test_three_secrets_have_the_law_of_a_grid():
    tally, alpha = ik.RandomizedResponse(3, 1.0).tally_counts([40, 9, 23]), np.array([2.0, 2.5, 3])
    theta, weights = masses(tally, alpha)
    for inside in ([1, 0, 0], [1, 0, 1]):
        chosen = np.array(inside) == 1
        for tail in (0.05, 0.95):
            (end,) = exact_sums(tally, alpha).quantiles(chosen, [tail])
            # The sum over midpoints of a step function is right to a step of the grid.
            assert weights[theta @ inside < end].sum() == pytest.approx(tail, abs=5e-4)


def krr(k, n, seed, epsilon=1.0):
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(k))
    return ik.RandomizedResponse(k, epsilon).simulate(rng.multinomial(n, law), rng)


@pytest.mark.parametrize(("k", "n"), [(25, 10_000), (100, 1_000_000)])
def test_gibbs_draws_have_its_tails(k, n):
    tally, seeds = krr(k, n, 1), np.random.default_rng(3)
    drawn = ik.posterior(tally, 0.7, method="gibbs", rng=seeds).draws()
    sums = exact_sums(tally, np.full(k, 0.7))
    for inside in (np.arange(k) == 0, np.arange(k) == 7, np.arange(k) < k // 2):
        low, high = sums.quantiles(inside, [0.05, 0.95])
        below, above = (drawn[:, inside].sum(axis=1) < low), (drawn[:, inside].sum(axis=1) > high)
        # At least 400 draws are effective: four standard errors.
        margin = 4 * np.sqrt(0.05 * 0.95 / 400)
        assert (below.mean(), above.mean()) == pytest.approx((0.05, 0.05), abs=margin)


@pytest.mark.parametrize("n", [1_000_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_the_law_of_many_reports_is_normal(n):
    """Far from zeros the posterior is about normal, with the deviation that the integrals give."""
    counts = np.full(10, n)
    posterior = ik.posterior(ik.RandomizedResponse(10, 2.0).tally_counts(counts), 1.0)
    lower, upper = posterior.interval(0.6826894921370859)
    np.testing.assert_allclose((upper - lower) / 2, posterior.standard_deviations, rtol=1e-4)
    np.testing.assert_allclose((upper + lower) / 2, posterior.mean, atol=1e-8)


def test_sums_are_invariant_to_the_order_and_the_split_of_secrets():
    tally, k = krr(12, 3000, 5), 12
    alpha, order = np.linspace(0.3, 3, k), np.random.default_rng(2).permutation(k)
    inside = np.arange(k) % 3 == 0
    mixed = ik.RandomizedResponse(k, 1.0).tally_counts(tally.counts[order])
    found = exact_sums(tally, alpha).quantiles(inside, TAILS)
    np.testing.assert_allclose(
        exact_sums(mixed, alpha[order]).quantiles(inside[order], TAILS), found, rtol=1e-9
    )
    rest = exact_sums(tally, alpha).quantiles(~inside, [1 - p for p in TAILS])
    np.testing.assert_allclose(rest, 1 - found, atol=1e-11)


def test_credible_intervals_of_sums_take_no_draws(monkeypatch):
    def none(*_, **__):
        raise AssertionError("drawn")

    monkeypatch.setattr("ibukit.bayes._gibbs.sample", none)
    tally = krr(25, 10_000, 1)
    estimate, half = ik.mle(tally), (np.arange(25) < 12) * 1.0
    ends = estimate.interval(of=[half, 2 - 3 * half, np.ones(25)], method="credible")
    lower, upper = (end[0] for end in ends)
    assert (ends[0][1], ends[1][1]) == pytest.approx((2 - 3 * upper, 2 - 3 * lower), abs=1e-10)
    assert ends[0][2] == ends[1][2] == 1
    assert estimate.interval(of=half, method="credible", seed=9) == (lower, upper)
    assert ik.posterior(tally, 1.0).interval(of=half) == pytest.approx((lower, upper), abs=1e-12)
    with pytest.raises(AssertionError, match="drawn"):
        estimate.interval(of=np.arange(25.0), method="credible")


def test_where_memory_is_short_it_is_drawn(monkeypatch):
    monkeypatch.setattr(response, "MAX_BYTES", 1000)
    tally, half = krr(25, 10_000, 1), np.arange(25) < 12
    with pytest.raises(ik.errors.TooLarge, match="the exact posterior of a sum would take"):
        exact_sums(tally, np.ones(25)).quantiles(half, [0.5])
    lower, upper = ik.mle(tally).interval(of=half * 1.0, method="credible")
    monkeypatch.undo()
    exact = ik.mle(tally).interval(of=half * 1.0, method="credible")
    assert (lower, upper) == pytest.approx(exact, abs=0.1 * (exact[1] - exact[0]))
    assert lower != exact[0]


def test_betas_are_recovered_where_every_report_tells():
    """Nearly without noise the posterior is Dirichlet(alpha + counts)."""
    tally = ik.RandomizedResponse(3, 37.0).tally_counts([14, 9, 0])
    (v,) = exact_sums(tally, np.ones(3)).quantiles(np.array([True, False, False]), [0.1])
    assert betainc(15, 11, v) == pytest.approx(0.1, rel=1e-9)


@pytest.mark.parametrize("alpha", [1e12, 1e300])
def test_what_rounding_would_hide_is_refused(alpha):
    matrix = [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]
    for mechanism in (ik.RandomizedResponse(3, 1.0), ik.MatrixMechanism(matrix)):
        sums = exact_sums(mechanism.tally_counts([5, 3, 4]), np.full(mechanism.k, alpha))
        with pytest.raises(ik.errors.TooLarge, match="would be lost in rounding"):
            sums.quantiles(np.arange(mechanism.k) == 0, [0.5])
