"""Samples of few reports, and of none for a secret: against a grid of all pairs of two shares."""

import numpy as np
import pytest
from scipy.stats import chi2, norm

import ibukit as ik
from ibukit.intervals.comparison.profiles import Bound, Sample, joint_bound
from ibukit.intervals.comparison.tilt_curve import TiltCurve
from ibukit.intervals.tilted_likelihood import DenseLikelihood

Z = norm.ppf(0.975)
SHARES = np.linspace(0, 1, 200_001)
MECHANISMS = {
    "plain": ik.MatrixMechanism(np.eye(2)),
    "k-RR": ik.RandomizedResponse(2, 1.0),
    "three reports": ik.MatrixMechanism([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]),
    "a report of one secret": ik.MatrixMechanism([[1.0, 0.0], [0.4, 0.6]]),
}
COUNTS = {
    "one each": ([1, 0], [0, 1]),
    "one alike": ([1, 0], [1, 0]),
    "one and many": ([0, 1], [7000, 3000]),
    "none": ([50, 0], [44, 6]),
    "all": ([0, 30], [20, 10]),
    "few": ([3, 2], [1, 6]),
    "many": ([51_000, 49_000], [50_000, 50_000]),
}


def falls(mechanism, counts):
    """By how many nats each share of the second secret is less likely than the best."""
    p = np.outer(1 - SHARES, mechanism.matrix()[0]) + np.outer(SHARES, mechanism.matrix()[1])
    seen = np.array(counts) > 0
    with np.errstate(divide="ignore"):
        fit = np.log(p[:, seen]) @ np.array(counts)[seen]
    return fit.max() - fit


def least_share(fall, within):
    """The least share whose fall is within so many nats, for an array of them."""
    best = int(fall.argmin())
    # The fall rises from the best share down to 0.
    return np.interp(within, fall[best::-1], SHARES[best::-1])


def brute_force(first, second):
    """Upper ends of the difference and ratio, and the least common fall of equal shares."""
    inside = first <= Z**2 / 2
    least = least_share(second, Z**2 / 2 - first[inside])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = SHARES[inside] / least
    # A share of 0 that is attained has no ratio.
    return (SHARES[inside] - least).max(), np.nanmax(ratio), (first + second).min()


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_ends_and_p_values_are_those_of_all_pairs_of_shares(mechanism, counts):
    counts = [[*each, 0][: mechanism.m] for each in counts]
    found = ik.compare(*map(mechanism.tally_counts, counts), of=[0, 1])
    one, other = (falls(mechanism, each) for each in counts)
    upper, ratio, fall = brute_force(one, other)
    lower, inverse, _ = brute_force(other, one)
    np.testing.assert_allclose(found.difference.interval, (-lower, upper), atol=2e-5)
    assert found.difference.p_value == pytest.approx(chi2.sf(2 * fall, 1), rel=1e-4, abs=1e-5)
    for end, expected in zip(found.ratio.interval, (1 / inverse, ratio), strict=True):
        # On the grid a share is known to 1e-5 or so.
        assert (end == np.inf and expected > 1e3) or end == pytest.approx(expected, rel=5e-3)


def test_few_reports_take_few_maximisers(monkeypatch, rng):
    """A search for the end within a search for the angle takes thousands for each question."""
    calls = []
    maximiser = DenseLikelihood.tilted_maximiser
    monkeypatch.setattr(
        DenseLikelihood, "tilted_maximiser", lambda self, a: calls.append(a) or maximiser(self, a)
    )
    mechanism = ik.TruncatedGeometric(8, 0.5)
    for n in (1, 20, 20_000):
        one, other = (mechanism.simulate(rng.multinomial(n, ik.uniform(8)), rng) for _ in range(2))
        calls.clear()
        ik.compare(one, other)
        assert len(calls) <= 150 * 8


