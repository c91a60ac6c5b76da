"""What every mechanism promises:
probabilities, samplers, privacy, and nothing random but the generator.
"""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import ibukit as ik
import mechanism_cases
from ibukit.mechanisms import FiniteMechanism
from ibukit.testing import check_mechanism
from mechanism_cases import ALL, ATTAINED, FINITE, KINDS, NOT_ATTAINED, PROTOCOLS, UNBOUNDED, name

N = 5000
LISTED = [mechanism for mechanism in KINDS if isinstance(mechanism, FiniteMechanism)]


def files_that_check(kind):
    """The test files that hold a class against the contract in cases of their own."""
    paths = Path(mechanism_cases.__file__).parent.rglob("test_*.py")
    texts = (path.read_text("utf8") for path in paths)
    checks = re.compile(r"\bcheck_(mechanism|tally)\(")
    return [text for text in texts if checks.search(text) and f"ik.{kind.__name__}" in text]


def test_every_public_mechanism_is_among_the_cases():
    from ibukit import mechanisms

    public = {
        getattr(mechanisms, attribute) for attribute in vars(mechanisms) if attribute[0].isupper()
    }
    made = {kind for kind in public if issubclass(kind, mechanisms.Mechanism)}  # a FreeWill is many
    others = made - {mechanisms.Mechanism, mechanisms.FiniteMechanism}
    others -= {type(mechanism) for mechanism in KINDS}
    assert {kind.__name__ for kind in others if not files_that_check(kind)} == set()
    assert files_that_check(str) == []


@pytest.mark.parametrize("mechanism", ATTAINED, ids=name)
def test_contract_and_epsilon_attained(mechanism, rng):
    check_mechanism(mechanism, rng=rng, n=N, attained=True)


@pytest.mark.parametrize("mechanism", [m for m in FINITE if m not in ATTAINED], ids=name)
def test_contract_and_epsilon_not_exceeded(mechanism, rng):
    check_mechanism(mechanism, rng=rng, n=N)


@pytest.mark.parametrize("mechanism", NOT_ATTAINED, ids=name)
def test_epsilon_is_claimed_with_room(mechanism, rng):
    with pytest.raises(AssertionError, match="the matrix attains only"):
        check_mechanism(mechanism, rng=rng, n=1, attained=True)


@pytest.mark.parametrize("mechanism", UNBOUNDED, ids=name)
def test_contract_of_unbounded_reports(mechanism, rng):
    check_mechanism(mechanism, rng=rng, n=N)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [*KINDS, ik.Rappor(12, 3.0), ik.PlanarLaplace(ik.Grid(9, 7, 0.5), 1.0)], ids=name
)
def test_contract_with_many_reports(mechanism, rng):
    check_mechanism(mechanism, rng=rng, n=2_000_000)


@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_nobody_is_lost(mechanism, rng):
    counts = rng.integers(0, 30, mechanism.k)
    counts[0] += 1
    assert mechanism.simulate(counts, rng).n == counts.sum()
    secrets = np.repeat(np.arange(mechanism.k), counts)
    assert len(mechanism.randomize(secrets, rng, codes=True)) == counts.sum()


