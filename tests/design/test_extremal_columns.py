"""Extremal columns: counted, compared with all trees, and complete:
every private column is a mixture of them.
"""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import ibukit as ik
from ibukit.design.optimal.extremal_columns import extremal_logs
from oracles import private_designs as oracle


def places(k, seed):
    """Distances of random points in the plane."""
    points = np.random.default_rng(seed).random((k, 2))
    return np.hypot(*(points[:, None] - points).transpose(2, 0, 1))


STAR = np.array([[0, 1, 2, 3], [1, 0, 3, 4], [2, 3, 0, 5], [3, 4, 5, 0]])
SPACES = {
    "line": ik.Line(0, 4).distances(),
    "letters": 1 - np.eye(4),
    "letters, one pair nearer": 1 - np.eye(4) - 1e-3 * (np.add.outer(range(4), range(4)) == 1),
    "square": ik.Grid(2, 2).distances(),
    "star": STAR,
    "points": places(4, 1),
    "one distance too long": np.array([[0, 1, 9], [1, 0, 1], [9, 1, 0]]),
}


def canonical(logs):
    return np.array(sorted(tuple(row) for row in (logs - logs[:, :1]).round(6) + 0.0))


@pytest.mark.parametrize("name", SPACES)
def test_they_are_those_of_all_trees(name):
    distances = SPACES[name]
    shortest = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]]) if name.startswith("one") else distances
    np.testing.assert_allclose(
        canonical(extremal_logs(distances)),
        canonical(np.log(oracle.extremal_columns(shortest, 1.0))),
        atol=2e-6,
    )


@pytest.mark.parametrize("k", [2, 3, 7, 12])
def test_on_a_line_they_go_up_or_down_at_each_step(k):
    np.testing.assert_allclose(
        canonical(extremal_logs(ik.Line(0, k - 1).distances())),
        canonical(np.log(oracle.walks(k, 1.0))),
        atol=2e-6,
    )


def test_how_many():
    letters = [len(extremal_logs(1 - np.eye(k))) for k in range(2, 9)]
    assert letters == [2**k - 2 for k in range(2, 9)], "a set that is up and one that is down"
    points = [len(extremal_logs(places(k, k))) for k in range(2, 9)]
    assert points == [comb(2 * k - 2, k - 1) for k in range(2, 9)], "the most that there can be"
    assert len(extremal_logs(STAR)) == 2**3, "a tree: up or down along each edge"


@settings(max_examples=60)
@given(st.integers(2, 6), st.integers(0, 2**32), st.sampled_from(["points", "line", "letters"]))
def test_every_private_column_is_a_mixture(k, seed, kind):
    rng = np.random.default_rng(seed)
    distances = {
        "points": places(k, seed),
        "line": ik.Line(0, k - 1).distances(),
        "letters": 1 - np.eye(k),
    }[kind]
    heights = rng.random(k) * distances.max()
    column = np.exp((heights[:, None] + distances).min(axis=0) * rng.choice([1, -1]))
    extremal = np.exp(extremal_logs(distances))
    assert nnls(extremal.T, column)[1] < 1e-10
    # one that breaks a bound is none
    x, y = np.unravel_index(distances.argmax(), distances.shape)
    column[x] = column[y] * np.exp(distances[x, y]) * 1.01
    assert nnls(extremal.T, column)[1] > 1e-4


@pytest.mark.parametrize(
    ("distances", "k"),
    [
        (ik.Line(0, 17).distances(), 18),
        (1 - np.eye(17), 17),
        (places(11, 0), 11),
        (1 - np.eye(3000), 3000),
    ],
)
def test_too_many_are_refused(distances, k):
    told = (
        rf"alphabet of {k} secrets has too many .* 10 secrets, 16 with equal distances, 17 .* and"
        r" 100 on a line"
    )
    with pytest.raises(ik.errors.TooLarge, match=told):
        extremal_logs(distances)


def test_the_most_that_are_possible():
    assert extremal_logs(ik.Line(0, 16).distances()).shape == (2**16, 17)
    assert extremal_logs(1 - np.eye(16)).shape == (2**16 - 2, 16)


BAD = [
    (
        ([0.5, 0.5, 0.0], 3, 1.0),
        ik.errors.InvalidDistribution,
        "prior must not have zeros, but entry 2 is 0 and at the boundary",
    ),
    (
        ([0.5, 0.6], 2, 1.0),
        ik.errors.InvalidDistribution,
        r"prior must sum to 1 .* but sums to 1\.1",
    ),
    (
        ([0.5, 0.5], 3, 1.0),
        ik.errors.AlphabetMismatch,
        "prior must have one probability for each of the 3 elements, got 2",
    ),
    (([0.5, 0.5], 2, 0.0), ValueError, "epsilon must be a finite number above 0, got 0"),
    (([0.5, 0.5], 2, "1"), ValueError, "epsilon must be a number, got '1'"),
    (([0.5, 0.5], 2, 1.0, "tv"), ValueError, "criterion must be 'mse' or 'emd', got 'tv'"),
    (
        (np.full(4, 0.25), ik.Grid(2, 2), 1.0, "emd"),
        ValueError,
        "alphabet must lie on a line.*squared error",
    ),
    ((ik.uniform(101), 101, 1.0), ik.errors.TooLarge, "alphabet of 101 secrets has too many"),
    (
        (ik.uniform(105), ik.Grid(7, 15), 1.0),
        ik.errors.TooLarge,
        "alphabet of 105 secrets has too many.* 100 anywhere",
    ),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        ik.optimal_private(*arguments)
