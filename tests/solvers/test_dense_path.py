"""The interior point on a matrix:
its systems, its path beside the general one, few secrets by least squares.
"""

from itertools import islice

import numpy as np
import pytest
import scipy

import ibukit as ik
from ibukit.solvers import interior_point, limits
from ibukit.solvers._normal_equations import DenseModel
from ibukit.solvers.dense import interior_steps, least_squares_steps, sparse_gram
from ibukit.solvers.dense import systems as dense_systems
from ibukit.solvers.dense.central_path import DensePath
from ibukit.solvers.dense.least_squares_steps import local_maxima
from ibukit.solvers.dense.sparse_gram import SparseGram
from ibukit.solvers.dense.systems import Systems

pytestmark = pytest.mark.usefixtures("only_the_path")

SHAPES = [(60, 90), (60, 60), (60, 40), (40, 6)]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def problem(rng, k, s):
    matrix = rng.random((k, s)) ** 4
    return matrix / matrix.max(axis=0), rng.dirichlet(np.ones(s))


def sparse_matrix(rng, k=150, s=200):
    matrix = rng.random((k, s)) * (rng.random((k, s)) < 0.05)
    matrix[rng.integers(0, k, s), np.arange(s)] = 1
    return matrix


# Systems


@shapes
def test_each_form_of_the_system_is_solved(shape, rng):
    matrix, _ = problem(rng, *shape)
    k, s = shape
    w, d, r = rng.random(s) + 0.1, 10 ** rng.uniform(-1, 1, k), rng.normal(size=k)
    exact = np.linalg.solve((matrix * w) @ matrix.T + np.diag(d), r)
    systems = Systems(matrix)
    for _ in range(2):  # the second in the memory of the first
        np.testing.assert_allclose(
            systems.solver(w, d, shrink=False)(r), exact, rtol=1e-9, atol=1e-12
        )
    d[::3] = 1e9
    exact = np.linalg.solve((matrix * w) @ matrix.T + np.diag(d), r * d)
    found = systems.solver(w, d, shrink=True)(r * d)
    assert np.abs(found - exact).max() <= 1e-6 * np.abs(exact).max()


def test_a_system_in_the_reports_is_refined_where_it_cancels(rng, monkeypatch):
    matrix, _ = problem(rng, 60, 5)
    w, x = rng.random(5), rng.random(60)
    d = 10 ** rng.uniform(-9, 0, 60)
    r = matrix @ (w * (x @ matrix)) + d * x

    def off(found):
        return np.abs(matrix @ (w * (found @ matrix)) + d * found - r).max() / np.abs(r).max()

    refined = off(Systems(matrix).solver(w, d, False)(r))
    monkeypatch.setattr(dense_systems, "MIN_D_WITHOUT_REFINEMENT", 0.0)
    once = off(Systems(matrix).solver(w, d, False)(r))
    assert refined <= 1e-9
    assert once > 10 * refined


def test_where_a_system_in_the_reports_has_no_factor_it_is_one_in_the_secrets(rng, monkeypatch):
    matrix, _ = problem(rng, 12, 4)
    w, d, r = rng.random(4), rng.random(12) + 0.1, rng.normal(size=12)
    systems, asked = Systems(matrix), []
    monkeypatch.setattr(systems, "_in_reports", lambda w, d: asked.append(0))
    for _ in range(2):
        found = systems.solver(w, d, False)(r)
        np.testing.assert_allclose(
            found, np.linalg.solve((matrix * w) @ matrix.T + np.diag(d), r), rtol=1e-9
        )
    assert len(asked) == 1
    with limits(factorised_order=11):
        assert systems.solver(w, d, False) is None


