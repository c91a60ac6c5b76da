"""The certified maximiser: its promise on thousands of problems, and other ways to the same maximum."""

import numpy as np
import pytest
from hypothesis import given
from scipy import optimize

import ibukit as ik
from hard_cases import FAMILIES, draw
from ibukit.estimators import _solvers
from instances import INSTANCES, NAMES, tallies
from oracles import naive

TOL = 1e-9


def assert_certified(tally, tol=TOL):
    estimate = ik.mle(tally, tol=tol)
    theta = estimate.distribution
    assert theta.shape == (tally.k,)
    assert (theta >= 0).all()
    assert abs(theta.sum() - 1) <= 1e-12
    assert estimate.gap == ik.gap(tally, theta) <= tol
    closed = estimate.method.startswith("mle, closed form")
    assert estimate.status is (ik.Status.CLOSED_FORM if closed else ik.Status.CONVERGED)
    return estimate


def assert_family_certified(family, rng, cases):
    for _ in range(cases):
        matrix, counts = draw(family, rng)
        possible = matrix.any(axis=0)
        assert_certified(ik.MatrixMechanism(matrix).tally_counts(counts * possible))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_certified_on_hundreds_of_problems(family):
    assert_family_certified(family, np.random.default_rng(FAMILIES.index(family)), 25)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_certified_on_thousands_of_problems(family):
    assert_family_certified(family, np.random.default_rng(100 + FAMILIES.index(family)), 250)


@given(tally=tallies())
def test_certified_on_anything_small(tally):
    assert_certified(tally)


@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_certified_in_every_channel(instance):
    estimate = assert_certified(instance.tally, 1e-12)
    assert naive.gap(instance.matrix, instance.counts, estimate.distribution) <= 1.1e-12


@pytest.mark.ledger("A-Alg1")
@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_agrees_with_a_long_ibu_run(instance):
    best, slow = ik.mle(instance.tally), ik.ibu(instance.tally, stop=ik.Gap(1e-7))
    assert slow.status is ik.Status.CONVERGED
    allowed = instance.tally.n * (best.gap + slow.gap) + 1e-12 * abs(best.log_likelihood)
    assert abs(best.log_likelihood - slow.log_likelihood) <= allowed


def by_scipy(matrix, counts):
    """Maximise sum_z q_z log (w M)_z - sum_x w_x over w >= 0: the maximiser sums to 1 by itself (Poisson form)."""
    q = counts / counts.sum()
    seen = q > 0
    columns, q = matrix[:, seen], q[seen]

    def objective(w):
        p = w @ columns
        return w.sum() - q @ np.log(p), 1 - columns @ (q / p)

    k = len(matrix)
    found = optimize.minimize(
        objective,
        np.full(k, 1 / k),
        jac=True,
        method="L-BFGS-B",
        bounds=[(1e-15, None)] * k,
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30},
    )
    return found.x / found.x.sum()


@pytest.mark.parametrize("seed", range(50))
def test_agrees_with_scipy_within_the_sum_of_the_gaps(seed):
    rng = np.random.default_rng(1000 + seed)
    k, m = rng.integers(2, 8, 2)
    matrix = rng.dirichlet(np.full(m, rng.choice([0.3, 1.0, 3.0])), k)
    counts = rng.multinomial(rng.integers(1, 2000), rng.dirichlet(np.ones(m)))
    tally = ik.MatrixMechanism(matrix).tally_counts(counts)
    ours, theirs = ik.mle(tally), by_scipy(matrix, counts)
    their_gap = naive.gap(matrix, counts, theirs)
    assert their_gap <= 1e-5, "scipy did not come near the maximum: no comparison"
    difference = naive.log_likelihood(matrix, counts, theirs) - ours.log_likelihood
    rounding = 1e-12 * (tally.n + abs(ours.log_likelihood))
    assert -tally.n * their_gap - rounding <= difference <= tally.n * ours.gap + rounding


def test_the_comparison_sees_a_distribution_that_is_not_the_maximiser():
    counts = np.array([30, 20, 10])
    matrix = naive.k_rr(3, 1.0)
    best = ik.mle(ik.MatrixMechanism(matrix).tally_counts(counts))
    moved = 0.9 * best.distribution + 0.1 / 3
    assert naive.gap(matrix, counts, moved) > 1e-3
    assert best.log_likelihood - naive.log_likelihood(matrix, counts, moved) > 60 * TOL


def water_filling(counts, eps):
    """k-RR: theta_x = max(c q_x - 1/(e^eps - 1), 0), with the c, found by bisection, that makes it sum to 1."""
    q = counts / counts.sum()
    floor = 1 / np.expm1(eps)
    low, high = 0.0, (1 + len(q) * floor) / q.max()
    for _ in range(200):
        c = (low + high) / 2
        low, high = (c, high) if np.maximum(c * q - floor, 0).sum() < 1 else (low, c)
    return np.maximum(low * q - floor, 0)


