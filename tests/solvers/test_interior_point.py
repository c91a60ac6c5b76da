"""The interior point from inside:
its linear systems, what stays exact along the path, exact zeros at the end.
"""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from scipy import optimize

from ibukit.solvers import interior_point, limits
from ibukit.solvers._normal_equations import DenseModel, cholesky, cross_over
from ibukit.solvers.dense import least_squares_steps
from ibukit.solvers.interior_point import (
    TRIES,
    _longest_step,
    _step_length,
    best_of,
    central_path,
    maximise,
    maximise_model,
)
from ibukit.solvers.interior_point_model import QuadraticTerm

pytestmark = pytest.mark.usefixtures("only_the_path")

SHAPES = [
    (12, 30),
    (30, 30),
    (40, 6),
]  # the last has so few reports that the system is one in the reports
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def model_of(rng, k, s):
    matrix = rng.random((k, s)) ** 4
    return DenseModel(matrix / matrix.max(axis=0)), rng.dirichlet(np.ones(s))


def curved_of(rng, k, size=1.0):
    factor = rng.normal(size=(k, k)) * size
    return QuadraticTerm(factor @ factor.T / k, 1 + rng.normal(size=k) * size)


def uniform(k):
    return np.full(k, 1 / k)


# Linear systems


@shapes
@pytest.mark.parametrize("quadratic", [False, True])
def test_a_factor_solves_its_system(shape, quadratic, rng):
    model, _ = model_of(rng, *shape)
    k = model.k
    curved = curved_of(rng, k) if quadratic else QuadraticTerm.none()
    w, d, r = rng.random(shape[1]), 10 ** rng.uniform(-2, 1, k), rng.normal(size=k)
    system = (model.matrix * w) @ model.matrix.T + np.diag(d) + (curved.hessian if quadratic else 0)
    for own in (model, model.accurate()):
        np.testing.assert_allclose(
            own.factor(w, d, curved, False)(r), np.linalg.solve(system, r), rtol=1e-8
        )


@pytest.mark.parametrize("quadratic", [False, True])
def test_secrets_with_a_large_diagonal_are_solved_for_one_by_one(quadratic, rng):
    model, _ = model_of(rng, 30, 40)
    curved = curved_of(rng, 30, 0.1) if quadratic else QuadraticTerm.none()
    w = rng.random(40)
    d = np.where(np.arange(30) % 3 == 0, 1e7, 1.0)
    r = rng.normal(size=30) * d
    system = (model.matrix * w) @ model.matrix.T + np.diag(d) + (curved.hessian if quadratic else 0)
    exact = np.linalg.solve(system, r)
    shrunk = model.factor(w, d, curved, True)(r)
    assert not np.array_equal(shrunk, model.factor(w, d, curved, False)(r)), (
        "nothing was shrunk: no test"
    )
    # what the others do to those with the large diagonal is left out, a coupling of order 1 against
    # 1e7
    assert np.abs(shrunk - exact).max() <= 1e-5 * np.abs(exact).max()
    # but not what those do to the others
    coupling = (system @ np.where(d > 1, exact, 0))[d == 1]
    assert np.abs(coupling).max() > 0.1


@pytest.mark.parametrize("quadratic", [False, True])
@pytest.mark.parametrize(("times", "shrunk"), [(990, False), (1010, True)])
def test_large_means_a_thousand_times_the_own_entry(times, shrunk, quadratic, rng):
    model, _ = model_of(rng, 30, 40)
    curved = (
        replace(QuadraticTerm.none(), hessian=np.diag(rng.uniform(5, 50, 30)))
        if quadratic
        else QuadraticTerm.none()
    )
    w, r = rng.random(40), rng.normal(size=30)
    own = model.diagonal(w) + (curved.hessian.diagonal() if quadratic else 0)
    d = np.where(np.arange(30) % 3 == 0, times * own, 1.0)
    same = np.array_equal(model.factor(w, d, curved, True)(r), model.factor(w, d, curved, False)(r))
    assert same is not shrunk


def test_the_accurate_system_holds_where_the_quick_one_cancels(rng):
    model, _ = model_of(rng, 60, 3)
    w, d, x = rng.random(3) * 1e6, 10 ** rng.uniform(-16, 0, 60), rng.random(60)
    r = model.adjoint(w * model.forward(x)) + d * x

    def error(found):
        return (
            np.abs(model.adjoint(w * model.forward(found)) + d * found - r).max() / np.abs(r).max()
        )

    quick, accurate = (
        own.factor(w, d, QuadraticTerm.none(), False)(r) for own in (model, model.accurate())
    )
    assert error(accurate) <= 1e-14
    assert error(quick) >= 1e-10
    # without its refinement it would cancel much earlier
    d, r = np.ones(60), model.adjoint(w * model.forward(x)) + x
    assert error(model.factor(w, d, QuadraticTerm.none(), False)(r)) <= 1e-14
    # of many more secrets than reports their system is too large, and the quick one has to do
    for k, s, quick in ((300, 1, False), (301, 1, True), (400, 100, False), (401, 100, True)):
        assert DenseModel(np.ones((k, s))).accurate().by_reports is quick
    with limits(factorised_order=399):
        assert DenseModel(np.ones((400, 100))).accurate().by_reports


