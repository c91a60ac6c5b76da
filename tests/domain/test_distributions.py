"""Probability vectors: the projection is the nearest point,
the checks refuse what they should and change nothing.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import ibukit as ik
from instances import distributions
from oracles import naive

VECTORS = arrays(
    np.float64,
    st.integers(1, 12),
    elements=st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e6, -1e6]) | st.floats(-5, 5),
)


def assert_projection(v, p):
    """The optimality conditions:
    on the simplex, and p_x = max(v_x - tau, 0) with the same tau everywhere.
    """
    slack = 1e-14 * (1 + np.abs(v).max())
    assert (p >= 0).all()
    assert abs(p.sum() - 1) <= 1e-15 * (1 + len(p))
    tau = (v - p)[p > 0]
    assert np.ptp(tau) <= slack, "the entries above 0 are not shifted alike"
    assert (v[p == 0] <= tau.min() + slack).all(), "an entry at 0 would be positive"


@given(VECTORS)
def test_the_projection_meets_the_optimality_conditions(v):
    p = ik.project_to_simplex(v)
    assert_projection(v, p)
    assert np.abs(p - naive.project(v)).max() <= 1e-9


@given(v=VECTORS, data=st.data())
def test_no_distribution_is_nearer(v, data):
    p, other = ik.project_to_simplex(v), data.draw(distributions(len(v)))
    assert np.linalg.norm(p - v) <= np.linalg.norm(other - v) * (1 + 1e-12) + 1e-12


def test_the_conditions_see_clipping_and_rescaling():
    v = np.array([0.9, 0.6, -0.3])
    assert_projection(v, ik.project_to_simplex(v))
    for wrong in (
        naive.clip_and_normalize(v),
        np.array([1.0, 0.0, 0.0]),
        np.array([0.6, 0.4, 0.0]),
    ):
        with pytest.raises(AssertionError):
            assert_projection(v, wrong)


@pytest.mark.parametrize("seed", range(20))
def test_the_projection_is_that_of_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    v = rng.normal(0, 0.5, rng.integers(2, 10))
    assert ik.project_to_simplex(v) == pytest.approx(naive.project_to_simplex(v), abs=1e-6)


@given(data=st.data(), k=st.integers(1, 12))
def test_distributions_stay_where_they_are(data, k):
    p = data.draw(distributions(k))
    rounding = np.finfo(float).eps * (2 + k)  # of a sum of k terms, which both divide by
    assert np.abs(ik.project_to_simplex(p) - p).max() <= rounding
    assert np.abs(ik.normalize(p) - p).max() <= rounding


@given(v=VECTORS, shift=st.floats(-100, 100))
def test_adding_a_constant_changes_nothing(v, shift):
    slack = 1e-14 * (1 + np.abs(v).max() + abs(shift))
    assert np.abs(ik.project_to_simplex(v + shift) - ik.project_to_simplex(v)).max() <= slack


def test_far_away_vectors_keep_their_digits():
    assert ik.project_to_simplex([1e9 + 0.25, 1e9, -1e9]).tolist() == [0.625, 0.375, 0.0]
    assert ik.project_to_simplex([-7.0]).tolist() == [1.0]
    assert ik.project_to_simplex([0.0, 0.0, 1e300]).tolist() == [0.0, 0.0, 1.0]
    # Their difference is no double; a warning would be an error here.
    assert ik.project_to_simplex([-1e308, 1e308]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("v", [[], [[1.0]], [np.nan, 1.0], [np.inf, 1.0], 3.0])
def test_what_cannot_be_projected(v):
    with pytest.raises(ValueError, match="v must be a non-empty vector of finite numbers, got"):
        ik.project_to_simplex(v)


@pytest.mark.parametrize(
    "weights", [[3, 1], [3e300, 1e300], [3e-300, 1e-300], np.array([3, 1], dtype=np.uint8)]
)
def test_normalize_divides_by_the_sum_at_any_size(weights):
    assert ik.normalize(weights) == pytest.approx([0.75, 0.25], rel=1e-15)


def test_normalize_takes_the_largest_doubles_and_the_smallest():
    assert ik.normalize([1.7e308, 1.7e308]).tolist() == [0.5, 0.5]
    assert ik.normalize([5e-324, 5e-324]).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1], [np.nan, 1], [np.inf, 1], [[1, 2]], 5])
def test_what_cannot_be_normalized(weights):
    with pytest.raises(
        ik.errors.InvalidDistribution,
        match="weights must be finite, not negative and not all zero, got",
    ):
        ik.normalize(weights)


def test_uniform():
    assert ik.uniform(1).tolist() == [1.0]
    assert ik.uniform(np.int64(8)).tolist() == [0.125] * 8
    assert ik.uniform(4).dtype == np.float64


@pytest.mark.parametrize(
    ("k", "words"),
    [
        (0, "k must be at least 1, got 0"),
        (2.0, "k must be a whole number, got 2.0"),
        (True, "k must be a whole number"),
    ],
)
def test_uniform_over_nothing(k, words):
    with pytest.raises(ValueError, match=words):
        ik.uniform(k)


@pytest.mark.parametrize(
    ("p", "words"),
    [
        ([0.5, 0.4], r"prior must sum to 1 \(within 1e-09\), but sums to 0.9; .*ibukit.normalize"),
        ([0.5, 0.5 + 3e-9], "prior must sum to 1"),
        ([0.5, 0.5 - 3e-9], "prior must sum to 1"),
        ([1.5, -0.5], "prior must not have negative or NaN entries, got -0.5 at 1"),
        ([1.0, -1e-300], "prior must not have negative or NaN entries, got -1e-300 at 1"),
        ([np.nan, 1.0], "prior must not have negative or NaN entries, got nan at 0"),
        ([np.inf, 0.0], "prior must sum to 1.*but sums to inf"),
        ([], r"prior must be a non-empty vector, got shape \(0,\)"),
        ([[1.0]], r"prior must be a non-empty vector, got shape \(1, 1\)"),
        (1.0, r"prior must be a non-empty vector, got shape \(\)"),
        ("even", "prior must be an array of numbers, got str"),
        (None, "prior must"),
    ],
)
def test_what_is_no_distribution(p, words):
    with pytest.raises(ik.errors.InvalidDistribution, match=words):
        ik.check_distribution(p, "prior")


def test_a_distribution_passes_unchanged():
    p = np.array([0.5, 0.5 + 4e-10])
    assert ik.check_distribution(p).tolist() == p.tolist(), "nothing may be renormalised"
    assert ik.check_distribution([1, 0]).dtype == np.float64
    with pytest.raises(ik.errors.InvalidDistribution, match=r"^p must sum to 1"):
        ik.check_distribution([1, 1])
