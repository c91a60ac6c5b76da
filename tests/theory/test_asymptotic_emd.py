"""The limit of the earth mover's distance:
from J itself, by simulation, and what has no such limit.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from ibukit.theory import asymptotic_emd
from oracles import naive
from oracles import private_designs as oracle


@given(st.integers(2, 8), st.integers(0, 2**32), st.sampled_from([0.1, 1.0, 5.0]))
def test_it_is_that_of_the_normal_limit(k, seed, eps):
    rng = np.random.default_rng(seed)
    theta = 0.9 * rng.dirichlet(np.ones(k)) + 0.1 / k
    for mechanism, matrix in (
        (ik.RandomizedResponse(k, eps), naive.k_rr(k, eps)),
        (ik.TruncatedGeometric(k, eps), naive.truncated_geometric(k, eps)),
        (ik.Rappor(k, eps), naive.rappor(k, eps)),
    ):
        expected = oracle.criterion(np.array(matrix), theta, "emd")
        assert asymptotic_emd(mechanism, theta) == pytest.approx(expected, rel=1e-8)
        assert asymptotic_emd(np.array(matrix), theta) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    "mechanism", [ik.RandomizedResponse(4, 1.0), ik.TruncatedGeometric(4, 1.0), ik.Rappor(4, 1.0)]
)
def test_the_mean_distance_of_many_estimates(mechanism, rng):
    """400 estimates from 20,000 reports each;
    a right limit is 5 standard errors off once in a million runs.
    """
    theta, n = np.array([0.4, 0.3, 0.2, 0.1]), 20_000
    found = []
    for _ in range(400):
        tally = mechanism.simulate(rng.multinomial(n, theta), rng)
        found.append(np.sqrt(n) * ik.emd(ik.mle(tally).distribution, theta, 4))
    error = np.std(found) / np.sqrt(len(found))
    limit = asymptotic_emd(mechanism, theta)
    # at this n the distance itself differs from its limit by far less than that
    assert abs(np.mean(found) - limit) < 5 * error
    assert abs(np.mean(found) - np.sqrt(np.pi / 2) * limit) > 5 * error, (
        "standard deviations are no mean distances"
    )


def test_gaps_have_widths_and_order_does_not_matter():
    """b, a and c stand at 0, 1 and 3."""
    d = np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0]])
    theta, matrix = np.array([0.5, 0.2, 0.3]), naive.k_rr(3, 1.0)
    c = oracle.covariance(np.array(matrix), theta)
    expected = np.sqrt(2 / np.pi) * (np.sqrt(c[1, 1]) + 2 * np.sqrt(c[2, 2]))
    assert asymptotic_emd(
        ik.MatrixMechanism(matrix, ik.Alphabet(list("abc"), d)), theta
    ) == pytest.approx(expected)


def test_on_a_row_of_cells_it_is_that_of_a_line():
    theta = [0.4, 0.3, 0.2, 0.1]
    row = asymptotic_emd(ik.RandomizedResponse(ik.Grid(1, 4, cell_size=0.5), 1.0), theta)
    assert row == pytest.approx(0.5 * asymptotic_emd(ik.RandomizedResponse(4, 1.0), theta))


def test_the_noise_on_all_integers_has_the_information_of_the_truncated():
    theta = [0.4, 0.3, 0.2, 0.1]
    assert asymptotic_emd(ik.LinearGeometric(4, 0.3), theta) == asymptotic_emd(
        ik.TruncatedGeometric(4, 0.3), theta
    )


def test_one_secret_is_known():
    assert asymptotic_emd(np.ones((1, 1)), [1.0]) == 0


@pytest.mark.parametrize(
    ("mechanism", "theta", "error", "message"),
    [
        (
            ik.RandomizedResponse(3, 1.0),
            [0.5, 0.5, 0.0],
            ik.errors.InvalidDistribution,
            "theta must not have zeros, but entry 2",
        ),
        (
            ik.RandomizedResponse(3, 1.0),
            [0.5, 0.5],
            ik.errors.AlphabetMismatch,
            "theta must have one probability for each",
        ),
        (
            ik.RandomizedResponse(ik.Grid(2, 2), 1.0),
            [0.25] * 4,
            ValueError,
            "alphabet must lie on a line",
        ),
        (
            ik.RandomizedResponse(ik.Alphabet(list("abc")), 1.0),
            [0.3, 0.3, 0.4],
            ValueError,
            "alphabet must lie on a line",
        ),
        (
            ik.PlanarGeometric(ik.Grid(1, 3), 1.0),
            [0.3, 0.3, 0.4],
            ValueError,
            "reports that can be listed, got Planar",
        ),
        (np.full((3, 3), 1 / 3), [0.3, 0.3, 0.4], ik.errors.NotInvertible, "do not identify theta"),
    ],
)
def test_bad_input(mechanism, theta, error, message):
    with pytest.raises(error, match=message):
        asymptotic_emd(mechanism, theta)
