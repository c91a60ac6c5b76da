"""The curve R(D): closed forms, the dual bound, and both ways to ask for a point."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

import ibukit as ik
from ibukit.design import least_information
from oracles import shokri as oracle


def test_a_bit_with_hamming_loss_is_the_textbooks():
    """R(D) = h(p) - h(D) for D < p."""
    bit = ik.Alphabet([0, 1])
    for p, D in ((0.5, 0.1), (0.3, 0.1), (0.3, 0.29)):
        point = ik.rate_distortion([1 - p, p], bit, distortion=D)
        assert point.rate == pytest.approx(entropy([p, 1 - p]) - entropy([D, 1 - D]), abs=1e-12)
        assert point.beta == pytest.approx(np.log((1 - D) / D), rel=1e-9)
        assert point.distortion == pytest.approx(D, rel=1e-12)


@settings(max_examples=60)
@given(st.integers(2, 9), st.integers(0, 2**32), st.floats(0.05, 20))
def test_beta_and_distortion_lead_to_each_other(k, seed, beta):
    prior = np.random.default_rng(seed).dirichlet(np.ones(k))
    here = ik.rate_distortion(prior, k, beta=beta)
    if here.beta < 1e-9 or here.rate < 1e-9 or here.distortion < 1e-9:
        return  # at the ends the curve is flat or vertical
    again = ik.rate_distortion(prior, k, distortion=here.distortion)
    assert again.rate == pytest.approx(here.rate, abs=1e-9)
    np.testing.assert_allclose(again.mechanism.matrix(), here.mechanism.matrix(), atol=1e-5)


@settings(max_examples=60)
@given(st.integers(2, 9), st.integers(0, 2**32), st.floats(0.05, 20))
def test_the_gap_is_a_bound_and_small(k, seed, beta):
    rng = np.random.default_rng(seed)
    prior, distances = rng.dirichlet(np.ones(k)), ik.Line(0, k - 1).distances()
    point = ik.rate_distortion(prior, k, beta=beta)
    assert 0 <= point.gap < 1e-9
    least = oracle.least_information(prior, distances, beta, point.output, point.distortion)
    assert point.rate - least == pytest.approx(point.gap, abs=1e-9)
    # channels that are not optimal are above the curve, and their bound is below it
    other = ik.blahut_arimoto(prior, k, beta, steps=2)
    loss, rate = ik.privacy.quality_loss(other, prior), ik.privacy.mutual_information(other, prior)
    source = least_information.RateDistortionProblem(prior, distances)
    bound = least_information.rate_lower_bound(source, prior @ other.matrix(), beta, loss)
    at_this_loss = ik.rate_distortion(prior, k, distortion=loss) if loss > 1e-12 else point
    assert bound - 1e-9 <= at_this_loss.rate <= rate + 1e-9


@pytest.mark.parametrize("city", ["paris", "san_francisco"])
def test_the_curve_falls_and_is_convex(city):
    data = ik.datasets.load_gowalla(f"privic_{city}")
    curve = [
        ik.rate_distortion(data.distribution, data.alphabet, beta=beta)
        for beta in (0.2, 0.4, 0.8, 1.6, 3.2)
    ]
    distortion, rate = (
        np.array([getattr(p, name) for p in curve]) for name in ("distortion", "rate")
    )
    assert (np.diff(distortion) < 0).all()
    slopes = -np.diff(rate) / np.diff(distortion)
    # a chord's slope lies between those at its ends
    assert all(
        a.beta < slope < b.beta for a, slope, b in zip(curve, slopes, curve[1:], strict=False)
    )
    assert max(point.gap for point in curve) < 1e-10
    supports = [len(point.support) for point in curve]
    assert supports == sorted(supports)
    assert supports[0] < 4


def test_the_ends_of_the_curve():
    prior = [0.5, 0.3, 0.2]
    truth = ik.rate_distortion(prior, 3, distortion=0)
    assert np.array_equal(truth.mechanism.matrix(), np.eye(3))
    assert truth.rate == pytest.approx(entropy(prior))
    assert (truth.beta, truth.distortion, truth.gap) == (np.inf, 0, pytest.approx(0, abs=1e-12))
    nothing = ik.rate_distortion(prior, 3, distortion=5)
    assert (nothing.beta, nothing.rate, nothing.gap) == (0, 0, 0)
    assert nothing.distortion == pytest.approx(0.7)
    assert nothing.support.tolist() in ([0], [0, 1], [1])


def test_a_point_in_one_line():
    shown = repr(ik.rate_distortion([0.6, 0.3, 0.1], 3, beta=1.0))
    assert shown.startswith(
        "RateDistortion(beta=1, rate=0.09081 nats, distortion=0.3689, 2 of 3 reports, gap="
    )


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({}, ValueError, "give either beta or distortion"),
        ({"beta": 1.0, "distortion": 1.0}, ValueError, "give either beta or distortion"),
        ({"beta": 0.0}, ValueError, "beta must be a finite number above 0"),
        ({"beta": -2}, ValueError, "beta must be a finite number above 0"),
        ({"distortion": -0.1}, ik.errors.Infeasible, "distortion must be at least 0"),
        ({"distortion": np.nan}, ValueError, "distortion must be a finite number"),
        ({"distortion": "1"}, ValueError, "distortion must be a number"),
        ({"beta": 1.0, "prior": [0.5, 0.4]}, ik.errors.InvalidDistribution, "prior"),
        ({"beta": 1.0, "prior": [0.5, 0.4, 0.1]}, ik.errors.AlphabetMismatch, "prior"),
    ],
)
def test_bad_input_is_named(asked, error, message):
    with pytest.raises(error, match=message):
        ik.rate_distortion(**{"prior": [0.5, 0.5], "alphabet": 2} | asked)


def test_mutual_information():
    rng = np.random.default_rng(1)
    matrix, prior = rng.dirichlet(np.ones(4), size=3), np.array([0.2, 0.5, 0.3])
    mechanism = ik.MatrixMechanism(matrix)
    expected = entropy(prior @ matrix) - float(prior @ [entropy(row) for row in matrix])
    assert ik.privacy.mutual_information(mechanism, prior) == pytest.approx(expected, abs=1e-14)
    assert ik.privacy.mutual_information(ik.MatrixMechanism(np.full((3, 2), 0.5)), prior) == 0
    assert ik.privacy.mutual_information(ik.MatrixMechanism(np.eye(3)), prior) == pytest.approx(
        entropy(prior)
    )
    # a report that only a secret of probability 0 can make says nothing on average
    assert ik.privacy.mutual_information(ik.MatrixMechanism(np.eye(2)), [1.0, 0.0]) == 0
    with pytest.raises(ik.errors.AlphabetMismatch, match="prior"):
        ik.privacy.mutual_information(mechanism, [0.5, 0.5])
