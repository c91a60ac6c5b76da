"""Posteriors at sizes that no recursion reaches:
worlds are drawn from the prior, and intervals hold what they say.
"""

import numpy as np
import pytest
from scipy import stats

import ibukit as ik

FALSE_ALARM = 1e-6
LEVEL = 0.8


def world(mechanism, n, rng):
    """A distribution from Jeffreys' prior,
    the frequencies of n secrets from it, and their reports.
    """
    p = rng.dirichlet(np.full(mechanism.k, 0.5))
    secrets = rng.multinomial(n, p)
    return p, secrets / n, mechanism.simulate(secrets, rng)


def covered(posterior, truth):
    lower, upper = posterior.interval(LEVEL)
    return int(((lower <= truth) & (truth <= upper)).sum())


def assert_level(held, secrets):
    """Each holds the truth with probability LEVEL;
    that they are hardly dependent makes the number binomial.
    """
    assert stats.binomtest(held, secrets, LEVEL).pvalue > FALSE_ALARM, f"{held} of {secrets}"


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_randomized_response_with_1024_values(epsilon, rng):
    p, _, tally = world(ik.RandomizedResponse(1024, epsilon), 10_000, rng)
    found = ik.posterior(tally, 0.5, method="gibbs", rng=rng)
    assert found.status is ik.Status.CONVERGED
    assert found.n_iter <= 5000
    assert_level(covered(found, p), 1024)
    # what the posterior expects of its error is what it is: a sum of a thousand squares
    expected, error = (found.standard_deviations**2).sum(), ((found.mean - p) ** 2).sum()
    assert error == pytest.approx(expected, rel=0.4)
    assert error < ((ik.mle(tally).distribution - p) ** 2).sum()
    # the check sees an interval for something else: Dirichlet(2) is less spread than the prior of
    # this world
    with pytest.raises(AssertionError, match="of 1024"):
        assert_level(covered(ik.posterior(tally, 2.0, method="gibbs", rng=rng), p), 1024)


@pytest.mark.slow
def test_unary_encoding_with_100_values(rng):
    held = 0
    for seed in range(3):
        p, f, tally = world(
            ik.OptimizedUnaryEncoding(100, 1.0), 20_000, np.random.default_rng(seed)
        )
        of, truth = ("frequencies", f) if seed == 2 else ("distribution", p)
        found = ik.posterior(tally, 0.5, of, method="gibbs", rng=rng)
        assert found.status is ik.Status.CONVERGED
        assert found.n_iter <= 5000
        held += covered(found, truth)
        assert ((found.mean - truth) ** 2).sum() < ((ik.mle(tally).distribution - truth) ** 2).sum()
    assert_level(held, 300)
