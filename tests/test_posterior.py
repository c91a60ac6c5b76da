"""Exact posteriors: recursion, enumeration and quadrature agree; the mean is the estimate of least squared error."""

import math

import numpy as np
import pytest

import ibukit as ik
from ibukit.estimators import _enumeration, _totals
from tests.oracles import posterior as oracle

CASES = [
    # secrets, kinds of reports, reports
    (2, 2, 9),
    (2, 3, 8),
    (2, 4, 7),
    (3, 2, 6),
    (3, 3, 7),
    (3, 4, 6),
]
PRIORS = [0.5, 1.0, "uneven", 0.01, 30.0]


def instance(k, b, n, prior, seed=0):
    rng = np.random.default_rng([k, b, n, seed])
    mechanism = ik.MatrixMechanism(rng.dirichlet(np.ones(b), k))
    counts = rng.multinomial(n, rng.dirichlet(np.ones(b)))
    alpha = np.arange(1, k + 1) * 0.7 if prior == "uneven" else np.full(k, prior)
    return mechanism, counts, alpha


@pytest.mark.ledger("3.T3.1", "3.P3.2", "3.PA.3")
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("k", "b", "n"), CASES)
@pytest.mark.parametrize("method", ["exact", "enumerate"])
def test_mean_error_and_evidence_are_the_integrals(method, k, b, n, prior):
    mechanism, counts, alpha = instance(k, b, n, prior)
    tally = mechanism.tally_counts(counts)
    expected = oracle.by_quadrature(mechanism.matrix(), counts, alpha)
    for of in ("distribution", "frequencies"):
        found = ik.posterior(tally, alpha, of, method)
        np.testing.assert_allclose(found.mean, expected[of], atol=1e-12)
        assert abs(found.mean.sum() - 1) <= 1e-14
        variances = expected[f"{of} squared"] - expected[of] ** 2
        np.testing.assert_allclose(found.standard_deviations**2, variances, atol=1e-12)
        assert math.exp(found.log_evidence) == pytest.approx(expected["evidence"], rel=1e-12)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("k", "b", "n"), CASES)
def test_the_law_of_the_totals_is_that_of_all_secrets_listed(k, b, n, prior):
    mechanism, counts, alpha = instance(k, b, n, prior, 1)
    tally = mechanism.tally_counts(counts)
    law, evidence = oracle.by_listing(mechanism.matrix(), counts, alpha)
    expected = np.zeros((k, n + 1))
    for totals, probability in law.items():
        expected[range(k), totals] += probability
    for found in (_totals.posterior_of_totals(tally, alpha), _enumeration.posterior_by_splits(tally, alpha)):
        np.testing.assert_allclose(found.shares, expected, atol=1e-13)
        assert math.exp(found.log_evidence) == pytest.approx(evidence, rel=1e-12)


def bayes_error(mechanism, alpha, n, of):
    """(87): the error of the posterior mean, and the sum of the probabilities of all report counts."""
    total, error = 0.0, 0.0
    for counts in oracle.report_counts(n, mechanism.m):
        found = ik.posterior(mechanism.tally_counts(counts), alpha, of)
        probability = oracle.orders(counts) * math.exp(found.log_evidence)
        total += probability
        error += probability * (found.standard_deviations**2).sum()
    return error, total


@pytest.mark.ledger("3.T3.1", "3.PA.3")
@pytest.mark.parametrize(("of", "printed"), [("distribution", 0.1094), ("frequencies", 0.1049)])
def test_the_error_of_the_posterior_mean(of, printed):
    error, total = bayes_error(ik.RandomizedResponse(2, 1.0), 0.5, 10, of)
    assert total == pytest.approx(1, abs=1e-12)
    assert error == pytest.approx(printed, abs=5e-5)
