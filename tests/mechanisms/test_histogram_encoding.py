"""Summed histograms: densities, levels, and what the likelihood gains, against quadrature."""

import math
import pickle

import numpy as np
import pytest
from scipy import integrate, stats

import ibukit as ik
from ibukit.mechanisms.categorical import histogram_encoding
from ibukit.testing import check_channel, check_tally

EPSILONS = [0.01, 1.0, 4.0, 30.0]


@pytest.mark.parametrize("eps", EPSILONS)
def test_the_density_is_that_of_laplace_noise(eps, rng):
    mechanism = ik.HistogramEncoding(5, eps)
    z = mechanism.randomize([0, 1, 1, 4, 2, 3], rng)
    tally = mechanism.tally(z)
    places = np.arange(5)
    log_density = np.log(tally.matrix()) + tally.log_scale
    for x in range(5):
        noise = tally.parts[0].reports - (places == x)
        np.testing.assert_allclose(
            log_density[x], stats.laplace.logpdf(noise, scale=2 / eps).sum(axis=1), rtol=1e-11
        )
    check_channel(tally.operator)
    check_tally(tally)


@pytest.mark.parametrize("eps", EPSILONS)
def test_no_report_tells_secrets_apart_by_more_than_epsilon(eps, rng):
    """And one with 1 or more at one place and 0 or less at another does by that."""
    mechanism = ik.HistogramEncoding(4, eps)
    reports = np.concatenate(
        [mechanism.randomize(rng.integers(0, 4, 300), rng), [[-3.0, 1.5, 0.2, 0.9]]]
    )
    logs = np.log(mechanism.tally(reports).matrix())
    assert np.ptp(logs, axis=0).max() == pytest.approx(eps, rel=1e-9)
    assert np.ptp(
        np.log(mechanism.tally(reports[:-1] * (0.9 / np.abs(reports).max())).matrix()), axis=0
    ).max() < eps * (1 - 1e-9)


def moments(eps, power, x):
    """E[r^power] of r = e^(eps (clip(z, 0, 1) - 1/2)), for the density around x."""

    def term(z):
        return math.exp(power * eps * (min(max(z, 0.0), 1.0) - 0.5)) * stats.laplace.pdf(
            z, loc=x, scale=2 / eps
        )

    inside = integrate.quad(term, 0, 1, epsabs=1e-13)[0]
    below = stats.laplace.cdf(0, loc=x, scale=2 / eps) * math.exp(-power * eps / 2)
    return below + inside + stats.laplace.sf(1, loc=x, scale=2 / eps) * math.exp(power * eps / 2)


@pytest.mark.parametrize("eps", [0.5, 1.0, 2.0, 4.0])
def test_the_efficient_estimate_of_many_secrets(eps):
    """w (r - 1) is unbiased, and w is its variance where the secret is rare:
    less than the published 8 / eps^2.
    """
    exact = 3 / (2 * math.exp(eps / 2) + math.exp(-eps) - 3)
    assert eps != 1 or round(exact, 3) == 4.509
    assert moments(eps, 1, 0) == pytest.approx(1, rel=1e-10)
    assert exact * (moments(eps, 1, 1) - 1) == pytest.approx(1, rel=1e-9)
    assert exact**2 * (moments(eps, 2, 0) - 1) == pytest.approx(exact, rel=1e-9)
    assert exact < 0.6 * 8 / eps**2


def test_the_published_estimate_and_its_published_variance(rng):
    # Wang et al. 2017, Table 2: 8 / eps^2
    assert [8 / eps**2 for eps in (0.5, 1, 2, 4)] == [32, 8, 2, 0.5]
    for eps in (0.5, 4):
        assert 2 * (2 / eps) ** 2 == 8 / eps**2 == pytest.approx(stats.laplace.var(scale=2 / eps))
    mechanism = ik.HistogramEncoding(3, 1.0)
    z = rng.normal(size=(7, 3))
    v = ik.inv(mechanism.tally(z), post="none").distribution
    np.testing.assert_allclose(v, z.mean(axis=0), rtol=1e-12)
    # over the least error of any mechanism, k = 16: 2.49 at eps = 1, 8.36 at eps = 4
    for eps, ratio in ((1.0, 2.49), (4.0, 8.36)):
        least = 4 * 15**2 * math.exp(eps) / (16 * (math.exp(eps) - 1) ** 2)
        assert round((16 * 8 / eps**2 + 1 - 1 / 16) / least, 2) == ratio


