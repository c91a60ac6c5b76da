"""The tight-constraints mechanism:
its equations, what is tight, what it is on known alphabets, where there is none.
"""

import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from mechanism_cases import OBLONG, TRIANGLE
from oracles import naive


def weights(distances, eps):
    """The mu of the definition, as they come."""
    return np.linalg.inv(np.exp(-eps * distances)) @ np.ones(len(distances))


ALPHABETS = [
    ik.Line(-3, 5),
    OBLONG,
    ik.Grid(3, 3),
    TRIANGLE,
    ik.Alphabet(list("abcd")),
    ik.Line(5, 5),
]


@pytest.mark.parametrize("alphabet", ALPHABETS, ids=repr)
@pytest.mark.parametrize("eps", [1.5, 4.0, 20.0])
def test_follows_the_definition(alphabet, eps):
    d = alphabet.distances()
    mu = weights(d, eps)
    assert mu.min() > 0
    mechanism = ik.TightConstraints(alphabet, eps)
    np.testing.assert_allclose(mechanism.matrix(), mu * np.exp(-eps * d), rtol=1e-11)
    assert abs(mechanism.matrix().sum(axis=1) - 1).max() < 1e-12


@given(st.integers(2, 7), st.integers(0, 2**32), st.floats(0.5, 30))
def test_every_pair_of_secrets_attains_the_bound_and_none_exceeds_it(k, seed, eps):
    points = np.random.default_rng(seed).random((k, 2))
    d = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    try:
        matrix = ik.TightConstraints(ik.Alphabet(range(k), d), eps).matrix()
    except ik.errors.Infeasible:
        assert weights(d, eps).min() < 1e-9
        return
    assert weights(d, eps).min() > -1e-9
    if (matrix > 0).all():
        assert naive.epsilon_metric(matrix, d) <= eps * (1 + 1e-9)
        for x in range(k):
            # report x, under secret x and under every other
            np.testing.assert_allclose(
                np.log(matrix[x, x] / matrix[:, x]), eps * d[x], rtol=1e-9, atol=1e-12
            )


def test_the_exponential_mechanism_leaves_every_constraint_loose():
    """The negative control: there the normaliser depends on the secret,
    and half of epsilon is set aside for it.
    """
    matrix, d = ik.Exponential(OBLONG, 2.0).matrix(), OBLONG.distances()
    log_ratios = np.log(matrix.diagonal() / matrix)
    assert (log_ratios[d > 0] < 2.0 * d[d > 0] * 0.99).all()


