"""Small planes with mass on few cells: constrained Newton steps before the path."""

from __future__ import annotations

import numpy as np
import pytest

import ibukit as ik
from ibukit.solvers import plane

SIDE = 28


def reports(mechanism, rng):
    """A hundred people a cell in two towns on a thin background."""
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE
    towns = (
        np.exp(-((y - a) ** 2 + (x - a) ** 2) / (2 * width**2))
        for a, width in ((0.3, 0.1), (0.7, 0.2))
    )
    people = sum(towns) + 0.02
    counts = rng.multinomial(100 * SIDE**2, ik.quantize(people.ravel() / people.sum()))
    return mechanism(ik.Grid(SIDE, SIDE)).simulate(counts, rng)


def remapped(grid):
    return ik.TruncatedPlanarGeometric(grid, 0.2)


def unbounded(grid):
    return ik.PlanarGeometric(grid, 1.5)


def test_few_cells_are_found_without_the_path(monkeypatch, rng):
    tally = reports(remapped, rng)
    found = ik.mle(tally)
    assert found.method.endswith("by constrained Newton steps")
    assert np.count_nonzero(found.distribution) < SIDE**2 / 4
    monkeypatch.setattr(plane, "MAX_ENTRIES", 0)
    path = ik.mle(tally)
    assert path.method.endswith("by an interior point with Fourier transforms")
    assert found.gap <= 1e-9
    assert found.log_likelihood >= path.log_likelihood - 1e-9 * tally.n
    assert ik.emd(found, path, tally.alphabet) < 1e-3


@pytest.mark.parametrize("goal", [1e-3, 1e-9])
def test_many_cells_and_rough_goals_are_left_to_the_path(goal, rng):
    tally = reports(unbounded if goal < 1e-6 else remapped, rng)
    found = ik.mle(tally, tol=goal)
    assert found.method.endswith("by an interior point with Fourier transforms")
    assert found.gap <= goal


def test_the_search_is_left_when_its_share_of_the_work_is_spent(monkeypatch, rng):
    tally = reports(remapped, rng)
    monkeypatch.setattr(plane, "WORK_A_CELL", 1.0)
    assert ik.mle(tally).method.endswith("by an interior point with Fourier transforms")
