"""On a plane a step of `smooth` takes no matrix, and its answers are those of the dense way."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import PlaneChannel
from ibukit.errors import TooLarge
from ibukit.estimators import _roughness
from ibukit.estimators._curvature import dense_curvature
from ibukit.estimators._plane_curvature import PlaneCurvature
from ibukit.estimators._roughness import roughness_on, structure
from ibukit.mechanisms.spatial import _grid_mechanism, planar_geometric

# grid, mechanism, users: few reports, one row or column, cells that are no squares, reports from
# outside
CASES = {
    "9 x 7": (ik.Grid(9, 7), lambda grid: ik.TruncatedPlanarGeometric(grid, 0.7), 20_000),
    "few reports": (ik.Grid(8, 8), lambda grid: ik.Exponential(grid, 0.5), 12),
    "one row": (ik.Grid(1, 40, 0.5), lambda grid: ik.TruncatedPlanarGeometric(grid, 1.0), 3000),
    "one column": (ik.Grid(30, 1, 2.0), lambda grid: ik.Exponential(grid, 0.3), 3000),
    "oblong cells": (ik.Grid(6, 11, (2.0, 0.5)), lambda grid: ik.Exponential(grid, 0.6), 5000),
    "from outside": (ik.Grid(7, 6), lambda grid: ik.PlanarGeometric(grid, 0.4), 4000),
    "16 x 12": (ik.Grid(16, 12), lambda grid: ik.TruncatedPlanarGeometric(grid, 0.3), 10**6),
}


def tally_of(name):
    grid, make, users = CASES[name]
    rng = np.random.default_rng(7)
    rows, cols = np.divmod(np.arange(len(grid)), grid.n_cols)
    law = 0.02 + np.exp(
        -(((rows - grid.n_rows / 3) / 2) ** 2 + ((cols - grid.n_cols / 2) / 3) ** 2) / 2
    )
    tally = make(grid).simulate(rng.multinomial(users, law / law.sum()), rng)
    assert type(tally.operator) is PlaneChannel
    return tally


def dense(tally):
    """The same reports with their likelihoods written out, as a reference that takes no plane."""
    return ik.Tally.from_likelihoods(tally.matrix().T, tally.counts, tally.alphabet)


@pytest.fixture
def without_matrices(monkeypatch):
    """A small plane's reports go by convolutions."""
    monkeypatch.setattr(_grid_mechanism, "is_fourier_faster", lambda k, n_reports: True)
    monkeypatch.setattr(_grid_mechanism, "MAX_MATRIX_ENTRIES", 0)
    monkeypatch.setattr(planar_geometric, "is_fourier_faster", lambda k, n_reports: True)


@pytest.fixture
def on_the_plane(monkeypatch):
    """Whatever the size; a matrix is refused."""

    def refuse(matrix):
        raise AssertionError("a matrix of shape (k, k) was made")

    def switch():
        monkeypatch.setattr(_roughness, "DENSE_SECRETS", 0)
        monkeypatch.setattr(_roughness, "dense_curvature", refuse)

    return switch


def both(tally, u, weight, careful):
    """H at a point, without and with a matrix."""
    roughness = roughness_on(tally.alphabet)
    root = np.exp(u / 2) / np.sqrt(np.exp(u).sum())
    w = tally.frequencies / tally.forward(root**2) ** 2
    across, along = roughness.between
    diagonal, degrees = weight * roughness.diagonal(u), weight * roughness.degrees
    plane = PlaneCurvature(
        tally.operator, root, w, diagonal, degrees, (-weight * across, -weight * along), careful
    )
    matrix = root[:, None] * tally.operator.gram(w) * root + weight * roughness.curvature(u)
    return plane, matrix


@pytest.mark.parametrize("name", CASES)
def test_products_and_steps_are_those_of_the_matrix(name, without_matrices):
    tally, rng = tally_of(name), np.random.default_rng(1)
    x, u = rng.standard_normal((2, tally.k))
    for weight, careful in ((0.1, True), (0.1, False), (1e3, True)):
        plane, matrix = both(tally, u / 2, weight, careful)
        root, size = plane.root, np.abs(matrix @ x).max()
        assert plane.times(x) == pytest.approx(matrix @ x, abs=(1e-11 if careful else 1e-5) * size)
        dense, rise = dense_curvature(matrix), x - root * (root @ x)
        for ours, theirs in (
            (plane.solve(x), dense.solve(x)),
            (plane.step(rise, root), dense.step(rise, root)),
        ):
            off = ours - theirs
            assert off @ matrix @ off <= (1e-7 if careful else 1e-2) ** 2 * (
                theirs @ matrix @ theirs
            )
        assert root @ ours == pytest.approx(0, abs=1e-9 * np.linalg.norm(theirs))