@pytest.mark.parametrize("shape", [(700, 4), (900, 30)], ids=str)
def test_of_many_more_secrets_than_reports_no_system_is_formed(shape, rng, monkeypatch):
    """A perfect fit has no zeros to find, and the slacks go on to fall to the smallest doubles."""
    monkeypatch.setattr(Systems, "_in_secrets", None)
    monkeypatch.setattr(Systems, "_in_some", None)
    matrix = rng.dirichlet(np.ones(shape[1]), size=shape[0])
    for weights in (np.ones(shape[0]), np.arange(shape[0]) < 3):
        q = weights @ matrix / weights.sum()
        theta, steps = interior_point.maximise(matrix, q, 1e-9)
        assert (matrix @ (q / (theta @ matrix))).max() - 1 <= 1e-9
        assert steps <= 12


def test_few_entries_make_the_same_product(rng):
    matrix = sparse_matrix(rng)
    w = rng.random(200)
    gram = SparseGram.of(matrix)
    np.testing.assert_allclose(np.tril(gram.lower(w)), np.tril((matrix * w) @ matrix.T), atol=1e-14)
    assert SparseGram.of(rng.random((150, 200))) is None
    assert SparseGram.of(np.eye(20)) is None
    one_full = matrix.copy()
    one_full[:, :8] = 1  # the mean number of entries says little of their pairs
    assert SparseGram.of(one_full) is None


def test_few_entries_do_not_change_the_answer(rng, monkeypatch):
    matrix = sparse_matrix(rng)
    q = rng.dirichlet(np.ones(200))
    assert Systems(matrix)._sparse is not None
    found, steps = interior_point.maximise(matrix, q, 1e-11)
    monkeypatch.setattr(sparse_gram, "MIN_ENTRIES", 2**40)
    plain, again = interior_point.maximise(matrix, q, 1e-11)
    assert abs(steps - again) <= 1
    np.testing.assert_allclose(found, plain, atol=1e-9)


# The path


@shapes
def test_it_is_the_general_path(shape, rng):
    matrix, q = problem(rng, *shape)
    settings = interior_point.TRIES[0]
    model = DenseModel(matrix)
    start = interior_point.em_start(model, q, settings)
    own = DensePath(matrix, q, settings.em_steps, settings.uniform_share)
    for point in islice(
        interior_point.central_path(model, q, start, careful=False), 3
    ):  # from then on secrets are solved for alone
        for name in ("theta", "s", "lam", "nu"):
            np.testing.assert_allclose(
                getattr(own, name), getattr(point, name), rtol=1e-5, atol=1e-9
            )
        assert own.full_step == point.full_steps
        assert own.excess() == pytest.approx(
            model.excess(q, point.theta / point.theta.sum()), abs=1e-7
        )
        own.advance()


@shapes
def test_both_linear_maps_stay_exact(shape, rng):
    matrix, q = problem(rng, *shape)
    own = DensePath(matrix, q, 10, 0.1)
    for _ in range(12):
        if not own.advance() or own.excess() < 1e-9:
            break
        assert min(own.theta.min(), own.s.min(), own.lam.min(), own.nu.min()) > 0
        assert np.abs(own.nu - own.theta @ matrix).max() <= 1e-14
        assert np.abs(1 - matrix @ own.lam - own.s).max() <= 1e-12
    assert own.excess() < 1e-7


@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_where_little_is_asked_what_can_be_cut_off_is_zero(tol, rng):
    cut = 0
    for _ in range(5):
        matrix, q = problem(rng, 60, 50)
        theta, _ = interior_point.maximise(matrix, q, tol)
        assert (matrix @ (q / (theta @ matrix))).max() - 1 <= tol
        assert abs(theta.sum() - 1) <= 1e-14
        cut += (theta == 0).sum()
    assert cut > 0


# Few secrets


def of_few(matrix, q, tol):
    """The distribution and the steps; None where there may be others."""
    found = least_squares_steps.maximise(matrix, q, tol)
    return found[:2] if found is not None and found.is_unique else None