@pytest.mark.parametrize("mechanism", [*KINDS, *PROTOCOLS], ids=name)
def test_the_same_seed_gives_the_same_reports(mechanism):
    counts = np.full(mechanism.k, 20)
    secrets = np.repeat(np.arange(mechanism.k), counts)
    draws = [mechanism.draw(secrets, np.random.default_rng(seed)) for seed in (5, 5, 6)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    parts = [mechanism.simulate(counts, np.random.default_rng(seed)).parts[0] for seed in (5, 5)]
    assert np.array_equal(parts[0].reports, parts[1].reports)
    assert np.array_equal(parts[0].counts, parts[1].counts)


@pytest.mark.parametrize("mechanism", [*KINDS, *PROTOCOLS], ids=name)
def test_all_randomness_comes_from_the_generator_given(mechanism, monkeypatch):
    rng = np.random.default_rng(1)

    def another(*args, **kwargs):
        raise AssertionError("another source of randomness was asked")

    for source in (
        "default_rng",
        "random",
        "rand",
        "randn",
        "randint",
        "choice",
        "binomial",
        "multinomial",
        "seed",
    ):
        monkeypatch.setattr(np.random, source, another)
    for draw in (
        lambda: mechanism.draw(np.array([0, 1, 1]), rng),
        lambda: mechanism.simulate(np.ones(mechanism.k, dtype=int), rng),
    ):
        before = rng.bit_generator.state
        draw()
        assert rng.bit_generator.state != before


@pytest.mark.parametrize("mechanism", [*KINDS, *PROTOCOLS], ids=name)
def test_pickled_and_equal(mechanism, rng):
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert again != 3
    assert len(pickle.dumps(mechanism)) < 2000
    reports = mechanism.randomize(mechanism.alphabet.values[[0] * 5], rng)
    assert (again.tally(reports) + mechanism.tally(reports)).n == 10
    assert len((again.tally(reports) + mechanism.tally(reports)).parts) == 1


@pytest.mark.parametrize(
    "mechanism",
    [m for m in KINDS if not isinstance(m, (ik.MatrixMechanism, ik.UnaryEncoding))],
    ids=name,
)
def test_frozen_and_different_with_another_epsilon(mechanism):
    with pytest.raises(AttributeError):
        mechanism.epsilon = 2.0
    assert type(mechanism)(mechanism.alphabet, 1.5) != mechanism
    assert type(mechanism)(mechanism.alphabet, mechanism.epsilon) == mechanism


@pytest.mark.parametrize("mechanism", LISTED, ids=name)
def test_the_matrix_cannot_be_changed(mechanism):
    with pytest.raises(ValueError, match="read-only"):
        mechanism.matrix()[0, 0] = 1.0


def poisson_binomial(probabilities):
    """Distribution of the number of successes of independent trials."""
    law = np.ones(1)
    for p in probabilities:
        law = np.convolve(law, [1 - p, p])
    return law


def chi_square_p_value(seen, expected):
    """Of counts against their expectations, what is rare taken together."""
    rare = expected < 5
    seen, expected = (np.append(array[~rare], array[rare].sum()) for array in (seen, expected))
    return stats.chi2.sf(((seen - expected) ** 2 / np.maximum(expected, 1)).sum(), (~rare).sum())


@pytest.mark.parametrize("mechanism", KINDS, ids=name)
def test_simulate_draws_users_independently(mechanism, rng):
    """Each report can be right while the population is not; estimators rely on the joint law."""
    secrets = np.array([0, 0, 1, 2, 2, mechanism.k - 1])
    example = mechanism.tally(mechanism.draw(np.zeros(500, dtype=int), rng), codes=True)
    often = example.counts.argmax()
    report, column = example.parts[0].reports[often], example.matrix()[:, often]
    law = poisson_binomial(column[secrets])
    repetitions = 3000
    seen = np.zeros(len(law))
    for _ in range(repetitions):
        part = mechanism.simulate(np.bincount(secrets, minlength=mechanism.k), rng).parts[0]
        same = (part.reports == report).reshape(len(part.counts), -1).all(axis=1)
        seen[part.counts[same].sum()] += 1
    assert chi_square_p_value(seen, repetitions * law) > 1e-6
    # what one would see if all users shared one draw
    assert chi_square_p_value(np.append(np.zeros(6), seen.sum()), repetitions * law) < 1e-6


@pytest.mark.ledger("A-D01")
@pytest.mark.parametrize("mechanism", LISTED, ids=name)
def test_reports_of_a_population_follow_theta_m(mechanism, rng):
    assert np.abs(mechanism.matrix().sum(axis=1) - 1).max() < 1e-12
    theta = np.arange(1, mechanism.k + 1) / np.arange(1, mechanism.k + 1).sum()
    n = 100_000
    secrets = rng.choice(mechanism.k, size=n, p=theta)
    tally = mechanism.tally(mechanism.randomize(secrets, rng, codes=True), codes=True)
    assert chi_square_p_value(tally.counts, n * tally.forward(theta)) > 1e-6
    assert chi_square_p_value(tally.counts, n * tally.forward(theta[::-1])) < 1e-6