def test_a_distribution_without_a_report_proves_nothing():
    assert DenseModel(np.eye(2)).excess(uniform(2), np.array([1.0, 0.0])) == np.inf
    assert DenseModel(np.eye(2)).excess(uniform(2), np.array([0.25, 0.75])) == pytest.approx(1.0)


def test_a_ridge_only_where_it_is_needed():
    singular = np.ones((3, 3))
    assert cholesky(lambda: singular - 1e-9 * np.eye(3))(np.ones(3)) @ np.ones(3) == pytest.approx(
        1, rel=1e-6
    )
    assert cholesky(lambda: singular - np.eye(3)) is None
    built = []
    cholesky(lambda: built.append(0) or np.eye(3))
    assert len(built) == 1


# The path


@shapes
def test_both_linear_maps_stay_exact_along_the_path(shape, rng):
    model, q = model_of(rng, *shape)
    points = []
    for point in central_path(model, q, uniform(model.k), careful=False):
        points.append(point)
        if point.mu < 1e-12:
            break
    assert 5 < len(points) < 20
    for point in points:
        assert min(point.theta.min(), point.s.min(), point.lam.min(), point.nu.min()) > 0
        assert np.abs(point.nu - point.theta @ model.matrix).max() <= 1e-14
        assert np.abs(1 - model.matrix @ point.lam - point.s).max() <= 1e-13
        assert point.mu == pytest.approx((point.theta * point.s).mean())
    assert points[1].mu > 1e-6
    assert np.abs(points[-1].lam * points[-1].nu - q).max() < 1e-9
    assert model.excess(q, points[-1].theta / points[-1].theta.sum()) < 1e-8


@pytest.mark.parametrize("share", [0.9, 0.99])
@pytest.mark.parametrize("reach", [0.0, 0.3])
def test_second_order_terms_that_hinder_are_weighed_less(reach, share, rng):
    """The change goes a tenth farther than with all of them, at least,
    and leads nowhere else; or it is as it was.
    """
    gained = 0
    for _ in range(40):
        theta = rng.uniform(0.1, 1.0, 12)
        straight, bent = (
            theta * rng.uniform(-1.2, 2.0, 12),
            theta * rng.uniform(rng.uniform(-4.0, -0.5), 2.0, 12),
        )
        whole = _step_length(theta, bent, share)
        change, length = _longest_step(theta, straight, bent, reach, share)
        assert length == _step_length(theta, change, share)
        assert (theta + length * change).min() > 0
        (w,) = np.linalg.lstsq((bent - straight)[:, None], change - straight, rcond=None)[0]
        np.testing.assert_allclose(change, straight + w * (bent - straight), atol=1e-12)
        assert reach - 1e-9 <= w <= 1 + 1e-9
        others = [
            _step_length(theta, straight + v * (bent - straight), share)
            for v in np.linspace(reach, 1, 200)
        ]
        if change is bent:
            assert length == whole
            assert (
                max(others) <= 1.25 * whole
            )  # a tenth, and what lies between the places looked at
        else:
            gained += 1
            assert length > 1.1 * whole
            assert max(others) <= 1.15 * length
    assert 10 < gained < 40


def quadratic_optimum(model, q, curved):
    """Min 1/2 theta H theta + c . theta - q .
    log(theta M) over theta >= 0, by a quasi-Newton method with bounds.
    """

    def objective(theta):
        p = model.forward(theta)
        value = theta @ curved.hessian @ theta / 2 + curved.c @ theta - q @ np.log(p)
        return value, curved.gradient(theta) - model.adjoint(q / p)

    start = uniform(model.k)
    bounds = [(1e-14, None)] * model.k
    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 40}
    found = optimize.minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return found.x, objective


