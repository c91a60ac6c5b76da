"""Thresholded histogram encoding: bits of a noisy histogram, more private than its noise."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from scipy import stats

import ibukit as ik
from ibukit import theory
from ibukit.mechanisms.categorical.independent_bits import is_unary
from ibukit.mechanisms.categorical.thresholded_histogram import best_threshold
from ibukit.testing import check_mechanism


def chances_of_the_noise(nominal, t):
    """P(1 + noise > t) and P(noise > t)."""
    noise = stats.laplace(scale=2 / nominal)
    return noise.sf(t - 1), noise.sf(t)


# the levels at the best threshold
@pytest.mark.parametrize(
    ("nominal", "tight"), [(0.5, 0.472), (1.0, 0.896), (2.0, 1.636), (4.0, 2.859)]
)
def test_the_tight_level_is_below_the_nominal_one(nominal, tight):
    mechanism = ik.ThresholdedHistogram(5, nominal)
    check_mechanism(mechanism, n=5000, attained=True)
    assert mechanism.epsilon == pytest.approx(tight, abs=5e-4)
    assert mechanism.epsilon < mechanism.nominal == nominal


@pytest.mark.parametrize("nominal", [1e-3, 1.0, 20.0])
@pytest.mark.parametrize("t", [0.0, 0.4, 1.0, None])
def test_the_chances_are_those_of_the_noise(nominal, t):
    mechanism = ik.ThresholdedHistogram(3, nominal, t)
    chances = chances_of_the_noise(nominal, mechanism.threshold)
    assert (mechanism.p_one, mechanism.p_zero) == pytest.approx(chances, rel=1e-12)
    assert mechanism.contrast == pytest.approx(mechanism.p_one - mechanism.p_zero, abs=1e-15)
    assert mechanism.p_hidden == pytest.approx(1 - chances[0], rel=1e-9)


def test_at_threshold_1_the_level_is_a_closed_form():
    for nominal in (0.5, 1.0, 4.0):
        level = ik.ThresholdedHistogram(3, nominal, 1.0).epsilon
        assert level == pytest.approx(math.log(2 * math.exp(nominal / 2) - 1), rel=1e-12)


@pytest.mark.parametrize("nominal", [1e-6, 0.1, 1.0, 2.5, 10.0, 70.0])
def test_the_default_threshold_has_the_least_variance(nominal):
    def variance(t):
        p, q = chances_of_the_noise(nominal, t)
        return q * (1 - q) / (p - q) ** 2

    best = best_threshold(nominal)
    assert 0.5 <= best <= 1
    assert variance(best) <= variance(np.linspace(0.5, 1, 2001)).min() * (1 + 1e-9)
    assert (
        variance(0.5) > variance(best) * (1 + 1e-6) or nominal < 0.01
    )  # the test would see a worse one


def test_wang_2017_table_2():
    """n Var* of THE at threshold 1: 19.44, 5.46, 1.50, 0.34."""
    found = []
    for nominal in (0.5, 1.0, 2.0, 4.0):
        mechanism = ik.ThresholdedHistogram(2, nominal, 1.0)
        found.append(round(mechanism.p_zero * (1 - mechanism.p_zero) / mechanism.contrast**2, 2))
    assert found == [19.44, 5.46, 1.50, 0.34]


def test_it_is_a_unary_encoding_for_proofs_and_what_inherits_is_not():
    mechanism = ik.ThresholdedHistogram(4, 2.0)
    same = ik.UnaryEncoding(4, mechanism.p_one, mechanism.p_zero)
    assert is_unary(mechanism)
    np.testing.assert_allclose(mechanism.matrix(), same.matrix(), rtol=1e-12)
    theta = [0.4, 0.3, 0.2, 0.1]
    for question in (theory.asymptotic_mse, theory.inv_squared_error):
        assert question(mechanism, theta) == pytest.approx(question(same, theta), rel=1e-9)
    assert theory.identifiable(ik.ThresholdedHistogram(2000, 2.0)).identifiable

    class Mine(ik.ThresholdedHistogram):
        pass

    assert not is_unary(Mine(4, 2.0))


def test_names_pickles_and_replaced_fields():
    mechanism = ik.ThresholdedHistogram(["a", "b"], epsilon=1.0, threshold=0.75)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert dataclasses.replace(mechanism, threshold=0.5) == ik.ThresholdedHistogram(
        ["a", "b"], 1.0, 0.5
    )
    assert ik.ThresholdedHistogram(["a", "b"], nominal=1.0, threshold=0.75) == mechanism


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 0.0), "epsilon must be"),
        ((3, 200.0), "epsilon must be at most"),
        ((3, 1.0, 1.5), r"threshold must be in \[0, 1\], got 1.5"),
        ((3, 1.0, "x"), "threshold must be a number"),
        ((1, 1.0), "number of secrets"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        ik.ThresholdedHistogram(*arguments)