@pytest.mark.parametrize("eps", [1e-3, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("k", [2, 5, 40])
def test_agrees_with_the_closed_form_of_randomized_response(k, eps, rng):
    counts = rng.multinomial(2000, rng.dirichlet(np.ones(k)))
    tally = ik.RandomizedResponse(k, eps).tally_counts(counts)
    estimate, exact = ik.mle(tally, tol=1e-13), water_filling(counts, eps)
    # the closed form subtracts numbers of the size of 1 / eps
    assert naive.gap(naive.k_rr(k, eps), counts, exact) <= 1e-15 * (1 + 1 / eps)
    assert np.array_equal(estimate.distribution > 0, exact > 0)
    # L is strongly concave on the support with curvature (truth - lie)^2 q / p^2, so the gap bounds the distance too
    assert np.abs(estimate.distribution - exact).max() <= 1e-6


@pytest.mark.ledger("B-P45")
@pytest.mark.parametrize("k", range(2, 8))
def test_inversion_on_the_simplex_is_the_maximiser(k, rng):
    met = 0
    for eps in (0.5, 1.0, 2.0):
        mechanism = ik.TruncatedGeometric(k, eps)
        theta = rng.dirichlet(np.full(k, 5.0))
        tally = mechanism.tally_counts(rng.multinomial(100_000, theta @ mechanism.matrix()))
        raw = ik.inv(tally, post="none")
        if raw.status is ik.Status.CLOSED_FORM:
            met += 1
            assert np.abs(ik.mle(tally, tol=1e-13).distribution - raw.distribution).max() <= 1e-6
            assert raw.gap <= 1e-13
    assert met > 0, "no case had q G^-1 on the simplex"


@pytest.mark.parametrize(("counts", "expected"), [([60, 30, 10], [1, 1, 0]), ([100, 0, 0], [1, 0, 0])])
def test_zeros_are_exact(counts, expected):
    theta = ik.mle(ik.RandomizedResponse(3, 1.0).tally_counts(counts)).distribution
    assert ((theta == 0) == (np.array(expected) == 0)).all()


def test_a_secret_that_explains_nothing_seen_gets_nothing():
    matrix = [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.5, 0.5, 0.0]]
    theta = ik.mle(ik.MatrixMechanism(matrix).tally_counts([10, 0, 0])).distribution
    assert theta.tolist() == [1.0, 0.0, 0.0]


def test_one_secret_and_one_report():
    alone = ik.mle(ik.MatrixMechanism([[0.25, 0.75]]).tally_counts([1, 5]))
    assert (alone.distribution.tolist(), alone.gap) == ([1.0], 0.0)
    single = ik.mle(ik.TruncatedGeometric(5, 0.5).tally([3]))
    assert single.distribution.tolist() == [0.0, 0.0, 0.0, 1.0, 0.0]


def test_pooled_tallies(rng):
    theta = rng.dirichlet(np.ones(8))
    mechanisms = [ik.RandomizedResponse(8, 1.0), ik.Rappor(8, 1.0), ik.LinearGeometric(8, 0.3)]
    assert_certified(sum(mechanism.simulate(rng.multinomial(3000, theta), rng) for mechanism in mechanisms), 1e-11)


@pytest.mark.parametrize(
    "mechanism",
    [
        ik.TruncatedGeometric(ik.Line(0, 99), 0.05),
        ik.TruncatedPlanarGeometric(ik.Grid(10, 12, cell_size=0.5), 0.5),
        ik.PlanarLaplace(ik.Grid(8, 8), 1.0),
        ik.Exponential(ik.Line(0, 79), 0.1),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_sizes_of_the_papers(mechanism, rng):
    theta = rng.dirichlet(np.full(mechanism.k, 0.3))
    assert_certified(mechanism.simulate(rng.multinomial(50_000, theta), rng), 1e-10)


def test_beyond_the_dense_limit_the_active_set_does_it(monkeypatch, rng):
    tally = ik.MatrixMechanism(rng.dirichlet(np.ones(9), 6)).tally_counts([9, 8, 7, 5, 3, 1, 1, 4, 2])
    dense = assert_certified(tally)
    monkeypatch.setattr(_solvers, "MOST_DENSE", 53)
    active = assert_certified(tally)
    assert dense.method == "mle, dense interior point: 6 x 9 entries fit in memory"
    assert active.method.startswith("mle, active set through forward and adjoint: 6 x 9 is too large")
    assert np.abs(dense.distribution - active.distribution).max() <= 1e-4
    monkeypatch.setattr(_solvers, "MOST_DENSE", 54)
    assert ik.mle(tally).method == dense.method


def test_an_impossible_tolerance_is_an_error_that_carries_the_best(rng):
    # doubles reach about 1e-15 here; a few of twenty tallies land on exactly 0 by luck
    failures = []
    for _ in range(20):
        tally = ik.MatrixMechanism(rng.dirichlet(np.ones(30), 30)).tally_counts(rng.integers(1, 100, 30))
        try:
            ik.mle(tally, tol=1e-30)
        except ik.ConvergenceError as error:
            failures.append((tally, error))
    assert len(failures) >= 5
    for tally, error in failures:
        assert "tol=1e-30 was not certified, the best gap is" in str(error)
        assert error.estimate.status is ik.Status.MAX_ITER
        assert 0 < error.estimate.gap == ik.gap(tally, error.estimate.distribution) <= 1e-13


@pytest.mark.parametrize("tol", [0, -1e-9, np.nan, np.inf, "small"])
def test_bad_tolerance(tol):
    with pytest.raises(ValueError, match=r"tol must be a (finite number above 0|number), got"):
        ik.mle(ik.RandomizedResponse(3, 1.0).tally_counts([1, 2, 3]), tol=tol)
