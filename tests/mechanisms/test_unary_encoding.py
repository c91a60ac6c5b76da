"""Unary encoding with any two chances:
the level they give, and what is proved of it as of RAPPOR and OUE.
"""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from scipy import stats

import ibukit as ik
from ibukit import theory
from ibukit.fisher_information.bits import BitInformation
from ibukit.mechanisms.categorical import bit_reports
from ibukit.mechanisms.categorical.independent_bits import is_bits, is_unary
from ibukit.privacy import epsilon_ldp
from ibukit.testing import check_channel, check_mechanism

CHANCES = [(0.6, 0.2), (0.5, 0.499), (0.999, 0.001), (0.3, 1e-9), (1 - 1e-9, 0.4)]
UE = ik.UnaryEncoding(4, 0.6, 0.2)


class Mine(ik.UnaryEncoding):
    """A class that inherits: nothing is proved of it."""


@pytest.mark.parametrize(("p", "q"), CHANCES)
@pytest.mark.parametrize("k", [2, 5])
def test_contract_and_the_level_is_tight(k, p, q):
    mechanism = ik.UnaryEncoding(k, p, q)
    check_mechanism(mechanism, n=5000, attained=True)
    assert mechanism.epsilon == pytest.approx(math.log(p * (1 - q) / ((1 - p) * q)), rel=1e-9)


@pytest.mark.parametrize("kind", [ik.Rappor, ik.OptimizedUnaryEncoding])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 8.0])
def test_rappor_and_oue_are_two_of_them(kind, epsilon):
    other = kind(5, epsilon)
    same = ik.UnaryEncoding(5, other.p_one, other.p_zero)
    assert same.epsilon == pytest.approx(epsilon, rel=1e-9)
    np.testing.assert_allclose(same.matrix(), other.matrix(), rtol=1e-11)
    draws = [mechanism.draw(np.arange(5), np.random.default_rng(7)) for mechanism in (same, other)]
    assert np.array_equal(*draws)


def test_the_estimate_of_its_bits_is_unbiased_with_the_published_variance():
    theta, p, q = np.array([0.6, 0.3, 0.1, 0.0]), UE.p, UE.q
    law, reports = theta @ UE.matrix(), UE._all_reports
    estimates = np.array([UE.invert(reports[[z]], np.ones(1)) for z in range(UE.m)])
    np.testing.assert_allclose(law @ estimates, theta, atol=1e-12)
    variance = q * (1 - q) / (p - q) ** 2 + theta * (1 - p - q) / (p - q) + theta * (1 - theta)
    np.testing.assert_allclose(law @ (estimates - theta) ** 2, variance, rtol=1e-12)
    assert theory.inv_squared_error(UE, theta) == pytest.approx(variance.sum(), rel=1e-12)


def information_by_enumeration(mechanism, theta):
    """The error bound from all reports, written out."""
    matrix = mechanism.matrix()
    information = (matrix / (theta @ matrix)) @ matrix.T
    basis = np.linalg.svd(np.ones((1, mechanism.k)))[2][1:]
    return np.trace(np.linalg.inv(basis @ information @ basis.T))


@pytest.mark.parametrize("theta", [[0.25] * 4, [0.7, 0.15, 0.1, 0.05]])
def test_what_is_proved_of_bits_holds_for_it(theta):
    assert theory.asymptotic_mse(UE, theta) == pytest.approx(
        information_by_enumeration(UE, np.array(theta)), rel=1e-9
    )
    assert theory.asymptotic_mse(UE, theta) == pytest.approx(
        np.trace(BitInformation(UE).covariance(np.array(theta)))
    )
    plan = ik.plan(UE, near=theta)
    dense = ik.plan(ik.MatrixMechanism(UE.matrix()), near=theta)
    assert plan.n == pytest.approx(dense.n, rel=1e-6)


def test_it_is_identified_at_any_size_and_its_singular_values_are_those_of_the_matrix():
    answer = theory.identifiable(ik.UnaryEncoding(3000, 0.6, 0.2))
    assert answer.identifiable
    assert "unary encoding" in answer.reason
    from ibukit.identification.identifiability import _singular_values

    np.testing.assert_allclose(
        np.sort(_singular_values(UE)),
        np.sort(np.linalg.svd(UE.matrix(), compute_uv=False)),
        rtol=1e-12,
    )


def test_the_bound_of_consistency_is_its_least_entry():
    from ibukit.identification._dominance import by_formula

    for p, q in CHANCES[:3]:
        mechanism = ik.UnaryEncoding(4, p, q)
        assert by_formula(mechanism).mean == pytest.approx(
            -np.log(mechanism.matrix().min()), rel=1e-12
        )


def test_the_average_of_several_has_the_average_chances():
    average = ik.average_mechanism([UE, ik.UnaryEncoding(4, 0.8, 0.3)], [0.25, 0.75])
    assert isinstance(average, ik.UnaryEncoding)
    assert (average.p, average.q) == pytest.approx((0.75, 0.275))


@pytest.mark.parametrize("mechanism", [UE, ik.Rappor(4, 1.0), ik.OptimizedUnaryEncoding(4, 1.0)])
def test_proofs_are_for_the_exact_type(mechanism):
    assert is_unary(mechanism)
    assert is_bits(mechanism)
    inherits = type("Mine", (type(mechanism),), {})
    mine = inherits(*(getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)))
    assert not is_unary(mine)
    assert not is_bits(mine)


def test_what_inherits_is_answered_from_its_matrix():
    mine = Mine(4, 0.6, 0.2)
    assert "independent columns: the least" in theory.identifiable(mine).reason
    assert theory.asymptotic_mse(mine, ik.uniform(4)) == pytest.approx(
        theory.asymptotic_mse(UE, ik.uniform(4))
    )


