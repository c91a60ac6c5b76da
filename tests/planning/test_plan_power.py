"""Numbers of reports for tests:
textbook formulae, distributions that are shifted, and the power of the very tests.
"""

import numpy as np
import pytest
from scipy.stats import norm

import ibukit as ik
from ibukit.planning.power import shifted

PLAIN = ik.MatrixMechanism(np.eye(2), ["no", "yes"])
Z = norm.ppf(0.975)
LABELS = ["bike", "bus", "car"]
THETA = np.array([0.2, 0.3, 0.5])


@pytest.mark.parametrize(("p", "difference", "power"), [(0.3, 0.1, 0.8), (0.5, 0.05, 0.9)])
def test_without_noise_it_is_the_textbook_s_number_for_two_proportions(p, difference, power):
    """Fleiss: (z sqrt(2 p q) + z_power sqrt(p1 q1 + p2 q2))^2 / d^2, with p the mean of both."""
    expected = []
    for other in (p + difference, p - difference):
        mean = (p + other) / 2
        root = Z * np.sqrt(2 * mean * (1 - mean)) + norm.ppf(power) * np.sqrt(
            p * (1 - p) + other * (1 - other)
        )
        expected.append((root / difference) ** 2)
    plan = ik.plan(PLAIN, of="yes", near=[1 - p, p], difference=difference, power=power)
    assert plan.n == pytest.approx(np.ceil(max(expected)), abs=1)
    assert plan.power_at(plan.n) == pytest.approx(power, abs=1e-3)
    assert plan.difference_at(plan.n) == pytest.approx(difference, rel=1e-3)


def test_one_group_has_the_variance_of_the_value_and_of_the_truth():
    plan = ik.plan(PLAIN, of="yes", near=[0.8, 0.2], difference=0.1, groups=1)
    root = Z * np.sqrt(0.2 * 0.8) + norm.ppf(0.8) * np.sqrt(0.3 * 0.7)
    assert plan.n == np.ceil((root / 0.1) ** 2)
    assert "of one group" in repr(plan)


def test_the_worst_case_is_at_least_as_large_as_near_any_distribution():
    mechanism, rng = ik.RandomizedResponse(LABELS, 1.0), np.random.default_rng(0)
    worst = ik.plan(mechanism, difference=0.05)
    v = ik.plan(mechanism).variance
    assert worst.n == np.ceil(2 * v * ((Z + norm.ppf(0.8)) / 0.05) ** 2)
    for theta in rng.dirichlet(np.ones(3), 10):
        assert ik.plan(mechanism, near=theta, difference=0.05).n <= worst.n


def test_a_mixture_of_levels_has_the_information_of_its_parts():
    """Levels are reported, so informations add up, weighted by the shares."""
    careful, careless = (ik.RandomizedResponse(LABELS, epsilon) for epsilon in (0.5, 3.0))
    mixture = ik.FreeWill([careful, careless], [0.7, 0.3])
    basis = np.linalg.svd(np.ones((1, 3)))[2][1:].T
    information = 0
    for share, each in zip((0.7, 0.3), (careful, careless), strict=True):
        matrix = each.matrix()
        information += share * matrix @ np.diag(1 / (THETA @ matrix)) @ matrix.T
    covariance = basis @ np.linalg.inv(basis.T @ information @ basis) @ basis.T
    plan = ik.plan(mixture, of="car", near=THETA, width=0.05)
    assert plan.variance == pytest.approx(covariance[2, 2])
    both = ik.plan([careful, mixture, careless], difference=0.05, near=THETA)
    assert both[0].n > both[1].n > both[2].n
    assert both.best.n == both[2].n
    assert list(both.to_frame()["n"]) == [each.n for each in both]


def test_shifted_distributions_have_the_value_and_change_the_odds_alike():
    w = np.array([1.0, 1.0, 0.0])
    found = shifted(THETA, w, 0.2)
    np.testing.assert_allclose([found.sum(), w @ found], [1, 0.7], rtol=1e-8)
    assert found[0] / found[1] == pytest.approx(THETA[0] / THETA[1])
    np.testing.assert_allclose(
        shifted(np.array([1.0, 0, 0]), np.array([0, 0, 1.0]), 0.1), [0.9, 0, 0.1], atol=1e-8
    )
    assert shifted(THETA, w, 0.6) is None


def test_what_cannot_be_planned_is_refused_by_name():
    mechanism = ik.RandomizedResponse(LABELS, 1.0)
    for wrong in (0, -0.1, 1.0, np.nan, "much"):
        with pytest.raises(ValueError, match="difference"):
            ik.plan(mechanism, difference=wrong)
    for wrong in (0, 1, 80):
        with pytest.raises(ValueError, match="power"):
            ik.plan(mechanism, difference=0.1, power=wrong)
    for wrong in (0, 3, 1.5):
        with pytest.raises(ValueError, match="groups"):
            ik.plan(mechanism, difference=0.1, groups=wrong)
    with pytest.raises(ValueError, match="difference must be smaller"):
        ik.plan(mechanism, of="car", near=THETA, difference=0.6)


CASES = {
    "k-RR": (ik.RandomizedResponse(LABELS, 1.5), "car", 2),
    "against a value": (ik.RandomizedResponse(LABELS, 1.5), "bike", 1),
    "a mixture of levels": (
        ik.FreeWill([ik.RandomizedResponse(LABELS, epsilon) for epsilon in (0.5, 2.0)], [0.4, 0.6]),
        ["bike", "bus"],
        2,
    ),
    "subsets": (ik.SubsetSelection(LABELS, 1.0), "bus", 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_the_tests_have_the_planned_power(name, power):
    """600 tests each: standard error 1.6 points at 0.8, 1.2 at 0.9. The plan takes the worse of two
    directions, and the tests are in the direction that `worse` finds; four standard errors either
    way, false alarms 1 in 2,000.
    """
    mechanism, of, groups = CASES[name]
    plan = ik.plan(mechanism, of=of, near=THETA, difference=0.08, power=power, groups=groups)
    w = np.isin(LABELS, of).astype(float)
    sides = [shifted(THETA, w, sign * 0.08) for sign in (1, -1)]
    needed = [ik.plan(mechanism, of=of, near=side, width=0.01).n for side in sides]
    other, rng = sides[int(np.argmax(needed))], np.random.default_rng(5)

    def draw(theta):
        return mechanism.simulate(rng.multinomial(plan.n, theta), rng)

    found = []
    for _ in range(600):
        if groups == 1:
            lower, upper = ik.mle(draw(other)).interval(0.95, of=of)
            found.append(not lower <= w @ THETA <= upper)
        else:
            found.append(ik.compare(draw(THETA), draw(other), of=of).difference.p_value < 0.05)
    error = np.sqrt(power * (1 - power) / 600)
    assert abs(np.mean(found) - power) < 4 * error, np.mean(found)
