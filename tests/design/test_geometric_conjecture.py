"""Whether truncated geometric noise is the best epsilon-d-private mechanism:
at small epsilon it is not.
"""

import numpy as np
import pytest

import ibukit as ik
from oracles import naive
from oracles import private_designs as oracle

LIMITS = {"mse": ik.theory.asymptotic_mse, "emd": ik.theory.asymptotic_emd}
# from where on, at a uniform prior
THRESHOLDS = {
    ("emd", 3): 1.0808,
    ("emd", 4): 0.9908,
    ("emd", 6): 0.9901,
    ("mse", 3): 1.5357,
    ("mse", 6): 1.3611,
}


def excess(criterion, k, eps, prior=None):
    """How much worse geometric noise is than the best, as a share."""
    theta = ik.uniform(k) if prior is None else prior
    best = ik.optimal_private(theta, k, eps, criterion)
    return LIMITS[criterion](ik.TruncatedGeometric(k, eps), theta) / best.value - 1


@pytest.mark.ledger("B-C46")
@pytest.mark.erratum("B9")
def test_plain_randomized_response_is_private_too_and_better():
    noise, response = ik.TruncatedGeometric(3, 0.1), ik.RandomizedResponse(3, 0.1)
    assert naive.epsilon_metric(response.matrix(), naive.line_distances(3)) <= 0.1 + 1e-12
    theta = ik.uniform(3)
    assert ik.theory.asymptotic_mse(noise, theta) == pytest.approx(3013, abs=0.5)
    assert ik.theory.asymptotic_mse(response, theta) == pytest.approx(581, abs=0.5)
    for criterion, limit in LIMITS.items():
        best = ik.optimal_private(theta, 3, 0.1, criterion)
        assert best.value < limit(response, theta) < limit(noise, theta)


@pytest.mark.erratum("B9")
@pytest.mark.parametrize(
    ("k", "eps", "noise", "best"),
    [(3, 0.1, 3013, 373.4), (5, 0.1, 8119, 705.6), (7, 0.5, 64.8, 38.8)],
)
def test_the_best_has_a_fraction_of_the_squared_error(k, eps, noise, best):
    theta = ik.uniform(k)
    assert oracle.criterion(naive.truncated_geometric(k, eps), theta, "mse") == pytest.approx(
        noise, rel=1e-3
    )
    found = ik.optimal_private(theta, k, eps)
    assert oracle.criterion(found.mechanism.matrix(), theta, "mse") == pytest.approx(best, rel=2e-3)
    assert found.value == pytest.approx(best, rel=2e-3)


@pytest.mark.erratum("B9")
@pytest.mark.parametrize(
    ("k", "eps", "noise", "best"),
    [(4, 0.1, 75.1, 30.0), (5, 0.1, 103.6, 39.9), (7, 0.5, 12.07, 11.02)],
)
def test_and_of_the_earth_movers_distance(k, eps, noise, best):
    """In standard deviations of the cumulative sums; the mean distance is sqrt(2/pi) of that."""
    theta, share = ik.uniform(k), np.sqrt(2 / np.pi)
    assert oracle.criterion(naive.truncated_geometric(k, eps), theta, "emd") == pytest.approx(
        share * noise, rel=1e-3
    )
    assert ik.optimal_private(theta, k, eps, "emd").value == pytest.approx(share * best, rel=2e-3)


@pytest.mark.ledger("B-C46")
@pytest.mark.erratum("B9")
@pytest.mark.parametrize(("criterion", "k"), THRESHOLDS)
def test_above_a_threshold_the_conjecture_holds_at_a_uniform_prior(criterion, k):
    threshold = THRESHOLDS[criterion, k]
    assert excess(criterion, k, threshold - 0.02) > 1e-5
    for eps in (threshold + 0.001, threshold + 0.5, 2.0, 4.0):
        assert abs(excess(criterion, k, eps)) < 1e-8


@pytest.mark.ledger("B-C46")
@pytest.mark.erratum("B9")
@pytest.mark.parametrize("criterion", LIMITS)
def test_for_two_secrets_it_holds_at_every_level(criterion):
    for eps in (1e-3, 0.1, 1.0, 5.0):
        for prior in ([0.5, 0.5], [0.9, 0.1]):
            assert abs(excess(criterion, 2, eps, np.array(prior))) < 1e-9


@pytest.mark.ledger("B-C46")
@pytest.mark.erratum("B9")
@pytest.mark.parametrize("criterion", LIMITS)
def test_no_level_is_large_enough_for_all_distributions_on_three_values(criterion):
    for eps in (1.0, 2.0, 4.0):
        rare = np.exp(-3 * eps)
        assert excess(criterion, 3, eps, np.array([rare, 1 - 2 * rare, rare])) > 1e-4
        assert (
            abs(excess(criterion, 3, eps + 2)) < 1e-8
        )  # at the uniform distribution it is optimal there


def coins(k, eps):
    """One independent coin for each step between neighbours: up or down, with the mean factor 1."""
    up = np.exp(-eps) / (1 + np.exp(-eps))
    columns = oracle.walks(k, eps)
    steps = columns[:, 1:] > columns[:, :-1]
    return (columns * np.where(steps, up, 1 - up).prod(axis=1)[:, None]).T


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_at_little_information_one_coin_for_each_gap_is_best_in_earth_movers_distance(k, rng):
    """Its distance is sqrt(2/pi) (k - 1) / eps in the limit, whatever the prior;
    geometric noise has eps^(-3/2).
    """
    np.testing.assert_allclose(coins(k, 0.3).sum(axis=1), 1, rtol=1e-12)
    for prior in (ik.uniform(k), 0.9 * rng.dirichlet(np.ones(k)) + 0.1 / k):
        best = ik.optimal_private(prior, k, 1e-3, "emd")
        assert 1e-3 * best.value == pytest.approx(np.sqrt(2 / np.pi) * (k - 1), rel=1e-4)
        assert ik.theory.asymptotic_emd(coins(k, 1e-3), prior) == pytest.approx(
            best.value, rel=1e-9
        )
    theta = ik.uniform(k)
    slow = [ik.theory.asymptotic_emd(ik.TruncatedGeometric(k, eps), theta) for eps in (1e-3, 4e-3)]
    assert slow[0] / slow[1] == pytest.approx(4 if k == 2 else 8, rel=0.1)