def test_few_secrets_take_few_steps_to_the_same_answer(rng, monkeypatch):
    found = 0
    for _ in range(10):
        matrix, q = problem(rng, 12, 20)
        few = of_few(matrix, q, 1e-9)
        if few is None:
            continue
        found += 1
        theta, steps = few
        assert 0 < steps <= 8
        assert abs(theta.sum() - 1) <= 1e-14
        assert (matrix @ (q / (theta @ matrix))).max() - 1 <= 1e-10
        with monkeypatch.context() as patched:
            patched.setattr(least_squares_steps, "maximise", lambda *given: None)
            plain, _ = interior_point.maximise(matrix, q, 1e-12)
        np.testing.assert_allclose(theta, plain, atol=1e-8)
        assert np.array_equal(theta > 0, plain > 0)
    assert found >= 5


def test_of_several_maximisers_none_is_chosen_by_least_squares(rng):
    matrix, q = problem(rng, 8, 12)
    assert of_few(matrix, q, 1e-9) is not None
    assert of_few(np.vstack([matrix, matrix]), q, 1e-9) is None  # more secrets than reports
    best = int(of_few(matrix, q, 1e-9)[0].argmax())
    assert of_few(np.vstack([matrix, matrix[best]]), q, 1e-9) is None  # two equal rows


