"""Rows of numbers are counted by a table or one sort, and held once."""

import tracemalloc

import numpy as np
import pytest

import ibukit as ik
from ibukit.mechanisms.points import merging
from ibukit.mechanisms.points.merging import merge, merge_until_few
from ibukit.tally import part


def refused(*arguments, **options):
    raise AssertionError("there is nothing to sort")


@pytest.mark.parametrize("dtype", [np.int64, np.int8])
def test_pairs_of_integers_close_together_are_counted_without_sorting(rng, monkeypatch, dtype):
    reports = rng.integers(-4, 7, (500, 2)).astype(dtype)
    right, often = np.unique(reports, axis=0, return_counts=True)
    monkeypatch.setattr(part, "order_of_rows", refused)
    seen = ik.PlanarGeometric(ik.Grid(3, 3), 1.0).tally(reports).parts[0]
    assert np.array_equal(seen.reports, right)
    assert np.array_equal(seen.counts, often)


def test_pairs_of_integers_far_apart_are_sorted(rng):
    reports = rng.integers(-4, 7, (500, 2)) * 100
    # A table would have a million places.
    seen = ik.PlanarGeometric(ik.Grid(3, 3), 0.05).tally(reports).parts[0]
    right, often = np.unique(reports, axis=0, return_counts=True)
    assert np.array_equal(seen.reports, right)
    assert np.array_equal(seen.counts, often)


def test_only_ties_are_sorted_by_the_other_columns(rng, monkeypatch):
    rows = np.column_stack([rng.integers(0, 200, 300), rng.normal(size=300)])
    sorts = np.lexsort
    sizes = []

    def watched(keys):
        sizes.append(len(keys[0]))
        return sorts(keys)

    monkeypatch.setattr(np, "lexsort", watched)
    # It would find the tied rows by a hash table, which takes longer than all of the rest.
    monkeypatch.setattr(np, "union1d", refused)
    order = part.order_of_rows(rows)
    _, often = np.unique(rows[:, 0], return_counts=True)
    assert sizes == [often[often > 1].sum()]
    assert np.array_equal(order, sorts(rows.T[::-1]))


def test_a_tally_of_real_rows_takes_the_memory_of_one_copy(rng):
    mechanism = ik.HistogramEncoding(50, 1.0)
    rows = mechanism.randomize(rng.integers(0, 50, 20_000), rng)
    tracemalloc.start()
    tally = mechanism.tally(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.4 * rows.nbytes
    assert not np.shares_memory(tally.parts[0].reports, rows)


def test_points_close_together_are_merged_without_sorting(rng, monkeypatch):
    points = rng.normal(scale=3, size=(2000, 2))
    counts = rng.integers(1, 5, 2000)
    monkeypatch.setattr(merging, "MAX_PLACES_PER_POINT", 0)
    sorted_ones = merge(points, counts, 0.5)
    monkeypatch.undo()
    monkeypatch.setattr(np, "lexsort", refused)
    for found, right in zip(merge(points, counts, 0.5), sorted_ones, strict=True):
        assert np.array_equal(found, right)


def test_means_are_made_of_the_smallest_squares_only(rng, monkeypatch):
    points, counts, sides = rng.normal(scale=3, size=(2000, 1)), np.ones(2000, dtype=np.int64), []

    def watched(points, counts, side):
        sides.append(side)
        return merge(points, counts, side)

    monkeypatch.setattr(merging, "merge", watched)
    assert 75 < len(merge_until_few(points, counts, 1.0, 150).points) <= 150
    assert len(sides) == 1
