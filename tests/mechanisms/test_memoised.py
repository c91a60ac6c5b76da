"""Memoised protocols: what one report tells, and what is kept."""

import math
import pickle

import numpy as np
import pytest

import ibukit as ik
from ibukit import theory
from ibukit.exact.random_bits import OPERATING_SYSTEM
from ibukit.mechanisms.categorical.independent_bits import is_unary
from ibukit.privacy import epsilon_ldp
from ibukit.testing import check_channel, check_mechanism

UE = ik.LongitudinalUnaryEncoding
KINDS = {"L-OSUE": UE.osue, "L-SUE": UE.sue, "L-OUE": UE.oue, "L-SOUE": UE.soue}
LEVELS = [(1.0, 2.0), (0.1, 4.0), (1.9, 2.0), (3.0, 12.0)]


# a second round with p2 = 1/2 does not reach the third
@pytest.mark.parametrize(
    ("name", "levels"),
    [
        (name, levels)
        for name in KINDS
        for levels in LEVELS
        if levels[0] != 1.9 or "OUE" not in name
    ],
)
def test_the_levels_of_one_report_and_of_what_is_kept(name, levels):
    make, (first, forever) = KINDS[name], levels
    mechanism = make(4, first, forever)
    assert (mechanism.epsilon, mechanism.epsilon_inf) == pytest.approx((first, forever), rel=1e-9)
    check_mechanism(mechanism, n=5000, attained=True)


@pytest.mark.parametrize("make", [UE.oue, UE.soue])
def test_a_level_out_of_reach_of_the_second_round_is_refused(make):
    with pytest.raises(
        ValueError, match=r"epsilon must be below 1\.\d+ for a second round with p2 = 1/2, got 1.9"
    ):
        make(4, 1.9, 2.0)


@pytest.mark.parametrize(("first", "forever"), LEVELS)
def test_one_report_of_osue_is_oue_and_of_sue_is_rappor(first, forever):
    osue, sue = UE.osue(4, first, forever), UE.sue(4, first, forever)
    np.testing.assert_allclose(
        osue.matrix(), ik.OptimizedUnaryEncoding(4, first).matrix(), rtol=1e-9
    )
    np.testing.assert_allclose(sue.matrix(), ik.Rappor(4, first).matrix(), rtol=1e-9)
    # the formula of the paper
    e1, ei = math.exp(first), math.exp(forever)
    assert osue.instantaneous.p == pytest.approx((e1 * ei - 1) / ((e1 + 1) * (ei - 1)), rel=1e-12)


def two_rounds(mechanism):
    """The matrix of one report, by all rows that may be kept."""
    k = mechanism.k
    kept = ik.UnaryEncoding(k, *mechanism.permanent).matrix()
    bits = np.array([[code >> (k - 1 - x) & 1 for x in range(k)] for code in range(2**k)])
    p, q = mechanism.instantaneous
    chance = np.where(bits, p, q)  # of a one, for each row that is kept
    then = np.where(bits[None], chance[:, None], 1 - chance[:, None]).prod(axis=2)
    return kept @ then


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())
def test_the_law_is_that_of_two_rounds(make):
    mechanism = make(4, 1.0, 2.0)
    np.testing.assert_allclose(mechanism.matrix(), two_rounds(mechanism), rtol=1e-12)
    same = ik.UnaryEncoding(4, mechanism.p_one, mechanism.p_zero)
    assert is_unary(mechanism)
    assert theory.asymptotic_mse(mechanism, ik.uniform(4)) == pytest.approx(
        theory.asymptotic_mse(same, ik.uniform(4))
    )
    assert not is_unary(type("Mine", (UE,), {})(4, mechanism.permanent, mechanism.instantaneous))


@pytest.mark.parametrize(
    ("name", "factor"), [("L-OSUE", 1.0), ("L-OUE", 1.21), ("L-SOUE", 1.06), ("L-SUE", 1.06)]
)
def test_the_variance_of_one_report_beside_oue(name, factor):
    mechanism, oue = KINDS[name](4, 1.0, 2.0), ik.OptimizedUnaryEncoding(4, 1.0)
    variances = [m.p_zero * (1 - m.p_zero) / m.contrast**2 for m in (mechanism, oue)]
    assert variances[0] / variances[1] == pytest.approx(factor, abs=0.006)


def test_rappor_of_two_stages():
    """f = 1/2, p = 1/2, q = 3/4 of the RAPPOR paper:
    with h = 2 hashes 1.0743, and 4 ln 3 for ever.
    """
    mechanism = UE.rappor(3, f=0.5, p=0.5, q=0.75)
    assert 2 * mechanism.epsilon == pytest.approx(1.0743, abs=5e-5)
    assert 2 * mechanism.epsilon_inf == pytest.approx(4 * math.log(3), rel=1e-12)
    assert (mechanism.p_one, mechanism.p_zero) == (0.6875, 0.5625)
    without = UE.rappor(3, f=0.0, p=0.25, q=0.75)
    assert without.epsilon_inf == math.inf
    np.testing.assert_allclose(without.matrix(), ik.Rappor(3, 2 * math.log(3)).matrix(), rtol=1e-12)