def blurred(rng, k, s, width=0.08):
    """Reports of a normal kernel between two scales, and people on three places."""
    matrix = np.exp(
        -0.5 * (((np.arange(k)[:, None] + 0.5) / k - (np.arange(s) + 0.5) / s) / width) ** 2
    )
    matrix /= matrix.sum(axis=1, keepdims=True)
    counts = rng.multinomial(10**5, matrix[[k // 4, k // 2, k - 2]].mean(axis=0))
    columns = matrix[:, counts > 0]
    return columns / columns.max(axis=0), counts[counts > 0] / 10**5


@pytest.mark.parametrize("shape", [(100, 14), (60, 60), (120, 40), (200, 250)], ids=str)
def test_many_secrets_whose_rows_are_alike_take_few_steps_too(shape, rng, monkeypatch):
    with_few_neighbours = 0
    for _ in range(5):
        matrix, q = blurred(rng, *shape, width=0.15)
        theta, steps = of_few(matrix, q, 1e-9)
        g = matrix @ (q / (theta @ matrix))
        assert g.max() - 1 <= 1e-12
        assert 0 < steps <= 12
        np.testing.assert_allclose(interior_point.maximise(matrix, q, 1e-9)[0], theta, atol=1e-12)
        with monkeypatch.context() as patched:
            patched.setattr(least_squares_steps, "maximise", lambda *given: None)
            plain, _ = interior_point.maximise(matrix, q, 1e-12)
        np.testing.assert_allclose(theta, plain, atol=1e-7)
        assert np.array_equal(theta > 0, plain > 0)
        with_few_neighbours += 1 - g[theta == 0].max() < 1e-6
    assert with_few_neighbours > 0, "or nothing was as close as neighbours are on a fine scale"


@pytest.mark.parametrize("shape", [(80, 60), (80, 241), (300, 257)], ids=str)
def test_the_order_of_the_secrets_does_not_matter(shape, rng):
    """Neighbours whose rows are alike are a hint where mass goes, not an assumption."""
    matrix, q = blurred(rng, *shape)
    theta, _ = of_few(matrix, q, 1e-9)
    order = rng.permutation(len(matrix))
    other, _ = interior_point.maximise(matrix[order], q, 1e-9)
    assert np.array_equal(theta[order] > 0, other > 0)
    np.testing.assert_allclose(theta[order], other, atol=1e-7)


def test_where_little_is_asked_the_path_is_quick_enough(rng):
    matrix, q = blurred(rng, 80, 60)
    assert of_few(matrix, q, 1e-4) is not None
    assert of_few(matrix, q, 1.1e-4) is None


@pytest.mark.parametrize("k", [150, 300])
def test_where_many_secrets_gain_mass_the_path_is_left_to_find_them(k, rng, monkeypatch):
    """As little is spent before as the certificate has fallen."""
    work = []
    whole = least_squares_steps.maximise_parabola
    monkeypatch.setattr(
        least_squares_steps,
        "maximise_parabola",
        lambda *given: work.append(whole(*given)) or work[-1],
    )
    matrix = rng.dirichlet(np.ones(k), size=k)
    q = rng.multinomial(10**6, rng.dirichlet(np.ones(k)) @ matrix) / 10**6
    assert of_few(matrix / matrix.max(axis=0), q, 1e-9) is None
    spent = least_squares_steps.COST_OF_SMALL_SYSTEM * sum(each.work for each in work)
    assert 0 < spent <= 0.16 * 10 * (k**2 * (k + 160) + k**3 / 3 + 1e7)
    theta, _ = interior_point.maximise(matrix, q, 1e-9)
    assert np.count_nonzero(theta) > k / 3


def twice(rng, k, s):
    """Reports of a blur, and the place of the secret with most mass, which is there twice."""
    matrix, q = blurred(rng, k, s)
    best = int(of_few(matrix, q, 1e-9)[0].argmax())
    return np.repeat(matrix, 1 + (np.arange(k) == best), axis=0), q, best


def test_of_many_secrets_two_that_are_the_same_are_left_to_the_path(rng):
    for _ in range(5):
        matrix, q, best = twice(rng, 80, 60)
        assert of_few(matrix, q, 1e-9) is None
        found, _, words = interior_point.maximise_and_tell(matrix, q, 1e-9)
        assert words == "an interior point"
        assert (matrix @ (q / (found @ matrix))).max() - 1 <= 1e-9
        assert found[best] == pytest.approx(found[best + 1], rel=1e-3)


AMONG = "an interior point of the secrets that may have mass"


def test_of_very_many_secrets_the_path_is_followed_among_those_that_may_have_mass(rng):
    for _ in range(5):
        matrix, q, best = twice(rng, 400, 60)
        assert of_few(matrix, q, 1e-9) is None
        found, _, words = interior_point.maximise_and_tell(matrix, q, 1e-9)
        assert words == AMONG
        assert (matrix @ (q / (found @ matrix))).max() - 1 <= 1e-9
        assert 0 < np.count_nonzero(found) <= 100
        assert found[best] == pytest.approx(found[best + 1], rel=0.05)


def test_if_most_secrets_may_have_mass_the_path_is_followed_among_all(rng):
    matrix, q = blurred(rng, 80, 60)
    same = np.repeat(matrix[of_few(matrix, q, 1e-9)[0] > 0], 80, axis=0)
    found, _, words = interior_point.maximise_and_tell(same, q, 1e-9)
    assert words != AMONG
    assert (same @ (q / (found @ same))).max() - 1 <= 1e-9


def test_a_point_of_some_secrets_that_is_not_certified_for_all_is_left(rng, monkeypatch):
    matrix, q, _ = twice(rng, 400, 60)
    whole = interior_steps.maximise
    monkeypatch.setattr(
        interior_steps,
        "maximise",
        lambda model, *given: (
            whole(model, *given) if model.k > 400 else (np.full(model.k, 1 / model.k), 1)
        ),
    )
    found, _, words = interior_point.maximise_and_tell(matrix, q, 1e-9)
    assert words == "an interior point"
    assert (matrix @ (q / (found @ matrix))).max() - 1 <= 1e-9


def test_a_secret_that_only_rounding_gives_mass_is_left_to_the_path():
    """The truth on a face: on larger faces g is 1 without mass."""
    matrix = ik.TruncatedGeometric(4, 0.5).matrix()
    q = np.array([0.5, 0.5, 0, 0]) @ matrix
    for rest in (2, 3):
        rows = matrix[[0, 1, rest]]
        few = of_few(rows / rows.max(axis=0), q, 1e-12)
        assert few is None or few[0][2] == 0
        found, _ = interior_point.maximise(rows, q, 1e-12)
        assert found[2] < 1e-14


def test_where_secrets_fit_all_reports_exactly_others_could_as_well(rng, monkeypatch):
    """Seen after one step, not after those that the last digits take."""
    solved = calls(monkeypatch, "maximise_parabola", "dposv")
    matrix, _ = blurred(rng, 50, 6, width=0.2)
    laws = matrix / matrix.sum(axis=1, keepdims=True)
    assert of_few(laws, np.arange(50) @ laws / 1225, 1e-9) is None
    assert solved == ["maximise_parabola"]


def test_once_it_is_known_who_has_mass_their_equations_are_solved_alone(rng, monkeypatch):
    for by, draw in (
        ("nnls", lambda: problem(rng, 12, 20)),
        ("maximise_parabola", lambda: blurred(rng, 100, 40)),
    ):
        with monkeypatch.context() as patched:
            solved = calls(patched, by, "dposv")
            found = [of_few(*draw(), 1e-9) for _ in range(10)]
        steps = sum(each[1] for each in found if each is not None)
        assert 0 < solved.count(by) < steps <= len(solved)
        assert steps <= 80


def calls(monkeypatch, *names):
    """The names of these functions, as they are called."""
    called = []
    for name in names:
        home = least_squares_steps if hasattr(least_squares_steps, name) else scipy.optimize
        whole = getattr(home, name)
        monkeypatch.setattr(
            home,
            name,
            lambda *given, name=name, whole=whole: called.append(name) or whole(*given),
        )
    return called


def test_local_maxima_are_the_last_of_equals():
    assert np.array_equal(
        local_maxima(np.array([1.0, 0, 2, 2, 1, 3])), [True, False, False, True, False, True]
    )
    assert np.array_equal(local_maxima(np.array([5.0])), [True])


def test_a_hardly_explained_report_is_left_to_the_interior_point():
    matrix = np.array([[1.0, 0.0, 1.0], [1e-170, 1.0, 1.0]])
    q = np.array([1e-12, 1 - 2e-12, 1e-12])
    theta, _ = interior_point.maximise(matrix, q, 1e-9)
    assert (matrix @ (q / (theta @ matrix))).max() - 1 <= 1e-9


def test_a_system_of_some_secrets_that_cannot_be_factorised_is_no_system(rng, monkeypatch):
    matrix, _ = problem(rng, 60, 90)
    d = np.where(np.arange(60) < 40, 1.0, 1e9)
    assert Systems(matrix).solver(np.ones(90), d, True) is not None
    monkeypatch.setattr(dense_systems, "_factorised", lambda build: None)
    assert Systems(matrix).solver(np.ones(90), d, True) is None


def test_steps_are_counted(rng):
    matrix, q = problem(rng, 60, 90)
    rough, fine = (interior_point.maximise(matrix, q, tol)[1] for tol in (1e-2, 1e-10))
    assert 2 <= rough < fine <= 40


def test_of_few_secrets_that_all_have_mass_newton_steps_are_enough(rng, monkeypatch):
    for k, s in ((2, 5), (12, 40), (32, 500)):
        with monkeypatch.context() as patched:
            solved = calls(patched, "nnls", "dposv")
            matrix = rng.dirichlet(np.ones(s), size=k)
            matrix, q = matrix / matrix.max(axis=0), rng.dirichlet(np.full(k, 30.0)) @ matrix
            theta, _ = of_few(matrix, q, 1e-9)
        assert theta.min() > 0
        assert set(solved) == {"dposv"}


def test_if_all_candidates_keep_mass_newton_steps_are_tried_for_all_secrets(rng, monkeypatch):
    solved = calls(monkeypatch, "maximise_parabola", "dposv")
    matrix = 0.5 * rng.dirichlet(np.full(600, 0.5), size=80)
    matrix[np.arange(80), np.arange(80)] += 0.5
    matrix, q = matrix / matrix.max(axis=0), rng.dirichlet(np.full(80, 30.0)) @ matrix
    theta, _ = of_few(matrix, q, 1e-9)
    assert theta.min() > 0
    assert (matrix @ (q / (theta @ matrix))).max() - 1 <= 1e-12
    assert solved.count("maximise_parabola") == 1
