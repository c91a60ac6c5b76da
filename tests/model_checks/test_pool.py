"""Do the mechanisms of a pool tell one distribution? Found where people chose by their secret."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import ibukit as ik
from ibukit.model_checks import pool, pool_test

LEVELS = np.array([0.5, 1.0, 2.0, 3.0])
SHARES = np.array([0.7, 0.1, 0.06, 0.04, 0.03, 0.03, 0.04])


def survey(dependence, seed, n=48_842):
    """Draw a tally of people of whom the second kind prefers small levels, by exp(-t epsilon)."""
    rng = np.random.default_rng(seed)
    secrets = rng.multinomial(n, SHARES)
    tallies = []
    even = np.full(4, 0.25)
    careful = np.exp(-dependence * LEVELS)
    chosen = np.array(
        [
            rng.multinomial(people, careful / careful.sum() if x == 1 else even)
            for x, people in enumerate(secrets)
        ]
    )
    for level, people in zip(LEVELS, chosen.T, strict=True):
        tallies.append(ik.RandomizedResponse(7, epsilon=level).simulate(people, rng))
    return sum(tallies[1:], tallies[0])


def test_people_who_mildly_choose_by_their_secret_are_found():
    tally = survey(0.3, 1)
    check = ik.mle(tally).pool_test(199)
    assert check.p_value <= 0.01
    assert "ik.combine_results(tally, ik.inv)" in check.reason
    # The remedy that it names is right where the common estimate is not.
    apart, common = ik.combine_results(tally, ik.inv)[1], ik.mle(tally)[1]
    assert abs(apart - 0.1) < 0.015
    assert common < 0.09


def test_people_who_choose_by_a_coin_are_not():
    assert ik.mle(survey(0.0, 2)).pool_test(199).p_value > 0.01


def test_the_statistic_is_what_distributions_of_their_own_gain():
    one, other = (ik.RandomizedResponse(3, epsilon=e) for e in (1.0, 3.0))
    first, second = one.tally_counts([250, 300, 500]), other.tally_counts([700, 200, 100])
    check = pool_test(first + second)
    by_hand = 2 * (
        ik.mle(first).log_likelihood
        + ik.mle(second).log_likelihood
        - ik.mle(first + second).log_likelihood
    )
    assert check.statistic == pytest.approx(by_hand, rel=1e-8)
    assert sum(check.parts) == pytest.approx(by_hand, rel=1e-8)
    assert check.p_value < 1e-9


def test_many_levels_are_compared_in_groups_of_neighbours():
    rng = np.random.default_rng(8)
    tallies = [
        ik.RandomizedResponse(3, epsilon=e).simulate([60, 30, 10], rng)
        for e in rng.permutation(np.linspace(0.5, 3, 40))
    ]
    check = pool_test(sum(tallies[1:], tallies[0]), 49)
    assert len(check.parts) == 8
    assert not check.is_surprising


def test_one_distribution_on_integers_without_an_end():
    rng = np.random.default_rng(9)
    line = ik.Line(None, None)
    tallies = [
        ik.LinearGeometric(line, e).tally(7 + rng.geometric(0.6, 200) - rng.geometric(0.6, 200))
        for e in (1.0, 2.0)
    ]
    assert 0 < pool_test(tallies[0] + tallies[1], 49).p_value <= 1


def test_one_mechanism_is_no_pool():
    with pytest.raises(ValueError, match="at least two mechanisms, but it has those of one"):
        pool_test(ik.RandomizedResponse(2, 1.0).tally_counts([3, 4]))


def test_summaries_of_very_many_mechanisms_draw_nothing(monkeypatch):
    drawn, draw_part = [], pool.draw_part
    monkeypatch.setattr(
        pool, "draw_part", lambda part, *rest: drawn.append(part) or draw_part(part, *rest)
    )
    monkeypatch.setattr(sys.modules["ibukit.model_checks.findings"], "MAX_PARTS_DRAWN", 3)
    levels = [ik.RandomizedResponse(3, epsilon) for epsilon in (0.5, 1.0, 1.5, 2.0)]
    tallies = [each.tally_counts([70, 40, 30]) for each in levels]
    assert "mechanisms" in str(ik.mle(sum(tallies)).summary().warnings)
    assert not drawn
    ik.mle(sum(tallies[1:])).summary()
    assert drawn


def test_summaries_of_pools_say_what_was_found_and_name_the_remedy():
    for dependence, found in ((1.0, "different distributions"), (0.0, "do not contradict")):
        warnings = ik.mle(survey(dependence, 3)).summary().warnings
        (line,) = [warning for warning in warnings if found in warning]
        assert "ik.combine_results(tally, ik.inv)" in line


@pytest.mark.slow
@pytest.mark.parametrize(
    "shares", [[0, 0, 1, 0], [0.5, 0, 0, 0.5], [0.9, 0.08, 0.02, 0], [0.25] * 4]
)
@pytest.mark.parametrize("n", [60, 2000])
@pytest.mark.parametrize("kind", [ik.RandomizedResponse, ik.TruncatedGeometric, ik.Rappor])
def test_one_distribution_is_rejected_no_more_often_than_the_level_says(kind, n, shares):
    rng = np.random.default_rng([11, n])

    def p_value(seed):
        tallies = [kind(4, e).simulate(rng.multinomial(n // 2, shares), rng) for e in (0.7, 2.0)]
        return pool_test(tallies[0] + tallies[1], 199, seed).p_value

    p = pd.Series(p_value(seed) for seed in range(300))
    for level in (0.05, 0.2):
        rejected = int((p <= level).sum())
        assert binomtest(rejected, len(p), level, alternative="greater").pvalue > 1e-3
