"""Profile intervals whose threshold knows the boundary of the simplex."""

import ast
import inspect
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binomtest

import ibukit as ik
from ibukit.intervals.boundary import _ratio_kernels
from ibukit.intervals.boundary._ratio_kernels import (
    maximum_by_active_sets,
    maximum_by_blocks,
    ratios,
    solve_on_support,
)
from ibukit.intervals.boundary.information import information_of, sparser
from ibukit.intervals.boundary.region import BoundaryRegion


def by_slsqp(information, centre, constraints, k):
    """Return the least |x - centre|_J^2 on the simplex, by another solver from several starts."""
    best = np.inf
    for start in np.vstack([np.full(k, 1 / k), np.eye(k)]):
        found = minimize(
            lambda x: (x - centre) @ information @ (x - centre),
            start,
            jac=lambda x: 2 * information @ (x - centre),
            bounds=[(0, 1)] * k,
            constraints=constraints,
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        # It may stop without a word of success at a point that is as good as any.
        if max(abs(each["fun"](found.x)) for each in constraints) < 1e-9:
            best = min(best, found.fun)
    return best


@pytest.mark.parametrize("n_equalities", [1, 2])
def test_a_parabola_is_highest_where_its_equalities_hold(n_equalities, rng):
    root, g = rng.normal(size=(8, 6)), rng.normal(size=6)
    equalities, b = rng.normal(size=(n_equalities, 6)), rng.normal(size=n_equalities)
    support = np.array([0, 2, 3, 5])
    x, multipliers = solve_on_support(root.T @ root, g, equalities, b, support)
    on = equalities[:, support]
    np.testing.assert_allclose(on @ x, b, rtol=1e-9)
    information = (root.T @ root)[np.ix_(support, support)]
    np.testing.assert_allclose(information @ x + multipliers @ on, g[support], rtol=1e-9)


def test_blocks_lead_to_the_maximum_of_most_problems():
    ended = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        root, g = rng.normal(size=(9, 7)), rng.normal(size=7)
        theta = rng.dirichlet(np.ones(7))
        problem = root.T @ root, g, np.ones((1, 7)), np.ones(1), np.full(7, True)
        ended += maximum_by_blocks(*problem, theta > 0)[0]
    assert ended >= 35


# The search starts at a vertex with the seed 2, and from a vertex with the seed 12615, where two
# values of w are nearly the same, it would go round in a circle.
@pytest.mark.parametrize(
    ("seed", "least_share"), [*((seed, 0.05) for seed in range(8)), (12615, 0.5)]
)
def test_one_secret_at_a_time_leads_to_the_maximum_as_well(seed, least_share):
    rng = np.random.default_rng(seed)
    root, g, w = rng.normal(size=(9, 7)), rng.normal(size=7), rng.random(7)
    information = root.T @ root
    theta = rng.dirichlet(np.full(7, 0.3))
    theta[theta < min(least_share, theta.max())] = 0
    theta /= theta.sum()
    equalities = np.array([np.ones(7), w])
    problem = information, g, equalities, equalities @ theta, np.full(7, True)
    one_by_one = maximum_by_active_sets(*problem, theta.copy(), np.zeros(7, bool))
    ended, by_blocks = maximum_by_blocks(*problem, theta > 0)
    centre = np.linalg.solve(information, g)
    constraints = [
        {"type": "eq", "fun": lambda x, a=a, b=b: a @ x - b}
        for a, b in zip(equalities, equalities @ theta, strict=True)
    ]
    right = (centre @ g - by_slsqp(information, centre, constraints, 7)) / 2
    assert one_by_one == pytest.approx(right, abs=1e-7)
    assert not ended or by_blocks == pytest.approx(right, abs=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_drawn_ratios_are_those_of_another_solver(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 6))
    root = rng.normal(size=(k + 2, k))
    information = root.T @ root * 50
    theta = rng.dirichlet(np.full(k, 0.4))
    theta[theta < 0.1] = 0
    theta /= theta.sum()
    w = rng.random(k)
    scores = rng.standard_normal((4, k)) @ np.linalg.cholesky(information).T
    drawn, of_theta = ratios(information, scores, theta, w)
    whole = {"type": "eq", "fun": lambda x: x.sum() - 1}
    fixed = {"type": "eq", "fun": lambda x: w @ x - w @ theta}
    for score, ratio, loss in zip(scores, drawn, of_theta, strict=True):
        centre = theta + np.linalg.solve(information, score)
        right = by_slsqp(information, centre, [whole, fixed], k) - by_slsqp(
            information, centre, [whole], k
        )
        assert ratio == pytest.approx(right, abs=1e-5)
        at_theta = (theta - centre) @ information @ (theta - centre)
        with_w = by_slsqp(information, centre, [whole, fixed], k)
        assert loss == pytest.approx(at_theta - with_w, abs=1e-5)


def test_loops_over_drawn_scores_leave_out_what_takes_seconds_to_compile():
    # numba compiles sums, products and indexing by arrays from Python of its own, with the texts of
    # all errors that they may raise: three times as long as these loops.
    loops = [
        node
        for node in ast.walk(ast.parse(inspect.getsource(_ratio_kernels)))
        if isinstance(node, ast.FunctionDef) and node.decorator_list
    ]
    nodes = [node for loop in loops for node in ast.walk(loop)]
    of_arrays = {
        node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr != "size"
    }
    assert len(loops) == 10
    assert of_arrays <= {"bool_", "copy", "empty", "int64", "ones", "shape", "sqrt", "zeros"}
    assert not any(isinstance(node, (ast.MatMult, ast.BitOr, ast.Invert)) for node in nodes)


def test_in_the_interior_it_is_the_profile():
    tally = ik.RandomizedResponse(3, 2.0).tally_counts([40_000, 35_000, 25_000])
    estimate = ik.mle(tally)
    found, right = (np.array(estimate.interval(0.9, method=m)) for m in ("auto", "profile"))
    assert np.allclose(found, right, atol=1e-8)


@pytest.mark.parametrize("n", [10**9, 2 * 10**12])
def test_an_end_that_only_rounding_makes_1_is_no_end_of_the_search(n):
    # 1 - share is 1 in what the search can tell, where the ratio is far from the one wanted.
    mechanism = ik.RandomizedResponse(["a", "b", "c"], 36.0)
    estimate = ik.mle(mechanism.tally_counts([n // 2, n // 2, 3]))
    found, profile = (estimate.interval(of="c", method=m) for m in ("auto", "profile"))
    assert 0 <= found[0] <= profile[0] + 1e-12
    assert profile[1] * (1 - 1e-6) <= found[1] <= profile[1] * 1.1


def test_two_kinds_of_reports_are_enumerated():
    estimate = ik.mle(ik.RandomizedResponse(2, 1.0).tally_counts([46, 34]))
    found, right = (
        np.array(estimate.interval(0.9, of=[1, 0], method=m)) for m in ("auto", "calibrated")
    )
    assert np.array_equal(found, right)


def test_it_is_never_narrower_than_the_profile():
    rng = np.random.default_rng(3)
    for kind in (ik.RandomizedResponse, ik.TruncatedGeometric, ik.Rappor):
        estimate = ik.mle(kind(6, 1.0).simulate(rng.multinomial(500, [0.7, 0.3, 0, 0, 0, 0]), rng))
        found, profile = (np.array(estimate.interval(method=m)) for m in ("auto", "profile"))
        assert (found[0] <= profile[0] + 1e-6).all()
        assert (found[1] >= profile[1] - 1e-6).all()


def test_where_everybody_is_alike_it_holds_and_the_profile_does_not():
    mechanism, w = ik.TruncatedGeometric(20, 1.0), np.eye(20)[10]
    rng = np.random.default_rng(5)
    covered = {"auto": 0, "profile": 0}
    for _ in range(60):
        estimate = ik.mle(mechanism.simulate((1000 * w).astype(int), rng))
        for method in covered:
            covered[method] += estimate.interval(0.95, of=w, method=method)[1] >= 1 - 1e-9
    assert binomtest(covered["auto"], 60, 0.93, alternative="less").pvalue > 1e-3
    assert binomtest(covered["profile"], 60, 0.8, alternative="less").pvalue < 1e-3


def test_probabilities_that_chance_may_have_made_are_moved_within_their_weight():
    w = np.array([1.0, 0.0, 0.0, 0.0])
    tally = ik.RandomizedResponse(4, 1.0).tally_counts([60, 50, 30, 25])
    theta = np.array([0.5, 0.47, 0.02, 0.01])
    found = sparser(theta, w, information_of(tally, theta, theta))
    assert np.allclose(found, [0.5, 0.5, 0, 0])


def test_the_same_seed_gives_the_same_ends_and_another_one_nearly():
    estimate = ik.mle(ik.TruncatedGeometric(5, 1.0).tally_counts([5, 90, 20, 3, 1]))
    first, again, other = (
        np.array(estimate.interval(0.95, method="auto", seed=seed)) for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert np.abs(first - other).max() < 0.03


def test_frequencies_are_refused():
    estimate = ik.mle(ik.RandomizedResponse(3, 1.0).tally_counts([5, 9, 2]))
    with pytest.raises(ValueError, match="target must be 'distribution' with method='auto'"):
        estimate.interval(method="auto", target="frequencies")


def test_secants_end_where_the_ratio_is_its_threshold():
    """With the threshold 2 + 0.7 ratio, the ratio at the end is 2 / 0.3."""

    class Linear(BoundaryRegion):
        def __init__(self):
            self._level = 0.95

        def _with_ratio(self, w, ratio):
            return ratio / 100, SimpleNamespace(ratio=ratio, theta=ratio)

        def threshold(self, w, theta):
            return 2 + 0.7 * theta

    assert Linear()._end(np.ones(2)) == pytest.approx(2 / 0.3 / 100, rel=1e-9)
