"""Mechanisms for means: expectation, variance, privacy, and when one is better than the other."""

import numpy as np
import pytest
from scipy.optimize import brentq

import ibukit as ik
from ibukit._ground.threads import one_thread
from ibukit.mechanisms.numeric.duchi import two_points
from ibukit.mechanisms.numeric.hybrid import HYBRID_FROM
from ibukit.testing import check_mechanism

KINDS = [ik.Piecewise, ik.Duchi, ik.HybridMechanism]
LINE = ik.Line(20, 26)
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def moments(mechanism):
    """Mean and variance of a report of each secret, by the mass and the place of each class."""
    low = high = mechanism.restore_reports(np.arange(mechanism.m))
    wide = getattr(mechanism, "_arms", [mechanism])[0]
    if mechanism.m > 2:  # intervals, and then points
        low, high = np.r_[wide.breaks[:-1], low[wide.m :]], np.r_[wide.breaks[1:], high[wide.m :]]
    matrix = mechanism.matrix()
    mean = matrix @ ((low + high) / 2)
    return mean, matrix @ ((low**2 + low * high + high**2) / 3) - mean**2


@kinds
@pytest.mark.parametrize("k", [2, 5, 41])
@pytest.mark.parametrize("eps", [0.1, 0.6, 0.7, 2.0, 6.0])
def test_reports_are_unbiased_with_the_stated_variance_and_the_level_is_tight(kind, k, eps):
    mechanism = kind(k, eps)
    assert abs(mechanism.matrix().sum(axis=1) - 1).max() < 1e-14
    assert ik.privacy.epsilon_ldp(mechanism) == pytest.approx(eps, rel=1e-12)
    mean, variance = moments(mechanism)
    np.testing.assert_allclose(mean, np.linspace(-1, 1, k), atol=1e-13 * two_points(eps / 2))
    np.testing.assert_allclose(variance, mechanism.report_variance(), rtol=1e-10)


@kinds
@pytest.mark.parametrize("eps", [0.5, 2.0, 25.0])
def test_the_contract_also_at_both_ends(kind, eps, rng):
    check_mechanism(kind(LINE, eps), rng=rng, n=20_000, attained=True)


def test_a_sampler_of_the_wrong_window_is_noticed(rng):
    class Shifted(ik.Piecewise):
        def draw(self, secrets, rng):
            return -super().draw(secrets, rng)

    with pytest.raises(
        AssertionError, match="does not follow the stated probabilities for secret 0"
    ):
        check_mechanism(Shifted(LINE, 1.0), rng=rng, n=20_000)


def test_the_variances_cross_where_the_paper_says():
    def worst(kind, eps):
        return kind(41, eps).report_variance().max()

    assert pytest.approx(0.6094, abs=5e-5) == HYBRID_FROM
    crossing = brentq(lambda eps: worst(ik.Piecewise, eps) - worst(ik.Duchi, eps), 0.7, 3)
    assert crossing == pytest.approx(1.2898, abs=5e-5)

    def mixed(eps):
        share = 1 - np.exp(-eps / 2)
        return (
            share * ik.Piecewise(41, eps).report_variance()
            + (1 - share) * ik.Duchi(41, eps).report_variance()
        )

    assert brentq(lambda eps: mixed(eps).max() - worst(ik.Duchi, eps), 0.3, 2) == pytest.approx(
        HYBRID_FROM, rel=1e-9
    )
    assert np.ptp(ik.HybridMechanism(41, 2.0).report_variance()) < 1e-14
    assert np.ptp(ik.Piecewise(41, 2.0).report_variance()) > 0.1


def test_below_the_crossing_the_hybrid_mechanism_is_duchis():
    hybrid, duchi = ik.HybridMechanism(5, 0.6), ik.Duchi(5, 0.6)
    np.testing.assert_array_equal(hybrid.matrix(), duchi.matrix())
    assert (hybrid.m, ik.HybridMechanism(5, 0.61).m) == (2, ik.Piecewise(5, 0.61).m + 2)


