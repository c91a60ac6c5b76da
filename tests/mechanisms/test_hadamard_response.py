"""Hadamard response and the Hadamard mechanism:
matrices by their definition, variances by enumeration, tables.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.linalg import hadamard

import ibukit as ik
from ibukit.testing import check_channel, check_mechanism

RESPONSES = [
    ik.HadamardResponse(k, eps, **how)
    for k, eps, how in [
        (2, 1.0, {}),
        (3, 20.0, {}),
        (5, 2.0, {}),
        (7, 1.0, {"blocks": 3}),
        (8, 0.01, {}),
        (9, 2.5, {"published": True}),
        (9, 20.0, {"published": True}),
        (6, 1.0, {"blocks": 6}),
        (16, 3.0, {}),
    ]
]
MECHANISMS = [
    ik.HadamardMechanism(*given)
    for given in [(2, 1.0), (5, 2.0), (8, 20.0), (5, 1.0, 2), (3, 0.3, 3)]
]


def name(mechanism):
    return f"{type(mechanism).__name__}-{mechanism.k}-{mechanism.epsilon}"


def per_report(mechanism):
    """What each report alone contributes to the published estimate, shape (m, k)."""
    every = mechanism.check_reports(mechanism.restore_reports(np.arange(mechanism.m)))
    return np.array([mechanism.invert(every[[z]], np.ones(1)) for z in range(mechanism.m)])


@pytest.mark.parametrize("mechanism", [*RESPONSES, *MECHANISMS], ids=name)
def test_the_contract_holds_and_the_level_is_attained(mechanism, rng):
    check_mechanism(mechanism, rng=rng, n=3000, attained=True)
    assert np.abs(mechanism.matrix().sum(axis=1) - 1).max() < 1e-12
    if mechanism.epsilon < 10:
        check_channel(mechanism._full_channel)


@pytest.mark.parametrize("mechanism", RESPONSES, ids=name)
def test_the_matrix_follows_the_definition(mechanism):
    """Rows and blocks dealt out one by one, in the paper's order or round-robin."""
    k, blocks, b, e = mechanism.k, mechanism.blocks, mechanism.order, math.exp(mechanism.epsilon)
    h, expected = hadamard(b), np.ones((k, blocks * b))
    for x in range(k):
        block, row = divmod(x, b - 1) if mechanism.published else divmod(x, blocks)[::-1]
        expected[x, block * b : (block + 1) * b][h[row + 1] == 1] = e
    assert b // 2 - 1 < -(-k // blocks) <= b - 1
    expected /= b / 2 * e + blocks * b - b / 2
    np.testing.assert_allclose(mechanism.matrix(), expected, rtol=1e-12)


@pytest.mark.parametrize("mechanism", RESPONSES, ids=name)
def test_the_estimate_is_unbiased_and_its_variance_as_stated(mechanism):
    k, e, c = (
        mechanism.k,
        math.exp(mechanism.epsilon),
        2 * mechanism.blocks - 1 + math.exp(mechanism.epsilon),
    )
    t, matrix = per_report(mechanism), mechanism.matrix()
    np.testing.assert_allclose(matrix @ t, np.eye(k), atol=1e-12 * np.abs(t).max())
    theta = np.arange(1, k + 1) / (k * (k + 1) / 2)
    block = mechanism._rows // mechanism.order
    of_block = np.bincount(block, theta)[block]
    stated = c * (2 + (e - 1) * of_block) / (e - 1) ** 2 - theta**2
    np.testing.assert_allclose(theta @ matrix @ t**2 - theta**2, stated, rtol=1e-10)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=name)
