"""Regions of Poisson counts over a background, against SciPy and closed forms."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq, linprog, minimize, minimize_scalar
from scipy.stats import chi2, norm

from ibukit.intervals.line_maximum import least_maximum
from ibukit.intervals.poisson.boxes import GarwoodRegion
from ibukit.intervals.poisson.model import PoissonModel, cut_at_zero
from ibukit.intervals.poisson.profile import PoissonProfile

HALF = norm.ppf(0.975) ** 2 / 2
TWO = np.array([[0.6, 0.2], [0.1, 0.3]])
THREE = np.array([[0.5, 0.1, 0.0], [0.2, 0.3, 0.2], [0.0, 0.1, 0.05]])


def log_likelihood(model, numbers):
    nu = numbers @ model.response + model.background
    some = model.counts > 0
    return float(model.counts[some] @ np.log(np.maximum(nu[some], 1e-300)) - nu.sum())


def maximum(model):
    k = len(model.response)
    return max(
        (
            minimize(
                lambda lam: -log_likelihood(model, lam),
                np.full(k, start),
                method="L-BFGS-B",
                bounds=[(0, None)] * k,
                options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
            )
            for start in (1.0, 10.0, 50.0)
        ),
        key=lambda result: -result.fun,
    )


def ends_of_first(model):
    """The profile interval of the first of two numbers, by nested root finding."""

    def profiled(first):
        return -minimize_scalar(
            lambda second: -log_likelihood(model, np.array([first, second])),
            bounds=(0, 500),
            method="bounded",
            options={"xatol": 1e-11},
        ).fun

    best = maximum(model)
    top, at = -best.fun, float(best.x[0])
    floor = top - HALF
    low = 0.0 if profiled(0.0) >= floor else brentq(lambda x: profiled(x) - floor, 0.0, at)
    return low, brentq(lambda x: profiled(x) - floor, at, 500)


@pytest.mark.parametrize(
    ("counts", "background"),
    [
        ([12, 5], [2, 3]),
        ([80, 80], [10, 30]),
        ([5, 5], [10, 10]),
        ([30, 0], [1, 0]),
        ([3, 9], [0, 0]),
    ],
)
def test_ends_of_two_numbers_are_those_of_root_finding(counts, background):
    model = PoissonModel(TWO, np.array(counts, float), np.array(background, float))
    region = PoissonProfile(model, 0.95)
    low, high = ends_of_first(model)
    first = np.array([1.0, 0.0])
    np.testing.assert_allclose(region.highest_number(first), high, rtol=1e-5)
    np.testing.assert_allclose(-region.highest_number(-first), low, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("background", [[0, 0, 0], [3, 1, 5]])
@pytest.mark.parametrize("counts", [[30, 20, 6], [4, 0, 9], [9, 3, 0]])
def test_ends_of_sums_and_shares_of_three_are_those_of_scipy(counts, background):
    model = PoissonModel(THREE, np.array(counts, float), np.array(background, float))
    region = PoissonProfile(model, 0.95)
    best = maximum(model)
    floor = -best.fun - HALF
    w = np.array([0.0, 1.0, 0.3])

    def largest(answer):
        found = -np.inf
        for start in (best.x + 0.1, 0.9 * best.x + 3, best.x * [1, 0.5, 0.7] + 1):
            result = minimize(
                lambda lam: -answer(np.maximum(lam, 0)),
                start,
                method="SLSQP",
                bounds=[(0, None)] * 3,
                constraints={
                    "type": "ineq",
                    "fun": lambda lam: log_likelihood(model, np.maximum(lam, 0)) - floor,
                },
                options={"maxiter": 1000, "ftol": 1e-14},
            )
            lam = np.maximum(result.x, 0)
            if log_likelihood(model, lam) >= floor - 1e-6:
                found = max(found, answer(lam))
        return found

    for sign in (1, -1):
        number = largest(lambda lam, u=sign * w: u @ lam)
        np.testing.assert_allclose(region.highest_number(sign * w), number, rtol=1e-4, atol=1e-4)
        share = largest(lambda lam, u=sign * w: u @ lam / max(lam.sum(), 1e-12))
        np.testing.assert_allclose(region.highest_share(sign * w), share, rtol=1e-4, atol=1e-4)


def random_models(rng, number):
    for _ in range(number):
        k, m = rng.integers(1, 8), rng.integers(1, 9)
        response = rng.dirichlet(np.full(m, 0.5), k) * 10 ** rng.uniform(
            -rng.choice([0, 1, 6]), 0, (k, 1)
        )
        scale = 10 ** rng.uniform(0, rng.choice([1, 4, 9]))
        numbers = rng.dirichlet(np.full(k, 0.4)) * scale / response.sum(axis=1)
        background = rng.uniform(0, 1, m) * scale * rng.choice([0.0, 0.1, 3.0])
        background *= rng.random(m) < 0.8
        counts = rng.poisson(numbers @ response + background).astype(float)
        if counts.any() or background.any():
            yield PoissonModel(response, counts, background)


def test_every_end_is_met_by_a_member():
    # Efficiencies over six orders of magnitude, up to 1e9 counts, with and without a background.
    rng = np.random.default_rng(0)
    for model in random_models(rng, 60):
        region = PoissonProfile(model, 0.95)
        k = len(model.response)
        first = np.eye(k)[0]
        for w in (rng.normal(size=k), first, -first):
            attained, bound = region.number_bracket(w)
            size = np.abs(w / model.efficiency) @ region._start.mu
            assert -1e-9 <= (bound - attained) / max(abs(attained), 0.01 * size) <= 1e-7
        if k > 1:
            for w in (first, 1 - first):
                attained, bound = region.share_bracket(w)
                assert -1e-9 <= bound - attained <= 1e-7


def test_a_bound_holds_whatever_point_it_is_taken_at():
    model = PoissonModel(THREE, np.array([30.0, 20.0, 6.0]), np.array([3.0, 1.0, 5.0]))
    region = PoissonProfile(model, 0.95)
    rng = np.random.default_rng(2)
    for _ in range(30):
        c = rng.normal(size=3)
        true = region.number_bracket(c * region._efficiency).attained
        now = region._first(c)
        point = region._at(region._start.mu * rng.uniform(0.3, 3, 3), region._base)
        loose = now._replace(point=point, t=10 ** rng.uniform(-3, 3))
        assert region._bound(loose, c) >= true - 1e-9


def test_one_number_over_a_background_has_the_garwood_interval():
    model = PoissonModel(np.array([[0.5]]), np.array([7.0]), np.array([2.0]))
    region = GarwoodRegion(model, 0.95)
    low, high = chi2.ppf(0.025, 14) / 2, chi2.ppf(0.975, 16) / 2
    one = np.ones(1)
    np.testing.assert_allclose(region.highest_number(one), (high - 2) / 0.5, rtol=1e-9)
    np.testing.assert_allclose(-region.highest_number(-one), max(low - 2, 0) / 0.5, rtol=1e-9)


def test_boxes_are_those_of_linear_programmes_and_shares_of_their_grid():
    counts, background = np.array([30.0, 20.0, 6.0]), np.array([3.0, 1.0, 5.0])
    model = PoissonModel(THREE, counts, background)
    region = GarwoodRegion(model, 0.9)
    error = 0.1 / 2 / 3
    room = chi2.ppf(1 - error, 2 * counts + 2) / 2 - background
    need = chi2.ppf(error, 2 * counts) / 2 - background
    columns = np.concatenate([THREE.T, -THREE.T])
    for w in (np.array([1.0, 0, 0]), np.array([0, 1.0, 1.0]), np.array([1.0, -2.0, 0.5])):
        for sign in (1, -1):
            solution = linprog(-sign * w, columns, np.r_[room, -need])
            np.testing.assert_allclose(region.highest_number(sign * w), -solution.fun, atol=1e-5)
            # A share is at most v if the largest (w - v) . lambda is at most 0.
            v = brentq(
                lambda v, u=sign * w: linprog(v - u, columns, np.r_[room, -need]).fun,
                -2.0,
                2.0,
            )
            np.testing.assert_allclose(region.highest_share(sign * w), v, atol=1e-6)


def test_counts_far_from_their_matrix_raise_the_level_and_then_are_refused():
    # One secret that makes both reports alike.
    def model(counts):
        return PoissonModel(np.array([[0.5, 0.5]]), np.array(counts, float), np.zeros(2))

    one = np.ones(1)
    upper = GarwoodRegion(model([40, 12]), 0.5).highest_number(one)
    assert 30 < upper < 100
    with pytest.raises(ValueError, match="counts do not fit their matrix and background"):
        GarwoodRegion(model([400, 12]), 0.95)


def test_the_least_maximum_of_lines_is_that_of_a_linear_programme():
    rng = np.random.default_rng(8)
    for _ in range(50):
        heights, slopes = rng.normal(size=(2, 6))
        least = least_maximum(heights, slopes, 10 ** rng.uniform(-3, 3))
        solution = linprog(
            [1, 0], np.c_[-np.ones(6), slopes], -heights, bounds=[(None, None), (0, None)]
        )
        if solution.status == 0:
            np.testing.assert_allclose(least, solution.fun, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "least"), [(PoissonProfile, 0.93), (GarwoodRegion, 0.95)])
def test_intervals_cover(kind, least):
    # A standard error of .011 at .95 with 400 repetitions; four of them are a false alarm of 1e-4.
    rng = np.random.default_rng(31)
    truth, background = np.array([60.0, 90.0, 300.0]), np.array([3.0, 1.0, 5.0])
    repetitions, covered, shares = 400, np.zeros(3), np.zeros(3)
    for _ in range(repetitions):
        counts = rng.poisson(truth @ THREE + background).astype(float)
        region = kind(PoissonModel(THREE, counts, background), 0.95)
        for x, w in enumerate(np.eye(3)):
            covered[x] += -region.highest_number(-w) <= truth[x] <= region.highest_number(w)
            share = truth[x] / truth.sum()
            shares[x] += -region.highest_share(-w) <= share <= region.highest_share(w)
    error = np.sqrt(least * (1 - least) / repetitions)
    assert (covered / repetitions >= least - 4 * error).all(), covered / repetitions
    assert (shares / repetitions >= least - 4 * error).all(), shares / repetitions


def test_an_end_of_0_has_no_sign():
    both = SimpleNamespace(least=np.array([-1.0]), most=np.array([1.0]))
    for end in cut_at_zero(np.array([-0.0]), np.array([-0.0]), both):
        assert not np.signbit(end).any()