@pytest.mark.parametrize(
    ("mechanism", "rank"),
    [(ik.Duchi(7, 1.0), 2), (ik.HybridMechanism(7, 0.5), 2), (ik.HybridMechanism(7, 1.0), 7)],
)
def test_two_reports_identify_the_mean_alone(mechanism, rank):
    answer = ik.theory.identifiable(mechanism)
    assert (answer.rank, bool(answer)) == (rank, rank == 7)
    if rank == 2:  # distributions of the same mean give the same reports
        assert answer.null_vector @ np.arange(7) == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(answer.null_vector @ mechanism.matrix(), 0, atol=1e-12)


@kinds
def test_the_average_estimates_the_mean_in_the_units_of_the_line(kind, rng):
    mechanism, secrets = kind(LINE, 2.0), [20, 20, 23, 26] * 5000
    reports = mechanism.randomize(secrets, rng)
    off = (mechanism.estimate_mean(reports) - 22.25) / 3
    assert abs(off) < 4.5 * np.sqrt(
        mechanism.report_variance().max() / len(secrets)
    )  # 1 in 100 000
    tally = mechanism.tally(reports)
    assert abs(ik.mle(tally).distribution @ LINE.values - 22.25) < 0.3
    with pytest.raises(ValueError, match="must hold at least one report"):
        mechanism.estimate_mean([])


def test_points_of_other_programs_are_known_and_other_numbers_refused():
    duchi, c = ik.Duchi(LINE, 1.0), two_points(1.0)
    near = [-np.nextafter(c, 0), np.nextafter(c, 9), c]
    assert duchi.check_reports(near).tolist() == [0, 1, 1]
    with pytest.raises(
        ik.errors.AlphabetMismatch,
        match=r"reports must be -2\.16.* or 2\.16.*, got 1\.0 at index 1",
    ):
        duchi.tally([c, 1.0])
    hybrid = ik.HybridMechanism(LINE, 1.0)
    codes = hybrid.check_reports([-c, c, c - 1e-9])
    assert codes[:2].tolist() == [hybrid.m - 2, hybrid.m - 1]
    assert codes[2] < hybrid.m - 2
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"reports must be numbers from -4\.08"):
        hybrid.tally([4.2])


def test_the_likelihood_knows_which_way_a_hybrid_report_was_made():
    """A point says less of the extremes than an interval: the arms' columns are no mixture."""
    hybrid = ik.HybridMechanism(5, 2.0)
    share, c = hybrid.piecewise_share, two_points(2.0)
    tally = hybrid.tally([c])
    up = (1 - share) * (0.5 + np.linspace(-1, 1, 5) / (2 * c))
    np.testing.assert_allclose(tally.matrix()[:, 0], up, rtol=1e-13)


def published_over_best(mechanism, theta):
    """Variance of the average of reports over the least one of an estimate
    of the mean from their classes.
    """
    t, matrix = mechanism.numbers, mechanism.matrix()
    with one_thread():
        w, u = np.linalg.eigh((matrix / (theta @ matrix)) @ matrix.T)
    seen = w > 1e-11 * w[-1]
    spread = ((u.T @ t)[seen] ** 2 / w[seen]).sum() - (theta @ t) ** 2
    return (theta @ (mechanism.report_variance() + t**2) - (theta @ t) ** 2) / spread


def test_the_likelihood_is_never_worse_than_the_average_and_much_better_where_the_arms_differ():
    uniform, t = ik.uniform(41), np.linspace(-1, 1, 41)
    bump = ik.normalize(np.exp(-((t - 0.3) ** 2) / 0.08))
    for theta in (uniform, bump):
        for eps in (0.5, 1.0, 4.0):
            assert all(published_over_best(kind(41, eps), theta) > 1 - 1e-9 for kind in KINDS)
            assert published_over_best(ik.Duchi(41, eps), theta) == pytest.approx(1, rel=1e-9)
    ratios = [published_over_best(ik.Piecewise(41, eps), uniform) for eps in (0.5, 4.0)]
    assert ratios == pytest.approx([1.055, 1.001], abs=1e-3)
    assert published_over_best(ik.HybridMechanism(41, 4.0), bump) == pytest.approx(1.605, abs=1e-3)
