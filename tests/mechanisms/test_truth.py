"""Mechanisms at an infinite level: the truth is released, or a named error says what to take."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest

import ibukit as ik

LINE, GRID = ik.Line(3, 7), ik.Grid(2, 3)
TRUTHFUL = [
    ik.RandomizedResponse(["a", "b", "c"], math.inf),
    ik.RandomizedResponse(GRID, math.inf),
    ik.Exponential(LINE, math.inf),
    ik.Exponential(GRID, math.inf),
    ik.Exponential(1, math.inf),
    ik.TightConstraints(LINE, math.inf),
    ik.TightConstraints(GRID, math.inf),
    ik.TruncatedGeometric(LINE, math.inf),
    ik.LinearLaplace(LINE, math.inf),
    ik.PlanarLaplace(GRID, math.inf),
    ik.TruncatedPlanarGeometric(GRID, math.inf),
]
WITHOUT_LIMIT = {
    "Rappor": lambda: ik.Rappor(3, math.inf),
    "OptimizedUnaryEncoding": lambda: ik.OptimizedUnaryEncoding(3, math.inf),
    "SubsetSelection": lambda: ik.SubsetSelection(3, math.inf),
    "HadamardResponse": lambda: ik.HadamardResponse(3, math.inf),
    "HistogramEncoding": lambda: ik.HistogramEncoding(3, math.inf),
    "SquareWave": lambda: ik.SquareWave(3, math.inf),
    "DiscreteSquareWave": lambda: ik.DiscreteSquareWave(3, math.inf),
    "Piecewise": lambda: ik.Piecewise(3, math.inf),
    "Duchi": lambda: ik.Duchi(3, math.inf),
    "Staircase": lambda: ik.Staircase(3, math.inf),
    "LinearGeometric": lambda: ik.LinearGeometric(3, math.inf),
    "PlanarGeometric": lambda: ik.PlanarGeometric(GRID, math.inf),
    "points of a line": lambda: ik.LinearLaplace(LINE, math.inf).of_points,
    "points of a plane": lambda: ik.PlanarLaplace(GRID, math.inf).of_points,
    "LocalHashing": lambda: ik.LocalHashing(3, math.inf),
    "CountMeanSketch": lambda: ik.CountMeanSketch(3, math.inf, 2, 4),
    "LongitudinalResponse": lambda: ik.LongitudinalResponse(3, math.inf, 1.0),
}


@pytest.mark.parametrize("mechanism", TRUTHFUL, ids=str)
def test_the_truth_is_released(mechanism, rng):
    k = mechanism.k
    assert np.array_equal(mechanism.matrix(), np.eye(k))
    codes = np.arange(k)[::-1]
    labels = mechanism.alphabet.labels_of(codes)
    assert np.array_equal(mechanism.randomize(labels, rng), labels)
    assert np.array_equal(mechanism.release(labels), labels)
    assert mechanism.release_epsilon == math.inf
    counts = np.arange(k) + 1
    assert np.array_equal(mechanism.simulate(counts, rng).counts, counts)
    assert mechanism.forward(counts / counts.sum()) == pytest.approx(counts / counts.sum())
    tally = mechanism.tally_counts(counts)
    for estimate in (ik.mle(tally), ik.inv(tally), ik.ibu(tally)):
        assert estimate.distribution == pytest.approx(counts / counts.sum(), abs=1e-9)
    assert ik.mle(tally).gap <= 1e-12
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert ik.mle(tally).standard_errors() == pytest.approx(
        np.sqrt(counts * (counts.sum() - counts) / counts.sum() ** 3), abs=1e-9
    )


@pytest.mark.parametrize("mechanism", [m for m in TRUTHFUL if m.k > 1], ids=str)
def test_the_level_of_the_truth_is_infinite(mechanism):
    assert mechanism.epsilon == math.inf
    assert ik.privacy.epsilon_ldp(mechanism) == math.inf
    assert ik.privacy.epsilon_metric(mechanism) == math.inf
    prior = np.full(mechanism.k, 1 / mechanism.k)
    assert ik.privacy.mutual_information(mechanism, prior) == pytest.approx(math.log(mechanism.k))


def test_unseen_secrets_of_the_truth_have_probability_zero():
    tally = ik.RandomizedResponse(4, math.inf).tally_counts([3, 0, 0, 1])
    estimate = ik.mle(tally)
    assert estimate.distribution.tolist() == [0.75, 0, 0, 0.25]
    assert ik.posterior(tally, 1.0).mean == pytest.approx(np.array([4, 1, 1, 2]) / 8)
    low, high = estimate.interval(of=[0, 1, 0, 0])
    assert 0 <= low <= high < 1


@pytest.mark.parametrize("name", WITHOUT_LIMIT)
def test_a_mechanism_without_a_limit_says_what_to_take(name):
    with pytest.raises(ValueError, match=r"inf.*(RandomizedResponse\(alphabet, math\.inf\)|take)"):
        WITHOUT_LIMIT[name]()


def test_other_levels_are_refused_as_before():
    for wrong in (math.nan, -math.inf, 0, "inf", None):
        with pytest.raises(ValueError, match="epsilon must be"):
            ik.RandomizedResponse(3, wrong)


def test_a_table_may_have_people_who_told_the_truth():
    frame = pd.DataFrame(
        {"z": ["a", "b", "a", "b", "a"], "eps": [1.0, 1.0, math.inf, math.inf, math.inf]}
    )
    tally = ik.Tally.from_table(
        frame, lambda eps: ik.RandomizedResponse(["a", "b"], eps), report="z", epsilon="eps"
    )
    assert [part.mechanism.epsilon for part in tally.parts] == [1.0, math.inf]
    both = ik.RandomizedResponse(["a", "b"], 1.0).tally(["a", "b"])
    both += ik.RandomizedResponse(["a", "b"], math.inf).tally(["a", "b", "a"])
    assert ik.mle(tally).distribution == pytest.approx(ik.mle(both).distribution, abs=1e-8)
    texts = frame.assign(eps=["1", "1", "inf", "inf", "inf"])
    again = ik.Tally.from_table(
        texts, lambda eps: ik.RandomizedResponse(["a", "b"], eps), report="z", epsilon="eps"
    )
    assert [part.mechanism.epsilon for part in again.parts] == [1.0, math.inf]