def test_what_is_kept_stays_and_rounds_differ(rng):
    mechanism = UE.osue(50, 1.0, 2.0)
    secrets = np.arange(4000) % 50
    kept = mechanism.memoise(secrets, rng)
    first, second = (mechanism.respond(kept, rng) for _ in range(2))
    p, q = mechanism.instantaneous
    for round_of in (first, second):  # six standard errors
        assert abs(round_of[kept == 1].mean() - p) < 6 / math.sqrt(4 * kept.sum())
        assert abs(round_of[kept == 0].mean() - q) < 6 / math.sqrt(4 * (kept == 0).sum())
    assert abs((first == second)[kept == 1].mean() - (p**2 + (1 - p) ** 2)) < 6 / math.sqrt(
        4 * kept.sum()
    )


@pytest.mark.parametrize("k", [2, 3, 20, 100])
@pytest.mark.parametrize(("first", "forever"), LEVELS)
def test_two_rounds_of_response_are_response(k, first, forever):
    mechanism = ik.LongitudinalResponse(k, first, forever)
    np.testing.assert_allclose(
        mechanism.kept.matrix() @ mechanism.second.matrix(), mechanism.matrix(), rtol=1e-11
    )
    np.testing.assert_allclose(
        mechanism.matrix(), ik.RandomizedResponse(k, first).matrix(), rtol=1e-12
    )
    check_mechanism(mechanism, n=2000, attained=True)


def test_a_second_round_that_forgets_the_other_ways_is_right_for_two_secrets_only():
    """The literature's L-GRR takes p_s = p1 p2 + q1 q2
    and q_s = p1 q2 + q1 p2 of the k ways there are.
    """

    def attained(k, first, forever):
        e1, kept = math.exp(first), ik.RandomizedResponse(k, forever)
        p1, q1 = kept.truth, kept.lie
        p2 = (e1 * p1 - q1) / ((k - 1) * (p1 - e1 * q1) + e1 * p1 - q1)
        second = (1 - p2) / (k - 1) + (p2 - (1 - p2) / (k - 1)) * np.eye(k)
        return epsilon_ldp(ik.MatrixMechanism(kept.matrix() @ second))

    assert attained(2, 1.0, 2.0) == pytest.approx(1.0)
    assert attained(20, 1.0, 2.0) == pytest.approx(0.512, abs=5e-4)
    assert attained(100, 1.0, 2.0) == pytest.approx(0.166, abs=5e-4)


def test_response_is_answered_as_response():
    mechanism, same = ik.LongitudinalResponse(6, 1.0, 2.0), ik.RandomizedResponse(6, 1.0)
    theta = np.arange(1, 7) / 21
    assert theory.asymptotic_mse(mechanism, theta) == pytest.approx(
        theory.asymptotic_mse(same, theta)
    )
    assert ik.plan(mechanism).n == ik.plan(same).n
    tally = mechanism.tally_counts([9, 5, 3, 1, 1, 1])
    assert ik.inv(tally).distribution == pytest.approx(
        ik.inv(same.tally_counts([9, 5, 3, 1, 1, 1])).distribution
    )
    check_channel(tally.operator)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UE.osue(3, 2.0, 2.0), "epsilon must be below epsilon_inf, got 2.0 and 2.0"),
        (lambda: UE.sue(3, 2.0, 1.0), "epsilon must be below epsilon_inf"),
        (lambda: UE.oue(3, -1.0, 1.0), "epsilon must be"),
        (lambda: UE.soue(3, 1.0, float("nan")), "epsilon_inf must be"),
        (lambda: UE.rappor(3, 1.0, 0.5, 0.75), r"f must be in \[0, 1\), got 1.0"),
        (lambda: UE.rappor(3, 0.5, 0.75, 0.5), "q must be larger than p"),
        (lambda: UE(3, (0.5, 0.2), (1.0, 0.2)), r"instantaneous\[0\] must be in \(0, 1\), got 1.0"),
        (
            lambda: UE(3, (0.5, 0.2, 0.1), (0.9, 0.2)),
            r"permanent must be two probabilities \(p, q\)",
        ),
        (lambda: UE(3, 0.5, (0.9, 0.2)), r"permanent must be two probabilities \(p, q\), got 0.5"),
        (lambda: UE(3, (0.2, 0.5), (0.9, 0.2)), "permanent must be"),
        (lambda: ik.LongitudinalResponse(3, 1.0, 1.0), "epsilon must be below epsilon_inf"),
        (
            lambda: ik.LongitudinalResponse(3, 10.0, 10.0 + 2e-15),
            "epsilon_inf must be farther above epsilon",
        ),
        (lambda: ik.LongitudinalResponse(1, 1.0, 2.0), "number of secrets"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_released_bits_are_the_kept_ones_where_no_second_coin_is_tossed():
    kept = np.array([[1, 0, 1], [0, 0, 1]], dtype=np.uint8)
    truthful = UE(3, permanent=(0.75, 0.25), instantaneous=(1 - 2**-40, 2**-40))
    np.testing.assert_array_equal(truthful._respond_exactly(kept, OPERATING_SYSTEM), kept)