@pytest.mark.parametrize("eps", [1e-14, 1e-6, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("k", [2, 3, 40])
def test_on_a_line_it_is_the_truncated_geometric_mechanism(k, eps):
    tight = ik.TightConstraints(k, eps).matrix()
    np.testing.assert_allclose(tight, ik.TruncatedGeometric(k, eps).matrix(), rtol=1e-12)
    np.testing.assert_allclose(tight, naive.truncated_geometric(k, eps), rtol=1e-9, atol=1e-15)


def test_for_the_discrete_metric_it_is_randomized_response():
    letters = ik.Alphabet(list("abcde"))
    tight, response = ik.TightConstraints(letters, 1.3), ik.RandomizedResponse(letters, 1.3)
    np.testing.assert_allclose(tight.matrix(), response.matrix(), rtol=1e-13)


@pytest.mark.parametrize("cells", [3, 4, 6])
def test_in_the_plane_it_exists_from_a_threshold_on(cells):
    grid = ik.Grid(cells, cells)
    with pytest.raises(ik.errors.Infeasible, match=r"epsilon=0\.2 is too small") as told:
        ik.TightConstraints(grid, 0.2)
    threshold, certain = (
        float(re.search(pattern, str(told.value)).group(1))
        for pattern in (r"exists at epsilon=(\S+)", r"from (\S+) on")
    )
    assert (
        weights(grid.distances(), threshold * 0.999).min()
        < 0
        < weights(grid.distances(), threshold * 1.001).min()
    )
    assert ik.TightConstraints(grid, threshold * (1 + 1e-5)).k == cells**2
    assert certain == pytest.approx(np.log(2 * (cells**2 - 1)), rel=1e-5)
    for eps in np.linspace(certain, 5 * certain, 20):
        ik.TightConstraints(grid, eps)


@given(st.integers(2, 8), st.integers(0, 2**32), st.floats(1, 3))
def test_where_it_certainly_exists(k, seed, factor):
    """Row sums of exp(-eps d) off the diagonal of at most 1/2, whatever the metric."""
    d = 1 + np.random.default_rng(seed).random((k, k))
    d = np.triu(d, 1) + np.triu(d, 1).T
    eps = factor * np.log(2 * (k - 1)) / d[d > 0].min() if k > 2 else factor
    assert weights(d, eps).min() > -1e-12
    assert ik.TightConstraints(ik.Alphabet(range(k), d), eps).epsilon == eps


def test_the_levels_at_which_it_exists_need_not_be_an_interval():
    """A metric that exists, does not, and exists again:
    the threshold in the message is one of several.
    """
    rng = np.random.default_rng(0)
    for _ in range(400):
        d = rng.random((6, 6)) + 0.05
        d = np.triu(d, 1) + np.triu(d, 1).T
        for z in range(6):
            d = np.minimum(d, d[:, [z]] + d[z])
        exists = [weights(d, eps).min() > 1e-6 for eps in np.geomspace(0.05, 20, 60)]
        if np.count_nonzero(np.diff(np.array(exists).astype(int)) == -1):
            break
    levels = np.geomspace(0.05, 20, 60)[exists]
    missing = [
        eps
        for eps in np.geomspace(0.05, 20, 60)
        if levels[0] < eps and weights(d, eps).min() < -1e-6
    ]
    alphabet = ik.Alphabet(range(6), d)
    ik.TightConstraints(alphabet, levels[0])
    with pytest.raises(ik.errors.Infeasible):
        ik.TightConstraints(alphabet, missing[0])
    ik.TightConstraints(alphabet, levels[-1])


@pytest.mark.parametrize("mechanism", [ik.TightConstraints, ik.Exponential])
def test_distances_that_are_no_metric_are_refused(mechanism):
    far = ik.Alphabet(list("abc"), distances=[[0, 1, 9], [1, 0, 1], [9, 1, 0]])
    with pytest.raises(
        ValueError, match=r"triangle inequality, got 9 between 0 and 2, where the way .* is 2"
    ):
        mechanism(far, 1.0)


def test_a_large_grid_needs_no_matrix(rng):
    grid = ik.Grid(60, 50)
    mechanism = ik.TightConstraints(grid, 1.0)
    theta = rng.dirichlet(np.ones(3000))
    seen = np.sort(rng.choice(3000, 2000, replace=False))
    channel = mechanism.channel(seen)
    assert type(channel).__name__ == "PlaneChannel"
    columns = mechanism.matrix()[:, seen]
    np.testing.assert_allclose(channel.forward(theta), theta @ columns, rtol=1e-9)
    np.testing.assert_allclose(channel.adjoint(np.ones(2000)), columns.sum(axis=1), rtol=1e-9)


def test_a_copy_that_travelled_is_the_same():
    mechanism = ik.TightConstraints(OBLONG, 2.0)
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    np.testing.assert_array_equal(again.matrix(), mechanism.matrix())


def test_a_secret_that_is_never_reported_is_no_reason_to_refuse():
    """The middle of a star of three:
    at epsilon = log 2 its weight is 0, and rounding may make it less.
    """
    d = np.full((4, 4), 2.0)
    d[0], d[:, 0] = 1.0, 1.0
    np.fill_diagonal(d, 0)
    matrix = ik.TightConstraints(ik.Alphabet(range(4), d), np.log(2)).matrix()
    np.testing.assert_allclose(matrix[:, 0], 0, atol=1e-15)
    np.testing.assert_allclose(matrix[1:, 1:].diagonal(), 2 / 3, rtol=1e-12)
