"""Several reports of one person: the kept answer is drawn once, and each report is one of it."""

import math
import pickle
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import DenseChannel
from ibukit.errors import AlphabetMismatch, IbukitError, NoExactSampler
from ibukit.mechanisms.longitudinal.kept_answers import KeptAnswers

LABELS = [f"v{i}" for i in range(20)]
RESPONSE = ik.LongitudinalResponse(LABELS, epsilon=1.0, epsilon_inf=2.0)
BITS = ik.LongitudinalUnaryEncoding.osue(LABELS, epsilon=1.0, epsilon_inf=2.0)
HASHED = ik.LongitudinalHashing(LABELS, epsilon=1.0, epsilon_inf=2.0)
MEMOISED = [RESPONSE, BITS, HASHED]
ids = pytest.mark.parametrize("mechanism", MEMOISED, ids=lambda m: type(m).__name__)


@ids
def test_each_round_is_a_report_that_is_tallied(mechanism):
    kept = mechanism.keep(LABELS)
    assert len(kept) == 20
    first, second = mechanism.release(kept), mechanism.release(kept)
    assert (mechanism.tally(first) + mechanism.tally(second)).n == 40
    again = KeptAnswers(mechanism, kept.answers)
    assert np.array_equal(again.answers, pickle.loads(pickle.dumps(kept)).answers)


@ids
def test_a_report_has_the_law_of_the_mechanism(mechanism):
    counts = np.array([8000, 6000, 4000, 2000] + [0] * 16)
    reports = mechanism.release(mechanism.keep(np.repeat(LABELS, counts)))
    estimate = ik.inv(mechanism.tally(reports), post="none").distribution
    simulated = [
        ik.inv(mechanism.simulate(counts, np.random.default_rng(i)), post="none").distribution
        for i in range(20)
    ]
    spread = np.std(np.array(simulated) - counts / counts.sum())
    assert abs(estimate - counts / counts.sum()).max() < 6 * spread


def test_the_kept_answer_decides_what_many_rounds_say():
    kept = RESPONSE.keep(["v3"] * 50)
    rounds = np.array([RESPONSE.release(kept, codes=True) for _ in range(200)])
    modes = [Counter(column.tolist()).most_common(1)[0][0] for column in rounds.T]
    assert np.mean(modes == kept.answers) > 0.95


@pytest.mark.parametrize("rounds", [1, 50, 200])
def test_an_attacker_who_sees_all_rounds_is_right_at_most_as_often_as_the_bound(rounds):
    people = 4000
    secrets = np.random.default_rng(0).integers(20, size=people)
    kept = RESPONSE.keep(np.array(LABELS)[secrets])
    seen = np.zeros((people, 20), dtype=np.int64)
    for _ in range(rounds):
        seen[np.arange(people), RESPONSE.release(kept, codes=True)] += 1
    right = np.mean(seen.argmax(axis=1) == secrets)
    bound = math.exp(2) / (math.exp(2) + 19)
    # A standard error is .007; a false alarm comes once in 10 million.
    assert right < bound + 5.2 * math.sqrt(bound * (1 - bound) / people)


def test_an_answer_drawn_anew_in_each_round_would_tell_the_secret():
    people, rng = 400, np.random.default_rng(0)
    secrets = rng.integers(20, size=people)
    seen = np.zeros((people, 20), dtype=np.int64)
    for _ in range(200):
        seen[np.arange(people), RESPONSE.randomize(secrets, rng, codes=True)] += 1
    assert np.mean(seen.argmax(axis=1) == secrets) > 0.9


def test_the_level_of_any_number_of_rounds_is_that_of_the_kept_answer():
    assert RESPONSE.release_epsilon == HASHED.release_epsilon == 2.0
    p, q = map(Fraction, BITS.permanent)
    odds = p * (1 - q) / ((1 - p) * q)
    assert 0 <= BITS.release_epsilon - math.log(odds) < 1e-14
    assert abs(BITS.release_epsilon - BITS.epsilon_inf) < 1e-14