def test_the_mechanism_of_some_signs_by_its_definition(mechanism):
    k, t, e, order = mechanism.k, mechanism.bits, math.exp(mechanism.epsilon), mechanism.order
    h, every = hadamard(order), mechanism.restore_reports(np.arange(mechanism.m))
    columns = itertools.product(range(order), repeat=t)
    assert every.tolist() == [
        [*j, *b] for j in columns for b in itertools.product([1, -1], repeat=t)
    ]
    fits = (h[every[:, :t]][:, :, :k] == every[:, t:, None]).all(axis=1).T
    np.testing.assert_allclose(
        mechanism.matrix(), np.where(fits, e, 1.0) / (order**t * (e + 2**t - 1)), rtol=1e-12
    )
    contributions = per_report(mechanism)
    np.testing.assert_allclose(
        mechanism.matrix() @ contributions, np.eye(k), atol=1e-11 * np.abs(contributions).max()
    )
    p = (e + 2 ** (t - 1) - 1) / (e + 2**t - 1)
    expected = (h[every[:, :t]][:, :, :k] * every[:, t:, None]).mean(axis=1) / (2 * p - 1)
    np.testing.assert_allclose(contributions, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(("k", "eps"), [(4, 1.0), (6, 0.3), (8, 3.0)])
def test_one_sign_has_the_variance_stated_and_is_a_response_on_odd_rows(k, eps):
    mechanism = ik.HadamardMechanism(k, eps)
    order, c = mechanism.order, 1 / math.tanh(eps / 2)
    theta = np.arange(1, k + 1) / (k * (k + 1) / 2)
    second = theta @ mechanism.matrix() @ per_report(mechanism) ** 2
    np.testing.assert_allclose(second - theta**2, c**2 - theta**2, rtol=1e-12)
    # HR with one block has rows 1, 2, ...: those of odd secrets' places 2x + 1 are secrets 0, 2, 4,
    # ...
    whole = ik.HadamardResponse(2 * order - 1, eps, blocks=1)
    assert whole.m == 2 * order == mechanism.m
    np.testing.assert_allclose(whole.matrix()[: 2 * k : 2], mechanism.matrix(), rtol=1e-12)
    assert not np.allclose(
        whole.matrix()[1 : 2 * k : 2], mechanism.matrix()[: len(whole.matrix()[1 : 2 * k : 2])]
    )


@pytest.mark.parametrize(
    ("k", "eps", "published", "likelihood"),
    [(16, 1.0, 1.45, 1.36), (16, 4.0, 16.0, 15.1), (64, 2.0, 2.46, 2.42)],
)
def test_what_one_sign_costs(k, eps, published, likelihood):
    """Of n times the squared error at uniform secrets, over the least that any mechanism has."""
    least = 4 * (k - 1) ** 2 * math.exp(eps) / (k * (math.exp(eps) - 1) ** 2)
    assert (k / math.tanh(eps / 2) ** 2 - 1 / k) / least == pytest.approx(published, rel=5e-3)
    found = ik.theory.asymptotic_mse(ik.HadamardMechanism(k, eps), ik.uniform(k)) / least
    assert found == pytest.approx(likelihood, rel=5e-3)


def bounds_from_least(mechanism):
    """n times the sum of the published variances at uniform secrets,
    over the least that any mechanism has.
    """
    k, e, c = (
        mechanism.k,
        math.exp(mechanism.epsilon),
        2 * mechanism.blocks - 1 + math.exp(mechanism.epsilon),
    )
    block = mechanism._rows // mechanism.order
    of_block = np.bincount(block)[block] / k
    variance = (c * (2 + (e - 1) * of_block) / (e - 1) ** 2 - 1 / k**2).sum()
    return variance / (4 * (k - 1) ** 2 * e / (k * (e - 1) ** 2))


@pytest.mark.parametrize(
    ("k", "eps", "published", "balanced", "best"),
    [
        (1024, 1.0, (2, 1.9575), 1.5066, (1, 1.2740)),
        (1024, 2.0, (4, 2.5278), 1.7547, (4, 1.7547)),
        (1024, 4.0, (32, 2.8374), 1.9827, (32, 1.9827)),
        (1000, 0.7, (2, 1.5637), 1.5635, (1, 1.1298)),
    ],
)
def test_fewer_blocks_filled_evenly_beat_the_published_ones(k, eps, published, balanced, best):
    by_paper, by_default = ik.HadamardResponse(k, eps, published=True), ik.HadamardResponse(k, eps)
    assert (by_paper.blocks, by_default.blocks) == (published[0], best[0])
    assert bounds_from_least(by_paper) == pytest.approx(published[1], abs=6e-5)
    assert bounds_from_least(ik.HadamardResponse(k, eps, published[0])) == pytest.approx(
        balanced, abs=6e-5
    )
    assert bounds_from_least(by_default) == pytest.approx(best[1], abs=6e-5)
    every = [bounds_from_least(ik.HadamardResponse(k, eps, 2**j)) for j in range(10)]
    assert bounds_from_least(by_default) == min(every)


def test_the_likelihood_is_at_least_as_informative_as_the_published_estimate():
    for mechanism in (ik.HadamardResponse(16, 3.0), ik.HadamardResponse(16, 3.0, published=True)):
        likelihood = ik.theory.asymptotic_mse(mechanism, ik.uniform(16))
        e, k = math.exp(3.0), 16
        published = bounds_from_least(mechanism) * 4 * (k - 1) ** 2 * e / (k * (e - 1) ** 2)
        assert likelihood < 0.95 * published


def test_a_response_of_many_secrets_is_estimated_and_pooled(rng):
    k = 400
    mechanism, other = ik.HadamardResponse(k, 2.0), ik.HadamardMechanism(k, 1.0)
    counts = rng.multinomial(100_000, rng.dirichlet(np.ones(k) / 5))
    tally, more = mechanism.simulate(counts, rng), other.simulate(counts, rng)
    for found in (ik.mle(tally), ik.mle(tally + more)):
        assert "structured normal equations" in found.method
        assert found.gap <= 1e-9
    l1 = np.abs(ik.mle(tally).distribution - counts / counts.sum()).sum()
    assert l1 < 0.7 * np.abs(ik.inv(tally, post="none").distribution - counts / counts.sum()).sum()
    assert len((tally + mechanism.simulate(counts, rng)).parts) == 1


def test_a_sampler_of_the_wrong_sign_is_noticed(rng):
    class Careless(ik.HadamardResponse):
        def draw(self, secrets, rng):
            return super().draw(secrets, rng) ^ 1

    with pytest.raises(AssertionError, match="does not follow the stated probabilities"):
        check_mechanism(Careless(7, 1.0), rng=rng, n=20_000)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"blocks": 0}, "blocks must be at least 1, got 0"),
        ({"blocks": 8}, "blocks must be at most the 7 secrets, got 8"),
        ({"blocks": 2.0}, r"blocks must be a whole number, got 2\.0"),
        (
            {"blocks": 3, "published": True},
            "blocks must be left out where published is True, got 3",
        ),
        ({"epsilon": math.nan}, "epsilon must be a finite number above 0, got nan"),
        ({"epsilon": 800.0}, "epsilon must be at most"),
        ({"alphabet": 1}, "number of secrets must be at least 2, got 1"),
    ],
)
def test_what_a_response_refuses(given, message):
    with pytest.raises(ValueError, match=message):
        ik.HadamardResponse(**{"alphabet": 7, "epsilon": 1.0} | given)


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        ([[0, 8, 1]], r"reports must be rows \(index, sign\), shape \(n, 2\), got shape \(1, 3\)"),
        ([[0, 1], [8, 1]], "reports must have their index from 0 to 7, got 8 at index 1"),
        ([[0, 0]], r"reports must have their sign \+1 or -1, got 0 at index 0"),
        ([[-1, 1]], "from 0 to 7, got -1 at index 0"),
    ],
)
def test_reports_that_are_no_signs(reports, message):
    with pytest.raises(ik.errors.AlphabetMismatch, match=message):
        ik.HadamardMechanism(7, 1.0).tally(reports)


