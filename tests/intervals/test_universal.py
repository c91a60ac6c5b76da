"""Likelihood ratios of split reports: against brute force, and how often they hold."""

from itertools import product

import numpy as np
import pytest

import ibukit as ik
from ibukit._ground.threads import one_thread
from ibukit.domain.linear_functionals import parse_functionals
from ibukit.intervals import universal
from ibukit.intervals.request import IntervalRequest
from ibukit.intervals.resampling import seeded
from ibukit.intervals.splitting import guess, split, tally_of
from ibukit.intervals.universal import Universal, averaged, cross_fitted, halved
from test_betting import LEVEL, SETTINGS, instance, simplex
from test_intervals import holds

WAYS = {"split": halved, "cross-fitted": cross_fitted, "averaged": averaged}


def both_ways(tally, splits, seed=0):
    rng = seeded(seed)
    pairs = [split(tally, 0.5, rng) for _ in range(splits)]
    return [pair for one, other in pairs for pair in ((one, other), (other, one))]


# Splits


def test_a_split_leaves_nothing_out():
    tally = ik.RandomizedResponse(4, 1.0).tally_counts([50, 0, 30, 21])
    drawn = np.array([split(tally, 0.25, seeded(seed))[0] for seed in range(300)])
    one, other = split(tally, 0.25, seeded(1))
    assert (one + other == tally.counts).all()
    assert set(drawn.sum(axis=1)) == {25}
    # hypergeometric: the standard error of the mean is below 0.2
    np.testing.assert_allclose(drawn.mean(axis=0), tally.counts / 101 * 25, atol=0.6)
    for share, least in ((1e-9, 1), (1 - 1e-9, 100)):
        assert split(tally, share, seeded(1))[0].sum() == least


def test_more_reports_than_numpy_draws_from_are_split_one_by_one():
    tally = ik.RandomizedResponse(2, 1.0).tally_counts([2 * 10**9, 10**9])
    for share in (0.1, 0.5):
        one, other = split(tally, share, seeded(1))
        assert (one + other == tally.counts).all()
        np.testing.assert_allclose(one / tally.counts, share, atol=1e-4)


def test_the_tally_of_some_reports_has_their_likelihood():
    both = ik.RandomizedResponse(3, 1.0).tally([0, 0, 1]) + ik.LinearGeometric(
        ik.Line(0, 2), 1.0
    ).tally([-4, 1])
    some = tally_of(both, np.array([1, 0, 1, 0]))
    theta = np.array([0.2, 0.3, 0.5])
    np.testing.assert_array_equal(some.forward(theta), both.forward(theta)[[0, 2]])
    assert len(tally_of(both, np.array([0, 0, 1, 1])).parts) == 1
    assert guess(some).min() > 0


# The ends against brute force


@pytest.mark.parametrize("splits", [0, 1, 5])
@pytest.mark.parametrize(
    ("seed", "k", "n"), [(0, 2, 400), (1, 2, 50), (2, 3, 50), (3, 3, 400), (4, 3, 400)]
)
def test_the_ends_are_those_of_the_region(seed, k, n, splits):
    """All distributions of a grid whose mean ratio is small enough."""
    tally, w = instance(seed, k, n=n)
    halves = both_ways(tally, splits) if splits else [split(tally, 0.5, seeded(0))]
    columns, grid = tally.matrix(), simplex(k, 400)
    ratios = [
        np.exp(
            judge @ np.log(guess(tally_of(tally, one)) @ columns) - np.log(grid @ columns) @ judge
        )
        for one, judge in halves
    ]
    members = (grid @ w)[np.mean(ratios, axis=0) <= 1 / (1 - LEVEL)]
    region = Universal(tally, LEVEL, halves)
    assert members.max() <= region.highest(w) + 1e-12
    assert members.min() >= -region.highest(-w) - 1e-12
    assert region.highest(w) - members.max() < 0.01
    assert members.min() + region.highest(-w) < 0.01


def test_weights_that_are_not_chosen_are_seen(monkeypatch):
    """The control: with equal weights the bound is valid, and not tight."""
    tally, w = instance(3, 3)
    region = Universal(tally, LEVEL, both_ways(tally, 5))
    chosen = region.highest(w)
    monkeypatch.setattr(universal, "MAX_WEIGHT_CHOICES", 1)
    assert region.highest(w) > chosen + 0.005


@pytest.mark.parametrize("by", WAYS)
def test_reports_that_cannot_be_listed_have_these_intervals(by):
    rng = np.random.default_rng(6)
    people = rng.multinomial(1000, [0.1, 0.2, 0.4, 0.3])
    line = ik.LinearGeometric(ik.Line(0, 3), 1.0).simulate(people, rng)
    bits = ik.Rappor(4, 2.0).simulate(people, rng)
    for tally in (line, bits, line + bits):
        estimate = ik.mle(tally)
        lower, upper = estimate.interval(LEVEL, method="guaranteed", by=by)
        inner = estimate.interval(LEVEL, method="profile")
        assert (lower <= inner[0]).all()
        assert (inner[1] <= upper).all()
        assert (upper - lower).max() < 1


