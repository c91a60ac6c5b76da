"""Several rounds of one user:
their law and level, and what is lost where they are pooled as if of different users.
"""

import math
import pickle
from itertools import product

import numpy as np
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch
from ibukit.privacy import epsilon_ldp
from ibukit.testing import check_channel, check_mechanism

UE = ik.LongitudinalUnaryEncoding
OSUE, RAPPOR = UE.osue(3, 1.0, 2.0), UE.rappor(3, f=0.5, p=0.5, q=0.75)
PROTOCOLS = [OSUE, RAPPOR, UE.soue(3, 0.5, 3.0), UE.rappor(3, 0.0, 0.25, 0.75)]


def naive(protocol, rounds):
    """The matrix of all rows of counts, by all rows that may be kept, round by round."""
    k, (p2, q2) = protocol.k, protocol.instantaneous
    counts = list(product(range(rounds + 1), repeat=k))
    matrix = np.zeros((k, len(counts)))
    for x in range(k):
        for kept in product((0, 1), repeat=k):
            p1 = [protocol.permanent[0] if y == x else protocol.permanent[1] for y in range(k)]
            chance = math.prod(p if bit else 1 - p for p, bit in zip(p1, kept, strict=True))
            for z, row in enumerate(counts):
                likely = chance
                for bit, s in zip(kept, row, strict=True):
                    one = p2 if bit else q2
                    likely *= math.comb(rounds, s) * one**s * (1 - one) ** (rounds - s)
                matrix[x, z] += likely
    return matrix


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("rounds", [1, 3])
def test_the_law_is_that_of_rounds_on_what_is_kept(protocol, rounds):
    linked = ik.LinkedRounds.of(protocol, rounds)
    finite = linked.as_finite()
    np.testing.assert_allclose(finite.matrix(), naive(protocol, rounds), rtol=1e-11, atol=1e-300)
    assert linked.epsilon == pytest.approx(epsilon_ldp(finite), rel=1e-11)
    check_mechanism(linked, n=5000)
    reports = linked.draw(np.arange(30) % 3, np.random.default_rng(1))
    check_channel(linked.tally(reports).operator)


def test_one_round_is_the_protocol():
    linked = ik.LinkedRounds.of(OSUE, 1)
    np.testing.assert_allclose(linked.as_finite().matrix(), OSUE.matrix(), rtol=1e-12)
    assert linked.epsilon == pytest.approx(OSUE.epsilon, rel=1e-12)


def test_the_level_grows_to_that_of_what_is_kept():
    """RAPPOR, f = 1/2, p = 1/2, q = 3/4, with h = 2 bits a secret,
    which have twice the level of one.
    """
    levels = [2 * ik.LinkedRounds.of(RAPPOR, rounds).epsilon for rounds in (1, 2, 5, 300)]
    assert levels == pytest.approx([1.0743, 2.0170, 3.6560, 4 * math.log(3)], abs=5e-5)
    assert ik.LinkedRounds.of(RAPPOR, 300).epsilon == pytest.approx(RAPPOR.epsilon_inf, rel=1e-9)
    assert np.all(np.diff(ik.LinkedRounds.of(RAPPOR, 40).level_ratios) > 0)


def null_variances(linked):
    """Variance for one user, of a rare secret's frequency:
    the least, and that of averaged rounds.
    """
    own, other = (np.exp(law) for law in linked._log_laws)
    s = np.arange(linked.rounds + 1)
    averaged = (other @ s**2 - (other @ s) ** 2) / linked.rounds**2 / linked.one_round.contrast**2
    return 1 / (own**2 @ (1 / other) - 1), averaged


def test_averaged_rounds_lose():
    efficient, averaged = null_variances(ik.LinkedRounds.of(OSUE, 5))
    assert (efficient, averaged) == pytest.approx((0.973, 1.316), abs=5e-4)
    same, alone = null_variances(ik.LinkedRounds.of(OSUE, 1))
    assert same == pytest.approx(alone, rel=1e-12)  # one round has two levels, and nothing to lose


def test_averaging_is_unbiased_and_has_the_variance_of_the_formula():
    linked = ik.LinkedRounds.of(OSUE, 3)
    theta = np.array([0.5, 0.4, 0.1])
    law = theta @ linked.as_finite().matrix()
    reports = np.array(list(product(range(4), repeat=3)))
    estimates = np.array([linked.invert(row[None], np.ones(1)) for row in reports])
    np.testing.assert_allclose(law @ estimates, theta, atol=1e-12)
    rare = np.array([0.6, 0.4, 0.0])
    law = rare @ linked.as_finite().matrix()
    assert law @ estimates[:, 2] ** 2 == pytest.approx(null_variances(linked)[1], rel=1e-11)


