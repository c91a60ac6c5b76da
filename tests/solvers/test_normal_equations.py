"""The linear systems of interior points against the same systems written out:
what solves them wrongly only ends later.

A certified maximum does not depend on its steps, so that these are met here one at a time.
"""

import numpy as np
import pytest

from ibukit.channels import DenseChannel, ResponseChannel
from ibukit.solvers._normal_equations import DenseModel, _newton, cholesky, cross_over
from ibukit.solvers.interior_point_model import QuadraticTerm
from ibukit.solvers.pooled import PooledModel

K = 12


def columns(rng, s):
    matrix = rng.dirichlet(np.ones(s), K)
    return matrix / matrix.max(axis=0)


MODELS = {
    "many reports": lambda rng: DenseModel(columns(rng, 30)),
    "few reports": lambda rng: DenseModel(columns(rng, 5)),
    "few reports, by secrets": lambda rng: DenseModel(columns(rng, 5), by_reports=False),
    "a pool": lambda rng: PooledModel.of(
        (DenseChannel(columns(rng, 4)), ResponseChannel(K, np.arange(K), 0.6, 0.1)), K
    ),
}
models = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
curved = pytest.mark.parametrize("has_hessian", [False, True], ids=["linear", "curved"])


def system(model, has_hessian, rng):
    """A Hessian, weights of reports, and the matrix M diag(w) M^T + H."""
    matrix = np.array([model.forward(unit) for unit in np.eye(K)])
    w, root = rng.uniform(0.5, 2, matrix.shape[1]), rng.normal(size=(K, K))
    hessian = root @ root.T / K if has_hessian else None
    return (
        QuadraticTerm(hessian, np.ones(K)),
        w,
        (matrix * w) @ matrix.T + (hessian if has_hessian else 0.0),
    )


@models
@curved
@pytest.mark.parametrize("shrink", [False, True])
def test_a_factor_solves_the_system(make, has_hessian, shrink, rng):
    model = make(rng)
    quadratic, w, normal = system(model, has_hessian, rng)
    d, r = rng.uniform(0.1, 3, K), rng.normal(size=K)
    x = model.factor(w, d, quadratic, shrink)(r)
    np.testing.assert_allclose((normal + np.diag(d)) @ x, r, atol=1e-11)


@models
@curved
def test_what_is_far_from_having_mass_is_left_to_itself_only_if_asked(make, has_hessian, rng):
    """The error is that of the coupling, below a thousandth; and none without the shortcut."""
    model = make(rng)
    quadratic, w, normal = system(model, has_hessian, rng)
    d, r = rng.uniform(0.1, 3, K), rng.normal(size=K)
    d[::3] = 1e5 * model.diagonal(w)[::3]
    r[::3] *= d[::3]  # so that they move as far as the others
    exact = np.linalg.solve(normal + np.diag(d), r)
    np.testing.assert_allclose(model.factor(w, d, quadratic, False)(r), exact, rtol=1e-9)
    np.testing.assert_allclose(model.factor(w, d, quadratic, True)(r), exact, rtol=1e-3, atol=1e-3)


def test_few_reports_keep_their_digits_where_weights_on_secrets_are_tiny(rng):
    """The remainder of a subtraction that cancels, refined once."""
    model = MODELS["few reports"](rng)
    quadratic, w, normal = system(model, False, rng)
    d, r = np.full(K, 1e-7), rng.normal(size=K)
    x = model.factor(w, d, quadratic, False)(r)
    np.testing.assert_allclose(normal @ x + d * x, r, atol=1e-7)


def test_a_singular_matrix_gets_the_smallest_ridge_that_it_needs():
    matrix = np.array([[1.0, 1.0], [1.0, 1.0]])
    x = cholesky(matrix.copy)(np.array([1.0, 1.0]))
    assert x.sum() == pytest.approx(1.0, abs=1e-6)
    assert cholesky(lambda: -np.eye(2)) is None


def test_newton_finds_the_point_where_every_ratio_is_one_and_says_where_it_left_the_simplex(rng):
    matrix, theta = rng.dirichlet(np.ones(30), 4), np.array([0.1, 0.2, 0.3, 0.4])
    x, negative = _newton(DenseChannel(matrix), theta @ matrix, np.full(4, 0.25))
    assert not negative
    np.testing.assert_allclose(x, theta, rtol=1e-9)
    rows = np.array([[0.9, 0.1], [0.5, 0.5]])
    x, negative = _newton(DenseChannel(rows), np.array([0.99, 0.01]), np.array([0.5, 0.5]))
    assert negative
    assert x.min() == 0


def test_a_support_is_mended_where_the_guess_has_a_secret_too_many_or_too_few():
    """The maximum of (q_z) on three values:
    the third explains nothing, the first two everything.
    """
    rows = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.4, 0.4, 0.2]])
    q, best = np.array([0.45, 0.45, 0.10]), np.array([0.5, 0.5, 0.0])
    for s in (np.array([0.0, 0.0, 1.0]), np.zeros(3), np.array([0.0, 1.0, 0.0])):
        excess, theta = cross_over(DenseModel(rows), q, np.array([0.4, 0.4, 0.2]), s, 1e-12)
        assert excess <= 1e-12
        np.testing.assert_allclose(theta, best, atol=1e-9)
        assert theta[2] == 0


def test_the_excess_is_that_of_the_distribution_that_comes_with_it(rng):
    """From guesses that six rounds do not mend, too: nothing is claimed for another vector."""
    ended = 0
    for _ in range(60):
        model, q = DenseModel(rng.random((K, 30)) ** 3), rng.dirichlet(np.ones(30))
        guess = rng.dirichlet(np.full(K, 0.3))
        excess, theta = cross_over(model, q, guess, np.full(K, np.sort(guess)[-2]), 1e-12)
        if np.isfinite(excess):
            assert theta.sum() == pytest.approx(1, abs=1e-12)
            assert excess == pytest.approx(model.excess(q, theta), abs=1e-12)
            ended += excess > 1e-6
    assert ended > 5


def test_newtons_step_ends_where_the_first_coordinate_vanishes():
    """On the way to the solution of the linearised equations, and not beyond."""
    matrix = np.array([[0.4, 0.6, 0.0, 0.0], [0.2, 0.5, 0.2, 0.2], [0.2, 0.5, 0.3, 0.0]])
    q, x = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.05, 0.35, 0.6])
    p = x @ matrix
    change = np.linalg.solve((matrix * (q / p**2)) @ matrix.T, matrix @ (q / p) - 1)
    far = (-change / x).max()
    assert far > 1
    found, stopped = _newton(DenseChannel(matrix), q, x)
    assert stopped
    np.testing.assert_allclose(found, x + change / far, atol=1e-9)


def test_what_newtons_step_takes_below_0_goes_at_once(rng):
    """All of it, and nothing else: the others stand where the step first meets the boundary."""
    several = 0
    for _ in range(30):
        matrix, q, x = columns(rng, 30), rng.dirichlet(np.ones(30)), rng.dirichlet(np.ones(K))
        nu = x @ matrix
        change = np.linalg.solve((matrix * q / nu**2) @ matrix.T, matrix @ (q / nu) - 1)
        found = _newton(DenseChannel(matrix), q, x)
        if not (x + change < 0).any():
            continue
        assert found is not None
        point, negative = found
        assert negative
        assert np.array_equal(point == 0, x + change <= 0)
        length = (x / -change)[change < 0].min()
        np.testing.assert_allclose(point[point > 0], (x + length * change)[point > 0], rtol=1e-9)
        several += (point == 0).sum() > 1
    assert several >= 10
