"""Reflections that change nothing:
found where they are, not where they are not, and of no account to the proof.
"""

import numpy as np
import pytest

import ibukit as ik
from ibukit.design.optimal.column_generation import deviations
from ibukit.design.optimal.column_weights import Criterion
from ibukit.design.optimal.grids import hill_climbing as climbing
from ibukit.design.optimal.grids import patch_relaxation
from ibukit.design.optimal.grids.hill_climbing import climbed_columns
from ibukit.design.optimal.grids.patch_relaxation import solve_patch_relaxation
from ibukit.design.optimal.grids.patches import patches_of, unique_patches
from ibukit.design.optimal.grids.reflections import Reflections
from ibukit.design.optimal.large_design import large_optimal_design
from ibukit.fisher_information import contrasts

GRID = ik.Grid(2, 5)
pytestmark = pytest.mark.usefixtures("listed_once")


def measure_of(k):
    return Criterion(contrasts(k), False)


def none_of(distances, theta):
    """As if there were no reflections."""
    k = len(theta)
    return Reflections(np.arange(k)[None], contrasts(k), np.zeros(k - 1, dtype=np.int64))


@pytest.mark.parametrize(
    ("rows", "columns", "blocks"), [(4, 4, [3, 4, 4, 4]), (3, 4, [3, 4, 2, 2]), (1, 5, [2, 2])]
)
def test_those_of_a_grid(rows, columns, blocks):
    grid = ik.Grid(rows, columns)
    distances, k = 0.7 * grid.distances(), len(grid)
    found = Reflections.of(distances, ik.uniform(k))
    assert sorted(np.bincount(found.kinds)) == sorted(blocks)
    assert (found.images[0] == np.arange(k)).all()
    for image in found.images:
        assert (image[image] == np.arange(k)).all()
        np.testing.assert_allclose(distances[np.ix_(image, image)], distances, rtol=1e-12, atol=0)
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(k - 1), atol=1e-12)
    np.testing.assert_allclose(found.basis.sum(axis=0), 0, atol=1e-12)
    turned = found.basis.T @ np.exp(-distances) @ found.basis
    np.testing.assert_allclose(turned[~found.same_kind()], 0, atol=1e-12)
    # vectors of the first kind are left alone
    kept = found.basis[:, found.kinds == 0]
    assert all(np.allclose(kept[image], kept) for image in found.images)


@pytest.mark.parametrize(
    "name", ["a cell that is more common", "a cell that is elsewhere", "equal distances"]
)
def test_none_where_there_are_none_or_too_many(name, rng):
    """Negative control: one probability or one distance that differs,
    in the fifth digit, and there is none left.
    """
    grid = ik.Grid(3, 4)
    distances, theta = grid.distances(), ik.uniform(12)
    if name == "a cell that is more common":
        theta = theta + 1e-5 * (np.arange(12) == 1)
        theta /= theta.sum()
    elif name == "a cell that is elsewhere":
        distances = distances + 1e-5 * ((np.arange(12) == 1)[:, None] != (np.arange(12) == 1))
    else:
        distances = 1 - np.eye(12)
    found = Reflections.of(distances, theta)
    assert len(found.images) == 1
    np.testing.assert_array_equal(found.basis, contrasts(12))
    np.testing.assert_array_equal(found.in_contrasts(), np.eye(11))


def test_one_mirror_where_the_prior_has_one():
    grid, theta = ik.Grid(3, 4), np.repeat([[1.0], [2.0], [1.0]], 4, axis=1)
    theta[:, 0] *= 3
    found = Reflections.of(grid.distances(), theta.ravel() / theta.sum())
    assert found.images.tolist() == [list(range(12)), [8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3]]