def test_an_estimate_of_many_bits(rng):
    mechanism = ik.UnaryEncoding(300, 0.9, 1e-5)  # where a row's probability may underflow
    assert mechanism.log_scale(mechanism.check_reports(np.ones((1, 300)))) < -700
    tally = mechanism.simulate([100] * 10 + [0] * 290, rng)
    estimate = ik.mle(tally)
    assert estimate.gap < 1e-9
    assert estimate.distribution[:10].sum() > 0.9
    check_channel(ik.UnaryEncoding(9, 0.9, 0.01).tally(np.eye(9, dtype=int)).operator)


def test_it_travels():
    again = pickle.loads(pickle.dumps(UE))
    assert again == UE
    assert hash(again) == hash(UE)
    assert dataclasses.replace(UE, p=0.7) == ik.UnaryEncoding(4, 0.7, 0.2) != UE


@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        (0.2, 0.2, "p must be larger than q, got p=0.2 and q=0.2"),
        (0.2, 0.5, "p must be larger than q"),
        (1.0, 0.5, r"p must be in \(0, 1\), got 1.0"),
        (0.5, 0.0, r"q must be in \(0, 1\), got 0.0"),
        (float("nan"), 0.5, "p must be in"),
        ("a", 0.5, "p must be a number between 0 and 1, got 'a'"),
        (
            0.5,
            1e-17,
            r"the chance that another bit is 1 must be above 2\^-53, got 1e-17 for p=0.5, q=1e-17",
        ),
        (1 - 2.0**-53, 0.5, "the secret's own bit is 0 must be above"),
    ],
)
def test_chances_that_are_refused(p, q, message):
    with pytest.raises(ValueError, match=message):
        ik.UnaryEncoding(3, p, q)


def test_one_secret_is_refused():
    with pytest.raises(ValueError, match="number of secrets must be at least 2"):
        ik.UnaryEncoding(1, 0.6, 0.2)


def test_a_wrong_level_is_found():
    @dataclasses.dataclass(frozen=True)
    class TooPrivate(ik.UnaryEncoding):
        epsilon = 1.0

    assert epsilon_ldp(UE) > 1.0
    with pytest.raises(AssertionError, match=r"epsilon is claimed to be 1.0, the matrix has 1.79"):
        check_mechanism(TooPrivate(4, 0.6, 0.2), n=100)


def test_what_theory_says_of_oue_it_says_of_its_chances():
    oue, theta = ik.OptimizedUnaryEncoding(5, 1.3), np.arange(1, 6) / 15
    same = ik.UnaryEncoding(5, oue.p_one, oue.p_zero)
    for of in (theory.asymptotic_mse, theory.asymptotic_emd, theory.inv_squared_error):
        assert of(same, theta) == pytest.approx(of(oue, theta), rel=1e-12)
    assert theory.mle_error_bound(same, 1000) == pytest.approx(
        theory.mle_error_bound(oue, 1000), rel=1e-12
    )
    assert theory.inv_squared_error_range(same) == pytest.approx(
        theory.inv_squared_error_range(oue), rel=1e-12
    )


def test_every_user_is_in_one_block(monkeypatch):
    monkeypatch.setattr(bit_reports, "BITS_AT_ONCE", 4 * 5)
    for users in range(1, 12):
        tally = ik.UnaryEncoding(4, 0.999999, 1e-6).simulate(
            [0, 0, users, 0], np.random.default_rng(1)
        )
        assert tally.n == users


def test_many_users_with_few_bits_are_drawn_by_their_counts(monkeypatch):
    mechanism, counts = ik.Rappor(["a", "b", "c"], 1.0), {"b": 300_000, "c": 0, "a": 100_000}
    monkeypatch.setattr(bit_reports, "BITS_AT_ONCE", 3 * 300_000)
    monkeypatch.setattr(ik.Rappor, "draw", lambda *_: pytest.fail("drawn one by one"))
    tally = mechanism.simulate(counts, np.random.default_rng(8))
    assert tally.n == 400_000
    expected = np.array([100_000, 300_000, 0]) @ mechanism.matrix()
    found = np.zeros(8)
    found[tally.parts[0].reports[:, 0] >> 5] = tally.counts
    listed = mechanism._all_reports[:, 0] >> 5
    assert stats.chisquare(found[listed], expected).pvalue > 0.001


def test_what_inherits_is_drawn_as_it_says(monkeypatch):
    class Silent(ik.Rappor):
        def draw(self, secrets, rng):
            return np.zeros((len(secrets), self.k), dtype=np.uint8)

    monkeypatch.setattr(bit_reports, "BITS_AT_ONCE", 12)
    tally = Silent(3, 1.0).simulate([4, 3, 2], np.random.default_rng(8))
    assert tally.counts.tolist() == [9]


@pytest.mark.parametrize(
    "mechanism",
    [ik.Rappor(4, 1.0), UE, ik.SubsetSelection(4, 1.0, 2)],
    ids=lambda m: type(m).__name__,
)
def test_a_population_of_moderate_size_is_drawn_at_once(mechanism):
    """Its seed then draws what it draws of the users one by one."""
    counts = np.array([30, 0, 20, 50])
    simulated = mechanism.simulate(counts, np.random.default_rng(5))
    secrets = np.repeat(np.arange(4), counts)
    released = mechanism.tally(mechanism.randomize(secrets, np.random.default_rng(5)))
    assert np.array_equal(simulated.counts, released.counts)
    assert np.array_equal(simulated.matrix(), released.matrix())
