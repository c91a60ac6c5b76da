"""The bound on the MLE's mean error:
over all samples with the worst maximiser, its proof step by step, its limits.
"""

import itertools
from math import factorial

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.spatial.distance import pdist

import ibukit as ik
from ibukit.theory import mle_error_bound
from ibukit.theory.mle_error import right_inverses
from mechanism_cases import FINITE
from mechanism_cases import name as name_of
from oracles import naive


def diameter(mechanism):
    """D, from the bound at one user."""
    m = mechanism.m
    return mle_error_bound(mechanism, 1) / (np.sqrt((m - 1) / 2) * (1 + 1 / np.sqrt(m)))


# All samples of a few reports, and of each the maximiser that is farthest from the truth.


def samples(n, m):
    """All counts of n reports of m kinds."""
    if m == 1:
        return [[n]]
    return [[i, *rest] for i in range(n + 1) for rest in samples(n - i, m - 1)]


def one_maximiser(matrix, counts):
    theta, q = np.full(len(matrix), 1 / len(matrix)), counts / counts.sum()
    for _ in range(3000):
        ratio = np.divide(q, theta @ matrix, out=np.zeros_like(q), where=q > 0)
        theta = theta * (matrix @ ratio)
        if (matrix @ ratio).max() < 1 + 1e-12:
            break
    return theta


def maximisers(matrix, counts):
    """The corners of {phi: phi M = the maximiser's law of the reports seen}:
    every maximiser lies between them.
    """
    theta, k = one_maximiser(matrix, counts), len(matrix)
    equal = np.vstack([matrix[:, counts > 0].T, np.ones(k)])
    law, rank, corners = equal @ theta, np.linalg.matrix_rank(equal), [theta]
    for support in map(list, itertools.combinations(range(k), rank)):
        mass = np.linalg.lstsq(equal[:, support], law, rcond=None)[0]
        if np.abs(equal[:, support] @ mass - law).max() < 1e-7 and mass.min() > -1e-7:
            corners.append(np.zeros(k))
            corners[-1][support] = mass
    return np.array(corners)


def channels(rng):
    """Small ones that identify, a third of them with zeros."""
    found = [np.eye(2), np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]), naive.k_rr(3, 1.0)]
    while len(found) < 15:
        k, m = rng.integers(2, 4), rng.integers(3, 5)
        matrix = rng.dirichlet(np.full(m, rng.choice([0.3, 1, 3])), k)
        if len(found) % 3 == 0:
            matrix = matrix * (rng.random((k, m)) < 0.7) + 0.2 * np.eye(k, m)
            matrix /= matrix.sum(axis=1, keepdims=True)
        if np.linalg.svd(matrix, compute_uv=False)[-1] > 0.01:
            found.append(matrix)
    return found


@pytest.mark.slow
def test_over_all_samples_the_worst_maximiser_is_nearer_on_average(rng):
    shares = []
    for matrix in channels(rng):
        k, m = matrix.shape
        for n in (1, 2, 4):
            drawn = np.array(samples(n, m))
            corners = [maximisers(matrix, counts) for counts in drawn]
            ways = [factorial(n) / np.prod([factorial(c) for c in counts]) for counts in drawn]
            for theta in (*np.eye(k), *rng.dirichlet(np.ones(k), 2)):
                chance = ways * np.prod((theta @ matrix) ** drawn, axis=1)
                assert chance.sum() == pytest.approx(1)
                farthest = [np.linalg.norm(each - theta, axis=1).max() for each in corners]
                shares.append(chance @ farthest / mle_error_bound(matrix, n))
    assert max(shares) <= 1
    assert max(shares) > 0.35, "a bound of a third of this one would be seen to fail"


# The steps of the proof.

WIDE = np.random.default_rng(3).dirichlet(np.full(12, 0.5), 4)
SOME = [
    *[
        mechanism(k, epsilon)
        for k in (2, 3, 6)
        for epsilon in (0.2, 1.0, 4.0)
        for mechanism in (ik.Rappor, ik.RandomizedResponse)
    ],
    *[ik.OptimizedUnaryEncoding(k, 1.0) for k in (2, 5)],
    *[ik.SubsetSelection(k, 1.0, size=size) for k, size in ((4, 1), (5, 2), (6, 3), (7, 5))],
    ik.TruncatedGeometric(12, 0.3),
    ik.Exponential(5, 1.0),
    ik.MatrixMechanism(WIDE),
    ik.MatrixMechanism([[0.8, 0.2, 0.0], [0.0, 0.8, 0.2], [0.2, 0.0, 0.8]]),
]


def spread(rows):
    return pdist(rows).max()


