"""Bins as labels: intervals of numbers, as pandas.cut makes them, are places on a line."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.domain.bins import bins_of

EDGES = [0, 18, 30, 50, 90]
AGES = np.random.default_rng(3).integers(1, 90, 400)
UNEVEN = pd.IntervalIndex.from_breaks(EDGES)
EVEN = pd.IntervalIndex.from_breaks(np.arange(0, 50, 5))


def test_distances_of_bins_are_those_of_their_midpoints():
    alphabet = ik.Alphabet(UNEVEN)
    middles = np.array([9, 24, 40, 70])
    assert np.array_equal(alphabet.places, middles)
    assert np.array_equal(alphabet.distances(), np.abs(middles[:, None] - middles))
    assert ik.Alphabet(["a", "b"]).places is None
    assert ik.Line(0, 3).places is None
    assert ik.Grid(2, 3).places is None
    given = ik.Alphabet(UNEVEN, 1 - np.eye(4))
    assert given.places is None
    assert np.array_equal(given.distances(), 1 - np.eye(4))


def test_the_earth_movers_distance_of_bins_is_that_of_their_distances(rng):
    for labels in (UNEVEN, UNEVEN[[2, 0, 3, 1]]):
        alphabet = ik.Alphabet(labels)
        by_matrix = ik.Alphabet(range(4), alphabet.distances())
        for _ in range(5):
            p, q = rng.dirichlet(np.ones(4), 2)
            assert ik.emd(p, q, alphabet) == pytest.approx(ik.emd(p, q, by_matrix), rel=1e-9)
    assert ik.emd([1, 0, 0, 0], [0, 0, 0, 1], ik.Alphabet(UNEVEN)) == 61


def test_columns_that_are_cut_are_reports_and_secrets(rng):
    cut = pd.cut(pd.Series(AGES), EDGES)
    mechanism = ik.RandomizedResponse(cut.cat.categories, 2.0)
    reports = mechanism.randomize(cut, rng)
    tally = ik.Tally.from_table(pd.DataFrame({"z": reports}), mechanism, report="z")
    estimate = ik.inv(tally)
    truth = cut.value_counts(normalize=True)
    d = mechanism.alphabet.distances()
    assert 0 < ik.emd(estimate, truth, mechanism.alphabet) < d.max()
    # Metric mechanisms know the distances, too.
    metric = ik.Exponential(cut.cat.categories, 0.1)
    assert metric.matrix()[0] == pytest.approx(np.exp(-0.05 * d[0]) / np.exp(-0.05 * d[0]).sum())
    assert ik.privacy.epsilon_metric(metric) <= 0.1


def test_smooth_takes_bins_of_equal_width(rng):
    counts = rng.multinomial(3000, np.exp(-((np.arange(9) - 4.0) ** 2) / 6) / 4.3)
    bins = ik.RandomizedResponse(EVEN, 2.0).tally_counts(counts)
    line = ik.RandomizedResponse(9, 2.0).tally_counts(counts)
    # Distances are five times as large, so that the same roughness has 25 times the penalty.
    fine, coarse = ik.smooth(line, 40.0), ik.smooth(bins, 25 * 40.0)
    assert coarse.distribution == pytest.approx(fine.distribution, abs=1e-7)
    assert ik.smooth(bins).distribution == pytest.approx(ik.smooth(line).distribution, abs=1e-4)
    # The first bin of pandas.cut is a little wider.
    cut = pd.cut(pd.Series(AGES), 6).cat.categories
    ik.smooth(ik.RandomizedResponse(cut, 2.0).tally_counts(np.arange(6) + 5), 40.0)


@pytest.mark.parametrize("labels", [UNEVEN, EVEN[::-1], EVEN[[0, 1, 3, 4]]])
def test_smooth_refuses_other_bins_by_name(labels):
    tally = ik.RandomizedResponse(labels, 2.0).tally_counts(np.arange(len(labels)) + 5)
    with pytest.raises(ik.errors.AlphabetMismatch, match="bins of equal width"):
        ik.smooth(tally)


OPEN = pd.IntervalIndex.from_breaks([-math.inf, 18, 50, math.inf])
SAME = [pd.Interval(0, 10), pd.Interval(4, 6), pd.Interval(10, 20)]


@pytest.mark.parametrize(
    ("labels", "reason"),
    [(OPEN, "the bin from -inf to 18 has no midpoint"), (SAME, "two bins have the same midpoint")],
)
def test_bins_without_distances_are_refused_by_name(labels, reason):
    alphabet = ik.Alphabet(labels)
    assert alphabet.places is None
    with pytest.raises(ik.errors.AlphabetMismatch, match=f"{reason}; close the bins"):
        ik.emd([1, 0, 0], [0, 0, 1], alphabet)
    with pytest.raises(ik.errors.AlphabetMismatch, match="bins of equal width"):
        ik.smooth(ik.RandomizedResponse(alphabet, 2.0).tally_counts([5, 6, 7]))
    # Without distances they are labels as any other, and given distances are taken.
    assert ik.privacy.epsilon_ldp(ik.RandomizedResponse(alphabet, 2.0)) == pytest.approx(2.0)
    known = ik.Alphabet(labels, [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    assert ik.emd([1, 0, 0], [0, 0, 1], known) == pytest.approx(2.0)


def test_only_intervals_of_numbers_are_bins():
    days = pd.interval_range(pd.Timestamp("2024-01-01"), periods=3)
    assert bins_of(list(days)) is None
    assert bins_of([pd.Interval(0, 1), "rest"]) is None
    assert bins_of(["a"]) is None
    assert np.array_equal(ik.Alphabet(days).distances(), 1 - np.eye(3))


def test_a_level_per_distance_is_found_in_closed_form_as_well():
    mechanism = ik.RandomizedResponse(UNEVEN, 2.0)
    nearest = min(abs(a.mid - b.mid) for a, b in itertools.combinations(UNEVEN, 2))
    assert ik.privacy.epsilon_metric(mechanism) == pytest.approx(2 / nearest)
    with ik.solvers.limits(dense_entries=15):
        fresh = ik.RandomizedResponse(UNEVEN, 2.0)
        assert ik.privacy.epsilon_metric(fresh) == pytest.approx(2 / nearest)