@pytest.mark.parametrize("size", [1.0, 6.0])
@pytest.mark.parametrize("seed", range(12))
def test_with_a_quadratic_part_the_path_ends_where_a_general_solver_does(seed, size):
    rng = np.random.default_rng(seed)
    k, s = rng.integers(2, 12, 2)
    model, q = model_of(rng, k, s)
    curved = curved_of(rng, k, size)
    # as the bits have it: the parabola has its minimum near the simplex, off to one side
    curved = replace(
        curved, c=1 - curved.hessian @ rng.dirichlet(np.ones(k)) + rng.normal(size=k) / 9
    )
    for point in islice(central_path(model, q, uniform(k), False, curved), 60):
        off = curved.gradient(point.theta) - model.adjoint(point.lam) - point.s
        assert np.abs(point.residual - off).max() <= 1e-12
        if (point.theta * point.s).max() < 1e-16 and np.abs(point.residual).max() < 1e-10:
            break
    theirs, objective = quadratic_optimum(model, q, curved)
    assert objective(point.theta)[0] <= objective(theirs)[0] + 1e-12
    assert np.abs(point.theta - theirs).max() <= 1e-4
    # the optimality conditions: the gradient is not negative, and 0 where there is mass
    gradient = objective(point.theta)[1]
    assert gradient.min() >= -1e-8
    assert np.abs(gradient * point.theta).max() <= 1e-8


def test_the_quadratic_part_is_felt(rng):
    model, q = model_of(rng, 5, 4)
    plain, _ = maximise_model(model, q, 1e-12)
    curved = QuadraticTerm(np.diag([1e3, 0, 0, 0, 0.0]), np.ones(5))
    *_, point = islice(central_path(model, q, uniform(5), False, curved), 40)
    assert plain[0] > 0.05
    assert point.theta[0] < 1e-2 * plain[0]


# Where it starts, and further tries


def test_the_start_is_some_updates_and_a_share_of_uniform(rng):
    model, q = model_of(rng, 7, 9)
    settings = replace(TRIES[0], em_steps=3, uniform_share=0.25)
    theta = uniform(7)
    for _ in range(3):
        theta = theta * (model.matrix @ (q / (theta @ model.matrix)))
    expected = 0.75 * theta + 0.25 / 7
    np.testing.assert_allclose(interior_point.em_start(model, q, settings), expected, rtol=1e-13)


@shapes
def test_a_try_that_fails_is_followed_by_the_next_with_the_accurate_system(shape, monkeypatch, rng):
    model, q = model_of(rng, *shape)
    reached = []
    one_try = interior_point._one_try

    def lame(model, q, tol, settings):
        found = one_try(
            model, q, tol, settings if len(reached) == 1 else replace(settings, max_iter=1)
        )
        reached.append((settings, model.by_reports, found[0][0]))
        return found

    monkeypatch.setattr(interior_point, "_one_try", lame)
    theta, steps = maximise_model(model, q, 1e-11)
    assert [settings for settings, *_ in reached] == list(TRIES[:2])
    assert [by_reports for _, by_reports, _ in reached] == [True, False]
    assert reached[1][-1] <= 1e-11 < reached[0][-1]
    assert model.excess(q, theta) <= 1e-11
    assert steps > 1


@shapes
def test_a_tolerance_out_of_reach_ends_without_a_warning(shape, rng):
    for _ in range(10):
        model, q = model_of(rng, *shape)
        theta, steps = maximise_model(model, q, -1.0)
        assert model.excess(q, theta) < 1e-11
        assert steps < sum(settings.max_iter for settings in TRIES)


def test_the_best_of_all_tries_where_none_suffices(monkeypatch, rng):
    model, q = model_of(rng, 20, 30)
    lame = tuple(
        replace(settings, max_iter=limit) for settings, limit in zip(TRIES, (1, 4, 2), strict=True)
    )
    monkeypatch.setattr(interior_point, "TRIES", lame)
    theta, steps = maximise_model(model, q, 1e-13)
    assert steps == 7
    every = [interior_point._one_try(model, q, 1e-13, settings)[0][0] for settings in lame]
    assert model.excess(q, theta) == min(every) > 1e-13
    assert abs(theta.sum() - 1) <= 1e-14


def test_factors_of_the_reports_and_secrets_without_a_report_do_not_matter(rng):
    model, q = model_of(rng, 8, 6)
    plain, steps = maximise(model.matrix, q, 1e-12)
    scale = 2.0 ** rng.integers(-900, 900, 6)
    with_dead = np.insert(model.matrix * scale, [0, 3, 8], 0, axis=0)
    found, again = maximise(with_dead, q, 1e-12)
    assert again == steps
    assert np.array_equal(found, np.insert(plain, [0, 3, 8], 0))


# Exact zeros


def vertex(rng):
    """A model whose maximiser has a few secrets, and the maximiser."""
    model, q = model_of(rng, 15, 12)
    theta, _ = maximise_model(model, q, 1e-13)
    assert 1 < (theta > 0).sum() < 12
    return model, q, theta


