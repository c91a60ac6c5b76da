"""Designs on grids: the bound by patches against all columns
where they can be listed, and columns that climb.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ibukit as ik
from ibukit.design.optimal.column_generation import deviations
from ibukit.design.optimal.column_weights import Criterion, optimal_design
from ibukit.design.optimal.extremal_columns import extremal_logs
from ibukit.design.optimal.grids import hill_climbing as climbing
from ibukit.design.optimal.grids import patch_relaxation
from ibukit.design.optimal.grids.hill_climbing import climbed_columns
from ibukit.design.optimal.grids.local_search import (
    hill_climb,
    scores,
    unique_up_to_symmetry,
    within_bounds,
)
from ibukit.design.optimal.grids.patch_forms import PatchForm, first_patch_form
from ibukit.design.optimal.grids.patch_relaxation import _Image, solve_patch_relaxation
from ibukit.design.optimal.grids.patches import Patch, patches_of
from ibukit.design.optimal.path_neighbours import Tangent
from ibukit.fisher_information import contrasts
from oracles import naive

GRID = ik.Grid(2, 5)
pytestmark = pytest.mark.usefixtures("listed_once")


def measure_of(k):
    return Criterion(contrasts(k), False)


def exact(distances, theta, columns=extremal_logs):
    """The bound on all columns, which are listed."""
    points, sizes = deviations(columns(distances), theta)
    return optimal_design(
        points @ contrasts(len(theta)), sizes / sizes.sum(), measure_of(len(theta))
    )[1]


def places(k, seed):
    points = np.random.default_rng(seed).random((k, 2))
    return np.linalg.norm(points[:, None] - points, axis=2)


PROBLEMS = st.tuples(
    st.sampled_from(["grid", "points", "letters"]),
    st.integers(0, 2**32),
    st.sampled_from([0.01, 0.3, 1.0, 3.0]),
)


@settings(max_examples=15)
@given(PROBLEMS, st.sampled_from([3, 4]))
def test_the_bound_is_below_the_optimum_and_of_some_use(problem, largest):
    kind, seed, eps = problem
    distances = {
        "grid": ik.Grid(2, 3).distances(),
        "points": 2 * places(6, seed),
        "letters": 1 - np.eye(6),
    }[kind]
    theta = 0.8 * np.random.default_rng(seed).dirichlet(np.ones(6)) + 0.2 / 6
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ibukit.design.optimal.grids.patches.MAX_PATCH_SECRETS", largest)
        told = solve_patch_relaxation(eps * distances, theta, measure_of(6))
    best = exact(eps * distances, theta)
    assert 0.3 * best <= told.bound <= best * (1 + 1e-9)
    # the score that the bound is made of is that of no column
    points = deviations(extremal_logs(eps * distances), theta)[0] @ contrasts(6)
    met = ((points @ told.dual.quadratic) * points).sum(axis=1) - points @ told.dual.linear
    assert met.max() <= told.highest * (1 + 1e-9)


@pytest.mark.parametrize("eps", [0.2, 0.5, 2.0])
def test_a_patch_of_all_secrets_leaves_nothing(eps, listed):
    distances, theta = eps * ik.Grid(3, 3).distances(), ik.uniform(9)
    assert solve_patch_relaxation(distances, theta, measure_of(9)).bound == pytest.approx(
        exact(distances, theta, listed), rel=5e-4
    )


@pytest.mark.parametrize("eps", [pytest.param(0.2, marks=pytest.mark.slow), 0.5, 2.0])
def test_ten_cells_by_patches_of_nine(eps, rng, listed):
    """Columns that climb come to the optimum of all 15,030,
    and the bound is within three hundredths.
    """
    theta = 0.5 * rng.dirichlet(np.ones(10)) + 0.05
    best = exact(eps * GRID.distances(), theta, listed)
    logs, weights, bound = climbed_columns(eps * GRID.distances(), theta, measure_of(10))
    points = deviations(logs, theta)[0] @ contrasts(10)
    value = measure_of(10).value((points.T * weights) @ points)
    assert 0.97 * best <= bound <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= value <= 1.005 * best


@pytest.mark.parametrize("name", ["concave", "columns"])
def test_forms_that_were_not_made_certain_prove_what_is_false(name, monkeypatch):
    """Negative control: N of too low a constant, or one that is not concave across columns."""
    distances, theta = 0.5 * ik.Grid(2, 3).distances(), ik.uniform(6)
    best = exact(distances, theta)

    def forged(self):
        form = self.form()
        form[0, 0] -= 0.3 * form[0, 0] if name == "columns" else 0
        form[1:, 1:] -= 0.3 * self.curvature() if name == "concave" else 0
        return self._replace(numbers=self.patch.pairs.of_matrix(form)), 0.0

    # a form that bends more is less at the columns, unless it is raised there
    certain = PatchForm.with_safety_margin
    monkeypatch.setattr(PatchForm, "with_safety_margin", forged)
    assert solve_patch_relaxation(distances, theta, measure_of(6)).bound > 1.05 * best
    monkeypatch.setattr(PatchForm, "with_safety_margin", lambda self: certain(forged(self)[0]))
    assert solve_patch_relaxation(distances, theta, measure_of(6)).bound <= best


def test_a_certain_form_is_no_column_s_undoing(rng):
    """Whatever the form was, it is not negative at private columns, mixtures of extremal ones."""
    patch = Patch.of(np.arange(4), 0.7 * ik.Grid(2, 2).distances())
    lame = first_patch_form(patch)
    lame = lame._replace(
        numbers=lame.numbers + 0.3 * np.abs(lame.numbers).max() * rng.normal(size=len(lame.numbers))
    )
    made, lacking = lame.with_safety_margin()
    form = made.form()
    form[0, 0] += lacking
    columns = np.exp(within_bounds(3 * rng.normal(size=(500, 4)), 0.7 * ik.Grid(2, 2).distances()))
    turned = columns @ patch.turn.T
    assert (((turned @ form) * turned).sum(axis=1) >= 0).all()
    assert (((turned @ lame.form()) * turned).sum(axis=1) < 0).any()


def test_patches_of_a_grid_are_squares():
    made = patches_of(ik.Grid(5, 4).distances())
    assert sorted(tuple(patch.secrets) for patch in made) == sorted(
        tuple(4 * (i + a) + j + b for a in range(3) for b in range(3))
        for i in range(3)
        for j in range(2)
    )
    # all is within some patch where distances are equal, too, in parts
    assert {x for patch in patches_of(1 - np.eye(20)) for x in patch.secrets} == set(range(20))


@pytest.mark.parametrize("eps", [pytest.param(0.2, marks=pytest.mark.slow), 2.0])
def test_columns_climb_to_extremal_ones(eps, rng, listed):
    """From anywhere private, never down, and to columns of the list;
    the best of them is nearly the best of all.
    """
    distances, theta = eps * GRID.distances(), ik.uniform(10)
    extremal = listed(distances)
    told = solve_patch_relaxation(distances, theta, measure_of(10))
    tangent = Tangent.of(told.dual, contrasts(10), theta)
    starts = within_bounds(eps * rng.normal(size=(60, 10)), distances)
    found = hill_climb(starts, distances, tangent, rng)
    gaps = (
        np.abs(found[:, None] - found[:, None, :1] - (extremal - extremal[:, :1]))
        .max(axis=2)
        .min(axis=1)
    )
    assert gaps.max() < 1e-6 * eps
    best = scores(extremal, tangent).max()
    assert 0.999 * best <= scores(found, tangent).max() <= best * (1 + 1e-9)
    one = unique_up_to_symmetry(hill_climb(starts[:1], distances, tangent, rng), distances)
    assert scores(one, tangent)[0] >= scores(starts[:1], tangent)[0]


def test_sixteen_cells():
    """A private mechanism, better than the known ones by far,
    and its gap tells the relaxation's.
    """
    grid, prior = ik.Grid(4, 4), ik.uniform(16)
    with pytest.raises(
        ik.ConvergenceError, match=r"the optimum was missed.* the bound is of a relaxation"
    ) as caught:
        ik.optimal_private(prior, grid, 0.5)
    best = caught.value.estimate
    matrix = best.mechanism.matrix()
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert naive.epsilon_metric(matrix, grid.distances()) <= 0.5 * (1 + 1e-9)
    assert ik.theory.asymptotic_mse(best.mechanism, prior) == pytest.approx(best.value, rel=1e-9)
    assert 0.01 * best.value < best.gap < 0.03 * best.value
    rivals = [
        ik.SubsetSelection(grid, 0.5),
        ik.Exponential(grid, 0.5),
        ik.TruncatedPlanarGeometric(grid, 0.5),
    ]
    assert best.value < 0.7 * min(ik.theory.asymptotic_mse(rival, prior) for rival in rivals)
    again = ik.optimal_private(prior, grid, 0.5, strict=False)
    assert np.array_equal(again.mechanism.matrix(), matrix)


def test_at_a_high_level_sixteen_cells_are_certain_within_a_hundredth():
    best = ik.optimal_private(ik.uniform(16), ik.Grid(4, 4), 2.0)
    assert 0 <= best.gap <= 0.01 * best.value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "eps", "gap", "rival", "share"),
    [(8, 0.5, 0.1, ik.SubsetSelection, 0.8), (10, 2.0, 0.05, ik.TruncatedPlanarGeometric, 0.96)],
)
def test_many_cells(side, eps, gap, rival, share):
    """A minute or two; rounds are few."""
    grid, prior = ik.Grid(side, side), ik.uniform(side**2)
    best = ik.optimal_private(prior, grid, eps, strict=False)
    assert naive.epsilon_metric(best.mechanism.matrix(), grid.distances()) <= eps * (1 + 1e-9)
    assert ik.theory.asymptotic_mse(best.mechanism, prior) == pytest.approx(best.value, rel=1e-9)
    assert 0 <= best.gap <= gap * best.value
    assert best.value < share * ik.theory.asymptotic_mse(rival(grid, eps), prior)


def test_columns_that_are_missed_show_in_the_gap(monkeypatch):
    """Negative control: peaks and valleys alone are far from the best,
    and the bound is the same.
    """
    distances, theta = 0.5 * GRID.distances(), ik.uniform(10)
    bound = solve_patch_relaxation(distances, theta, measure_of(10)).bound
    monkeypatch.setattr(climbing, "_climb_in_batches", lambda *given: np.empty((0, 10)))
    monkeypatch.setattr(climbing, "hill_climb", lambda logs, *given: logs[:0])
    logs, weights, said = climbed_columns(distances, theta, measure_of(10))
    points = deviations(logs, theta)[0] @ contrasts(10)
    assert said == bound
    assert measure_of(10).value((points.T * weights) @ points) > 1.3 * bound


def test_distances_too_large_for_doubles_are_refused():
    with pytest.raises(ValueError, match=r"must be at most 600, got 848"):
        ik.optimal_private(ik.uniform(16), ik.Grid(4, 4), 200.0)


def test_forms_that_prove_nothing_are_an_error(monkeypatch):
    monkeypatch.setattr(patch_relaxation, "_certify", lambda *given: None)
    with pytest.raises(np.linalg.LinAlgError, match="no forms of the patches prove a bound"):
        solve_patch_relaxation(GRID.distances(), ik.uniform(10), measure_of(10))


def test_where_the_method_finds_nothing_the_first_forms_prove_little(monkeypatch, listed):
    monkeypatch.setattr(patch_relaxation, "MAX_ITERATIONS", 0)
    distances, theta = 0.5 * GRID.distances(), ik.uniform(10)
    assert (
        0
        < solve_patch_relaxation(distances, theta, measure_of(10)).bound
        <= exact(distances, theta, listed)
    )


def test_the_violated_products_are_those_below_what_privacy_leaves(rng):
    places, basis = np.arange(5.0), rng.normal(size=(5, 2))
    distances, theta = np.abs(places[:, None] - places), np.full(5, 0.2)
    image = _Image.of(np.arange(5), distances, theta, basis, [])
    information = np.array([[3.0, -1.0], [-1.0, 2.0]])
    across = basis - theta @ basis
    second = 1 + across @ information @ across.T
    expected = {
        (x, y)
        for x in range(5)
        for y in range(5)
        if second[y, x] < math.exp(-distances[y, x]) * second[x, x]
    }
    found = image.violated(np.arange(5), information)
    assert {tuple(ends) for ends in found.tolist()} == expected
    assert 0 < len(expected) < 20
