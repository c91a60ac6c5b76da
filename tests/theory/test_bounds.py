"""The error of matrix inversion:
exact against linear algebra and against draws, and where the papers' bounds hold.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

import ibukit as ik
from ibukit.theory import (
    inv_bound_geometric,
    inv_bound_krr,
    inv_squared_error,
    inv_squared_error_range,
)
from oracles import naive

WIDE = np.random.default_rng(4).dirichlet(np.ones(7), 4)
MECHANISMS = [
    (ik.RandomizedResponse(6, 0.7), naive.k_rr(6, 0.7)),
    (ik.TruncatedGeometric(7, 0.3), naive.truncated_geometric(7, 0.3)),
    (ik.TruncatedGeometric(2, 0.05), naive.truncated_geometric(2, 0.05)),
    (ik.TruncatedGeometric(3, 2.0), naive.truncated_geometric(3, 2.0)),
    (ik.Exponential(5, 1.0), naive.exponential(naive.line_distances(5), 1.0)),
    (
        ik.TruncatedPlanarGeometric(ik.Grid(2, 3), 1.0),
        naive.truncated_planar_geometric(2, 3, 1.0, 1.0, 1.0),
    ),
    (ik.MatrixMechanism(WIDE), WIDE),
]
UNARY = [
    (ik.Rappor(5, 1.0), *(np.exp([0.5, 0]) / (1 + np.exp(0.5)))),
    (ik.OptimizedUnaryEncoding(5, 1.0), 0.5, 1 / (1 + np.e)),
]
names = [f"{type(case[0]).__name__}-{case[0].k}" for case in MECHANISMS]


def by_linear_algebra(matrix, theta):
    rows = np.linalg.pinv(matrix)
    return float((theta @ matrix) @ (rows**2).sum(axis=1) - theta @ theta)


@pytest.mark.ledger("A-P4", "A-P5")
@pytest.mark.parametrize(("mechanism", "matrix"), MECHANISMS, ids=names)
def test_the_exact_error_is_that_of_the_inverse(mechanism, matrix, rng):
    for theta in (*rng.dirichlet(np.full(len(matrix), 0.5), 20), np.eye(len(matrix))[0]):
        assert inv_squared_error(mechanism, theta) == pytest.approx(
            by_linear_algebra(matrix, theta), rel=1e-9
        )


@pytest.mark.parametrize(("mechanism", "p", "q"), UNARY, ids=["RAPPOR", "OUE"])
def test_of_unary_encodings_it_is_the_variance_of_the_bits(mechanism, p, q, rng):
    for theta in rng.dirichlet(np.ones(5), 20):
        set_ = q + (p - q) * theta
        assert inv_squared_error(mechanism, theta) == pytest.approx(
            (set_ * (1 - set_)).sum() / (p - q) ** 2
        )


@pytest.mark.parametrize(
    "mechanism", [case[0] for case in (*MECHANISMS, *UNARY)], ids=[*names, "RAPPOR", "OUE"]
)
def test_it_is_the_error_of_simulated_estimates(mechanism, rng):
    """To five of its own standard errors, and an error of a tenth would be seen."""
    n, theta = 50, rng.dirichlet(np.ones(mechanism.k))
    errors = []
    for secrets in rng.multinomial(n, theta, size=1500):
        tally = mechanism.simulate(secrets, rng)
        v = ik.inv(tally, post="none").distribution
        errors.append(n * ik.squared_l2(v, theta))
    exact, spread = inv_squared_error(mechanism, theta), np.std(errors) / np.sqrt(len(errors))
    assert abs(np.mean(errors) - exact) < 5 * spread
    assert abs(np.mean(errors) - 1.2 * exact) > 5 * spread


@pytest.mark.parametrize(
    "mechanism", [case[0] for case in (*MECHANISMS, *UNARY)], ids=[*names, "RAPPOR", "OUE"]
)
def test_the_range_holds_all_and_is_attained(mechanism, rng):
    least, greatest = inv_squared_error_range(mechanism)
    k = mechanism.k
    all_of_them = [
        inv_squared_error(mechanism, theta) for theta in rng.dirichlet(np.full(k, 0.7), 2000)
    ]
    assert least <= min(all_of_them)
    assert max(all_of_them) <= greatest
    singles = [inv_squared_error(mechanism, single) for single in np.eye(k)]
    assert min(singles) == pytest.approx(least)
    found = minimize(
        lambda y: -inv_squared_error(mechanism, softmax(y)),
        np.zeros(k),
        options={"gtol": 1e-9, "maxiter": 5000},
    )
    assert -found.fun == pytest.approx(greatest, rel=1e-5)


@pytest.mark.ledger("A-P4", "A-N1")
@pytest.mark.erratum("A1")
def test_the_bound_of_k_rr(rng):
    for k in (2, 3, 10, 100):
        for epsilon in (1e-3, 0.5, 2.0, 8.0):
            mechanism = ik.RandomizedResponse(k, epsilon)
            bound = inv_bound_krr(k, epsilon)
            assert bound == pytest.approx(((np.exp(epsilon) + k - 1) / (np.exp(epsilon) - 1)) ** 2)
            assert inv_squared_error_range(mechanism)[1] <= bound * (1 + 1e-12)
            theta = rng.dirichlet(np.ones(k))
            exact = bound * (1 - (mechanism.forward(theta) ** 2).sum())
            assert inv_squared_error(mechanism, theta) == pytest.approx(exact)
    assert inv_bound_krr(100, 2.0) == pytest.approx(277.2813, abs=1e-4)
    least, greatest = inv_squared_error_range(ik.RandomizedResponse(100, 2.0))
    assert (least, greatest) == pytest.approx((273.518, 274.508), abs=1e-3)
    assert least > 227.28  # which is printed as an upper bound


@pytest.mark.ledger("A-P5", "A-N2")
@pytest.mark.erratum("A2", "A3", "A4")
def test_the_bound_of_geometric_noise():
    for epsilon in (1e-3, 0.05, 0.3, np.log(2), 1.5, 5.0):
        for k in (3, 4, 10, 100, 1000):
            least, _ = inv_squared_error_range(ik.TruncatedGeometric(k, epsilon))
            assert least > inv_bound_geometric(k, epsilon)
    # printed as 7238, which is what 20 and 0.95 give
    assert inv_bound_geometric(100, 0.05) == pytest.approx(7818.546, abs=1e-3)
    assert 20**3 - 2 * 0.95 * 20**2 - 2 == 7238
    # at k = 2 the formula is far above the error of every theta
    assert inv_squared_error_range(ik.TruncatedGeometric(2, 0.05))[1] < 801
    ages = ik.datasets.load_adult_ages()
    mechanism = ik.TruncatedGeometric(ages.alphabet, 0.05)
    assert inv_squared_error(mechanism, ages.distribution) == pytest.approx(842_452.55, abs=0.01)
    assert inv_squared_error_range(mechanism) == pytest.approx((465_510.83, 878_323.90), abs=0.01)


def test_a_long_line_needs_no_matrix():
    k = 10**5
    mechanism = ik.TruncatedGeometric(k, 0.01)
    least, greatest = inv_squared_error_range(mechanism)
    assert least < inv_squared_error(mechanism, ik.uniform(k)) < greatest
    middle = inv_squared_error_range(ik.TruncatedGeometric(2000, 0.01))
    assert greatest == pytest.approx(middle[1], rel=1e-2)


def test_bad_input():
    with pytest.raises(ik.errors.NotInvertible, match="rank 1 for 2 secrets"):
        inv_squared_error(ik.MatrixMechanism(np.full((2, 2), 0.5)), [0.5, 0.5])
    with pytest.raises(ik.errors.NotInvertible, match="matrix inversion does not apply"):
        inv_squared_error_range(ik.LinearGeometric(3, 1.0))
    with pytest.raises(ik.errors.InvalidDistribution, match="theta must sum to 1"):
        inv_squared_error(ik.RandomizedResponse(2, 1.0), [0.5, 0.6])
    with pytest.raises(ValueError, match="k must be at least 3, got 2"):
        inv_bound_geometric(2, 0.05)
    with pytest.raises(ValueError, match="epsilon must be a finite number above 0"):
        inv_bound_krr(5, -1.0)
