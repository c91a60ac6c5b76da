"""Reports of mechanisms for numbers, drawn and counted without their matrix."""

import numpy as np
import pytest
from scipy.stats import chi2

import ibukit as ik
from ibukit.mechanisms.base import FiniteMechanism

NUMBERS = (ik.SquareWave, ik.Piecewise, ik.HybridMechanism, ik.Duchi, ik.Staircase)
# A right sampler falls below it in one of a million seeds; the seeds are fixed.
MIN_P_VALUE = 1e-6


def p_value(counts, probabilities):
    """Of Pearson's statistic; classes of fewer than five expected reports are taken together."""
    expected = counts.sum() * probabilities
    rare = expected < 5
    seen = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    used = expected > 0
    assert not seen[~used].any()
    statistic = ((seen - expected)[used] ** 2 / expected[used]).sum()
    return chi2.sf(statistic, max(used.sum() - 1, 1))


@pytest.mark.parametrize("cls", NUMBERS)
@pytest.mark.parametrize("k", [2, 7])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 4.0, 20.0])
def test_reports_follow_the_matrix(cls, k, epsilon, rng):
    mechanism = cls(ik.Line(3, k + 2), epsilon)
    for secret, row in enumerate(mechanism.matrix()):
        reports = mechanism.randomize(np.full(20_000, secret), rng, codes=True)
        counts = np.bincount(mechanism.check_reports(reports), minlength=mechanism.m)
        assert p_value(counts, row) > MIN_P_VALUE


@pytest.mark.parametrize("cls", [ik.SquareWave, ik.Piecewise])
def test_narrow_windows_hold_the_share_that_they_should(cls):
    # A window is 2^-30 or less of the support. Reports are inside as the coin has it, whatever the
    # rounding: its draws are the first of the generator.
    mechanism = cls(1000, 19.0 if cls is ik.SquareWave else 38.0)
    secrets = np.arange(1000).repeat(20)
    codes = mechanism.check_reports(mechanism.draw(secrets, np.random.default_rng(5)))
    first, last = mechanism._ends[2][:, secrets]
    inside = np.random.default_rng(5).random(len(secrets)) < mechanism.inside
    np.testing.assert_array_equal((codes >= first) & (codes < last), inside)


@pytest.mark.parametrize("cls", NUMBERS)
@pytest.mark.parametrize("n", [50, 5000])
def test_simulated_tallies_have_the_law_of_their_users(cls, n, rng):
    # Fewer users than the matrix has entries are drawn one by one, more by multinomials.
    mechanism = cls(ik.Line(0, 9), 1.0)
    users = rng.multinomial(n, np.arange(1, 11) / 55)
    counts = np.zeros(mechanism.m, dtype=np.int64)
    for _ in range(200):
        (part,) = mechanism.simulate(users, rng).parts
        counts[part.reports] += part.counts
    # The counts of fixed users vary a little less than a multinomial of their mixture does, so
    # that the test is on the safe side.
    assert p_value(counts, users @ mechanism.matrix() / n) > MIN_P_VALUE


