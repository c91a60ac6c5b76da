"""Plans of mechanisms whose reports cannot be listed:
against lists, closed forms, and the spread of estimates.
"""

import numpy as np
import pytest

import ibukit as ik
from ibukit.errors import NotInvertible, TooLarge
from ibukit.planning.sampled import SimulatedVariances
from ibukit.planning.variance_models import model_of

SHARES = np.array([0.4, 0.3, 0.2, 0.1])
LISTED = [
    ik.RandomizedResponse(4, 1.0),
    ik.SubsetSelection(4, 1.0, size=2),
    ik.TruncatedGeometric(4, 1.0),
    ik.HadamardResponse(4, 2.0),
]
UNLISTED = [
    ik.LocalHashing(4, 1.0),
    ik.LocalHashing(4, 1.0, g=2, balanced=True),
    ik.LocalHashing(4, 2.0, g=3, balanced=True),  # 3 does not divide 4
    ik.LongitudinalHashing(4, 1.0, 2.0),
    ik.HistogramEncoding(4, 1.0),
    ik.BloomRappor(4, bits=32, hashes=2, cohorts=8, f=0.5, p=0.5, q=0.75),
    ik.LinearGaussian(ik.Line(0, 3), 0.7),
    ik.PlanarGaussian(ik.Grid(2, 2), 0.5),
]


def names(mechanism):
    return type(mechanism).__name__


@pytest.mark.parametrize("mechanism", LISTED, ids=names)
@pytest.mark.parametrize(
    "weights", [None, [[1.0, 0, 0, 1], [0, 1, 2, 3]]], ids=["each", "questions"]
)
def test_simulated_reports_tell_what_all_of_them_do(mechanism, weights, rng):
    weights = None if weights is None else np.array(weights)
    exact = model_of(mechanism).variances(SHARES, weights)
    model = SimulatedVariances(mechanism, rng)
    found = model.variances(SHARES, weights)
    assert 0 < model.noise < 0.02
    assert found.max() == pytest.approx(
        exact.max(), rel=5 * model.noise
    )  # wrongly 1 time in a million
    assert found.max() != exact.max()


def test_the_standard_error_is_that_of_repeated_plans():
    rng, she = np.random.default_rng(5), ik.HistogramEncoding(4, 1.0)
    plans = [ik.plan(she, near=SHARES, rng=rng) for _ in range(40)]
    variances = np.array([plan.variance for plan in plans])
    # of 40 draws a standard deviation is known to 11 %
    assert variances.std() / variances.mean() == pytest.approx(plans[0].noise, rel=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", UNLISTED, ids=names)
def test_estimates_spread_as_planned(mechanism):
    rng, n, times = np.random.default_rng(3), 40_000, 150
    plan = ik.plan(mechanism, near=SHARES, rng=rng)
    found = np.array(
        [
            ik.mle(mechanism.simulate(rng.multinomial(n, SHARES), rng)).distribution
            for _ in range(times)
        ]
    )
    # of 150 draws a variance is known to 12 %
    assert n * found[:, plan.question].var() == pytest.approx(plan.variance, rel=0.45)
    assert abs(found[:, plan.question].mean() - SHARES[plan.question]) < 0.2 * plan.width(n)


def test_local_hashing_is_planned_without_simulation():
    mechanism = ik.LocalHashing(50, 1.0)
    encoding = ik.UnaryEncoding(50, mechanism.truth, 1 / mechanism.g)
    assert ik.plan(mechanism).n == ik.plan(encoding).n
    assert ik.plan(mechanism).noise == 0
    near = ik.plan(mechanism, near=ik.uniform(50))
    assert near.error(10**6) == pytest.approx(
        np.sqrt(ik.theory.asymptotic_mse(encoding, ik.uniform(50)) / 10**6)
    )


def test_a_plan_says_that_it_was_simulated(rng):
    plan = ik.plan(ik.HistogramEncoding(4, 1.0), near=SHARES, rng=rng)
    assert " ± 0." in repr(plan)
    assert "±" not in repr(ik.plan(ik.RandomizedResponse(4, 1.0), rng=rng))


def test_what_is_missing_is_named(rng):
    she = ik.HistogramEncoding(4, 1.0)
    with pytest.raises(ValueError, match=r"listed.*; or give near and rng"):
        ik.plan(she, near=SHARES)
    with pytest.raises(ValueError, match="near must be given"):
        ik.plan(she, rng=rng)
    with pytest.raises(TooLarge, match="at most 259 secrets"):
        ik.plan(ik.HistogramEncoding(300, 1.0), near=ik.uniform(300), rng=rng)
    with pytest.raises(TypeError, match="rng"):
        ik.plan(she, near=SHARES, rng=7)


def test_what_reports_hardly_tell_is_refused(rng):
    with pytest.raises(NotInvertible, match="hardly identify"):
        ik.plan(ik.LinearGaussian(ik.Line(0, 11), 8.0), near=ik.uniform(12), rng=rng)
