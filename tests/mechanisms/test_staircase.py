"""Staircase noise: its density, the classes of its reports, and the published moments."""

import math

import numpy as np
import pytest

import ibukit as ik
from ibukit.mechanisms import least_variance_gamma
from ibukit.testing import check_mechanism

GAMMAS = [None, 0.0, 0.3, 0.5, 0.9, 1.0]


def density(mechanism, noise):
    """By the definition, one number at a time."""
    width, g, eps = mechanism.k - 1, mechanism.gamma, mechanism.epsilon
    a = (1 - math.exp(-eps)) / (2 * width * (g + math.exp(-eps) * (1 - g)))
    stretch, place = divmod(abs(noise) / width, 1)
    return a * math.exp(-eps * (stretch + (place >= g)))


@pytest.mark.parametrize("k", [2, 3, 5, 20])
@pytest.mark.parametrize("eps", [0.1, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("gamma", GAMMAS)
def test_rows_sum_to_1_and_the_level_is_tight(k, eps, gamma):
    mechanism = ik.Staircase(k, eps, gamma)
    assert abs(mechanism.matrix().sum(axis=1) - 1).max() < 2e-14
    assert ik.privacy.epsilon_ldp(mechanism) == pytest.approx(eps, rel=1e-12)


def test_neighbours_are_told_apart_by_the_whole_level():
    """It is no level per unit of distance."""
    mechanism = ik.Staircase(9, 1.0)
    assert ik.privacy.epsilon_metric(mechanism) == pytest.approx(1.0, rel=1e-12)
    assert ik.privacy.epsilon_metric(ik.TruncatedGeometric(9, 1 / 8)) == pytest.approx(
        1 / 8, rel=1e-12
    )


@pytest.mark.parametrize("gamma", GAMMAS)
def test_each_report_makes_the_secrets_as_likely_as_its_density_does(gamma, rng):
    mechanism = ik.Staircase(ik.Line(-3, 4), 1.0, gamma)
    reports = rng.uniform(-60, 60, 400)
    columns = mechanism.matrix()[:, mechanism.check_reports(reports)]
    exact = np.array([[density(mechanism, z - x) for z in reports] for x in range(-3, 5)])
    np.testing.assert_allclose(columns / columns.max(axis=0), exact / exact.max(axis=0), rtol=1e-12)
    every = np.arange(mechanism.m)
    np.testing.assert_array_equal(mechanism.check_reports(mechanism.restore_reports(every)), every)
    # no two classes say the same
    shown = np.round(mechanism.matrix() / mechanism.matrix().max(axis=0), 9)
    assert len(np.unique(shown, axis=1).T) == mechanism.m


def test_five_secrets_have_nine_classes():
    assert ik.Staircase(5, 1.0).m == 9


@pytest.mark.parametrize(
    "mechanism",
    [
        ik.Staircase(5, 1.0),
        ik.Staircase(2, 2.0),
        ik.Staircase(ik.Line(-3, 6), 0.5, 0.3),
        ik.Staircase(6, 25.0),
    ],
    ids=str,
)
def test_the_contract_also_at_both_ends(mechanism, rng):
    check_mechanism(mechanism, rng=rng, n=20_000, attained=True)


def test_noise_with_the_step_elsewhere_is_noticed(rng):
    class Elsewhere(ik.Staircase):
        def draw(self, secrets, rng):
            return ik.Staircase(self.alphabet, self.epsilon, 1 - self.gamma).draw(secrets, rng)

    with pytest.raises(AssertionError, match="does not follow the stated probabilities"):
        check_mechanism(Elsewhere(5, 1.0), rng=rng, n=20_000)


def moments(mechanism):
    """Of the noise, stretch by stretch."""
    width, g, eps = mechanism.k - 1, mechanism.gamma, mechanism.epsilon
    first = second = 0.0
    for i in range(int(60 / eps) + 2):
        for low, high in ((i * width, (i + g) * width), ((i + g) * width, (i + 1) * width)):
            height = 2 * density(mechanism, (low + high) / 2) if high > low else 0.0
            first += height * (high**2 - low**2) / 2
            second += height * (high**3 - low**3) / 3
    return first, second


@pytest.mark.parametrize("eps", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("gamma", [*GAMMAS, "variance"])
def test_the_moments_are_those_of_the_density(eps, gamma):
    mechanism = ik.Staircase(4, eps, least_variance_gamma(eps) if gamma == "variance" else gamma)
    assert (mechanism.absolute_error, mechanism.noise_variance) == pytest.approx(
        moments(mechanism), rel=1e-12
    )


@pytest.mark.parametrize("eps", [1e-3, 0.3, 1.0, 4.0, 15.0])
def test_the_published_least_moments_are_attained(eps):
    b, e = math.exp(-eps), math.exp(eps)
    by_error, g = ik.Staircase(6, eps), least_variance_gamma(eps)
    assert by_error.gamma == pytest.approx(1 / (1 + math.exp(eps / 2)), rel=1e-14)
    assert by_error.absolute_error == pytest.approx(5 * math.exp(eps / 2) / (e - 1), rel=1e-12)
    least = 25 * (2 ** (-2 / 3) * (b * (1 + b)) ** (2 / 3) + b) / (1 - b) ** 2
    assert ik.Staircase(6, eps, g).noise_variance == pytest.approx(least, rel=1e-9)
    for other in (0.9 * g, g + 0.1 * (1 - g)):
        assert ik.Staircase(6, eps, other).noise_variance > least
        assert ik.Staircase(6, eps, other).absolute_error > by_error.absolute_error
    if eps > 0.1:  # below, the published formula loses its digits
        published = -b / (1 - b) + (b - 2 * b**2 + 2 * b**4 - b**5) ** (1 / 3) / (
            2 ** (1 / 3) * (1 - b) ** 2
        )
        assert g == pytest.approx(published, rel=1e-10)


def test_the_step_of_least_variance_is_in_the_middle_at_no_privacy_budget():
    assert least_variance_gamma(1e-12) == pytest.approx(0.5, abs=1e-9)
    with pytest.raises(ValueError, match="epsilon must be a finite number above 0, got 0"):
        least_variance_gamma(0)


def test_what_is_not_a_report_is_refused():
    mechanism = ik.Staircase(5, 1.0)
    with pytest.raises(
        ik.errors.AlphabetMismatch, match="must be finite numbers, got inf at index 1"
    ):
        mechanism.tally([0.0, np.inf])
    with pytest.raises(ValueError, match="reports must be numbers, got an array of type <U1"):
        mechanism.tally(["a"])
    with pytest.raises(ValueError, match="reports must be numbers, got an array of type bool"):
        mechanism.tally([True])
    with pytest.raises(ValueError, match="epsilon must be at most"):
        ik.Staircase(5, 80.0)
    assert mechanism.tally([1e9, -1e9]).n == 2
