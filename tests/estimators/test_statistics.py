"""What holds on average:
bias, error, consistency, the law of the likelihood ratio, the fit at the truth.

Every check is a function that can fail, and is seen to fail on a wrong reference. The seeds are
fixed; FALSE_ALARM is the rate at which a check would fail a correct program if they were not.
"""

import numpy as np
import pytest
from scipy import stats

import ibukit as ik

FALSE_ALARM = 1e-6
THETA = np.array([0.4, 0.3, 0.2, 0.1])
MECHANISMS = {
    "k-RR": ik.RandomizedResponse(4, 1.0),
    "truncated geometric": ik.TruncatedGeometric(4, 0.5),
    "RAPPOR": ik.Rappor(4, 1.0),
    "OUE": ik.OptimizedUnaryEncoding(4, 1.0),
    "exponential": ik.Exponential(4, 2.0),
    "tight constraints": ik.TightConstraints(ik.Grid(2, 2), 1.0),
}


def assert_mean(samples, expected):
    """The mean of independent rows is `expected`, judged by its own standard error,
    coordinate by coordinate.
    """
    samples = np.asarray(samples, dtype=float).reshape(len(samples), -1)
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    z = np.abs(samples.mean(axis=0) - expected) / error
    assert z.max() <= stats.norm.isf(FALSE_ALARM / 2 / len(z)), f"{z.max():.1f} standard errors off"


def raw_inversions(mechanism, believed, rng, repetitions=1000, n=400):
    """INV of reports of `mechanism`, taken by the collector for reports of `believed`."""
    counts = (n * THETA).astype(int)
    found = []
    for _ in range(repetitions):
        part = mechanism.simulate(counts, rng).parts[0]
        found.append(believed.invert(part.reports, part.counts / n))
    return found


@pytest.mark.ledger("A-D07")
@pytest.mark.parametrize("name", MECHANISMS)
def test_raw_inversion_is_unbiased(name, rng):
    assert_mean(raw_inversions(MECHANISMS[name], MECHANISMS[name], rng), THETA)


@pytest.mark.parametrize("name", ["k-RR", "truncated geometric", "RAPPOR", "OUE", "exponential"])
def test_the_check_of_bias_sees_an_epsilon_a_tenth_too_large(name, rng):
    truth = MECHANISMS[name]
    believed = type(truth)(truth.alphabet, 1.1 * truth.epsilon)
    with pytest.raises(AssertionError, match="standard errors off"):
        assert_mean(raw_inversions(truth, believed, rng), THETA)


def test_the_repairs_are_biased(rng):
    # which is why they are not called unbiased: with much noise INV-P is often cut off at 0
    mechanism = ik.TruncatedGeometric(4, 0.1)
    counts = (400 * THETA).astype(int)
    projected = [ik.inv(mechanism.simulate(counts, rng)).distribution for _ in range(1000)]
    with pytest.raises(AssertionError, match="standard errors off"):
        assert_mean(projected, THETA)


@pytest.mark.ledger("A-P4", "A-N1")
@pytest.mark.erratum("A1")
def test_the_error_of_inversion_through_randomized_response(rng):
    k, eps, n = 100, 2.0, 1000
    mechanism, theta = ik.RandomizedResponse(k, eps), ik.uniform(k)
    bound = ((np.exp(eps) + k - 1) / (np.exp(eps) - 1)) ** 2
    # the paper prints 227.28
    assert bound == pytest.approx(277.28, abs=0.005)
    reports = theta @ mechanism.matrix()
    exact = bound * (1 - (reports**2).sum())
    assert exact == pytest.approx(274.51, abs=0.005)
    errors = []
    for _ in range(3000):
        counts = rng.multinomial(n, reports)
        v = ik.inv(mechanism.tally_counts(counts), post="none").distribution
        errors.append(n * ik.squared_l2(v, theta))
    assert_mean(errors, exact)
    with pytest.raises(AssertionError, match="standard errors off"):
        assert_mean(errors, 227.28)


# Consistency: the median error of the maximum-likelihood estimate falls like n^-1/2.

K10 = np.array([8, 10, 12, 14, 13, 12, 10, 9, 7, 5]) / 100
CONSISTENT = {
    "k-RR": ik.RandomizedResponse(10, 2.0),
    "truncated geometric": ik.TruncatedGeometric(10, 1.5),
    "RAPPOR": ik.Rappor(10, 2.0),
    "geometric": ik.LinearGeometric(10, 1.5),
}
LEDGER = {"k-RR": "A-P2", "truncated geometric": "A-P2", "RAPPOR": "A-P2", "geometric": "A-P3"}
consistent = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.ledger(LEDGER[name], "A-L4")) for name in CONSISTENT],
)


def believing(tally, mechanism):
    """The tally as a collector sees it who takes the reports for another mechanism's."""
    (part,) = tally.parts
    return ik.Tally((type(part)(mechanism, part.reports, part.counts),))


