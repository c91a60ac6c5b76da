"""Simulated thresholds: fits against a grid, ends against exact laws,
and how often they hold at a vertex.
"""

import numpy as np
import pytest
from scipy.stats import binom, chi2

import ibukit as ik
from ibukit.intervals.calibrated import RATIO_TOLERANCE, Calibrated, constrained
from ibukit.intervals.tilted_likelihood import likelihood_of
from ibukit.solvers.problem import Problem

# of a share that should be the level: how many standard errors it may be off
SIGMAS = 3.5


def likelihood(tally):
    return likelihood_of(Problem(tally.operator, tally.counts, tally.n))


def instance(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(rng.integers(2, 6), rng.choice([0.5, 3.0])), 3)
    tally = ik.MatrixMechanism(matrix).simulate(
        rng.multinomial(rng.choice([20, 2000]), rng.dirichlet(np.ones(3))), rng
    )
    w = rng.choice([np.eye(3)[0], np.array([0, 1, rng.random()])])
    return tally, rng.permutation(w), rng


def on_segment(tally, w, v):
    """The largest f with w . theta = v, over the segment where the plane cuts the triangle."""
    corners = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        share = (v - w[j]) / (w[i] - w[j]) if w[i] != w[j] else np.nan
        if 0 <= share <= 1:
            corners.append(share * np.eye(3)[i] + (1 - share) * np.eye(3)[j])
        elif w[i] == w[j] == v:
            corners += [np.eye(3)[i], np.eye(3)[j]]
    corners = np.array(corners)
    ends = corners[[np.argmin(corners @ [1, 2, 4]), np.argmax(corners @ [1, 2, 4])]]
    along = np.linspace(0, 1, 20_001)[:, None]
    with np.errstate(divide="ignore"):
        fits = (
            np.log((along * ends[0] + (1 - along) * ends[1]) @ tally.matrix()) @ tally.frequencies
        )
    return fits.max()


@pytest.mark.parametrize("seed", range(40))
def test_constrained_fits_are_those_of_a_grid(seed):
    tally, w, rng = instance(seed)
    best = tally.frequencies @ np.log(tally.forward(ik.mle(tally).distribution))
    for v in (0.0, *rng.random(3), 1.0):
        found = constrained(likelihood(tally), tally.n, w, v)
        ratio = 2 * tally.n * (best - on_segment(tally, w, v))
        assert w @ found.theta == pytest.approx(v, abs=1e-9)
        assert found.theta.min() >= 0
        if np.isfinite(ratio):
            # the grid is no finer than it is, and misses the largest fit by some of a large ratio
            assert found.ratio == pytest.approx(ratio, abs=RATIO_TOLERANCE + 1e-3, rel=1e-4)
        else:
            assert found.ratio > 1e3


def test_what_reports_leave_open_has_no_ratio():
    merged = ik.compose(ik.RandomizedResponse(3, 1.0), [[1, 0], [0, 1], [0, 1]]).tally_counts(
        [60, 40]
    )
    share = 1 - ik.mle(merged).distribution[0]
    for v in (0.0, 0.3 * share, 0.9 * share, share):
        found = constrained(likelihood(merged), 100, np.array([0.0, 1.0, 0.0]), v)
        assert found.theta[1] == pytest.approx(v, abs=1e-9)
        assert found.ratio <= RATIO_TOLERANCE
    lower, upper = ik.mle(merged).interval(0.9, of=[0, 1, 0], method="calibrated", draws=19)
    assert lower == 0
    assert upper > share


def test_what_no_distribution_explains_is_out():
    tally = ik.MatrixMechanism([[1.0, 0.0], [0.5, 0.5]]).tally_counts([5, 5])
    assert constrained(likelihood(tally), 10, np.array([1.0, 0.0]), 1.0).ratio == np.inf


# Two secrets: everything is binomial


def exact_law(v, n, p):
    """Ratios of v of all tallies of n reports of two secrets, and their probabilities;
    p the chance of the truth.
    """
    seen = np.arange(n + 1)
    best, here = np.clip(seen / n, 1 - p, p), v * p + (1 - v) * (1 - p)
    ratios = 2 * (seen * np.log(best / here) + (n - seen) * np.log((1 - best) / (1 - here)))
    return np.maximum(ratios, 0), binom.pmf(seen, n, here)


def is_quantile(threshold, ratios, chances, level, draws):
    """Whether the simulated quantile is near enough to the exact one, whose law has atoms."""
    margin = SIGMAS * np.sqrt(level * (1 - level) / draws)
    below, up_to = (
        chances[ratios <= threshold + side * 2 * RATIO_TOLERANCE].sum() for side in (-1, 1)
    )
    return below <= level + margin and up_to >= level - margin


@pytest.mark.parametrize("v", [0.5, 0.9, 1.0])
def test_thresholds_are_quantiles_of_the_exact_law(v):
    n, level, draws = 80, 0.9, 800 if v == 1 else 400  # at a vertex the law's atoms are far apart
    mechanism = ik.RandomizedResponse(2, 1.0)
    region = Calibrated(mechanism.tally_counts([50, 30]), level, draws, 3)
    threshold, _ = region.threshold(np.array([1.0, 0.0]), v)
    ratios, chances = exact_law(v, n, mechanism.matrix()[0, 0])
    assert is_quantile(threshold, ratios, chances, level, draws)
    # the controls: too small and too large
    assert not is_quantile(threshold / 1.8, ratios, chances, level, draws)
    assert not is_quantile(1.8 * threshold, ratios, chances, level, draws)


