"""Newton steps where every secret has mass, beside the central path and the definition."""

import numpy as np
import pytest

import ibukit as ik
from dense_cases import by_the_path, confusion, excess
from ibukit.solvers import interior_point
from ibukit.solvers._normal_equations import DenseModel
from ibukit.solvers.dense import interior_steps, least_squares_steps
from ibukit.solvers.dense.systems import Systems

TOL = 1e-9


def steps(matrix, q, tol=TOL):
    return interior_steps.maximise(DenseModel(matrix / matrix.max(axis=0)), q, tol)


def dirichlet(rng, k, s):
    return rng.dirichlet(np.ones(s), size=k)


def low_rank(rng, k, s):
    return rng.dirichlet(np.ones(4), size=k) @ rng.dirichlet(np.ones(s), size=4)


def reports_of_all(matrix, rng, n=10**6):
    """Of people among whom all secrets are about as frequent."""
    people = rng.dirichlet(np.full(len(matrix), 30.0))
    return np.maximum(rng.multinomial(n, people @ matrix), 1) / n


@pytest.mark.parametrize(
    ("make", "k", "s"),
    [(confusion, 40, 40), (confusion, 60, 200), (dirichlet, 10, 50), (dirichlet, 3, 300)],
)
def test_the_only_maximiser_is_that_of_the_path(make, k, s, rng, monkeypatch):
    for _ in range(3):
        matrix = make(rng, k, s)
        q = reports_of_all(matrix, rng)
        theta, taken = steps(matrix, q / q.sum())
        assert 0 < taken <= 60
        assert theta.min() > 0
        assert excess(matrix, q / q.sum(), theta) <= 1e-12
        path = by_the_path(matrix, q / q.sum(), monkeypatch)
        np.testing.assert_allclose(theta, path, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "k", "s"), [(dirichlet, 300, 30), (confusion, 200, 50), (dirichlet, 1000, 3)]
)
def test_where_secrets_abound_reports_are_fitted_exactly_and_in_any_order(make, k, s, rng):
    matrix = make(rng, k, s)
    q = reports_of_all(matrix, rng)
    q /= q.sum()
    theta, _ = steps(matrix, q)
    assert theta.min() > 0
    assert theta.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(theta @ matrix, q, atol=1e-11)
    order = rng.permutation(k)
    np.testing.assert_allclose(steps(matrix[order], q)[0], theta[order], atol=1e-8)


def test_rows_that_depend_on_each_other_are_no_hindrance(rng):
    matrix = low_rank(rng, 50, 80)
    q = reports_of_all(matrix, rng)
    q /= q.sum()
    theta, _ = steps(np.vstack([matrix, matrix[:3]]), q)
    assert excess(matrix, q, theta[:50] + np.append(theta[50:], np.zeros(47))) <= 1e-12


def test_near_the_identity_updates_are_enough(rng, monkeypatch):
    def refused(self, *given, **named):
        raise AssertionError("no system is needed")

    monkeypatch.setattr(Systems, "solver", refused)
    matrix = 0.98 * np.eye(30) + 0.02 * dirichlet(rng, 30, 30)
    q = reports_of_all(matrix, rng)
    theta, taken = steps(matrix, q / q.sum())
    assert excess(matrix, q / q.sum(), theta) <= 1e-12
    assert taken <= 30


def test_a_mass_that_updates_let_fall_to_nothing_is_none(rng, monkeypatch):
    """What no secret reports is fitted by the others, by far."""
    monkeypatch.setattr(Systems, "solver", None)
    matrix = 0.98 * np.eye(30) + 0.02 * dirichlet(rng, 30, 30)
    q = np.maximum(reports_of_all(matrix, rng), 1e-3)
    q[3] = 1e-9
    theta, _ = steps(matrix, q / q.sum())
    assert np.flatnonzero(theta == 0).tolist() == [3]
    assert excess(matrix, q / q.sum(), theta) <= 1e-9


def test_few_zeros_are_exact(rng, monkeypatch):
    """Of 40 secrets one is missing among the people, and its reports are fewer than the noise's."""
    for _ in range(3):
        matrix = confusion(rng, 40, 120)
        people = rng.dirichlet(np.full(40, 30.0))
        people[7] = 0
        q = people / people.sum() @ matrix
        q[7] *= 0.9
        q /= q.sum()
        theta, _ = steps(matrix, q)
        assert np.flatnonzero(theta == 0).tolist() == [7]
        assert excess(matrix, q, theta) <= 1e-9
        np.testing.assert_allclose(theta, by_the_path(matrix, q, monkeypatch), atol=1e-9)