def test_a_largest_answer_that_no_equal_weights_exclude_is_excluded():
    """Where one bad half would keep the vertex, and the mean of the ratios does not."""
    tally, w = instance(8, 3, n=50)
    region = Universal(tally, LEVEL, both_ways(tally, 5))
    columns = tally.matrix()
    vertex = np.eye(3)[np.argmax(w)]
    ratios = np.exp(
        region._guessed - region._counts @ np.log(vertex @ columns / columns.max(axis=0))
    )
    excluded = ratios.mean() > 1 / (1 - LEVEL)
    assert excluded == (region.highest(w) < w.max() - 1e-6)


# How often they hold


def covers(mechanism, theta, n, draws, level, of_splits):
    """Of each of the draws, whether the true theta_0 is in the interval;
    `of_splits` makes the region of a tally.
    """
    rng, w = np.random.default_rng(8), np.eye(len(theta))[0]
    for draw in range(draws):
        with one_thread():
            region = of_splits(mechanism(rng.multinomial(n, theta), rng), level, draw)
            held = -region.highest(-w) <= theta[0] <= region.highest(w)
        yield held


REGIONS = {
    "split": lambda tally, level, seed: Universal(tally, level, [split(tally, 0.5, seeded(seed))]),
    "cross-fitted": lambda tally, level, seed: Universal(tally, level, both_ways(tally, 1, seed)),
    "averaged": lambda tally, level, seed: Universal(tally, level, both_ways(tally, 3, seed)),
}


def on_itself(tally, level, seed):
    """The control: the judge's own estimate, at fifty times the risk."""
    _, judge = split(tally, 0.5, seeded(seed))
    return Universal(tally, 1 - 50 * (1 - level), [(judge, judge)])


# six splits of each tally take six times as long
LONG = {("vertex", "averaged"), ("singular", "averaged")}
HELD = product(["vertex", "few", "singular", "line"], REGIONS)


@pytest.mark.parametrize(
    ("name", "by"),
    [pytest.param(*case, marks=[pytest.mark.slow] if case in LONG else []) for case in HELD],
)
def test_split_ratios_hold(name, by):
    mechanism, theta, n, draws = SETTINGS[name]
    draws //= 2
    assert holds(covers(mechanism, theta, n, draws, LEVEL, REGIONS[by]), LEVEL, draws)


def test_a_judge_of_its_own_estimate_is_seen_not_to_hold():
    inside = (ik.RandomizedResponse(5, 1.0).simulate, [0.2, 0.4, 0.2, 0.1, 0.1], 300, 150, 0.99)
    assert not holds(covers(*inside, on_itself), 0.99, 150)
    assert holds(covers(*inside, REGIONS["split"]), 0.99, 150)


@pytest.mark.parametrize("by", WAYS)
def test_the_ways_are_the_regions(by):
    """What is asked for by name is what the tests above look at."""
    tally, w = instance(2, 3)
    splits = {"split": [split(tally, 0.5, seeded(7))], "cross-fitted": both_ways(tally, 1, 7)}
    region = Universal(tally, LEVEL, splits.get(by) or both_ways(tally, 4, 7))
    options = {"splits": 4} if by == "averaged" else {}
    lower, upper = ik.mle(tally).interval(
        LEVEL, of=w, method="guaranteed", by=by, seed=7, **options
    )
    assert (lower, upper) == pytest.approx((-region.highest(-w), region.highest(w)), abs=1e-9)
    functionals = parse_functionals(w, tally.alphabet)
    request = IntervalRequest(tally, ik.mle(tally).distribution, functionals, LEVEL)
    assert WAYS[by](request, 7, **options)[1][0] == pytest.approx(upper, abs=1e-9)


# What cannot be asked


def test_what_does_not_apply_is_named():
    estimate = ik.mle(ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2]))
    for by in WAYS:
        with pytest.raises(
            ValueError, match=f"target must be 'distribution' with .*by='{by}', got 'frequencies'"
        ):
            estimate.interval(method="guaranteed", by=by, target="frequencies")
        with pytest.raises(ValueError, match="at least 2 reports"):
            ik.mle(ik.RandomizedResponse(3, 1.0).tally([1])).interval(method="guaranteed", by=by)
    with pytest.raises(ValueError, match="splits must be at least 1"):
        estimate.interval(method="guaranteed", by="averaged", splits=0)
    with pytest.raises(ValueError, match="share must be in"):
        estimate.interval(method="guaranteed", by="split", share=0)
    long = ik.mle(ik.TruncatedGeometric(20_000, 0.5).tally([3, 5, 8]))
    with pytest.raises(ik.errors.TooLarge, match="secrets would take hours: ask for fewer"):
        long.interval(method="guaranteed", by="split")
    with pytest.raises(TypeError, match="splits"):
        estimate.interval(method="guaranteed", by="split", splits=3)


def test_halves_that_contradict_each_other_leave_the_estimate_of_all():
    tally = ik.RandomizedResponse(2, 2.0).tally_counts([500, 500])
    one, other = np.array([500, 0]), np.array([0, 500])
    region = Universal(tally, LEVEL, [(one, other), (other, one)])
    assert -region.highest(np.array([-1.0, 0.0])) < 0.5 < region.highest(np.array([1.0, 0.0]))
