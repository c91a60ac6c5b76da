"""Gaussian noise on integers, numbers and points: its law, its privacy, and merged reports."""

import math

import numpy as np
import pytest
from scipy import stats

import ibukit as ik
from ibukit.mechanisms.points import merging_loss
from ibukit.testing import check_channel, check_mechanism, check_tally

LINE, GRID = ik.Line(-2, 5), ik.Grid(3, 4, cell_size=(0.5, 0.7))
SIGMAS = [0.12, 0.3, 0.99, 1.0, 3.0, 40.0, 41.0]
Z = np.arange(-2000, 2001)


def discrete(sigma):
    weights = np.exp(-(Z**2) / (2 * sigma**2))
    return weights / weights.sum()


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_discrete_law_its_variance_and_its_delta(sigma):
    mechanism, p = ik.DiscreteGaussian(LINE, sigma), discrete(sigma)
    tally = mechanism.tally(Z)
    possible = p > 1e-290
    logs = np.log(tally.matrix()[2][possible]) + tally.log_scale[possible]
    np.testing.assert_allclose(logs, np.log(p[possible]), rtol=1e-11, atol=1e-13)
    assert mechanism.noise_variance == pytest.approx(p @ Z**2, rel=1e-12)
    assert mechanism.noise_variance <= sigma**2
    for d in (1, 2, 7):
        for eps in (0, 0.1, 1, 3.0):
            exact = np.maximum(p[d:] - math.exp(eps) * p[:-d], 0).sum()
            assert mechanism.delta(eps, d) == pytest.approx(exact, rel=1e-9, abs=1e-15)
    assert mechanism.delta(1.0) == mechanism.delta(1.0, 7) >= mechanism.delta(1.0, 6)
    assert mechanism.delta(1.0, 0) == 0


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_the_concentrated_level_bounds_every_renyi_divergence(sigma):
    mechanism = ik.DiscreteGaussian(LINE, sigma)
    log_total = np.log(np.exp(-(Z**2) / (2 * sigma**2)).sum())
    for d in (1, 3):
        own, other = (-((Z - at) ** 2) / (2 * sigma**2) - log_total for at in (0, d))
        for alpha in (1.5, 2.0, 5.0):
            divergence = np.logaddexp.reduce(alpha * own + (1 - alpha) * other) / (alpha - 1)
            assert divergence <= alpha * mechanism.zcdp(d) * (1 + 1e-9)
            assert (
                divergence > alpha * mechanism.zcdp(d) * 0.99 or sigma < 1
            )  # no smaller level would do
    assert mechanism.zcdp() == pytest.approx(49 / (2 * sigma**2))


@pytest.mark.parametrize("sigma", [0.3, 2.5, 20.0])
def test_the_contract_of_the_discrete_kind(sigma, rng):
    mechanism = ik.DiscreteGaussian(LINE, sigma)
    check_mechanism(mechanism, rng=rng, n=20_000)
    check_channel(mechanism.tally([-3, 0, 5, 9]).operator)
    assert mechanism.epsilon == math.inf


def test_rounded_noise_is_noticed(rng):
    class Rounded(ik.DiscreteGaussian):
        def draw(self, secrets, rng):
            return (
                self.alphabet.first
                + secrets
                + np.rint(self.sigma * rng.standard_normal(len(secrets))).astype(int)
            )

    with pytest.raises(AssertionError, match="does not follow the stated probabilities"):
        check_mechanism(Rounded(LINE, 0.5), rng=rng, n=50_000)


@pytest.mark.parametrize(
    "mechanism", [ik.DiscreteGaussian(LINE, 1.5), ik.LinearGaussian(LINE, 1.5)], ids=str
)
def test_far_reports_say_more_than_those_at_the_end(mechanism):
    """There is no pure level: no bound on the ratio of two secrets."""
    tally = mechanism.tally([5, 6, 60, 6000])
    above, end = np.log(tally.matrix()[:, :3])[-2:]
    np.testing.assert_allclose(end - above, np.array([0.5, 1.5, 55.5]) / 1.5**2, rtol=1e-12)
    exact = stats.norm.logpdf(
        [5, 6, 60, 6000], 5, 1.5
    )  # of which the discrete sum differs by e^-44
    np.testing.assert_allclose(np.log(tally.matrix()[-1]) + tally.log_scale, exact, rtol=1e-12)


