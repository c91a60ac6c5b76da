"""Plans of survey designs with two samples, against the variance formulas of their papers."""

import numpy as np
import pytest
from scipy.stats import norm

import ibukit as ik
from ibukit.errors import AlphabetMismatch

LABELS = ("no", "yes")


def of_two_rates(weights):
    """Variance of a weighted sum of the shares of yes in two samples, each half of one report."""

    def variance(design, theta):
        rates = [theta @ sample.matrix()[:, 1] for sample in design.samples]
        return sum(2 * w**2 * rate * (1 - rate) for w, rate in zip(weights, rates, strict=True))

    return variance


def of_two_means(design, theta):
    """The variance of the difference of means, which Blair and Imai give for list experiments."""
    total = 0.0
    for sample in design.samples:
        law, z = theta @ sample.matrix(), np.arange(sample.m)
        total += 2 * (law @ z**2 - (law @ z) ** 2)
    return total


CASES = {
    "unrelated question": (
        ik.surveys.UnrelatedQuestion(LABELS, (0.7, 0.2)),
        [0.5, 0.2, 0.2, 0.1],
        of_two_rates((0.8 / 0.5, 0.3 / 0.5)),
    ),
    "cheating detection": (
        ik.surveys.CheatingDetection(LABELS, (0.2, 0.7)),
        [0.7, 0.2, 0.1],
        of_two_rates((0.7 / 0.5, 0.2 / 0.5)),
    ),
    "lie detector": (
        ik.surveys.StochasticLieDetector(LABELS, (0.2, 0.7)),
        [0.7, 0.2, 0.1],
        of_two_rates((1 / 0.5, 1 / 0.5)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_variances_are_those_of_the_papers(name):
    design, theta, variance = CASES[name]
    theta = np.array(theta)
    plan = ik.plan(design, width=0.1, near=theta)
    assert plan.variance == pytest.approx(variance(design, theta), rel=1e-9)
    assert plan.width(plan.n) <= 0.1 < plan.width(plan.n - 1)


def test_a_list_experiment_needs_no_more_people_than_the_difference_of_means():
    """Maximum likelihood knows more than two means; it knows no more if each count is certain."""
    design = ik.surveys.ItemCount(LABELS, 3)
    theta = np.full(8, 1 / 8)
    assert ik.plan(design, near=theta).variance <= of_two_means(design, theta) * (1 + 1e-9)
    alone = ik.surveys.ItemCount(LABELS, 1)
    certain = np.array([0.8, 0.2, 0.0, 0.0])
    assert ik.plan(alone, near=certain).variance == pytest.approx(
        of_two_means(alone, certain), rel=1e-6
    )


@pytest.mark.parametrize("name", CASES)
def test_the_worst_case_is_worse_than_any_distribution(name, rng):
    design, _, variance = CASES[name]
    worst = ik.plan(design, width=0.1)
    k = len(design.alphabet)
    tried = [variance(design, theta) for theta in rng.dirichlet(np.full(k, 0.5), 2000)]
    assert max(tried) <= worst.variance * (1 + 1e-9)
    assert variance(design, worst.distribution) == pytest.approx(worst.variance, rel=1e-6)


def test_the_question_is_the_sensitive_attribute_unless_another_is_asked():
    design = ik.surveys.StochasticLieDetector(LABELS, (0.2, 0.7))
    assert ik.plan(design).n == ik.plan(design, of=design.sensitive).n
    assert ik.plan(design, of="lying").n != ik.plan(design).n
    assert ik.plan([design, design], width=0.1)[1].n == ik.plan(design, width=0.1).n


def test_samples_may_have_other_sizes():
    """An optimal division of the sample is no worse than halves."""
    design = ik.surveys.CheatingDetection(LABELS, (0.2, 0.7))
    theta = [0.7, 0.2, 0.1]
    needed = [
        ik.plan(ik.FreeWill(design.samples, [q, 1 - q]), of=design.sensitive, near=theta).n
        for q in (0.5, 0.8)
    ]
    assert needed[0] == ik.plan(design, near=theta).n > needed[1]


def test_a_test_can_be_planned():
    """With equal variances on both sides it is n = v ((z + z_power) / difference)^2, twice for two
    groups.
    """
    design = ik.surveys.CheatingDetection(LABELS, (0.2, 0.7))
    for groups in (1, 2):
        test = ik.plan(design, difference=0.1, power=0.8, groups=groups)
        z = norm.ppf(0.975) + norm.ppf(0.8)
        assert test.n == np.ceil(groups * test.variance * (z / 0.1) ** 2)


def test_designs_over_other_secrets_are_not_compared():
    with pytest.raises(AlphabetMismatch, match="over the same secrets"):
        ik.plan([ik.surveys.CheatingDetection(LABELS, (0.2, 0.7)), ik.surveys.Warner(LABELS, 0.7)])
