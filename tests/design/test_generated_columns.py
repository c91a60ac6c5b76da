"""Columns of a path found by their price:
against all of them listed, and the bound against columns left out.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ibukit as ik
from ibukit.design.optimal import column_generation, path_pricing
from ibukit.design.optimal.column_generation import deviations, generated_columns
from ibukit.design.optimal.column_weights import Criterion, optimal_design
from ibukit.design.optimal.extremal_columns import MAX_K_PATH, extremal_logs, path_of
from ibukit.design.optimal.path_pricing import Path
from ibukit.fisher_information import contrasts
from ibukit.theory.asymptotic_emd import cumulative_sums
from oracles import naive


def all_logs(steps):
    """Every column of a path, one row each."""
    places = np.append(0.0, np.cumsum(steps))
    return extremal_logs(np.abs(places[:, None] - places))


@st.composite
def paths(draw, most=9):
    k = draw(st.integers(3, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    steps = draw(st.sampled_from([0.01, 0.3, 1.0, 4.0])) * (
        rng.uniform(0.5, 2, k - 1) if draw(st.booleans()) else np.ones(k - 1)
    )
    return steps, 0.9 * rng.dirichlet(np.ones(k)) + 0.1 / k, rng


@given(paths())
@settings(max_examples=60)
def test_the_price_is_the_best_of_all(path):
    steps, theta, rng = path
    k = len(theta)
    root = contrasts(k) @ rng.normal(size=(k - 1, k - 1))
    quadratic, linear = root @ root.T, contrasts(k) @ rng.normal(size=k - 1)

    def scores(logs):
        points, _ = deviations(logs, theta)
        return ((points @ quadratic) * points).sum(axis=1) - points @ linear

    every = scores(all_logs(steps))
    highest, chosen = Path(steps, theta).best(quadratic, linear, 5)
    slack = 1e-9 * np.abs(every).max()
    assert highest == pytest.approx(every.max(), abs=slack)
    assert scores(chosen)[0] == pytest.approx(highest, abs=slack)
    assert 1 <= len(chosen) <= 5
    assert len(np.unique(np.sign(np.diff(chosen, axis=1)), axis=0)) == len(chosen)
    np.testing.assert_allclose(
        np.abs(np.diff(chosen, axis=1)), np.tile(steps, (len(chosen), 1)), rtol=1e-9
    )


@given(paths(most=7), st.booleans())
@settings(max_examples=12)
def test_found_by_price_or_listed_the_optimum_is_the_same(path, roots):
    steps, theta, _ = path
    k = len(theta)
    loadings = cumulative_sums(ik.Line(0, k - 1)) if roots else np.eye(k)
    measure = Criterion(loadings @ contrasts(k), roots)
    found, bound = generated_columns(steps, theta, measure)
    bounds = []
    for logs in (found, all_logs(steps)):
        points, sizes = deviations(logs, theta)
        bounds.append(optimal_design(points @ contrasts(k), sizes / sizes.sum(), measure)[1])
    assert bound == pytest.approx(bounds[1], rel=1e-8)
    assert bound <= bounds[1] * (1 + 1e-9), "a bound on all designs"
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-8), "no column that matters is left out"


def test_columns_that_the_price_is_not_asked_for_are_missed(monkeypatch):
    """Negative control: one round alone leaves much open, and its bound says so."""
    steps, theta = np.full(8, 0.6), ik.uniform(9)
    measure = Criterion(contrasts(9), False)
    _, best = generated_columns(steps, theta, measure)
    monkeypatch.setattr(column_generation, "MAX_ROUNDS", 2)
    some, bound = generated_columns(steps, theta, measure)
    points, sizes = deviations(some, theta)
    value = optimal_design(points @ contrasts(9), sizes / sizes.sum(), measure)[1]
    assert bound < 0.999 * best < 0.999 * value


@pytest.mark.parametrize("criterion", ["mse", "emd"])
def test_eighteen_secrets_on_a_line(criterion, rng):
    prior = 0.5 * rng.dirichlet(np.ones(18)) + 0.5 / 18
    best = ik.optimal_private(prior, 18, 2.0, criterion)
    assert 0 <= best.gap <= 1e-8 * best.value
    matrix = best.mechanism.matrix()
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-12)
    assert naive.epsilon_metric(matrix, naive.line_distances(18)) <= 2 * (1 + 1e-9)
    limit = {"mse": ik.theory.asymptotic_mse, "emd": ik.theory.asymptotic_emd}[criterion]
    assert limit(best.mechanism, prior) == pytest.approx(best.value, rel=1e-9)
    # which is the best for "mse" here, as far as the bound tells
    assert limit(ik.TruncatedGeometric(18, 2.0), prior) >= best.value - best.gap - 1e-9 * best.value


def test_the_order_of_the_secrets_does_not_matter(rng):
    order = rng.permutation(18)
    prior = 0.5 * rng.dirichlet(np.ones(18)) + 0.5 / 18
    mixed = ik.Alphabet(range(18), ik.Line(0, 17).distances()[np.ix_(order, order)])
    assert ik.optimal_private(prior[order], mixed, 2.0).value == pytest.approx(
        ik.optimal_private(prior, 18, 2.0).value, rel=1e-7
    )


@pytest.mark.slow
@pytest.mark.parametrize("eps", [0.1, 0.6])
def test_the_most_secrets_on_a_line(eps):
    best = ik.optimal_private(ik.uniform(25), 25, eps)
    assert best.gap <= 1e-8 * best.value


def test_what_is_a_path():
    star = np.array([[0, 1, 1, 1], [1, 0, 2, 2], [1, 2, 0, 2], [1, 2, 2, 0]])
    assert path_of(star) is None
    assert path_of(ik.Grid(2, 2).distances()) is None
    order, steps = path_of(np.abs(np.subtract.outer([5.0, 1.0, 2.0], [5.0, 1.0, 2.0])))
    assert steps.tolist() in ([1, 3], [3, 1])
    assert order.tolist() in ([1, 2, 0], [0, 2, 1])
    with pytest.raises(ik.errors.TooLarge, match="alphabet of 101 secrets has too many"):
        path_of(ik.Line(0, MAX_K_PATH).distances())


def test_entries_that_are_no_doubles_are_refused():
    with pytest.raises(
        ValueError, match=r"epsilon times the distances must be at most 300 .* got 1600"
    ):
        ik.optimal_private(ik.uniform(18), 18, 200.0)


def test_columns_are_unlike_each_other_as_long_as_there_is_choice():
    ups = np.array([[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]], dtype=bool)
    assert path_pricing._diverse_rows(ups, 2) == [0, 4]
    assert path_pricing._diverse_rows(ups, 9) == [0, 4, 2, 3]
