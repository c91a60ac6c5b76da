"""The Blahut-Arimoto mechanism:
the paper's steps, their duality with IBU, the privacy, the optimum and its proof.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ibukit as ik
from ibukit.design import least_information
from oracles import shokri as oracle

CITIES = ("paris", "san_francisco")


def step_by_step(prior, distances, beta, steps, c=None):
    """Each channel in turn from its predecessor's distribution
    of reports, as the definition says.
    """
    kernel = np.exp(-beta * distances)
    c = np.full(len(prior), 1 / len(prior)) if c is None else np.asarray(c)
    for _ in range(steps):
        channel = c * kernel / (kernel @ c)[:, None]
        c = prior @ channel
    return channel


@pytest.mark.parametrize("steps", [1, 2, 5, 10, 100])
@pytest.mark.parametrize("beta", [0.2, 1.0, 5.0])
def test_steps_are_the_definitions(steps, beta):
    paris = ik.datasets.load_gowalla("privic_paris")
    expected = step_by_step(paris.distribution, paris.alphabet.distances(), beta, steps)
    ours = ik.blahut_arimoto(paris.distribution, paris.alphabet, beta, steps)
    assert ours.alphabet == paris.alphabet
    np.testing.assert_allclose(ours.matrix(), expected, atol=1e-13)


def test_a_start_of_ones_own():
    prior, start = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]
    expected = step_by_step(np.array(prior), ik.Line(0, 2).distances(), 1.5, 3, start)
    np.testing.assert_allclose(
        ik.blahut_arimoto(prior, 3, 1.5, 3, start=start).matrix(), expected, atol=1e-15
    )
    assert start == [0.2, 0.2, 0.6]


@pytest.mark.parametrize("city", CITIES)
def test_the_fifty_tight_epsilons_of_the_authors(city):
    data, theirs = ik.datasets.load_gowalla(f"privic_{city}"), ik.datasets.load_privic_epsilons()
    assert len(theirs["beta"]) == 25
    for beta, epsilon in zip(theirs["beta"], theirs[city], strict=True):
        mechanism = ik.blahut_arimoto(data.distribution, data.alphabet, beta, steps=10)
        assert ik.privacy.epsilon_metric(mechanism) == pytest.approx(epsilon, rel=1e-12)


@settings(max_examples=50)
@given(
    st.integers(2, 8), st.integers(0, 2**32), st.floats(0.01, 10), st.sampled_from([1, 2, 10, 200])
)
def test_twice_beta_bounds_the_privacy(k, seed, beta, steps):
    rng = np.random.default_rng(seed)
    prior, start = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))
    mechanism = ik.blahut_arimoto(prior, ik.Line(0, k - 1), beta, steps, start=start)
    assert ik.privacy.epsilon_metric(mechanism) <= 2 * beta * (1 + 1e-9)


def test_duality_with_ibu_is_bitwise():
    """The distribution of the reports runs through IBU's iterates on the transposed kernel, to the
    last bit.
    """
    prior, line = np.array([0.125, 0.25, 0.5, 0.125]), ik.Line(0, 3)
    kernel = np.exp(-0.75 * line.distances())
    # symmetric, and scaled to rows that a mechanism may have: a common factor cancels, if it is a
    # power of two
    backwards = np.hstack([kernel / 4, 1 - kernel.sum(axis=1, keepdims=True) / 4])
    tally = ik.MatrixMechanism(backwards).tally_counts([1, 2, 4, 1, 0])
    for steps in (1, 2, 7, 50):
        c = ik.ibu(tally, stop=ik.Steps(steps - 1)).distribution
        source = least_information.RateDistortionProblem(prior, line.distances())
        expected = least_information.channel_of(source, c, 0.75)
        assert (ik.blahut_arimoto(prior, line, 0.75, steps).matrix() == expected).all()


@pytest.mark.parametrize("city", CITIES)
@pytest.mark.parametrize("beta", [0.2, 1.0, 4.0])
def test_the_optimum_is_proved(city, beta):
    data = ik.datasets.load_gowalla(f"privic_{city}")
    matrix = ik.blahut_arimoto(
        data.distribution, data.alphabet, beta, steps=None, tol=1e-11
    ).matrix()
    distances, prior = data.alphabet.distances(), data.distribution
    distortion = float(prior @ (matrix * distances).sum(axis=1))
    least = oracle.least_information(prior, distances, beta, prior @ matrix, distortion)
    assert oracle.mutual_information(prior, matrix) == pytest.approx(least, abs=1e-9)
    assert (matrix == 0).all(axis=0).any()


@pytest.mark.parametrize(("beta", "least", "most"), [(0.2, 155, 164), (5.0, 1, 15)])
def test_the_optimum_leaves_out_as_many_reports_as_the_documentation_says(beta, least, most):
    data = ik.datasets.load_gowalla("privic_paris")
    assert data.alphabet.unit == "cell"
    matrix = ik.blahut_arimoto(data.distribution, data.alphabet, beta, steps=None).matrix()
    assert least <= (matrix == 0).all(axis=0).sum() <= most


def test_many_steps_tend_to_the_optimum():
    prior = ik.normalize([8, 1, 2, 4, 1])
    optimum = ik.blahut_arimoto(prior, 5, 1.0, steps=None).matrix()
    worse = [
        np.abs(ik.blahut_arimoto(prior, 5, 1.0, n).matrix() - optimum).max()
        for n in (1, 10, 100, 10_000)
    ]
    assert (np.diff(worse) < 0).all()
    assert worse[-1] < 1e-8


def test_a_secret_of_probability_zero_has_a_row_and_no_say():
    with_zero = ik.blahut_arimoto([0.5, 0.0, 0.5], 3, 1.0, steps=10).matrix()
    np.testing.assert_allclose(
        with_zero, step_by_step(np.array([0.5, 0, 0.5]), ik.Line(0, 2).distances(), 1.0, 10)
    )
    assert (with_zero > 0).all()
    np.testing.assert_allclose(with_zero.sum(axis=1), 1)


def test_a_large_beta_reports_the_truth():
    np.testing.assert_allclose(
        ik.blahut_arimoto([0.9, 0.05, 0.05], 3, 1e5, steps=10).matrix(), np.eye(3), atol=1e-12
    )


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"beta": 0.0}, ValueError, "beta must be a finite number above 0"),
        ({"beta": -1.0}, ValueError, "beta must be a finite number above 0"),
        ({"beta": np.inf}, ValueError, "beta must be a finite number above 0"),
        ({"steps": 0}, ValueError, "steps must be at least 1"),
        ({"steps": 2.5}, ValueError, "steps must be a whole number"),
        ({"tol": 1e-9}, ValueError, "tol must be left out with steps=10"),
        ({"steps": None, "tol": 1e-15}, ValueError, "tol must be at least 1e-12"),
        (
            {"steps": None, "start": [0.5, 0.5]},
            ValueError,
            "start must be left out with steps=None",
        ),
        ({"start": [1.0, 0.0]}, ik.errors.InvalidDistribution, "but entry 1 is 0"),
        ({"start": [0.5, 0.2]}, ik.errors.InvalidDistribution, "start"),
        ({"prior": [0.5, 0.6]}, ik.errors.InvalidDistribution, "prior"),
        ({"prior": [0.5, 0.3, 0.2]}, ik.errors.AlphabetMismatch, "prior"),
    ],
)
def test_bad_input_is_named(change, error, message):
    with pytest.raises(error, match=message):
        ik.blahut_arimoto(**{"prior": [0.5, 0.5], "alphabet": 2, "beta": 1.0, "steps": 10} | change)