@pytest.mark.parametrize("cls", NUMBERS)
@pytest.mark.parametrize("n", [50, 5000])
def test_a_class_with_a_matrix_of_its_own_is_drawn_from_it(cls, n, rng):
    class Flat(cls):
        def make_matrix(self):
            # Half of the reports say nothing.
            return super().make_matrix() / 2 + 0.5 / self.m

    mechanism = Flat(ik.Line(0, 4), 3.0)
    drawn, simulated = np.zeros((2, mechanism.m), dtype=np.int64)
    for _ in range(5000 // n):
        reports = mechanism.randomize(np.full(n, 1), rng, codes=True)
        drawn += np.bincount(mechanism.check_reports(reports), minlength=mechanism.m)
        (part,) = mechanism.simulate(n * np.eye(5, dtype=int)[1], rng).parts
        simulated[part.reports] += part.counts
    for counts in (drawn, simulated):
        assert p_value(counts, mechanism.matrix()[1]) > MIN_P_VALUE


@pytest.mark.parametrize("cls", NUMBERS)
def test_no_matrix_is_made_to_draw_and_to_count(cls, rng):
    # The matrix of 200,000 secrets would have 4e10 entries or more, and the columns of these
    # reports 6e7: neither is made.
    mechanism = cls(ik.Line(0, 199_999), 1.0)
    secrets = rng.integers(0, mechanism.k, 300)
    tally = mechanism.tally(mechanism.randomize(secrets, rng, codes=True))
    simulated = mechanism.simulate(np.bincount(secrets, minlength=mechanism.k), rng)
    assert tally.n == simulated.n == 300
    assert not vars(mechanism).keys() & {"_matrix"} or cls is ik.Duchi
    assert "channel" not in vars(tally.parts[0]) | vars(simulated.parts[0])


@pytest.mark.parametrize("cls", NUMBERS)
def test_columns_of_seen_reports_are_those_of_the_matrix(cls):
    mechanism = cls(ik.Line(0, 9), 1.3)
    codes = np.arange(mechanism.m)[::2]
    columns = mechanism.channel(codes).rows(np.arange(mechanism.k))
    np.testing.assert_array_equal(columns, mechanism.matrix()[:, codes])


def test_a_class_with_a_matrix_of_its_own_is_asked_for_it():
    class Blunt(ik.SquareWave):
        def make_matrix(self):
            return np.full((self.k, self.m), 1 / self.m)

    mechanism = Blunt(4, 1.0)
    np.testing.assert_array_equal(
        mechanism.channel(np.arange(3)).rows(np.arange(4)), np.full((4, 3), 1 / mechanism.m)
    )


@pytest.mark.parametrize(("k", "m"), [(1, 1), (3, 7), (50, 300), (2, 20_000), (300, 5000)])
def test_draws_from_a_matrix_are_those_of_choice(k, m):
    # numpy's own draws, secret by secret.
    mechanism = ik.MatrixMechanism(np.random.default_rng(1).dirichlet(np.ones(m), k))
    secrets = np.random.default_rng(2).integers(0, k, 2000)
    rng, expected = np.random.default_rng(3), np.empty(2000, dtype=np.int64)
    for secret in np.unique(secrets):
        row = mechanism.matrix()[secret]
        users = secrets == secret
        expected[users] = rng.choice(m, size=users.sum(), p=row / row.sum())
    drawn = FiniteMechanism.draw(mechanism, secrets, np.random.default_rng(3))
    np.testing.assert_array_equal(drawn, expected)


def test_longitudinal_reports_are_simulated_as_those_of_one_response():
    mechanism = ik.LongitudinalResponse(20_000, epsilon=1.0, epsilon_inf=2.0)
    users = np.arange(20_000) % 3
    tally = mechanism.simulate(users, np.random.default_rng(1))
    one = ik.RandomizedResponse(20_000, 1.0).simulate(users, np.random.default_rng(1))
    assert tally.parts[0].mechanism is mechanism
    np.testing.assert_array_equal(tally.parts[0].reports, one.parts[0].reports)
    np.testing.assert_array_equal(tally.counts, one.counts)


@pytest.mark.parametrize("low", [-(2**62), -3, 2**62])
@pytest.mark.parametrize("spread", [5, 10**4])
def test_integers_are_counted_as_sorting_them_does(low, spread, rng):
    # Reports close together are counted in one pass, others are sorted.
    reports = low + rng.integers(0, spread, 1000)
    counts = rng.integers(0, 4, 1000)
    (part,) = ik.LinearGeometric(5, 1.0).tally(reports, counts=counts).parts
    expected = {}
    for report, count in zip(reports.tolist(), counts.tolist(), strict=True):
        expected[report] = expected.get(report, 0) + count
    expected = {report: count for report, count in sorted(expected.items()) if count}
    assert dict(zip(part.reports.tolist(), part.counts.tolist(), strict=True)) == expected
    assert part.reports.tolist() == list(expected)