def test_more_that_is_refused():
    with pytest.raises(ValueError, match="reports must be whole numbers, got nan"):
        ik.HadamardMechanism(7, 1.0).tally([[math.nan, 1.0]])
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"reports must be codes 0\.\.7, got 8"):
        ik.HadamardResponse(7, 1.0, 1).tally([8])
    with pytest.raises(ik.errors.TooLarge, match=r"bits must leave at most 2\^62 reports, got 8"):
        ik.HadamardMechanism(1000, 1.0, 8)
    with pytest.raises(
        ik.errors.TooLarge, match=r"the 8\.59e\+9 reports for 1000 secrets are too many to list"
    ):
        ik.HadamardMechanism(1000, 1.0, 3).matrix()
    with pytest.raises(ValueError, match="bits must be at least 1, got 0"):
        ik.HadamardMechanism(7, 1.0, 0)


@pytest.mark.parametrize("mechanism", [*RESPONSES, *MECHANISMS], ids=name)
def test_the_error_of_inv_is_that_of_the_published_estimate(mechanism, rng):
    """By all reports: not that of the pseudo-inverse, which is another unbiased estimate."""
    theta = rng.dirichlet(np.ones(mechanism.k))
    own = per_report(mechanism)
    exact = theta @ mechanism.matrix() @ (own**2).sum(axis=1) - theta @ theta
    assert ik.theory.inv_squared_error(mechanism, theta) == pytest.approx(exact, rel=1e-9)


def test_a_biased_estimate_has_no_such_error():
    with pytest.raises(
        ik.errors.NotInvertible, match=r"the estimate of CountMeanSketch.* is biased, by up to"
    ):
        ik.theory.inv_squared_error(ik.CountMeanSketch(6, 1.0, rows=2, width=4), ik.uniform(6))