def test_one_round_has_the_level_of_one_report():
    for mechanism in (RESPONSE, HASHED.rounds):
        both = mechanism.kept.matrix() @ mechanism.second.matrix()
        assert abs(ik.privacy.epsilon_ldp(ik.MatrixMechanism(both)) - 1) < 1e-12
    assert abs(BITS.epsilon - 1) < 1e-12


@ids
@pytest.mark.parametrize("secrets", [["v1"], "v1", 3, None, np.array([1, 2]), {"v1": 1}, [[0, 1]]])
def test_secrets_are_refused_in_place_of_kept_answers(mechanism, secrets):
    with pytest.raises(NoExactSampler, match=r"secrets must be the kept answers.*mechanism\.keep"):
        mechanism.release(secrets)


def test_kept_answers_of_another_mechanism_are_refused():
    other = ik.LongitudinalResponse(LABELS, epsilon=0.5, epsilon_inf=2.0)
    with pytest.raises(
        ValueError,
        match=r"this LongitudinalResponse kept.*epsilon 0.5 .*release them by",
    ):
        RESPONSE.release(other.keep(["v1"]))


@pytest.mark.parametrize(
    ("mechanism", "answers"),
    [(RESPONSE, [20]), (RESPONSE, [-1]), (BITS, [[0, 1]]), (BITS, [[2] * 20]), (HASHED, [[1, 99]])],
)
def test_answers_that_are_none_are_refused(mechanism, answers):
    with pytest.raises(AlphabetMismatch):
        KeptAnswers(mechanism, answers)


def test_only_memoised_mechanisms_keep_answers():
    with pytest.raises(TypeError, match="mechanism must be one that keeps answers"):
        KeptAnswers(ik.RandomizedResponse(3, 1.0), [0])


def test_bits_that_are_the_truth_are_not_kept():
    certain = ik.LongitudinalUnaryEncoding(4, (1.0, 0.0), (0.7, 0.3))
    with pytest.raises(NoExactSampler, match="permanent must be two probabilities"):
        certain.keep([1])


def test_linked_rounds_say_how_the_rounds_are_released():
    linked = ik.LinkedRounds.of(BITS, 3)
    with pytest.raises(NoExactSampler, match=r"one_round\.keep\(secrets\) once"):
        linked.release(["v1"])
    kept = linked.one_round.keep(["v1", "v2"])
    sums = sum(linked.one_round.release(kept).astype(int) for _ in range(3))
    assert linked.tally(sums).n == 2


@dataclass(frozen=True)
class Heir(ik.LongitudinalResponse):
    """It may have another law, so nothing is proved of its draws."""


def test_a_class_that_inherits_keeps_nothing():
    heir = Heir(5, 1.0, 2.0)
    with pytest.raises(IbukitError, match="Heir has no sampler without roundings"):
        heir.keep([1])
    with pytest.raises(IbukitError, match="Heir has no sampler without roundings"):
        heir.release(KeptAnswers(heir, [1]))


@dataclass(frozen=True)
class OtherLaw(ik.LongitudinalResponse):
    """It reports the next label."""

    def make_matrix(self):
        return np.roll(super().make_matrix(), 1, axis=1)

    def channel(self, reports):
        return DenseChannel(self.matrix()[:, reports])


def test_a_class_that_inherits_has_the_law_of_its_own_matrix():
    heir, nominal = OtherLaw(5, 1.0, 2.0), ik.LongitudinalResponse(5, 1.0, 2.0)
    assert np.array_equal(heir.as_finite().matrix(), heir.matrix())
    theta = np.array([0.4, 0.3, 0.2, 0.1, 0.0])
    law = theta @ heir.matrix()
    assert not np.allclose(law, theta @ nominal.matrix())
    drawn = heir.simulate(theta * 10**6, np.random.default_rng(1))
    assert abs(drawn.frequencies - law).max() < 0.005
