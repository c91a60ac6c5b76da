"""Non-negative least squares from a warm start, beside scipy's and beside all supports."""

from itertools import chain, combinations

import numpy as np
import pytest
from scipy.optimize import nnls

from ibukit.solvers.dense.non_negative import maximise_parabola

ENOUGH = 1e12


def parabola(rng, k, rows):
    """A matrix and a right-hand side, and H and b of their least squares."""
    matrix, right = rng.random((rows, k)), rng.random(rows) + rng.normal(size=rows)
    return matrix, right, matrix.T @ matrix, matrix.T @ right


def height(hessian, b, y):
    return b @ y - y @ hessian @ y / 2


@pytest.mark.parametrize("shape", [(8, 20), (30, 40), (60, 200)], ids=str)
def test_from_any_start_it_is_scipys(shape, rng):
    for _ in range(10):
        matrix, right, hessian, b = parabola(rng, *shape)
        exact, _ = nnls(matrix, right)
        for start in (np.zeros(shape[0]), exact, rng.random(shape[0]), exact + (exact == 0)):
            y, _, is_maximiser = maximise_parabola(hessian, b, start, ENOUGH)
            assert is_maximiser
            np.testing.assert_allclose(y, exact, atol=1e-8)
            assert np.array_equal(y > 0, exact > 0)


def test_of_few_coordinates_it_is_the_best_of_all_supports(rng):
    for _ in range(20):
        _, _, hessian, b = parabola(rng, 5, 7)
        heights = [0.0]
        for support in chain.from_iterable(combinations(range(5), p) for p in range(1, 6)):
            on = list(support)
            y = np.zeros(5)
            y[on] = np.linalg.solve(hessian[np.ix_(on, on)], b[on])
            if (y >= 0).all():
                heights.append(height(hessian, b, y))
        found = maximise_parabola(hessian, b, np.zeros(5), ENOUGH).y
        assert height(hessian, b, found) == pytest.approx(max(heights), abs=1e-12)


def test_whenever_it_ends_no_point_is_lower_than_the_start(rng):
    for _ in range(10):
        _, _, hessian, b = parabola(rng, 40, 50)
        start = rng.random(40) * (rng.random(40) < 0.5) / 40
        reached = [height(hessian, b, start)]
        for work in np.linspace(0, 1e6, 20):
            y, spent, _ = maximise_parabola(hessian, b, start, work)
            assert y.min() >= 0
            assert spent <= work + 40**3 / 3
            reached.append(height(hessian, b, y))
        assert (np.diff(reached) >= -1e-12).all()
        assert reached[-1] > reached[0]


def test_equal_columns_are_taken_once(rng):
    matrix, right, _, _ = parabola(rng, 10, 15)
    twice = np.repeat(matrix, 2, axis=1)
    y, _, is_maximiser = maximise_parabola(twice.T @ twice, twice.T @ right, np.zeros(20), ENOUGH)
    exact, residual = nnls(matrix, right)
    assert is_maximiser
    assert np.linalg.norm(twice @ y - right) == pytest.approx(residual, abs=1e-9)
    np.testing.assert_allclose(y.reshape(10, 2).sum(axis=1), exact, atol=1e-7)


def test_a_start_whose_system_has_no_factor_is_left_as_it_is():
    start = np.array([0.25, 0.5])
    y, _, is_maximiser = maximise_parabola(np.zeros((2, 2)), np.ones(2), start, ENOUGH)
    assert np.array_equal(y, start)
    assert not is_maximiser