def test_a_slope_between_two_tilts_is_on_the_segment_between_them():
    """The maximisers of one report all have one tilt, and their slopes are in a range."""
    mechanism = ik.MatrixMechanism([[0.8, 0.2], [0.2, 0.8]])
    curve = TiltCurve(Sample(mechanism.tally_counts([1, 0])).likelihood, np.array([0.0, 1.0]))
    for slope in (0.5, 0.8, 1.0, 2.0, 3.0, 50.0):
        # f = log(0.8 - 0.6 share) falls by 0.6 / (0.8 - 0.6 share).
        expected = np.clip((0.8 - 0.6 / slope) / 0.6, 0, 1)
        assert curve.at(slope).answer == pytest.approx(expected, abs=1e-8)


def test_a_secret_that_sends_no_report_seen_gains_by_dilution():
    curve = TiltCurve(
        Sample(MECHANISMS["plain"].tally_counts([9, 0])).likelihood, np.array([0.0, 1.0])
    )
    for slope in (0.5, 1.0, 2.0, 1000.0):
        # f = log(1 - share).
        assert curve.at(slope).answer == pytest.approx(max(0, 1 - 1 / slope), abs=1e-8)


def test_the_joint_bound_is_the_best_division_of_the_fall(rng):
    for _ in range(200):
        one, other = (
            Bound(
                rng.uniform(0.3, 1.1), rng.uniform(0, 1) * (rng.random() < 0.8), rng.uniform(1, 4)
            )
            for _ in range(2)
        )
        weight, fall = rng.uniform(0, 3), rng.uniform(0, 5)
        grid = np.linspace(0, fall, 2001)
        best = max(one.at(share) + weight * other.at(fall - share) for share in grid)
        assert joint_bound(one, other, weight, fall) == pytest.approx(best, abs=5e-3)
        assert joint_bound(one, other, weight, fall) >= best - 1e-12


def test_a_tilt_may_be_nearer_to_one_than_rounding():
    """Noise of level 10 on 8 places: the least chance of a report is e^-70."""
    mechanism = ik.TruncatedGeometric(8, 10.0)
    counts = [0, 0, 0, 0, 1, 1, 1, 0], [0, 1, 3, 0, 1, 0, 0, 0]
    frame = ik.compare(*map(mechanism.tally_counts, counts)).to_frame()
    # Without noise the difference at place 2 is that of 0 of 3 and 3 of 5.
    plain = ik.compare(
        *map(ik.MatrixMechanism(np.eye(2)).tally_counts, ([3, 0], [2, 3])), of=[0, 1]
    )
    np.testing.assert_allclose(
        frame.loc[2, ["lower", "upper"]].astype(float), plain.difference.interval, atol=1e-3
    )


def test_a_line_of_many_places_has_the_ends_of_few():
    """One report each, far apart: the places between and beyond them are too far to matter."""
    ends = []
    for k in (40, 301):
        mechanism = ik.TruncatedGeometric(k, 2.0)
        one, other = (np.eye(k, dtype=int)[[place, place - k]].sum(axis=0) for place in (10, 25))
        found = ik.compare(
            mechanism.tally_counts(one), mechanism.tally_counts(other), of=np.arange(k) < 18
        )
        ends.append([*found.difference.interval, found.difference.p_value])
    np.testing.assert_allclose(*ends, atol=1e-4)


@pytest.mark.parametrize("level", [1e-4, 0.01, 0.02, 0.03, 0.05, 0.1, 0.5, 0.95])
def test_a_sample_of_a_trillion_is_as_good_as_known(level):
    mechanism = ik.RandomizedResponse(4, 2.0)
    few = mechanism.tally_counts([30_406, 46_370, 11_300, 11_924])
    many = mechanism.tally_counts(
        [339_061_780_883, 404_315_697_467, 136_691_956_793, 119_930_564_857]
    )
    w = np.array([1, 0.9, 0, 0.7])
    (value,) = [w @ ik.mle(many).distribution]
    lower, upper = ik.mle(few).interval(level, of=w, method="profile")
    found = ik.compare(many, few, of=w, level=level).difference
    np.testing.assert_allclose(found.interval, (value - upper, value - lower), atol=2e-6)
    assert found.p_value < 1e-60