@pytest.mark.parametrize("name", CASES)
def test_a_plane_gives_the_answer_of_the_dense_way(name, without_matrices, on_the_plane):
    tally = tally_of(name)
    penalties = tally.n * np.array([0.01, 1.0])
    dense = [ik.smooth(tally, penalty, tol=1e-11) for penalty in penalties]
    assert np.abs(dense[0].distribution - dense[1].distribution).max() > 1e-4
    on_the_plane()
    for penalty, before in zip(penalties, dense, strict=True):
        found = ik.smooth(tally, penalty, tol=1e-11)
        assert found.status is ik.Status.CONVERGED
        assert found.method == before.method
        assert found.distribution == pytest.approx(before.distribution, abs=1e-8)


def test_what_inherits_from_a_plane_or_pools_planes_takes_a_matrix(without_matrices, on_the_plane):
    tally = tally_of("9 x 7")
    on_the_plane()
    roughness = roughness_on(tally.alphabet)
    assert structure(roughness, tally.operator) is tally.operator

    @dataclass(frozen=True, eq=False)
    class Other(PlaneChannel):
        pass

    other = Other(**tally.operator.__getstate__())
    pooled = tally + ik.Exponential(tally.alphabet, 1.0).simulate(
        np.full(tally.k, 5), np.random.default_rng(1)
    )
    assert structure(roughness, other) is structure(roughness, pooled.operator) is None


def penalty_of(estimate):
    """The penalty that `smooth` chose by `choose_penalty`."""
    return float(estimate.method.split("penalty=")[1].split()[0])


@pytest.mark.parametrize(
    "name", ["few reports", "9 x 7"]
)  # the first has its penalty at the end of the search
def test_a_penalty_is_chosen_by_exact_determinants(name, without_matrices, monkeypatch):
    tally = tally_of(name)
    exact = ik.smooth(dense(tally))
    monkeypatch.setattr(_roughness, "DENSE_SECRETS", 0)
    found = ik.smooth(tally)
    assert penalty_of(found) == pytest.approx(penalty_of(exact), rel=1e-5)
    assert found.distribution == pytest.approx(exact.distribution, abs=1e-6)


def test_pooled_planes_take_a_matrix_and_are_refused_by_name():
    tally = sum(
        ik.TruncatedPlanarGeometric(ik.Grid(101, 100), epsilon).simulate(
            np.ones(10_100, dtype=int), np.random.default_rng(1)
        )
        for epsilon in (0.5, 1.0)
    )
    with pytest.raises(
        TooLarge, match=r"smooth would take a matrix of 10100 x 10100 numbers.*or mle\(tally\)"
    ):
        ik.smooth(tally)


def test_more_than_ten_thousand_cells_are_smoothed_at_a_given_penalty():
    mechanism = ik.TruncatedPlanarGeometric(ik.Grid(101, 100), 0.5)
    tally = mechanism.simulate(np.ones(10_100, dtype=int), np.random.default_rng(1))
    assert ik.smooth(tally, penalty=1e6).status is ik.Status.CONVERGED


@pytest.mark.slow
def test_a_large_plane_is_smoothed_and_certified():
    side = 256
    x, y = (np.arange(side) / side for _ in "xy")
    curve = np.exp(-(((x[:, None] - 0.3) / 0.1) ** 2 + ((y - 0.6) / 0.2) ** 2) / 2).ravel() + 0.05
    people = np.random.default_rng(1).multinomial(10**6, curve / curve.sum())
    mechanism = ik.TruncatedPlanarGeometric(ik.Grid(side, side), 0.2)
    law = ik.normalize(mechanism.forward(people / people.sum()))
    tally = mechanism.tally_counts(np.random.default_rng(2).multinomial(10**6, ik.quantize(law)))
    found = ik.smooth(tally, penalty=1e6)
    assert found.status is ik.Status.CONVERGED
    truth = curve / curve.sum()
    assert (
        np.abs(found.distribution - truth).sum() < 0.1 * np.abs(ik.uniform(tally.k) - truth).sum()
    )


def test_the_windows_of_the_levels_share_each_cell(without_matrices):
    """Where the roughness is even, the squares of what a cell gets from all levels sum to 1."""
    tally = tally_of("16 x 12")
    plane, _ = both(tally, 6 * np.sin(np.arange(tally.k)), 0.1, careful=True)
    even = replace(plane, diagonal=plane.degrees)
    assert len(even._levels) > 2
    np.testing.assert_allclose(sum(window**2 for window, _ in even._levels), 1, rtol=1e-12)
