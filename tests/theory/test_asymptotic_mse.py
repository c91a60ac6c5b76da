"""The limit of n E ||MLE - theta||^2:
against exact fractions, finite differences, and simulated estimates.
"""

import numpy as np
import pytest

import ibukit as ik
from ibukit.theory import asymptotic_mse, inv_squared_error
from instances import unchecked
from oracles import estimation, naive

RNG = np.random.default_rng(8)
WIDE = RNG.dirichlet(np.ones(7), 4)


def thetas(k, rng):
    """Uniform, a power law, and random ones, some of them close to the border."""
    skewed = 1 / np.arange(1, k + 1)
    random = [
        rng.dirichlet(np.full(k, alpha)) + floor
        for alpha, floor in ((1.0, 0.0), (0.5, 1e-3), (0.1, 1e-9))
    ]
    return [weights / weights.sum() for weights in (np.ones(k), skewed, *random)]


EXACT = [
    (ik.RandomizedResponse, estimation.exact_k_rr),
    (ik.OptimizedUnaryEncoding, estimation.exact_oue),
    (ik.Rappor, estimation.exact_rappor),
]


@pytest.mark.parametrize(("kind", "formula"), EXACT)
@pytest.mark.parametrize("eps", [1e-3, 0.5, 4.0, 20.0, 600.0])
@pytest.mark.parametrize("k", [2, 4])
def test_it_is_the_trace_of_the_inverse_in_fractions(kind, formula, eps, k, rng):
    matrix = formula(k, eps)
    for theta in thetas(k, rng):
        exact = estimation.exact_asymptotic_mse(matrix, theta)
        assert asymptotic_mse(unchecked(kind, k, eps), theta) == pytest.approx(exact, rel=2e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("eps", [1e-3, 0.5, 4.0, 12.0])
def test_subset_selection_in_fractions(size, eps, rng):
    matrix = estimation.exact_subset_selection(5, eps, size)
    for theta in thetas(5, rng):
        exact = estimation.exact_asymptotic_mse(matrix, theta)
        # beyond the default size rows without a likely secret are all there is, and digits go
        rel = 1e-11 if np.exp(eps) * size < 1e4 else 1e-8
        assert asymptotic_mse(ik.SubsetSelection(5, eps, size), theta) == pytest.approx(
            exact, rel=rel
        )


@pytest.mark.parametrize("k", [7, 10])
@pytest.mark.parametrize("kind", [ik.OptimizedUnaryEncoding, ik.Rappor, ik.SubsetSelection])
def test_structure_and_matrix_agree(kind, k, rng):
    for eps in (0.1, 1.0, 4.0):
        mechanism = kind(k, eps)
        for theta in thetas(k, rng):
            listed = asymptotic_mse(np.array(mechanism.matrix()), theta)
            assert asymptotic_mse(mechanism, theta) == pytest.approx(listed, rel=1e-11)


def test_where_no_matrix_fits(rng):
    """Against the uniform case in closed form, relabelled secrets,
    and J as a mean over sampled reports.
    """
    for mechanism in (ik.OptimizedUnaryEncoding(40, 1.0), ik.SubsetSelection(30, 1.0)):
        k = mechanism.k
        nearly = ik.normalize(np.ones(k) + 1e-9 * np.arange(k))
        uniform = asymptotic_mse(mechanism, ik.uniform(k))
        assert asymptotic_mse(mechanism, nearly) == pytest.approx(uniform, rel=1e-8)
        theta = rng.dirichlet(np.ones(k))
        relabelled = rng.permutation(k)
        value = asymptotic_mse(mechanism, theta)
        assert asymptotic_mse(mechanism, theta[relabelled]) == pytest.approx(value, rel=1e-11)
        assert value <= inv_squared_error(mechanism, theta)
        rows = mechanism.randomize(rng.choice(k, 60_000, p=theta), rng)
        tally = mechanism.tally(rows)
        scores = tally.matrix() / tally.forward(theta) * np.sqrt(tally.frequencies)
        basis = np.linalg.qr(np.ones((k, 1)), mode="complete")[0][:, 1:]
        information = basis.T @ (scores @ scores.T) @ basis
        # the inverse of a sampled matrix is too large by about k / n
        assert np.trace(np.linalg.inv(information)) == pytest.approx(value, rel=0.02)


def test_square_channels_are_those_of_inversion(rng):
    for mechanism, matrix in (
        (ik.TruncatedGeometric(6, 0.4), naive.truncated_geometric(6, 0.4)),
        (ik.Exponential(5, 1.0), naive.exponential(naive.line_distances(5), 1.0)),
        (ik.RandomizedResponse(6, 2.0), naive.k_rr(6, 2.0)),
    ):
        for theta in thetas(mechanism.k, rng):
            exact = np.trace(estimation.tangent_inverse(matrix, theta))
            assert asymptotic_mse(mechanism, theta) == pytest.approx(exact, rel=1e-9)
            assert asymptotic_mse(mechanism, theta) == inv_squared_error(mechanism, theta)
    theta = thetas(4, rng)[1]
    assert asymptotic_mse(WIDE, theta) == pytest.approx(
        np.trace(estimation.tangent_inverse(WIDE, theta)), rel=1e-9
    )
    assert asymptotic_mse(WIDE, theta) < inv_squared_error(ik.MatrixMechanism(WIDE), theta)
    padded = np.c_[WIDE[:, :3], np.zeros(4), WIDE[:, 3:]]  # a report that never occurs
    assert asymptotic_mse(padded, theta) == pytest.approx(asymptotic_mse(WIDE, theta), rel=1e-12)


def test_all_integers_tell_no_more_than_the_truncated_ones(rng):
    integers = np.arange(-200, 206)
    for theta in thetas(6, rng):
        columns = naive.geometric(range(6), integers, 0.4)
        expected = np.trace(estimation.tangent_inverse(columns, theta))
        assert asymptotic_mse(ik.LinearGeometric(6, 0.4), theta) == pytest.approx(
            expected, rel=1e-8
        )
    assert asymptotic_mse(ik.LinearGeometric(ik.Line(3, 3), 0.4), [1.0]) == 0


def test_the_information_is_the_curvature_of_the_expected_log_likelihood(rng):
    """Finite differences of sum_z (theta M)_z log (phi M)_z at phi = theta,
    along an orthonormal basis.
    """
    mechanism = ik.SubsetSelection(5, 1.2)
    matrix = estimation.subset_selection(5, 1.2, mechanism.size)
    theta = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
    basis = np.linalg.svd(np.ones((1, 5)))[2][1:]
    step = 1e-4

    def value(phi):
        return (theta @ matrix) @ np.log(phi @ matrix)

    curvature = np.array(
        [
            [
                sum(s * t * value(theta + step * (s * u + t * v)) for s in (1, -1) for t in (1, -1))
                / (4 * step**2)
                for v in basis
            ]
            for u in basis
        ]
    )
    assert asymptotic_mse(mechanism, theta) == pytest.approx(
        np.trace(np.linalg.inv(-curvature)), rel=1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        ik.RandomizedResponse(4, 1.5),
        ik.OptimizedUnaryEncoding(4, 1.5),
        ik.SubsetSelection(4, 1.0, 2),
        ik.MatrixMechanism(WIDE),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_it_is_the_error_of_simulated_estimates(mechanism, rng):
    """To five of the simulation's standard errors plus what is known to vanish with n;
    a tenth off would be seen.
    """
    n, theta = 20_000, np.array([0.4, 0.3, 0.2, 0.1])
    errors = []
    for secrets in rng.multinomial(n, theta, size=600):
        found = ik.mle(mechanism.simulate(secrets, rng), tol=1e-8).distribution
        errors.append(n * ik.squared_l2(found, theta))
    limit, spread = asymptotic_mse(mechanism, theta), np.std(errors) / np.sqrt(len(errors))
    assert abs(np.mean(errors) - limit) < 5 * spread
    assert abs(np.mean(errors) - 1.3 * limit) > 5 * spread


def test_bad_input():
    with pytest.raises(
        ik.errors.InvalidDistribution,
        match="theta must not have zeros, but entry 1 is 0 and at the boundary",
    ):
        asymptotic_mse(ik.RandomizedResponse(3, 1.0), [0.5, 0.0, 0.5])
    with pytest.raises(ik.errors.InvalidDistribution, match="theta must sum to 1"):
        asymptotic_mse(ik.RandomizedResponse(2, 1.0), [0.5, 0.6])
    with pytest.raises(
        ik.errors.AlphabetMismatch, match="one probability for each of the 3 elements"
    ):
        asymptotic_mse(ik.RandomizedResponse(3, 1.0), [0.5, 0.5])
    for dependent in (
        np.full((3, 3), 1 / 3),
        [[0.5, 0.5], [0.2, 0.8], [0.3, 0.7]],
        np.repeat(WIDE[:1], 2, axis=0),
    ):
        with pytest.raises(ik.errors.NotInvertible, match=r"rank|do not identify theta"):
            asymptotic_mse(dependent, ik.uniform(len(dependent)))
    with pytest.raises(
        ValueError, match="mechanism must have reports that can be listed, got PlanarGeometric"
    ):
        asymptotic_mse(ik.PlanarGeometric(ik.Grid(2, 2), 1.0), ik.uniform(4))