@pytest.mark.parametrize("mechanism", SOME, ids=name_of)
def test_the_rows_undo_the_mechanism_and_no_vector_is_longer_than_they_allow(mechanism, rng):
    k, matrix = mechanism.k, mechanism.matrix()
    found = list(right_inverses(matrix))
    w = rng.normal(size=(200, k))
    w -= w.mean(axis=1, keepdims=True)
    w = np.vstack(
        [w, *[np.eye(k)[x] - np.eye(k)[y] for x, y in itertools.combinations(range(k), 2)]]
    )
    longest = (np.linalg.norm(w, axis=1) / np.abs(w @ matrix).sum(axis=1)).max()
    for rows in found:
        back = w @ matrix @ rows
        np.testing.assert_allclose(
            np.linalg.norm(back, axis=1), np.linalg.norm(w, axis=1), rtol=1e-8
        )
        np.testing.assert_allclose(back @ back.T, w @ w.T, atol=1e-6)
        assert longest <= spread(rows) / 2 * (1 + 1e-9)
    assert diameter(mechanism) <= min(map(spread, found[:1])) * (1 + 1e-9)
    assert longest <= diameter(mechanism) / 2 * (1 + 1e-9)


@pytest.mark.parametrize(
    "mechanism", [each for each in FINITE if 1 < each.k <= each.m], ids=name_of
)
def test_it_is_below_the_simpler_bounds(mechanism):
    if not ik.theory.identifiable(mechanism):
        return
    matrix = mechanism.matrix()
    matrix = matrix[:, matrix.any(axis=0)]
    root = 2 * np.sqrt(2 * (matrix.shape[1] - 1))
    basis = null_space(np.ones((1, mechanism.k))).T
    rows = np.linalg.pinv(basis @ matrix)
    centred = rows - (rows.max(axis=0) + rows.min(axis=0)) / 2
    bound = mle_error_bound(mechanism, 1)
    assert bound <= root / np.linalg.svd(matrix, compute_uv=False)[-1] * (1 + 1e-9)
    for each in (rows, centred):
        assert bound <= root * np.linalg.norm(each, axis=1).max() * (1 + 1e-9)


def test_for_k_rr_a_pair_of_secrets_attains_the_inequality():
    mechanism = ik.RandomizedResponse(5, 0.7)
    w = np.eye(5)[0] - np.eye(5)[1]
    attained = np.linalg.norm(w) / np.abs(w @ mechanism.matrix()).sum()
    assert attained == pytest.approx(diameter(mechanism) / 2, rel=1e-12)


def test_three_figures_for_ten_secrets_under_rappor():
    # what multiplies ||w M||_1: one over the least singular value, the debiased bits' distance to
    # their centre, D / 2
    mechanism = ik.Rappor(10, 1.0)
    bits = np.array(list(itertools.product((0, 1), repeat=10)))
    rows = (bits - 0.5) / mechanism.contrast
    assert np.linalg.norm(rows, axis=1).max() == pytest.approx(6.4558, abs=1e-4)
    assert 1 / ik.theory.identifiable(mechanism).singular_values[-1] == pytest.approx(
        51.75, abs=0.01
    )
    assert diameter(mechanism) / 2 == pytest.approx(5.7562, abs=1e-4)


# Closed forms.


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
@pytest.mark.parametrize("k", [2, 3, 4, 7, 9])
def test_of_bits_the_closed_forms_are_those_of_the_matrix(k, epsilon):
    for mechanism in (ik.Rappor(k, epsilon), ik.OptimizedUnaryEncoding(k, epsilon)):
        weighted = spread(next(right_inverses(mechanism.matrix())))
        bits = np.array(list(itertools.product((0, 1), repeat=k))) / mechanism.contrast
        debiased = spread(bits - bits.mean(axis=1, keepdims=True))
        assert diameter(mechanism) == pytest.approx(min(weighted, debiased), rel=1e-9)
    for size in range(1, k):
        mechanism = ik.SubsetSelection(k, epsilon, size=size)
        assert diameter(mechanism) == pytest.approx(
            spread(next(right_inverses(mechanism.matrix()))), rel=1e-9
        )


@pytest.mark.parametrize(
    "mechanism", [ik.Rappor(30, 5.0), ik.Rappor(500, 0.5), ik.SubsetSelection(1000, 1.0, size=3)]
)
def test_many_bits_are_answered(mechanism):
    assert np.isfinite(mle_error_bound(mechanism, 1))


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 1.0])
def test_of_geometric_noise_neighbouring_reports_are_the_farthest_apart(epsilon):
    a = np.exp(-epsilon)
    apart = np.sqrt(2 * a**2 + 2 * (1 + a + a**2) ** 2) / (1 - a) ** 2
    for mechanism in (
        ik.TruncatedGeometric(100, epsilon),
        ik.MatrixMechanism(naive.truncated_geometric(100, epsilon)),
    ):
        assert diameter(mechanism) == pytest.approx(apart, rel=1e-9)