def test_the_likelihood_is_worth_almost_twice_the_reports(rng):
    """The information of a large sample, and estimates from one: errors over those of the mean."""
    k, n, eps = 16, 40_000, 1.0
    mechanism, theta = ik.HistogramEncoding(k, eps), ik.uniform(k)
    tally = mechanism.simulate(np.full(k, n // k), rng)
    ratios = tally.matrix() / tally.forward(theta)
    information = (ratios * tally.counts) @ ratios.T / n
    tangent = np.eye(k)[:, 1:] - np.eye(k)[:, :1]
    error = np.trace(tangent @ np.linalg.inv(tangent.T @ information @ tangent) @ tangent.T)
    least = 4 * (k - 1) ** 2 * math.exp(eps) / (k * (math.exp(eps) - 1) ** 2)
    assert error / least == pytest.approx(1.31, abs=0.03)  # the published mean: 2.49
    found = ik.mle(tally)
    assert found.gap <= 1e-9
    # 16 squares of each, of one sample: the ratio of sums is 0.53, and above 1.3 less often than
    # once in 10 000 samples
    errors = [
        ((v - theta) ** 2).sum()
        for v in (found.distribution, ik.inv(tally, post="none").distribution)
    ]
    assert errors[0] < 1.3 * errors[1]


def p_value(z, secrets, eps):
    noise = z - (np.arange(z.shape[1]) == secrets[:, None])
    return min(
        stats.kstest(noise[:, i], stats.laplace(scale=2 / eps).cdf).pvalue
        for i in range(z.shape[1])
    )


@pytest.mark.parametrize("eps", [0.01, 2.0])
def test_the_sampler_adds_laplace_noise_to_a_one_among_zeros(eps, rng):
    """Seven Kolmogorov-Smirnov tests: all pass but once in 10^6 runs."""
    secrets = rng.choice([0, 0, 0, 3, 6], 20_000)
    z = ik.HistogramEncoding(7, eps).draw(secrets, rng)
    assert p_value(z, secrets, eps) > 1e-7
    assert (
        np.abs(np.corrcoef(z.T - (np.arange(7)[:, None] == secrets))[~np.eye(7, dtype=bool)]).max()
        < 0.05
    )
    assert p_value(z, secrets, eps * 1.2) < 1e-7
    assert p_value(z * 1.2, secrets, eps) < 1e-7
    if eps > 1:
        assert p_value(z, (secrets + 1) % 7, eps) < 1e-7


def test_reports_pool_and_travel(rng):
    mechanism = ik.HistogramEncoding(["a", "b", "c"], 2.0)
    z = mechanism.randomize(["a", "c", "c", "b"], rng)
    tally = mechanism.tally(z) + mechanism.tally(z[:2])
    assert (tally.n, len(tally.parts), tally.counts.max()) == (6, 1, 2)
    again = pickle.loads(pickle.dumps(tally))
    np.testing.assert_array_equal(again.matrix(), tally.matrix())
    assert ik.mle(tally + ik.RandomizedResponse(["a", "b", "c"], 1.0).tally(["a", "b"])).gap <= 1e-9
    assert mechanism == pickle.loads(pickle.dumps(mechanism))


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        ([[0.1, 0.2]], r"reports must be rows of 3 numbers, shape \(n, 3\), got \(1, 2\)"),
        ([0.1, 0.2, 0.3], r"got \(3,\)"),
        (
            [[0.1, 0.2, 0.3], [0.1, math.nan, 0.3]],
            "reports must be finite, got nan in row 1, column 1",
        ),
        ([[0.1, 0.2, -math.inf]], "reports must be finite, got -inf in row 0, column 2"),
        ([["a", "b", "c"]], "reports must be rows of numbers, got an array of type <U1"),
    ],
)
def test_reports_that_are_no_numbers(reports, message):
    with pytest.raises(ValueError, match=message):
        ik.HistogramEncoding(3, 1.0).tally(reports)


def test_what_is_refused(monkeypatch):
    for eps, message in (
        (0, "above 0"),
        (math.inf, "above 0"),
        (100.0, r"epsilon must be at most 72\.08"),
    ):
        with pytest.raises(ValueError, match=message):
            ik.HistogramEncoding(3, eps)
    with pytest.raises(ValueError, match="number of secrets must be at least 2, got 1"):
        ik.HistogramEncoding(1, 1.0)
    monkeypatch.setattr(histogram_encoding, "MAX_DENSITIES", 8)
    with pytest.raises(
        ik.errors.TooLarge, match="the densities of 3 reports for 3 secrets are too many"
    ):
        ik.mle(ik.HistogramEncoding(3, 1.0).tally(np.eye(3)))
    with pytest.raises(ValueError, match="mechanism must have reports that can be listed"):
        ik.HistogramEncoding(3, 1.0).as_finite()