def test_of_columns_that_are_images_one_stays(rng, listed):
    distances = GRID.distances()
    found = Reflections.of(distances, ik.uniform(10))
    logs = listed(distances)
    kept = found.unique_up_to_symmetry(logs, distances)
    assert len(logs) / 4 <= len(kept) < len(logs) / 3
    every = {tuple(row) for row in np.rint(1e6 * (logs - logs[:, :1]))}
    assert {
        tuple(row) for row in np.rint(1e6 * (found.spread(kept) - found.spread(kept)[:, :1]))
    } == every


def test_of_patches_that_are_images_one_stays():
    distances = ik.Grid(5, 4).distances()
    found = Reflections.of(distances, ik.uniform(20))
    every = patches_of(distances)
    firsts, sizes = unique_patches(every, found.images)
    # of 3 x 2 squares those in the middle row are images of one another, and those at the corners
    assert sorted(sizes) == [2, 4]
    images = {tuple(sorted(image[patch.secrets])) for patch in firsts for image in found.images}
    assert images == {tuple(patch.secrets) for patch in every}


@pytest.mark.parametrize("eps", [0.5, 2.0])
def test_the_bound_and_the_design_are_those_without_reflections(eps, monkeypatch):
    distances, theta = eps * ik.Grid(3, 4).distances(), ik.uniform(12)
    logs, weights, bound = climbed_columns(distances, theta, measure_of(12))
    points = deviations(logs, theta)[0] @ contrasts(12)
    value = measure_of(12).value((points.T * weights) @ points)
    np.testing.assert_allclose(weights @ points, 0, atol=1e-10)
    monkeypatch.setattr(patch_relaxation.Reflections, "of", staticmethod(none_of))
    again, others, plain = climbed_columns(distances, theta, measure_of(12))
    points = deviations(again, theta)[0] @ contrasts(12)
    assert plain == pytest.approx(bound, rel=2e-3)
    assert measure_of(12).value((points.T * others) @ points) == pytest.approx(value, rel=1e-2)


def test_weights_of_columns_for_their_images_are_as_good_as_of_all(rng, listed):
    theta, distances = ik.uniform(9), 0.5 * ik.Grid(3, 3).distances()
    found = Reflections.of(distances, theta)
    measure = Criterion(found.basis, False)
    kept = found.unique_up_to_symmetry(listed(distances), distances)
    values = []
    for logs, kinds in ((kept, found.kinds), (found.spread(kept), None)):
        points, sizes = deviations(logs, theta)
        values.append(
            large_optimal_design(
                points @ found.basis, sizes / sizes.sum(), measure, 0.0, 1e-6, kinds
            )[1]
        )
    assert values[0] == pytest.approx(values[1], rel=2e-6)


def test_reflections_that_are_none_prove_nothing_that_is_false(monkeypatch, rng):
    """Negative control: a prior without symmetries is given a grid's,
    and the bound still holds, as images are proven.

    The method then solves another problem, and what it proves of this one is worse.
    """
    distances = 0.5 * ik.Grid(3, 4).distances()
    theta = 0.5 * rng.dirichlet(np.ones(12)) + 0.5 / 12
    true = solve_patch_relaxation(distances, theta, measure_of(12)).bound
    logs, weights, _ = climbed_columns(distances, theta, measure_of(12))
    points = deviations(logs, theta)[0] @ contrasts(12)
    value = measure_of(12).value((points.T * weights) @ points)
    forged = Reflections.of(distances, ik.uniform(12))
    assert len(forged.images) == 4
    monkeypatch.setattr(patch_relaxation.Reflections, "of", staticmethod(lambda *given: forged))
    told = solve_patch_relaxation(distances, theta, measure_of(12))
    assert told.bound < true <= value
    # no column scores more than it says
    columns = np.vstack([climbing.within_bounds(rng.normal(size=(500, 12)), distances), logs])
    met = deviations(columns, theta)[0] @ contrasts(12)
    assert (
        ((met @ told.dual.quadratic) * met).sum(axis=1) - met @ told.dual.linear
    ).max() <= told.highest * (1 + 1e-9)