def test_of_k_rr_it_is_the_stretch_of_the_inverse():
    a = (np.e + 9) / (np.e - 1)
    assert diameter(ik.RandomizedResponse(10, 1.0)) == pytest.approx(np.sqrt(2) * a, rel=1e-12)
    assert diameter(ik.MatrixMechanism(naive.k_rr(10, 1.0))) == pytest.approx(
        np.sqrt(2) * a, rel=1e-9
    )


def test_untruncated_noise_counts_as_its_clipped_reports():
    assert mle_error_bound(ik.LinearGeometric(10, 0.5), 7) == mle_error_bound(
        ik.TruncatedGeometric(10, 0.5), 7
    )


# Against draws, where the bound says something; and with an estimate for which it does not hold.


@pytest.mark.parametrize("corner", [False, True])
@pytest.mark.parametrize(
    "mechanism", [ik.RandomizedResponse(10, 1.0), ik.TruncatedGeometric(10, 0.5), ik.Rappor(8, 1.0)]
)
def test_it_holds_for_the_mle_and_not_for_whatever_you_like(mechanism, corner, rng):
    k, n = mechanism.k, 10**6
    theta = np.eye(k)[2] if corner else rng.dirichlet(np.full(k, 0.5))
    bound = mle_error_bound(mechanism, n)
    law = mechanism.forward(theta)
    found = [
        ik.mle(mechanism.tally_counts(rng.multinomial(n, law))).distribution for _ in range(10)
    ]
    assert np.mean([np.linalg.norm(each - theta) for each in found]) < bound
    assert bound < np.linalg.norm(ik.uniform(k) - theta)


# Its shape and its limits.


def test_it_falls_with_the_root_of_n():
    mechanism = ik.Exponential(5, 1.0)
    one = mle_error_bound(mechanism, 1)
    assert type(one) is float
    np.testing.assert_allclose(
        mle_error_bound(mechanism, [[1, 4], [9.0, 16]]), one / np.array([[1, 2], [3, 4]])
    )
    assert mle_error_bound(mechanism, []).shape == (0,)


def test_an_empty_column_does_not_matter():
    full = [[0.9, 0.1], [0.3, 0.7]]
    assert mle_error_bound(np.insert(full, 1, 0.0, axis=1), 3) == pytest.approx(
        mle_error_bound(full, 3), rel=1e-12
    )


def test_one_secret_is_known():
    assert mle_error_bound([[0.25, 0.75]], 5) == 0


def test_more_reports_than_a_double_counts():
    assert mle_error_bound(ik.Rappor(2000, 1.0), 10**18) == np.inf


def test_where_no_bound_can_be():
    merged = ik.compose(ik.RandomizedResponse(3, 1.0), [[1, 0], [0, 1], [0, 1]])
    with pytest.raises(
        ik.errors.NotInvertible,
        match="must identify the distribution, but does not: 2 reports cannot tell 3",
    ):
        mle_error_bound(merged, 10)
    with pytest.raises(
        ValueError, match="mechanism must have reports that can be listed, got PlanarGeometric"
    ):
        mle_error_bound(ik.PlanarGeometric(ik.Grid(2, 2), 1.0), 10)


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (0, "n must be at least 1, got 0"),
        ([3, 0], "n must be at least 1, got 0"),
        (2.5, r"n must be a whole number, got 2\.5"),
        ([1.5], r"n must be whole numbers, got 1\.5 at index 0"),
    ],
)
def test_bad_input(n, message):
    with pytest.raises(ValueError, match=message):
        mle_error_bound(ik.RandomizedResponse(3, 1.0), n)


@pytest.mark.parametrize(
    ("ask", "instead"),
    {
        "bound": (lambda k: mle_error_bound(ik.HadamardResponse(k, 1.0), 2), "k-RR, unary enc"),
        "concave": (
            lambda k: ik.theory.strictly_concave(ik.LinearLaplace(k, 1.0).tally([1, 2])),
            "reports of k-RR alone and",
        ),
        "floor": (
            lambda k: ik.theory.least_asymptotic_mse(k, 1.0, ik.uniform(k)),
            "without theta there is a bound",
        ),
        "limit": (
            lambda k: ik.theory.asymptotic_mse(ik.HadamardResponse(k, 1.0), ik.uniform(k)),
            "take a coarser alphabet",
        ),
    }.values(),
)
def test_a_matrix_too_large_to_decompose_is_refused_with_what_this_function_takes(ask, instead):
    with pytest.raises(ValueError, match=f"at most 5000 where .*, got 5001; {instead}"):
        ask(5001)
