"""Noise on a plane without end, listed by the cells of a window."""

import numpy as np
import pytest

import ibukit as ik
from ibukit.intervals import calibrated
from ibukit.intervals.listed.law import MAX_LISTED_ENTRIES, ListedLaw
from ibukit.intervals.listed.window import MAX_OUTSIDE, listed_reports

PLACED = ik.PlanarGeometric(ik.Grid(2, 3, cell_size=(1.0, 0.5), first=(-4, 7)), 2.0)


def part_of(mechanism, seed=0, n=200):
    people = np.random.default_rng(seed).multinomial(n, np.full(mechanism.k, 1 / mechanism.k))
    return mechanism.simulate(people, np.random.default_rng(seed)).parts[0]


@pytest.mark.parametrize(
    "mechanism",
    [PLACED, ik.PlanarGeometric(ik.Grid(4, 5), 1.0), ik.PlanarGeometric(ik.Grid(1, 2), 9.0)],
    ids=str,
)
def test_the_columns_are_the_law_and_the_last_one_is_the_rest(mechanism):
    matrix = listed_reports(part_of(mechanism), MAX_LISTED_ENTRIES).matrix()
    cells = mechanism.alphabet.values
    # The law at each offset between two cells of the grid, summed over a plane that is cut far out.
    height, width = mechanism.alphabet.cell_shape
    rows, cols = np.meshgrid(np.arange(-60, 61), np.arange(-90, 91), indexing="ij")
    total = np.exp(-mechanism.epsilon * np.hypot(rows * height, cols * width)).sum()
    away = (cells[:, None] - cells) * mechanism.alphabet.cell_shape
    law = np.exp(-mechanism.epsilon * np.hypot(away[..., 0], away[..., 1])) / total
    # Each of these columns is one of the window's.
    gaps = np.abs(matrix[:, :-1].T[:, None] - law.T).max(axis=2)
    assert gaps.min(axis=0).max() < 1e-12
    assert 0 < matrix[:, -1].max() <= MAX_OUTSIDE
    assert matrix.sum(axis=1) == pytest.approx(np.ones(mechanism.k), abs=1e-12)


def test_a_window_is_as_large_as_needed():
    mechanism = ik.PlanarGeometric(ik.Grid(4, 5), 1.0)
    part = part_of(mechanism)
    cells = listed_reports(part, MAX_LISTED_ENTRIES).m - 1
    assert listed_reports(part, cells).m == cells + 1
    with pytest.raises(ValueError, match="window"):
        listed_reports(part, cells - 1)
    assert ListedLaw.of(ik.PlanarGeometric(ik.Grid(4, 5), 0.1).tally([(0, 0), (1, 4)])) is None


def test_where_a_report_is_outside_the_window_there_is_no_list():
    mechanism = ik.PlanarGeometric(ik.Grid(4, 5), 1.0)
    assert ListedLaw.of(mechanism.tally([(0, 0), (10, 4)])).rows.shape[0] == 20
    assert ListedLaw.of(mechanism.tally([(0, 0), (30, 4)])) is None


def test_a_class_that_inherits_may_have_another_law():
    class Heir(ik.PlanarGeometric):
        """Another law."""

    assert ListedLaw.of(Heir(ik.Grid(4, 5), 1.0).tally([(0, 0), (1, 4)])) is None


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_the_ends_are_those_of_tallies_of_single_reports(epsilon, monkeypatch):
    """The old way: people and their reports are drawn, and one tally after the other is fitted."""
    mechanism = ik.PlanarGeometric(ik.Grid(3, 3), epsilon)
    theta = np.r_[0.6, 0.3, np.full(7, 0.1 / 7)]
    people = np.random.default_rng(1).multinomial(400, theta)
    estimate = ik.mle(mechanism.simulate(people, np.random.default_rng(2)))
    of = np.array([np.eye(9)[0], np.arange(9) >= 1])
    found = estimate.interval(0.9, of=of, method="calibrated", draws=800)
    monkeypatch.setattr(calibrated.ListedLaw, "of", lambda tally: None)
    lower, upper = estimate.interval(0.9, of=of[0], method="calibrated", draws=800)
    # The second answer is 1 minus the first: the old way draws the same people for both.
    slow = np.array([[lower, 1 - upper], [upper, 1 - lower]])
    widths = slow[1] - slow[0]
    # Both thresholds are quantiles of 800 draws: each moves an end by a fiftieth of the width.
    assert np.abs(np.subtract(found, slow)).max() <= 0.1 * widths.min()
    assert np.abs(found[1] - found[0] - widths).max() <= 0.15 * widths.min()