def slope(mechanism, believed, sizes, repetitions, rng):
    """Of the logarithm of the median EMD against the logarithm of n, by least squares."""
    medians = []
    for n in sizes:
        errors = [
            ik.emd(
                ik.mle(believing(mechanism.simulate(secrets, rng), believed)).distribution, K10, 10
            )
            for secrets in rng.multinomial(n, K10, size=repetitions)
        ]
        medians.append(np.median(errors))
    return np.polyfit(np.log(sizes), np.log(medians), 1)[0]


def assert_consistent(mechanism, believed, sizes, repetitions, rng):
    """Slope -1/2, within what medians of errors with a coefficient
    of variation below 0.5 scatter.
    """
    log_n = np.log(sizes)
    scatter = 1.25 * 0.5 / np.sqrt(repetitions) / np.sqrt(((log_n - log_n.mean()) ** 2).sum())
    found = slope(mechanism, believed, sizes, repetitions, rng)
    assert abs(found + 0.5) <= stats.norm.isf(FALSE_ALARM / 2) * scatter, (
        f"the error falls like n^{found:.2f}"
    )


@consistent
def test_the_maximum_likelihood_estimate_is_consistent(name, rng):
    assert_consistent(CONSISTENT[name], CONSISTENT[name], [2_000, 20_000, 200_000], 20, rng)


@consistent
@pytest.mark.slow
def test_it_is_consistent_up_to_a_million_reports(name, rng):
    assert_consistent(
        CONSISTENT[name], CONSISTENT[name], [1_000, 10_000, 100_000, 1_000_000], 60, rng
    )


@pytest.mark.parametrize("name", CONSISTENT)
def test_the_check_of_consistency_sees_a_wrong_channel(name, rng):
    truth = CONSISTENT[name]
    believed = type(truth)(truth.alphabet, truth.epsilon / 1.5)
    with pytest.raises(AssertionError, match="the error falls like"):
        assert_consistent(truth, believed, [2_000, 20_000, 200_000], 20, rng)


# The likelihood: its ratio at the truth, and the deviance that Discrepancy compares with its
# degrees of freedom.


def likelihood_ratios(rng, repetitions=400, n=20_000):
    """2 (L(MLE) - L(truth)):
    chi-square with k - 1 degrees of freedom at an interior truth, by Wilks.
    """
    mechanism, found = ik.RandomizedResponse(4, 2.0), []
    for _ in range(repetitions):
        tally = mechanism.simulate(rng.multinomial(n, THETA), rng)
        at_truth = float(tally.counts @ np.log(tally.forward(THETA)))
        found.append(2 * (ik.mle(tally, tol=1e-12).log_likelihood - at_truth))
    return np.array(found)


def assert_chi_square(samples, freedom):
    p_value = stats.kstest(samples, stats.chi2(freedom).cdf).pvalue
    assert p_value > FALSE_ALARM, (
        f"not chi-square with {freedom} degrees of freedom: p = {p_value:.1e}"
    )


def test_the_likelihood_ratio_has_its_law(rng):
    ratios = likelihood_ratios(rng)
    assert (ratios >= -1e-7).all(), "the truth is never likelier than the maximiser"
    assert_chi_square(ratios, 3)
    for wrong in (ratios / 2, ratios * 2):
        with pytest.raises(AssertionError, match="not chi-square"):
            assert_chi_square(wrong, 3)


class DevianceAtTheStart:
    """Stop at once, and keep the deviance."""

    def met(self, now, before):
        self.value = now.deviance
        self.freedom = len(now.tally.counts) - len(now.tally.parts)
        return True


@pytest.mark.slow
def test_at_the_truth_the_deviance_is_on_average_its_degrees_of_freedom(rng):
    mechanisms = [ik.RandomizedResponse(4, 1.0), ik.TruncatedGeometric(4, 0.5), ik.Rappor(4, 1.0)]
    deviances, rule = [], DevianceAtTheStart()
    for _ in range(600):
        tally = sum(
            mechanism.simulate(rng.multinomial(20_000, THETA), rng) for mechanism in mechanisms
        )
        ik.ibu(tally, start=THETA, stop=rule)
        deviances.append(rule.value)
    freedom = 3 + 3 + 15
    assert rule.freedom == freedom
    assert_mean(deviances, freedom)
    # counting the pool as one mechanism would be two too many
    with pytest.raises(AssertionError, match="standard errors off"):
        assert_mean(deviances, freedom + 2)


@pytest.mark.erratum("A7")
def test_on_the_ages_a_few_hundred_steps_beat_the_maximum_likelihood(rng):
    ages = ik.datasets.load_adult_ages()
    mechanism = ik.TruncatedGeometric(ages.alphabet, 0.05)
    won = 0
    for _ in range(20):
        tally = mechanism.simulate(ages.counts, rng)
        early, best = ik.ibu(tally, stop=ik.Steps(300)), ik.mle(tally)
        # the estimate that the paper draws is not a maximiser, and the maximiser is a handful of
        # spikes
        assert early.gap > 1e-5
        assert best.log_likelihood > early.log_likelihood
        assert (best.distribution > 0).sum() < 30 < (early.distribution > 1e-4).sum()
        errors = [
            ik.emd(estimate.distribution, ages.distribution, ages.alphabet)
            for estimate in (early, best)
        ]
        won += errors[0] < errors[1]
    # a fair coin would win so often once in a thousand
    assert won >= 17
