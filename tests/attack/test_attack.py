"""Adversaries added to people and to reports, maps mixed,
and the fraction from which they count at all.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import ibukit as ik

COUNTS = np.array([500, 0, 400, 133])
SHARES = [0, 1e-4, 0.01, 0.1, 1 / 3, 0.5, 0.99]


@pytest.mark.parametrize("share", SHARES)
def test_adversaries_are_their_fraction_of_all_up_to_rounding_to_people(share):
    poisoned = ik.attack.poison_inputs(COUNTS, 1, share)
    added = poisoned - COUNTS
    assert added[[0, 2, 3]].tolist() == [0, 0, 0]
    assert abs(added[1] - share * (COUNTS.sum() + added[1])) <= 0.5 * (1 - share) + 1e-9
    assert poisoned.dtype == np.int64
    assert COUNTS.tolist() == [500, 0, 400, 133]


def test_several_targets_share_the_adversaries():
    added = ik.attack.poison_inputs([90, 0, 0, 0], [3, 1, 2], 0.1) - [90, 0, 0, 0]
    assert added.tolist() == [0, 3, 3, 4]
    assert ik.attack.poisoned_distribution([1.0, 0, 0, 0], [3, 1], 0.1) == pytest.approx(
        [0.9, 0.05, 0, 0.05]
    )


@pytest.mark.parametrize("share", SHARES)
def test_the_prior_with_adversaries_is_that_of_the_counts(share):
    honest = 10**9 * np.array([5, 0, 4, 1])
    counts = ik.attack.poison_inputs(honest, 1, share)
    prior = ik.attack.poisoned_distribution(honest / honest.sum(), 1, share)
    assert counts / counts.sum() == pytest.approx(prior, abs=1e-9)
    assert prior.sum() == pytest.approx(1, abs=1e-15)


def test_who_lies_and_keeps_to_the_mechanism_is_a_population_of_honest_people(rng):
    mechanism = ik.TruncatedGeometric(ik.Line(0, 3), epsilon=1.0)
    counts = ik.attack.poison_inputs(100 * COUNTS, 1, 0.2)
    seen = mechanism.simulate(counts, rng)
    expected = seen.n * mechanism.forward(
        ik.attack.poisoned_distribution(COUNTS / COUNTS.sum(), 1, 0.2)
    )
    honest = seen.n * mechanism.forward(COUNTS / COUNTS.sum())
    assert stats.chisquare(seen.counts, expected).pvalue > 1e-6
    assert stats.chisquare(seen.counts, honest).pvalue < 1e-6


CHANNELS = {
    "k-rr": (ik.RandomizedResponse(4, 1.0), 2, 2),
    "bits": (ik.Rappor(4, 1.0), [1, 0, 1, 1], None),
    "line": (ik.LinearGeometric(4, 1.0), -7, -7),
    "plane": (ik.PlanarGeometric(ik.Grid(2, 2), 1.0), (5, -3), [5, -3]),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_reports_of_adversaries_are_added_as_they_are(name, rng):
    mechanism, report, kept = CHANNELS[name]
    honest = mechanism.simulate(COUNTS, rng)
    attacked = ik.attack.poison_outputs(honest, report, 0.2)
    assert attacked.n == honest.n + round(honest.n / 4)
    kept = mechanism.check_reports(np.array([report])).tolist() if kept is None else [kept]
    before = dict(
        zip(map(str, honest.parts[0].reports.tolist()), honest.counts.tolist(), strict=True)
    )
    after = dict(
        zip(map(str, attacked.parts[0].reports.tolist()), attacked.counts.tolist(), strict=True)
    )
    key = str(kept[0])
    assert after.pop(key) - before.pop(key, 0) == round(honest.n / 4)
    assert after == before


def test_several_reports_share_the_adversaries():
    honest = ik.RandomizedResponse(3, 1.0).tally_counts([90, 90, 0])
    assert ik.attack.poison_outputs(honest, [2, 0], 0.05).counts.tolist() == [94, 90, 5]
    plane = ik.PlanarGeometric(ik.Grid(2, 2), 1.0).tally([[0, 0]] * 9)
    assert ik.attack.poison_outputs(plane, [[1, 1], [0, 2]], 0.4).counts.tolist() == [9, 3, 3]


def test_without_adversaries_nothing_changes():
    honest = ik.RandomizedResponse(3, 1.0).tally_counts([90, 90, 0])
    assert ik.attack.poison_outputs(honest, 2, 0.0) is honest
    assert ik.attack.poison_outputs(honest, 2, 0.001).n == 180  # a fifth of a person is nobody


def test_a_coarse_map_keeps_the_mass_of_each_block(rng):
    grid = ik.Grid(5, 7)
    weights = rng.integers(0, 50, 35)
    coarse = ik.attack.coarse_map(weights, grid, 3).reshape(5, 7)
    fine = (weights / weights.sum()).reshape(5, 7)
    for rows in (slice(0, 3), slice(3, 5)):
        for cols in (slice(0, 3), slice(3, 6), slice(6, 7)):
            assert coarse[rows, cols] == pytest.approx(
                np.full_like(fine[rows, cols], fine[rows, cols].mean())
            )


def test_blocks_are_counted_from_where_the_grid_begins():
    weights = np.arange(1, 13)
    elsewhere = ik.attack.coarse_map(weights, ik.Grid(3, 4, first=(-3, 5)), 2)
    assert (elsewhere == ik.attack.coarse_map(weights, ik.Grid(3, 4), 2)).all()


def test_the_finest_and_the_coarsest_map():
    grid = ik.Grid(2, 3)
    weights = np.array([1, 2, 3, 4, 5, 5])
    assert ik.attack.coarse_map(weights, grid, 1) == pytest.approx(weights / 20)
    assert ik.attack.coarse_map(weights, grid, 3) == pytest.approx(ik.uniform(6))


@given(weight=st.floats(0, 1))
def test_a_mixture_moves_by_its_share_of_what_adversaries_add(weight):
    theta, public = np.array([0.7, 0.3, 0.0]), np.array([0.2, 0.3, 0.5])
    mixed = ik.attack.mix_with_public(theta, public, weight)
    attacked = ik.attack.mix_with_public(
        ik.attack.poisoned_distribution(theta, 2, 0.1), public, weight
    )
    assert mixed.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(attacked - mixed).sum() == pytest.approx(weight * 0.2, abs=1e-12)
    assert mixed == pytest.approx([0.2 + 0.5 * weight, 0.3, 0.5 - 0.5 * weight], abs=1e-12)


@pytest.mark.parametrize("beta", [0.1, 1.0, 3.0])
def test_the_breakdown_fraction_of_two_places(beta):
    # all honest people at the first: g = (1 - f) u + f / u with u = exp(-beta d), which is 1 at f =
    # u / (1 + u)
    places = ik.Alphabet(["crowd", "island"], distances=[[0, 2], [2, 0]])
    u = np.exp(-2 * beta)
    assert ik.attack.breakdown_fraction([1, 0], places, beta, "island") == pytest.approx(
        u / (1 + u), rel=1e-10
    )


def test_the_breakdown_fraction_does_not_depend_on_the_unit():
    # where exp(beta d) overflows nothing is rounded away: 1000 cells of 1 m, or one of 1 km
    far = ik.Alphabet(["crowd", "island"], distances=[[0, 2000.0], [2000.0, 0]])
    assert ik.attack.breakdown_fraction([1, 0], far, 0.01, "island") == pytest.approx(
        np.exp(-20) / (1 + np.exp(-20)), rel=1e-6
    )


@pytest.mark.parametrize("target", [0, 4])
def test_just_above_the_breakdown_fraction_the_place_is_reported(target):
    prior = np.array([0.35, 0.4, 0.2, 0.05, 0.0])
    fraction = ik.attack.breakdown_fraction(prior, 5, 0.4, target)
    below, above = (
        ik.rate_distortion(
            ik.attack.poisoned_distribution(prior, target, fraction * f), 5, beta=0.4
        )
        for f in (0.999, 1.001)
    )
    assert target not in below.support
    assert target in above.support
    # the iteration itself, which never reaches a zero, goes there
    slow = [
        ik.blahut_arimoto(
            ik.attack.poisoned_distribution(prior, target, fraction * f), 5, 0.4, steps=20_000
        )
        for f in (0.9, 1.1)
    ]
    masses = [mechanism.matrix()[target, target] for mechanism in slow]
    assert masses[0] < 1e-12
    assert masses[1] > 1e-3


def test_a_place_that_is_reported_anyway_breaks_down_at_once():
    assert ik.attack.breakdown_fraction([0.5, 0.1, 0.4], 3, 1.0, 0) == 0
    assert ik.attack.breakdown_fraction([1.0], 1, 1.0, 0) == 0
    assert ik.attack.breakdown_fraction([0.0, 1.0], 2, 1.0, 1) == 0


def test_g_crosses_one_once_on_random_instances(rng):
    from ibukit.attack.breakdown import _log_g
    from ibukit.design.least_information import RateDistortionProblem

    crossed = 0
    for _ in range(40):
        k = int(rng.integers(3, 8))
        places = rng.random((k, 2)) * 4
        distances = np.linalg.norm(places[:, None] - places, axis=-1)
        prior, beta = rng.dirichlet(np.full(k, 0.4)), rng.uniform(0.1, 3)
        lies = np.linspace(0, 0.9, 19)
        sources = [
            RateDistortionProblem(
                ik.attack.poisoned_distribution(prior, 0, f), np.delete(distances, 0, axis=1)
            )
            for f in lies
        ]
        worth = np.array([_log_g(source, distances[:, 0], beta) for source in sources]) > 1e-9
        assert (np.diff(worth.astype(int)) >= 0).all()
        if not worth[0] and worth[-1]:
            crossed += 1
            fraction = ik.attack.breakdown_fraction(
                prior, ik.Alphabet(range(k), distances), beta, 0
            )
            assert lies[worth.argmax() - 1] <= fraction <= lies[worth.argmax()]
    assert crossed > 10
