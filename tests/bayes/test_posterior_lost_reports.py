"""The posterior where reports get lost, against quadrature."""

import numpy as np
import pytest

import ibukit as ik
from ibukit.bayes._lost_reports import LossyChains

MATRIX = np.array([[0.6, 0.2], [0.05, 0.15]])


@pytest.mark.parametrize("alpha", [1.0, 0.4, [2.0, 0.7]])
@pytest.mark.parametrize("counts", [[12, 9], [3, 0]])
def test_draws_have_the_moments_and_quantiles_of_quadrature(alpha, counts):
    # The substitution x = sin^2 keeps the density of small alpha finite.
    angle = (np.arange(40_000) + 0.5) / 40_000 * np.pi / 2
    share = np.sin(angle) ** 2
    theta = np.stack([share, 1 - share], axis=1)
    prior = np.broadcast_to(np.asarray(alpha, float), 2)
    log_density = (
        ((prior - 0.5) * np.log(theta)).sum(axis=1)
        + np.log(theta @ MATRIX) @ counts
        - sum(counts) * np.log(theta @ MATRIX.sum(axis=1))
    )
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    mean = mass @ share
    quantiles = np.interp([0.025, 0.975], mass.cumsum(), share)
    tally = ik.MatrixMechanism(MATRIX, efficiency=True).tally_counts(counts)
    found = ik.posterior(tally, alpha, method="gibbs", rng=np.random.default_rng(11))
    assert found.status is ik.Status.CONVERGED
    # Five standard errors: with three checks of six cases a false alarm in 1e5.
    assert abs(found.mean[0] - mean) <= 5 * found.standard_errors()[0]
    lower, upper = found.interval(0.95)
    errors = np.array(found.interval_errors(0.95))[:, 0]
    assert (np.abs([lower[0], upper[0]] - quantiles) <= 5 * errors + 1e-4).all()


def test_equal_efficiencies_change_no_posterior():
    rows = ik.RandomizedResponse(3, 1.0).matrix()
    exact = ik.posterior(ik.MatrixMechanism(rows).tally_counts([9, 5, 2]), 0.7)
    tally = ik.MatrixMechanism(0.2 * rows, efficiency=True).tally_counts([9, 5, 2])
    drawn = ik.posterior(tally, 0.7, method="gibbs", rng=np.random.default_rng(5))
    assert (np.abs(drawn.mean - exact.mean) <= 5 * drawn.standard_errors()).all()
    np.testing.assert_allclose(drawn.standard_deviations, exact.standard_deviations, rtol=0.1)


def test_credible_intervals_are_those_of_the_posterior():
    tally = ik.MatrixMechanism(MATRIX, efficiency=True).tally_counts([12, 9])
    estimate = ik.mle(tally)
    ends = estimate.interval(method="credible", seed=4)
    rng = np.random.Generator(np.random.PCG64(4))
    drawn = ik.posterior(tally, 1.0, method="gibbs", rng=rng)
    np.testing.assert_array_equal(ends, drawn.interval(0.95))
    assert "quantiles of Gibbs draws" in " ".join(estimate.summary(method="credible").warnings)


def test_chains_start_at_distributions_under_which_every_report_is_possible(rng):
    tally = ik.MatrixMechanism(MATRIX, efficiency=True).tally_counts([12, 9])
    start = LossyChains(tally, np.full(2, 1e-3), rng).p
    np.testing.assert_allclose(start.sum(axis=1), 1, rtol=1e-12)
    assert start.min() >= 0.001 / 2


@pytest.mark.filterwarnings("error")
def test_a_common_factor_of_all_efficiencies_cancels():
    rows, found = MATRIX / MATRIX.sum(axis=1, keepdims=True), []
    for factor in (0.5, 1e-300):
        tally = ik.MatrixMechanism(rows, efficiency=[factor] * 2).tally_counts([2**62, 1])
        found.append(ik.mle(tally).interval(method="credible", seed=1))
    np.testing.assert_allclose(*found, rtol=0.5)
