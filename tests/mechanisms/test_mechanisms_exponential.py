"""The exponential mechanism on any metric."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from mechanism_cases import OBLONG, TRIANGLE
from oracles import naive

ALPHABETS = [
    ik.Line(0, 1),
    ik.Line(-3, 8),
    OBLONG,
    TRIANGLE,
    ik.Alphabet(list("abcd")),
    ik.Line(5, 5),
]


@pytest.mark.ledger("A-D11")
@pytest.mark.parametrize("alphabet", ALPHABETS, ids=repr)
@pytest.mark.parametrize("eps", [1e-3, 1.0, 20.0])
def test_follows_the_formula_and_keeps_epsilon(alphabet, eps):
    mechanism = ik.Exponential(alphabet, eps)
    np.testing.assert_allclose(
        mechanism.matrix(), naive.exponential(alphabet.distances(), eps), rtol=1e-13
    )
    assert abs(mechanism.matrix().sum(axis=1) - 1).max() < 1e-12
    tight = ik.privacy.epsilon_metric(mechanism)
    assert tight < eps
    # the weights alone contribute eps / 2, and the normaliser of the discrete metric is the same
    # for all secrets
    if isinstance(alphabet, ik.Alphabet) and alphabet == ik.Alphabet(list("abcd")):
        assert tight == pytest.approx(eps / 2, rel=1e-12)


@pytest.mark.erratum("A16")
def test_the_nearer_secret_need_not_be_likelier():
    mechanism = ik.Exponential(100, 0.05)
    matrix, d = mechanism.matrix(), mechanism.alphabet.distances()
    # report 2: secret 3 is at distance 1, secret 0 at distance 2
    assert matrix[3, 2] == pytest.approx(0.02452, abs=5e-6)
    assert matrix[0, 2] == pytest.approx(0.02559, abs=5e-6)
    nearer = d[:, None] < d  # (x, y, z): x is nearer to z than y
    assert nearer.sum() == 492_550
    assert (nearer & (matrix[:, None] < matrix)).sum() == 12_392
    # on all integers the normaliser is constant, as it nearly is far from the ends of a long line
    inside = ik.Exponential(4001, 0.05).matrix()[1900:2101, 1900:2101]
    away = np.abs(np.subtract.outer(np.arange(201), np.arange(201)))
    assert (inside[:, None] >= inside * (1 - 1e-12))[away[:, None] < away].all()
    # from twice the logarithm of the golden ratio on, an end does not matter either
    golden = 2 * np.log((1 + np.sqrt(5)) / 2)
    for k in (3, 10, 100):
        strong, d = ik.Exponential(k, golden).matrix(), ik.Line(0, k - 1).distances()
        assert (strong[:, None] >= strong * (1 - 1e-12))[d[:, None] < d].all()
    just_below, d = ik.Exponential(100, 0.98 * golden).matrix(), ik.Line(0, 99).distances()
    assert (just_below[:, None] < just_below * (1 - 1e-12))[d[:, None] < d].any()
    # the geometric and the Laplace mechanism have the property on a finite line, too
    for other in (ik.TruncatedGeometric(100, 0.05), ik.LinearLaplace(100, 0.05)):
        assert not (nearer & (other.matrix()[:, None] < other.matrix())).any()


@given(st.integers(1, 12), st.integers(0, 2**32), st.floats(0.01, 5))
def test_relabelling_the_secrets_permutes_the_matrix(k, seed, eps):
    rng = np.random.default_rng(seed)
    places = rng.random((k, 2))
    distances = np.hypot(*(places[:, None] - places).transpose(2, 0, 1))
    order = rng.permutation(k)
    matrix = ik.Exponential(ik.Alphabet(range(k), distances), eps).matrix()
    relabelled = ik.Exponential(ik.Alphabet(order, distances[np.ix_(order, order)]), eps).matrix()
    np.testing.assert_allclose(relabelled, matrix[np.ix_(order, order)], rtol=1e-13)


@given(st.integers(2, 12), st.floats(0.01, 5), st.floats(0.1, 10))
def test_only_epsilon_times_distance_matters(k, eps, scale):
    line = ik.Line(0, k - 1)
    scaled = ik.Alphabet(line.values, line.distances() * scale)
    np.testing.assert_allclose(
        ik.Exponential(scaled, eps / scale).matrix(), ik.Exponential(line, eps).matrix(), rtol=1e-12
    )


def test_on_the_discrete_metric_it_is_randomized_response():
    letters = ik.Alphabet(list("abcde"))
    exponential, response = ik.Exponential(letters, 2.0), ik.RandomizedResponse(letters, 1.0)
    np.testing.assert_allclose(exponential.matrix(), response.matrix(), rtol=1e-14)
    assert math.isclose(ik.privacy.epsilon_ldp(exponential), 1.0, rel_tol=1e-12)