def test_near_the_maximiser_the_support_is_guessed_and_solved_for(rng):
    model, q, theta = vertex(rng)
    on = theta > 0
    near = np.where(on, theta * np.exp(0.3 * rng.normal(size=15)), 1e-3)
    # what is larger decides, by however little
    slack = np.where(on, 0.9 * near, 1.1 * near)
    excess, found = cross_over(model, q, near, slack, 1e-13)
    assert excess <= 1e-13
    assert model.excess(q, found) == pytest.approx(excess, abs=1e-15)
    np.testing.assert_allclose(found, theta, atol=1e-12)
    assert np.array_equal(found > 0, theta > 0)
    assert abs(found.sum() - 1) <= 1e-15


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-9])
def test_zeros_are_exact_whatever_was_asked(tol, rng):
    for _ in range(20):
        model, q = model_of(rng, 15, 12)
        exact, _ = maximise_model(model, q, 1e-13)
        theta, _ = maximise_model(model, q, tol)
        # some may not be known yet, but none is a small number instead
        assert model.excess(q, theta) <= tol
        if tol < 1e-3:
            assert np.array_equal(theta > 0, exact > 0)


def test_a_guess_with_one_secret_too_few_or_too_many_is_mended(rng):
    model, q, theta = vertex(rng)
    support = np.flatnonzero(theta)
    for wrong in (support[1:], support[:-1], np.append(support, np.flatnonzero(theta == 0)[:2])):
        on = np.isin(np.arange(15), wrong)
        near = np.where(on, np.maximum(theta, 1e-2), 1e-9)
        excess, found = cross_over(model, q, near, np.where(on, 1e-9, 1e-4), 1e-12)
        assert excess <= 1e-12
        np.testing.assert_allclose(found, theta, atol=1e-10)


def test_a_guess_that_leads_nowhere_is_infinitely_bad():
    model = DenseModel(np.eye(3))
    q, nothing, all_ = uniform(3), np.zeros(3), np.ones(3)
    assert cross_over(model, q, nothing, all_, 1e-9)[0] == np.inf  # no support at all
    assert (
        cross_over(model, q, np.array([1.0, 1.0, 0]), np.array([0, 0, 1.0]), 1e-9)[0] == np.inf
    )  # a report without
    wide = DenseModel(np.eye(3)[:, :2] + 0.1)
    assert (
        cross_over(wide, uniform(2), all_, nothing, 1e-9)[0] == np.inf
    )  # more unknowns than equations


def test_a_guess_that_hardly_explains_a_report_does_not_leave_the_doubles():
    # 1e-170 is above 0, but its square is not
    model = DenseModel(np.array([[1.0, 1e-170], [0.5, 1.0]]))
    assert (
        cross_over(model, uniform(2), np.array([1.0, 0.0]), np.array([0.0, 1.0]), 1e-9)[0] == np.inf
    )


def test_a_loose_tolerance_has_zeros_where_the_certificate_allows_them(rng):
    """Above 1e-6 the support is not solved for:
    what the path drives to zero is left out, if that keeps within tol.
    """
    with_zeros = 0
    for _ in range(20):
        matrix, q = rng.random((40, 30)) ** 4, rng.dirichlet(np.ones(30))
        theta, _ = maximise(matrix, q, 1e-2)
        assert DenseModel(matrix).excess(q, theta) <= 1e-2
        assert theta.sum() == pytest.approx(1, abs=1e-12)
        with_zeros += bool((theta == 0).any())
    assert with_zeros >= 4


def test_a_gap_of_exactly_the_tolerance_needs_no_other_try():
    found, steps = best_of(TRIES[:2], 0.5, lambda settings: ((0.5, np.ones(1)), 1))
    assert steps == 1
    assert best_of(TRIES[:2], 0.4, lambda settings: ((0.5, found), 1))[1] == 2


def test_where_the_support_cannot_be_told_at_the_goal_the_path_goes_on_until_it_can(
    monkeypatch, rng
):
    """Two guesses too early: the third is taken, with its zeros;
    and a face without a vertex ends all the same.
    """
    model, q, theta = vertex(rng)
    guess, guesses = DenseModel.cross_over, []
    monkeypatch.setattr(least_squares_steps, "maximise", lambda *given: None)

    def late(self, *args):
        guesses.append(args)
        return guess(self, *args) if len(guesses) > 2 else (np.inf, args[1])

    monkeypatch.setattr(DenseModel, "cross_over", late)
    found, _ = maximise(model.matrix, q, 1e-7)
    assert len(guesses) >= 3
    assert np.array_equal(found > 0, theta > 0)
    monkeypatch.setattr(DenseModel, "cross_over", lambda self, *args: (np.inf, args[1]))
    never, steps = maximise(model.matrix, q, 1e-7)
    assert model.excess(q, never) <= 1e-7
    assert steps < 40
