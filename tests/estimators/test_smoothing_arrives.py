"""`smooth` certifies its tolerance on whatever reports a mechanism makes."""

import numpy as np
import pytest

import ibukit as ik

# Numbers of settings that one test goes through, and of all.
BLOCK, SETTINGS = 25, 500


def random_tally(seed):
    """Reports of people with some bumps, narrow or wide, on a random line or grid."""
    rng = np.random.default_rng(seed)
    n = int(10 ** rng.uniform(1, 7))
    if rng.random() < 0.7:
        alphabet = ik.Line(0, int(10 ** rng.uniform(0.3, 3.4)) - 1)
        k, epsilon = len(alphabet), 10 ** rng.uniform(-3, 1)
        dense = [ik.RandomizedResponse, ik.Exponential, ik.SquareWave]
        kinds = [ik.TruncatedGeometric] * 4 + dense * (k <= 150)
    else:
        alphabet = ik.Grid(*rng.integers(1, 40, 2).tolist())
        k, epsilon = len(alphabet), 10 ** rng.uniform(-2, 1)
        kinds = [ik.TruncatedPlanarGeometric] + [ik.RandomizedResponse] * (k <= 150)
    mechanism = kinds[rng.integers(len(kinds))](alphabet, epsilon)
    places, people = np.arange(k), np.zeros(k)
    for _ in range(rng.integers(1, 5)):
        width = k * 10 ** rng.uniform(-3, 0) + 0.3
        people += rng.random() * np.exp(-(((places - rng.uniform(0, k)) / width) ** 2) / 2)
    return mechanism.simulate(rng.multinomial(n, ik.normalize(people + 1e-300)), rng)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SETTINGS, BLOCK))
def test_it_arrives_on_random_lines_and_grids(first):
    for seed in range(first, first + BLOCK):
        estimate = ik.smooth(random_tally(seed))
        assert estimate.status is ik.Status.CONVERGED, seed


def test_it_arrives_where_a_valley_between_two_peaks_has_no_mass():
    """On the way probabilities fall to e^-230, and rounding errors of steps are enormous."""
    rng, x = np.random.default_rng(4), np.arange(2000.0)
    people = np.exp(-(((x - 700) / 90) ** 2) / 2) + np.exp(-(((x - 1400) / 30) ** 2) / 2) / 2
    mechanism = ik.TruncatedGeometric(ik.Line(0, 1999), 0.02)
    tally = mechanism.simulate(rng.multinomial(10**6, ik.normalize(people)), rng)
    estimate = ik.smooth(tally, penalty=258459.0)
    assert estimate.status is ik.Status.CONVERGED


@pytest.mark.slow
@pytest.mark.parametrize(("penalty", "seed"), [(1.0, None), (0.01, 1), (0.01, 2), (0.01, 3)])
def test_it_arrives_with_a_tiny_penalty_of_ones_own(penalty, seed):
    """Many probabilities are below e^-1000, and larger penalties in between are needed."""
    mechanism = ik.RandomizedResponse(600, 1.0)
    tally = mechanism.tally(np.zeros(7, dtype=int))
    if seed is not None:
        rng = np.random.default_rng(seed)
        tally = mechanism.simulate(rng.multinomial(100, rng.dirichlet(np.full(600, 0.3))), rng)
    assert ik.smooth(tally, penalty=penalty).status is ik.Status.CONVERGED