@pytest.mark.parametrize("distance", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("eps", [0, 0.1, 1.0, 3.0])
def test_the_delta_of_real_noise_is_that_of_the_densities(distance, eps):
    mechanism = ik.LinearGaussian(LINE, 2.5)
    x = np.linspace(-60, 60, 400_001)
    more = np.maximum(
        stats.norm.pdf(x, 0, 2.5) - math.exp(eps) * stats.norm.pdf(x, distance, 2.5), 0
    )
    assert mechanism.delta(eps, distance) == pytest.approx(
        more.sum() * (x[1] - x[0]), rel=1e-5, abs=1e-15
    )
    assert ik.PlanarGaussian(GRID, 2.5).delta(eps, distance) == mechanism.delta(eps, distance)


def test_levels_hold_for_all_pairs_by_default():
    mechanism = ik.PlanarGaussian(GRID, 2.0)
    diameter = GRID.distances().max()
    assert mechanism.zcdp() == pytest.approx(diameter**2 / 8)
    assert mechanism.delta(0.3) == pytest.approx(mechanism.delta(0.3, diameter))
    assert ik.PlanarGaussian(ik.Grid(1, 1), 2.0).delta(0.3) == 0
    with pytest.raises(ValueError, match="epsilon must be a finite number of 0 or more, got -1"):
        mechanism.delta(-1)


@pytest.mark.parametrize(
    "mechanism",
    [ik.LinearGaussian(LINE, 0.1), ik.LinearGaussian(LINE, 2.5), ik.PlanarGaussian(GRID, 0.8)],
    ids=str,
)
def test_densities_are_those_of_scipy_and_the_tally_keeps_the_contract(mechanism, rng):
    reports = mechanism.draw(np.arange(mechanism.k).repeat(10), rng)
    tally = mechanism.tally(reports)
    check_tally(tally, rng=rng)
    check_channel(mechanism.tally(reports[::8]).operator)
    if mechanism.dimension == 1:
        exact = stats.norm.logpdf(np.sort(reports), LINE.values[:, None], mechanism.sigma)
    else:
        at = tally.parts[0].reports
        north, east = GRID.centers().T[:, :, None]
        exact = stats.norm.logpdf(at[:, 0], east, 0.8) + stats.norm.logpdf(at[:, 1], north, 0.8)
    with np.errstate(divide="ignore"):
        got = np.log(tally.matrix()) + tally.log_scale
    np.testing.assert_allclose(got[exact > -500], exact[exact > -500], rtol=1e-10)


def test_real_noise_has_its_law(rng):
    n = 20_000
    line = (ik.LinearGaussian(LINE, 0.7).draw(np.full(n, 7), rng) - 5) / 0.7
    plane = (ik.PlanarGaussian(GRID, 0.7).draw(np.full(n, 11), rng) - [2.45, 1.25]) / 0.7
    for sample in (line, *plane.T):
        assert stats.kstest(sample, "norm").pvalue > 1e-6
        assert stats.kstest(sample + 0.05, "norm").pvalue < 1e-6
    assert abs(np.corrcoef(plane.T)[0, 1]) < 5 / math.sqrt(n)


def test_binned_reports_have_the_mass_of_their_bins(rng):
    line = ik.LinearGaussian(LINE, 1.2)
    edges = np.linspace(-6, 9, 20)
    binned = line.binned(edges)
    ends = np.r_[-np.inf, edges, np.inf]
    np.testing.assert_allclose(
        binned.matrix(), np.diff(stats.norm.cdf(ends, LINE.values[:, None], 1.2)), atol=1e-15
    )
    assert binned.matrix()[0, -1] == pytest.approx(stats.norm.sf(9, -2, 1.2), rel=1e-12)
    check_mechanism(binned, rng=rng, n=5000)
    plane = ik.PlanarGaussian(GRID, 0.8).binned([0.5, 1.1], [0.4])
    assert (plane.k, plane.m) == (12, 6)
    # cell 1: centre x = 1.05, y = 0.25; report 4: second row, second column
    mass = np.diff(stats.norm.cdf([0.5, 1.1], 1.05, 0.8)) * stats.norm.sf(0.4, 0.25, 0.8)
    assert plane.matrix()[1, 4] == pytest.approx(mass[0], rel=1e-12)
    with pytest.raises(ValueError, match="edges must be ascending numbers, at least one"):
        line.binned([1.0, 1.0])


@pytest.mark.parametrize(
    "mechanism", [ik.LinearGaussian(LINE, 2.5), ik.PlanarGaussian(GRID, 0.8)], ids=str
)
@pytest.mark.parametrize("bins", [1, 2, 8])
def test_merging_loses_no_more_than_is_said(mechanism, bins, rng):
    reports = mechanism.draw(rng.integers(0, mechanism.k, 4000), rng)
    exact = mechanism.tally(reports)
    merged = mechanism.counted(mechanism.check_reports(reports), bins=bins)
    assert merged.n == 4000
    assert len(merged.counts) < 3900
    best, other = ik.mle(exact), ik.mle(merged)
    loss = (
        best.log_likelihood
        - exact.log_offset
        - exact.counts @ np.log(exact.forward(other.distribution))
    ) / 4000
    assert -1e-9 <= loss <= merging_loss(merged)
    assert merging_loss(exact) == 0


def test_points_outside_and_places_are_taken_as_by_laplace_noise():
    mechanism = ik.PlanarGaussian(ik.Grid.from_bounds(40.0, 40.2, -74.0, -73.8, 2, 2), 2.0)
    assert mechanism.tally_points([[1.0, 2.0]]).parts[0].reports.tolist() == [[1, 2, 0]]
    with pytest.raises(ik.errors.AlphabetMismatch, match="1 of 1 points are outside the grid"):
        mechanism.tally_points([[-1.0, 2.0]])
    assert mechanism.tally_points([[-1.0, 2.0]], "keep", bins=2).n == 1


def test_a_line_without_an_end_is_for_integers_only(rng):
    anywhere, sigma = ik.DiscreteGaussian(ik.Line(None, None), 1.5), 1.5
    reports = anywhere.randomize([-5, 0, 0, 7] * 200, rng)
    tally = anywhere.tally(reports)
    assert tally.alphabet == ik.Line(reports.min(), reports.max())
    wider = ik.DiscreteGaussian(ik.Line(reports.min() - 5, reports.max() + 5), sigma).tally(reports)
    estimate = ik.mle(wider)
    assert estimate.log_likelihood == pytest.approx(ik.mle(tally).log_likelihood, abs=1e-5)
    assert estimate.distribution[:5].max() < 1e-6
    assert anywhere.zcdp(2) == pytest.approx(4 / (2 * sigma**2))
    with pytest.raises(ik.errors.TooLarge, match="has no end"):
        anywhere.zcdp()
    with pytest.raises(ik.errors.TooLarge, match="has no end"):
        ik.LinearGaussian(ik.Line(0, None), sigma)
    with pytest.raises(ik.errors.TooLarge, match="has no end"):
        ik.PlanarGaussian(ik.Grid(None, None), sigma)


@pytest.mark.parametrize(
    ("mechanism", "reports"),
    [(ik.LinearGaussian(LINE, 1.0), [0.0, 1e308]), (ik.PlanarGaussian(GRID, 1.0), [[0.0, -1e308]])],
    ids=["line", "plane"],
)
def test_a_number_whose_density_no_double_holds_is_refused(mechanism, reports):
    with pytest.raises(ik.errors.ImpossibleReport, match=r"1\.?e\+308"):
        mechanism.tally(reports)
