"""The bootstrap of an estimator: the spread of a stopped or smoothed estimate itself."""

import numpy as np
import pytest

import ibukit as ik

K = 8
BLUR = np.exp(-0.5 * (np.subtract.outer(np.arange(K), np.arange(K)) / 1.2) ** 2)
MECHANISM = ik.MatrixMechanism(BLUR / BLUR.sum(1, keepdims=True))
TALLY = MECHANISM.simulate([400, 1200, 2400, 3200, 2000, 800, 320, 80], np.random.default_rng(3))


def four_steps(tally):
    return ik.ibu(tally, stop=ik.Steps(4))


def penalised(tally):
    return ik.smooth(tally, penalty=100.0)


@pytest.mark.parametrize("estimator", [four_steps, penalised])
def test_it_is_the_standard_deviation_of_the_same_estimator_on_drawn_tallies(estimator):
    """400 and 400 draws: each standard deviation is right to 3.5 %, the quantiles of level 0.6827
    to 5 %; so they agree within 25 %, four errors, for 8 secrets: false alarms 1 in 2,000.
    """
    estimate = estimator(TALLY)
    lower, upper = estimate.interval(0.6827, method="bootstrap", draws=400, estimator=estimator)
    rng, p = np.random.default_rng(1), estimate.distribution @ MECHANISM.matrix()
    drawn = [
        estimator(MECHANISM.tally_counts(rng.multinomial(TALLY.n, p / p.sum()))).distribution
        for _ in range(400)
    ]
    np.testing.assert_allclose((upper - lower) / 2, np.std(drawn, axis=0), rtol=0.25)


def test_the_maximum_likelihood_estimator_gives_the_usual_bootstrap():
    tally = ik.RandomizedResponse(4, 1.0).tally_counts([400, 300, 200, 210])
    estimate = ik.mle(tally)
    options = {"method": "bootstrap", "draws": 60, "seed": 4}
    for kind in ("parametric", "reports"):
        usual = estimate.interval(0.9, kind=kind, **options)
        again = estimate.interval(0.9, kind=kind, estimator=ik.mle, **options)
        np.testing.assert_allclose(again, usual, atol=1e-6)
    of = {0: 1, 2: 1}
    both = estimate.interval(0.9, of=of, estimator=ik.mle, n_jobs=2, **options)
    assert both == pytest.approx(estimate.interval(0.9, of=of, **options), abs=1e-6)


def test_standard_errors_are_those_of_the_maximum_as_before():
    stopped = four_steps(TALLY)
    before = stopped.standard_errors()
    stopped.interval(method="bootstrap", draws=50, estimator=four_steps)
    np.testing.assert_array_equal(stopped.standard_errors(), before)


def test_the_summary_of_a_stopped_estimate_says_where_its_spread_is():
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([500, 300, 200])
    warnings = " ".join(ik.ibu(tally, stop=ik.Steps(2)).summary().warnings)
    assert 'method="bootstrap" with estimator=' in warnings
    assert "no interval for the truth" in warnings
    assert "estimator=" not in " ".join(ik.mle(tally).summary().warnings)


def test_what_is_no_estimator_is_refused_by_name():
    estimate = four_steps(TALLY)
    with pytest.raises(TypeError, match="estimator must be a function from a tally"):
        estimate.interval(method="bootstrap", estimator="ibu")
    for wrong in (lambda _: None, lambda _: [0.5, 0.5], lambda _: "all", lambda _: [[1], [2, 3]]):
        with pytest.raises(ik.errors.AlphabetMismatch, match="estimator must return an estimate"):
            estimate.interval(method="bootstrap", estimator=wrong)
    with pytest.raises(ValueError, match="target must be 'distribution' with an estimator"):
        estimate.interval(method="bootstrap", target="frequencies", estimator=four_steps)
