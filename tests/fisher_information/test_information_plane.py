"""Variances on a plane without a matrix:
against the matrix, and refused where they are not proved.
"""

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import plane
from ibukit.errors import TooLarge
from ibukit.fisher_information import (
    asymptotic_variances,
    asymptotic_variances_of_sums,
    dense,
    plane_cells,
)
from ibukit.fisher_information import plane as on_a_plane
from ibukit.mechanisms.spatial import _grid_mechanism


@pytest.fixture
def without_matrices(monkeypatch):
    """A small plane as a large one."""
    monkeypatch.setattr(_grid_mechanism, "is_fourier_faster", lambda k, n_reports: True)
    monkeypatch.setattr(_grid_mechanism, "MAX_MATRIX_ENTRIES", 0)


MECHANISMS = {
    "remapped": lambda grid: ik.TruncatedPlanarGeometric(grid, 0.5),
    "exponential": lambda grid: ik.Exponential(grid, 1.0),
    "laplace": lambda grid: ik.PlanarLaplace(grid, 0.7),
}


def some_sums(grid, rng):
    """A cell in the middle, a corner, a side, a half, anything, and the sum of all."""
    k = len(grid)
    rows = np.zeros((6, k))
    rows[0, k // 2 + 3] = rows[1, 0] = rows[2, 4] = 1
    rows[3, : k // 2] = 1
    rows[4] = rng.normal(size=k)
    rows[5] = 1
    return rows


@pytest.mark.parametrize("name", MECHANISMS)
def test_sums_are_those_of_the_matrix(name, rng, without_matrices, monkeypatch):
    grid = ik.Grid(11, 14, cell_size=(1.0, 0.8))
    tally = MECHANISMS[name](grid).simulate(np.full(len(grid), 3000), rng)
    assert isinstance(tally.operator, plane.PlaneChannel)
    assert len(tally.counts) == len(grid)
    theta, rows = rng.dirichlet(np.ones(len(grid))), some_sums(grid, rng)
    exact = dense.variances_of_sums(tally, theta, rows)
    solved = on_a_plane.plane_variances_of_sums(tally, theta, rows)
    np.testing.assert_allclose(solved[:5], exact[:5], rtol=1e-5)
    assert solved[5] == 0

    # it takes no matrix, and a solution that is wrong is not believed
    right = on_a_plane.PlaneSystemSolver.secrets
    monkeypatch.setattr(dense, "variances_of_sums", None)
    np.testing.assert_array_equal(asymptotic_variances_of_sums(tally, theta, rows), solved)
    monkeypatch.setattr(
        on_a_plane.PlaneSystemSolver,
        "secrets",
        lambda self, w: right(self, w) * np.linspace(1, 3, len(w)),
    )
    assert on_a_plane.plane_variances_of_sums(tally, theta, rows[:1]) is None


def test_a_report_that_nobody_made_leaves_it_to_the_matrix(rng, without_matrices):
    grid = ik.Grid(11, 14)
    counts = np.full(len(grid), 40)
    counts[17] = 0
    tally = ik.Exponential(grid, 1.0).tally_counts(counts)
    assert (
        on_a_plane.plane_variances_of_sums(tally, np.full(154, 1 / 154), some_sums(grid, rng))
        is None
    )


CELLS = {
    "remapped": lambda grid: ik.TruncatedPlanarGeometric(grid, 0.7),
    "exponential": lambda grid: ik.Exponential(grid, 3.0),
    "laplace": lambda grid: ik.PlanarLaplace(grid, 1.5),
}


@pytest.mark.parametrize(
    ("name", "shape"),
    [("remapped", (24, 31)), ("exponential", (7, 90)), ("laplace", (13, 12))],
    ids=str,
)
def test_all_cells_are_those_of_the_matrix(name, shape, rng, without_matrices, monkeypatch):
    grid = ik.Grid(*shape)
    people = rng.integers(200, 5000, len(grid))
    tally = CELLS[name](grid).simulate(people, rng)
    theta = people / people.sum()
    exact = asymptotic_variances(tally, theta)
    monkeypatch.setattr(dense, "MAX_SECRETS_INVERTED", len(grid) - 1)
    solved = asymptotic_variances(tally, theta)
    assert not np.array_equal(solved, exact)  # it took no matrix
    np.testing.assert_allclose(solved, exact, rtol=2e-3)


def test_all_cells_count_only_where_two_spacings_agree(rng, without_matrices, monkeypatch):
    grid = ik.Grid(8, 11)
    tally = ik.Exponential(grid, 3.0).simulate(np.full(len(grid), 3000), rng)
    theta = np.full(len(grid), 1 / len(grid))
    assert plane_cells.plane_cell_variances(tally, theta) is not None
    monkeypatch.setattr(plane_cells, "SPACINGS_TOLERANCE", 1e-12)
    assert plane_cells.plane_cell_variances(tally, theta) is None
    # and a cell that is asked for alone gets all reports
    monkeypatch.setattr(plane_cells, "SPACINGS_TOLERANCE", 1e-5)
    monkeypatch.setattr(plane_cells, "SPACINGS", (11, 15))
    alone = plane_cells.plane_cell_variances(tally, theta)
    np.testing.assert_allclose(alone, asymptotic_variances(tally, theta), rtol=1e-6)


def test_all_cells_need_all_reports_and_noise_that_can_be_undone(
    rng, without_matrices, monkeypatch
):
    grid = ik.Grid(24, 31)
    theta = np.full(len(grid), 1 / len(grid))
    wide = ik.TruncatedPlanarGeometric(grid, 0.05).simulate(np.full(len(grid), 3000), rng)
    assert plane_cells.plane_cell_variances(wide, theta) is None
    counts = np.full(len(grid), 40)
    counts[17] = 0
    tally = ik.Exponential(grid, 3.0).tally_counts(counts)
    assert plane_cells.plane_cell_variances(tally, theta) is None
    monkeypatch.setattr(dense, "MAX_SECRETS_INVERTED", len(grid) - 1)
    with pytest.raises(TooLarge, match="a plane of which every report was seen"):
        asymptotic_variances(tally, theta)


@pytest.mark.slow
def test_intervals_of_sums_where_no_matrix_fits(rng):
    grid = ik.Grid(104, 100)
    tally = ik.Exponential(grid, 2.0).simulate(np.full(len(grid), 200), rng)
    estimate = ik.mle(tally, tol=1e-4)
    west = np.tile(np.arange(100) < 30, 104) * 1.0
    lower, upper = estimate.interval(0.95, of=west, method="wald")
    assert lower < 0.3 < upper
    assert 0.5 < (upper - lower) / (2 * 1.96 * np.sqrt(0.21 / tally.n)) < 2
    one = np.zeros(len(grid))
    one[5000] = 1
    assert estimate.standard_errors()[5000] == pytest.approx(
        estimate.standard_errors(of=one), rel=1e-3
    )
