"""Quasi-Newton steps beside the central path, and where they leave the work to it."""

import numpy as np
import pytest
import scipy

from dense_cases import by_the_path, confusion, excess
from ibukit.solvers._normal_equations import DenseModel
from ibukit.solvers.dense import quasi_newton_steps

TOL = 1e-9


def steps(matrix, q):
    return quasi_newton_steps.maximise(DenseModel(matrix / matrix.max(axis=0)), q, TOL)


def few_entries(rng, k, s):
    matrix = rng.random((k, s)) * (rng.random((k, s)) < 0.1)
    matrix[np.arange(s) % k, np.arange(s)] += 0.1
    return matrix / matrix.sum(axis=1, keepdims=True)


def reports(rng, matrix, shares, n=10**5):
    counts = rng.multinomial(n, shares @ matrix)
    return matrix[:, counts > 0], counts[counts > 0] / n


@pytest.fixture
def gradients(monkeypatch):
    """Numbers of gradients of each search."""
    numbers, minimize = [], scipy.optimize.minimize

    def counted(*given, **named):
        found = minimize(*given, **named)
        numbers.append(found.nfev)
        return found

    monkeypatch.setattr(scipy.optimize, "minimize", counted)
    return numbers


@pytest.mark.parametrize("make", [confusion, few_entries])
@pytest.mark.parametrize(("k", "s"), [(120, 250), (150, 600)])
def test_neither_few_nor_all_have_mass_as_on_the_path(make, k, s, rng, monkeypatch):
    left = 0
    for _ in range(5):
        matrix, q = reports(rng, make(rng, k, s), rng.dirichlet(np.full(k, 0.3)))
        found = steps(matrix, q)
        if found is None:
            left += 1
            continue
        theta, taken = found
        assert 0 < taken <= 90
        assert theta.sum() == pytest.approx(1, abs=1e-12)
        assert excess(matrix, q, theta) <= 1e-12
        path = by_the_path(matrix, q, monkeypatch)
        np.testing.assert_allclose(theta, path, atol=1e-9)
        assert 0 < np.count_nonzero(theta == 0) < 0.9 * k
        assert np.array_equal(theta == 0, path == 0)
    assert left <= 1


def test_if_all_have_mass_newton_steps_end_it(rng, monkeypatch):
    matrix, q = reports(rng, confusion(rng, 120, 150), rng.dirichlet(np.full(120, 30.0)), 10**6)
    theta, _ = steps(matrix, q)
    assert theta.min() > 0
    assert excess(matrix, q, theta) <= 1e-12
    np.testing.assert_allclose(theta, by_the_path(matrix, q, monkeypatch), atol=1e-9)


@pytest.mark.parametrize(("k", "first"), [(200, 30), (800, 40)])
def test_under_a_blur_the_search_soon_ends(k, first, rng, gradients):
    place = (np.arange(k) + 0.5) / k
    matrix = np.exp(-0.5 * ((place[:, None] - place) / 0.05) ** 2)
    matrix /= matrix.sum(axis=1, keepdims=True)
    assert steps(*reports(rng, matrix, rng.dirichlet(np.ones(k)), 10**6)) is None
    assert len(gradients) == 1
    assert first <= gradients[0] <= 2 * first + 10


def test_of_many_secrets_more_gradients_are_taken_than_of_few(rng, gradients):
    """Each is a smaller share of a step on the path."""
    found = []
    for _ in range(3):
        matrix = rng.dirichlet(np.ones(600), size=600)
        matrix, q = reports(rng, matrix, rng.dirichlet(np.ones(600)))
        found += [(matrix, q, steps(matrix, q))]
    assert 90 < max(gradients) <= 121
    certified = [excess(matrix, q, each[0]) for matrix, q, each in found if each is not None]
    assert len(certified) >= 1
    assert max(certified) <= 1e-12


def test_of_more_secrets_than_reports_the_only_maximiser_is_found_as_well(rng, monkeypatch):
    found = 0
    for _ in range(4):
        matrix, q = reports(rng, few_entries(rng, 300, 280), rng.dirichlet(np.full(300, 0.1)))
        assert len(matrix) > len(q)
        nearest = steps(matrix, q)
        if nearest is not None:
            found += 1
            path = by_the_path(matrix, q, monkeypatch)
            np.testing.assert_allclose(nearest[0], path, atol=1e-8)
            assert np.count_nonzero(nearest[0]) <= len(q)
    assert found >= 1


def test_of_several_maximisers_none_is_chosen(rng):
    shares = rng.dirichlet(np.full(120, 0.5))
    matrix, q = reports(rng, confusion(rng, 120, 200), shares)
    theta, _ = steps(matrix, q)
    best, none = theta.argmax(), np.flatnonzero(theta == 0)[0]
    assert steps(np.vstack([matrix, matrix[best]]), q) is None
    # Without mass, two that are the same are no hindrance.
    assert steps(np.vstack([matrix, matrix[none]]), q) is not None
    # A mixture of some that have mass has g = 1, and any part of the mass.
    some = np.argsort(-theta)[:3]
    assert steps(np.vstack([matrix, matrix[some].mean(axis=0)]), q) is None


def test_secrets_are_not_few_nor_more_than_reports_and_the_tolerance_is_not_rough():
    applies = quasi_newton_steps.applies
    assert applies(100, 300, 1e-6)
    assert applies(300, 300, 1e-6)
    assert not applies(99, 400, 1e-6)
    assert not applies(100, 299, 1e-6)
    # Of more secrets than reports other methods are as fast up to a larger size.
    assert not applies(301, 300, 1e-6)
    assert applies(2000, 1000, 1e-6)
    assert not applies(1999, 1000, 1e-6)
    assert not applies(2002, 1000, 1e-6)
    assert not applies(300, 300, 1.1e-6)


def test_the_order_of_the_secrets_does_not_matter(rng):
    matrix, q = reports(rng, confusion(rng, 120, 200), rng.dirichlet(np.full(120, 0.5)))
    order = rng.permutation(120)
    np.testing.assert_allclose(steps(matrix[order], q)[0], steps(matrix, q)[0][order], atol=1e-11)


def test_a_zero_that_might_have_mass_is_no_answer(rng, monkeypatch):
    """Where a search ends with all mass of two secrets, equal but for rounding, on one of them."""
    matrix, q = reports(rng, confusion(rng, 120, 250), rng.dirichlet(np.full(120, 0.5)))
    theta, taken = steps(matrix, q)
    twice = np.vstack([matrix, (1 - 1e-12) * matrix[theta.argmax()]])
    monkeypatch.setattr(quasi_newton_steps, "_near", lambda *given: (np.append(theta, 0.0), taken))
    assert steps(twice, q) is None
    apart = np.vstack([matrix, np.roll(matrix[theta.argmax()], 1)])
    assert excess(apart, q, steps(apart, q)[0]) <= 1e-12


def test_what_newton_steps_do_not_certify_is_no_answer(rng, monkeypatch):
    matrix, q = reports(rng, confusion(rng, 120, 250), rng.dirichlet(np.full(120, 0.5)))
    assert steps(matrix, q) is not None
    whole = quasi_newton_steps.cross_over
    monkeypatch.setattr(quasi_newton_steps, "cross_over", lambda *given: (1e-3, whole(*given)[1]))
    assert steps(matrix, q) is None