def test_where_few_secrets_have_mass_the_first_step_shows_it(rng, monkeypatch):
    systems, solver = [], Systems.solver
    monkeypatch.setattr(
        Systems, "solver", lambda *given, **named: systems.append(1) or solver(*given, **named)
    )
    place = (np.arange(100) + 0.5) / 100
    matrix = np.exp(-0.5 * ((place[:, None] - place) / 0.1) ** 2)
    matrix /= matrix.sum(axis=1, keepdims=True)
    q = rng.multinomial(10**5, matrix[[20, 60]].mean(axis=0)) / 10**5
    seen = q > 0
    assert steps(matrix[:, seen], q[seen]) is None
    assert len(systems) == 1


def test_a_rough_tolerance_is_left_to_the_path(rng):
    matrix = confusion(rng, 40, 40)
    q = reports_of_all(matrix, rng)
    assert steps(matrix, q / q.sum(), 1e-6) is not None
    assert steps(matrix, q / q.sum(), 1e-5) is None


@pytest.mark.parametrize(
    ("k", "s", "concentration", "n", "words"),
    [
        (300, 100, 30.0, 10**6, "by accelerated updates and Newton steps"),
        (150, 200, 0.5, 10**5, "by quasi-Newton and Newton steps"),
    ],
)
def test_an_estimate_says_how_it_was_found(k, s, concentration, n, words, rng):
    matrix = confusion(rng, k, s)
    counts = rng.multinomial(n, rng.dirichlet(np.full(k, concentration)) @ matrix)
    estimate = ik.mle(ik.MatrixMechanism(matrix).tally_counts(counts))
    assert estimate.method.endswith(words)
    assert estimate.gap <= 1e-9


def told(matrix, q, monkeypatch):
    """The estimate, how it was found, and which methods were asked, in their order."""
    asked = []
    with monkeypatch.context() as patched:
        for method in (interior_steps, least_squares_steps):
            whole = method.maximise
            patched.setattr(
                method,
                "maximise",
                lambda *given, method=method, whole=whole: asked.append(method) or whole(*given),
            )
        return *interior_point.maximise_and_tell(matrix, q, TOL), asked


def test_where_secrets_abound_and_updates_converge_least_squares_are_not_tried(rng, monkeypatch):
    matrix = confusion(rng, 200, 50)
    q = reports_of_all(matrix, rng)
    theta, _, words, asked = told(matrix, q / q.sum(), monkeypatch)
    assert asked == [interior_steps]
    assert "accelerated updates" in words
    assert excess(matrix, q / q.sum(), theta) <= TOL
    # Of fewer secrets than twice the reports, few may have mass as well.
    matrix = confusion(rng, 100, 50)
    q = reports_of_all(matrix, rng)
    assert told(matrix, q / q.sum(), monkeypatch)[-1][0] == least_squares_steps


def reports_of_two(rng, s=120):
    """A blur of 400 secrets, of which two have mass."""
    place, reports = (np.arange(400) + 0.5) / 400, (np.arange(s) + 0.5) / s
    matrix = np.exp(-0.5 * ((place[:, None] - reports) / 0.1) ** 2)
    matrix /= matrix.sum(axis=1, keepdims=True)
    q = np.maximum(rng.multinomial(10**5, matrix[[80, 240]].mean(axis=0)), 1) / 10**5
    return matrix, q / q.sum()


def test_where_secrets_abound_and_few_have_mass_least_squares_go_on_from_the_updates(
    rng, monkeypatch
):
    matrix, q = reports_of_two(rng)
    theta, _, words, asked = told(matrix, q, monkeypatch)
    assert asked == [least_squares_steps]
    assert words == "constrained Newton steps"
    # Of few reports a step for all secrets is cheaper than least squares, and is tried first.
    fewer, seen = reports_of_two(rng, s=60)
    assert told(fewer, seen, monkeypatch)[2:] == (words, [interior_steps, least_squares_steps])
    np.testing.assert_allclose(theta, by_the_path(matrix, q, monkeypatch), atol=1e-7)


def test_updates_that_seem_to_converge_are_no_proof_that_all_have_mass(rng, monkeypatch):
    """Where the steps fail after all, least squares or the path find the maximiser."""
    whole = interior_steps.first_updates
    monkeypatch.setattr(
        interior_steps, "first_updates", lambda *given: whole(*given)._replace(converges=True)
    )
    matrix, q = reports_of_two(rng)
    theta, _, _, asked = told(matrix, q, monkeypatch)
    assert asked == [interior_steps, least_squares_steps]
    assert excess(matrix, q, theta) <= TOL