def pooled_information(linked, theta):
    """The error n E ||estimate - theta||^2 of the maximum of the likelihood in
    which rounds are independent.
    """
    one, k = linked.one_round, linked.k
    basis = np.linalg.svd(np.ones((1, k)))[2][1:]
    rows = one.matrix()
    scores = (rows / (theta @ rows)).T @ basis.T  # of each possible report of a round
    curvature = linked.rounds * (scores.T * (theta @ rows)) @ scores
    # rounds of a user are independent given what is kept
    kept = ik.UnaryEncoding(k, *one.permanent).matrix()
    bits = np.array([[code >> (k - 1 - x) & 1 for x in range(k)] for code in range(2**k)])
    chance = np.where(bits, *one.instantaneous)
    then = np.where(bits[None], chance[:, None], 1 - chance[:, None]).prod(axis=2)
    means = then @ scores
    second = np.einsum("cz,zi,zj->cij", then, scores, scores)
    t, law = linked.rounds, theta @ kept
    spread = np.einsum(
        "c,cij->ij", law, t * second + t * (t - 1) * np.einsum("ci,cj->cij", means, means)
    )
    bread = np.linalg.inv(curvature)
    return np.trace(bread @ spread @ bread), np.trace(bread)


def test_rounds_pooled_as_if_of_different_users_lose():
    linked, theta = ik.LinkedRounds.of(UE.osue(4, 1.0, 2.0), 5), np.array([0.4, 0.3, 0.2, 0.1])
    best = ik.theory.asymptotic_mse(linked, theta)
    pooled, believed = pooled_information(linked, theta)
    assert pooled > 1.2 * best
    assert believed < 0.8 * best  # and its standard errors are too small
    alone = ik.LinkedRounds.of(UE.osue(4, 1.0, 2.0), 1)
    assert pooled_information(alone, theta) == pytest.approx(
        [ik.theory.asymptotic_mse(alone, theta)] * 2, rel=1e-9
    )


def test_an_estimate_from_linked_rounds(rng):
    linked = ik.LinkedRounds.of(UE.osue(["a", "b", "c", "d"], 1.0, 2.0), 5)
    theta = np.array([0.4, 0.3, 0.2, 0.1])
    tally = linked.simulate(20_000 * theta, rng)
    estimate = ik.mle(tally)
    assert estimate.gap < 1e-9
    six = 6 * math.sqrt(ik.theory.asymptotic_mse(linked, theta) / 20_000)
    for found in (estimate, ik.inv(tally)):
        assert np.linalg.norm(found.distribution - theta) < six * 1.3
    reports = linked.randomize(["a", "b"], rng)
    assert np.array_equal(linked.restore_reports(linked.check_reports(reports)), reports)


def test_improbable_rows_of_many_bits():
    linked = ik.LinkedRounds.of(UE.osue(400, 1.0, 2.0), 9)
    tally = linked.simulate([3] * 400, np.random.default_rng(1))
    assert tally.log_scale.min() < -700  # beyond doubles, stated apart
    assert np.isfinite(ik.mle(tally).log_likelihood)
    with pytest.raises(
        ValueError, match=r"which has 10\^400 .*: ask about fewer secrets or rounds"
    ):
        linked.as_finite()


def test_a_wrong_level_ratio_is_found():
    class Wrong(ik.LinkedRounds):
        @property
        def level_ratios(self):
            return super().level_ratios ** 1.2

    with pytest.raises(AssertionError, match="does not follow the stated probabilities"):
        check_mechanism(Wrong(3, OSUE.permanent, OSUE.instantaneous, 3), n=5000)


def test_it_travels():
    linked = ik.LinkedRounds.of(OSUE, 5)
    assert pickle.loads(pickle.dumps(linked)) == linked
    assert hash(linked) == hash(ik.LinkedRounds(3, OSUE.permanent, OSUE.instantaneous, 5))


@pytest.mark.parametrize(
    ("rounds", "message"),
    [(0, "rounds must be"), (2.5, "rounds must be"), (70_000, "rounds must be at most 65535")],
)
def test_numbers_of_rounds_that_are_refused(rounds, message):
    with pytest.raises(ValueError, match=message):
        ik.LinkedRounds.of(OSUE, rounds)


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        ([[0, 1, 6]], "reports must count the ones of 5 rounds, got 6"),
        ([[0, -1, 2]], "reports must count the ones of 5 rounds, got -1"),
        ([[0, 1]], r"reports must be rows of 3 counts, got shape \(1, 2\)"),
    ],
)
def test_reports_that_are_refused(reports, message):
    with pytest.raises(AlphabetMismatch, match=message):
        ik.LinkedRounds.of(OSUE, 5).tally(reports)