def test_the_error_of_a_threshold_is_about_that_over_seeds():
    tally = ik.RandomizedResponse(2, 1.0).tally_counts([2500, 1500])
    found = [
        Calibrated(tally, 0.9, 100, seed).threshold(np.array([1.0, 0.0]), 0.8) for seed in range(20)
    ]
    thresholds, errors = np.array(found).T
    # a standard deviation of twenty is right to a sixth
    assert 0.5 < thresholds.std(ddof=1) / errors.mean() < 2
    assert np.unique(thresholds).size > 10


@pytest.mark.parametrize(
    "seen", [30, *(pytest.param(seen, marks=pytest.mark.slow) for seen in (45, 50))]
)
def test_ends_have_the_ratio_that_the_exact_law_wants(seen):
    n, level, draws = 80, 0.9, 400
    mechanism = ik.RandomizedResponse(2, 1.0)
    p = mechanism.matrix()[0, 0]
    estimate = ik.mle(mechanism.tally_counts([seen, n - seen]))
    for end in estimate.interval(level, of=[1, 0], method="calibrated", draws=draws, seed=5):
        ratios, chances = exact_law(end, n, p)
        if 0 < end < 1:
            assert is_quantile(ratios[seen], ratios, chances, level, draws)
        else:
            assert chances[ratios < ratios[seen] - 1e-9].sum() <= level + SIGMAS * np.sqrt(
                level * (1 - level) / draws
            )


def test_with_many_reports_inside_the_threshold_is_the_chi_squared_one():
    tally = ik.RandomizedResponse(3, 2.0).tally_counts([40_000, 35_000, 25_000])
    lower, upper = ik.mle(tally).interval(0.9, of=[1, 0, 0], method="profile")
    threshold, _ = Calibrated(tally, 0.9, 400, 1).threshold(np.array([1.0, 0.0, 0.0]), upper)
    assert abs(chi2.cdf(threshold, 1) - 0.9) <= SIGMAS * np.sqrt(0.9 * 0.1 / 400)
    assert lower < upper


# At a vertex


def test_at_a_vertex_it_holds_where_the_profile_does_not():
    """The threshold at a vertex is the same for all tallies, as only one distribution is there."""
    level, w, rng = 0.95, np.eye(5)[0], np.random.default_rng(8)
    tallies = [ik.RandomizedResponse(5, 1.0).simulate([300, 0, 0, 0, 0], rng) for _ in range(300)]
    threshold, _ = Calibrated(tallies[0], level, 499, 0).threshold(w, 1.0)
    ratios = np.array([constrained(likelihood(tally), 300, w, 1.0).ratio for tally in tallies])
    margin = SIGMAS * np.sqrt(level * (1 - level) * (1 / 300 + 1 / 499))
    assert abs((ratios <= threshold).mean() - level) <= margin
    assert (ratios <= chi2.ppf(level, 1)).mean() < level - margin
    # and what the method returns says the same
    between = np.flatnonzero((ratios > chi2.ppf(level, 1) + 0.2) & (ratios < threshold - 0.5))
    beyond = np.flatnonzero(ratios > threshold + 2.5)
    for i in between[:3]:
        assert ik.mle(tallies[i]).interval(level, of=w, method="profile")[1] < 1
        assert Calibrated(tallies[i], level, 99, 0).highest(w) == 1
    for i in beyond[:2]:
        assert Calibrated(tallies[i], level, 99, 0).highest(w) < 1


# What is asked


def test_the_same_question_has_the_same_answer_in_any_company():
    estimate = ik.mle(ik.RandomizedResponse(3, 1.0).tally_counts([60, 30, 10]))
    options = {"level": 0.8, "method": "calibrated", "draws": 15}
    lower, upper = estimate.interval(of=[[1, 0, 0], [0, 2, 4]], **options)
    assert estimate.interval(of=[0, 2, 4], **options) == (lower[1], upper[1])
    assert estimate.interval(of=[0, 1, 2], **options) == pytest.approx((lower[1] / 2, upper[1] / 2))
    assert estimate.interval(of=[0, -1, -2], **options) == pytest.approx(
        (-upper[1] / 2, -lower[1] / 2)
    )
    assert estimate.interval(of=[0, 2, 4], seed=1, **options) != (lower[1], upper[1])
    assert estimate.interval(of=[3, 3, 3], **options) == (3, 3)


def test_pools_are_drawn_part_by_part():
    tally = ik.RandomizedResponse(2, 0.5).tally_counts([30, 20]) + ik.Rappor(2, 4.0).simulate(
        [30, 10], np.random.default_rng(1)
    )
    lower, upper = ik.mle(tally).interval(0.8, of=[1, 0], method="calibrated", draws=49)
    plain = ik.mle(tally).interval(0.8, of=[1, 0], method="profile")
    assert (lower, upper) == pytest.approx(plain, abs=0.15)
    assert 0 < lower < ik.mle(tally).distribution[0] < upper < 1


def test_bad_input_is_named():
    estimate = ik.mle(ik.RandomizedResponse(2, 1.0).tally_counts([6, 4]))
    for draws, level, least in ((18, 0.95, 19), (8, 0.9, 9), (98, 0.99, 99)):
        with pytest.raises(ValueError, match=f"draws must be at least {least}, got {draws}"):
            estimate.interval(level, method="calibrated", draws=draws)
    with pytest.raises(ValueError, match="seed must be at least 0, got -1"):
        estimate.interval(method="calibrated", seed=-1)
    with pytest.raises(
        ValueError,
        match="target must be 'distribution' with method='calibrated', got 'frequencies'",
    ):
        estimate.interval(method="calibrated", target="frequencies")


def test_one_kind_of_report_has_one_tally_of_any_number_of_reports():
    found = ik.mle(ik.MatrixMechanism(np.ones((2, 1))).tally_counts([2**53]))
    lower, upper = found.interval(method="calibrated", draws=20)
    assert (lower.tolist(), upper.tolist()) == ([0, 0], [1, 1])
