"""The conditions for consistency:
every family's answers, what zeros change, and what is not identified.
"""

from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest

import ibukit as ik
from ibukit.identification.consistency import Answer, consistency
from ibukit.mechanisms import FiniteMechanism, Mechanism
from mechanism_cases import ALL, KINDS, TRIANGLE
from mechanism_cases import name as name_of

NAMES = ["identification", "compactness", "continuity", "dominance"]
YES, NO, NOT_BY_THIS_ROUTE = Answer.YES, Answer.NO, Answer.NOT_BY_THIS_ROUTE


def answers(mechanism):
    found = consistency(mechanism)
    assert [condition.name for condition in found.conditions] == NAMES
    return [condition.answer for condition in found.conditions]


def bound(mechanism):
    return consistency(mechanism).conditions[3].bound


@pytest.mark.ledger("A-62")
@pytest.mark.parametrize("mechanism", KINDS, ids=name_of)
def test_every_family_meets_all_conditions(mechanism):
    found = consistency(mechanism)
    assert answers(mechanism) == [YES] * 4
    assert found
    assert found.consistent
    assert found.reason == "all conditions of Newey and McFadden's Theorem 2.5 hold"
    assert 0 < found.conditions[3].bound < np.inf
    assert f"{found.conditions[3].bound:.4g} nats" in found.conditions[3].reason


@pytest.mark.parametrize(
    "kind",
    [
        ik.Exponential,
        ik.RandomizedResponse,
        ik.TruncatedGeometric,
        ik.LinearLaplace,
        ik.TruncatedPlanarGeometric,
        ik.PlanarLaplace,
    ],
)
def test_the_truth_is_consistent_as_its_matrix_is(kind):
    planar = kind in (ik.TruncatedPlanarGeometric, ik.PlanarLaplace)
    truth = kind(ik.Grid(1, 3) if planar else 3, np.inf)
    assert answers(truth) == answers(np.eye(3)) == [YES, YES, *[NOT_BY_THIS_ROUTE] * 2]
    assert consistency(truth)
    assert consistency(ik.RandomizedResponse(10**6, np.inf)), "the identity is not written out"


# Zeros.

HOLES = np.array([[0.8, 0.2, 0.0], [0.0, 0.8, 0.2], [0.2, 0.0, 0.8]])


@pytest.mark.erratum("A11")
@pytest.mark.ledger("A-62")
def test_zeros_break_two_conditions_and_not_the_conclusion():
    found = consistency(HOLES)
    assert answers(HOLES) == [YES, YES, NOT_BY_THIS_ROUTE, NOT_BY_THIS_ROUTE]
    assert found.consistent
    assert "upper semicontinuous" in found.reason
    assert "the secret with code 0 never gives report 2" in found.conditions[2].reason
    assert found.conditions[3].bound is None
    # the discontinuity: the report occurs at the truth, and next to the vertex its log-probability
    # falls without end
    logs = [np.log(np.array([1 - t, t, 0]) @ HOLES[:, 2]) for t in (1e-2, 1e-10, 1e-100, 1e-300)]
    assert np.diff(logs).max() < -10
    assert np.array([1, 0, 0]) @ HOLES[:, 2] == 0


def errors(matrix, theta, n, rng, runs=40):
    """Total variation between the truth and the estimates of `runs` samples of n reports."""
    mechanism = ik.MatrixMechanism(matrix)
    tallies = [
        mechanism.tally_counts(rng.multinomial(n, mechanism.forward(theta))) for _ in range(runs)
    ]
    return np.array([np.abs(ik.mle(tally).distribution - theta).sum() / 2 for tally in tallies])


@pytest.mark.erratum("A11")
@pytest.mark.parametrize("theta", [(0.3, 0.3, 0.4), (0.98, 0.01, 0.01), (1.0, 0.0, 0.0)])
def test_with_zeros_the_estimate_converges_all_the_same(theta, rng):
    few, many = errors(HOLES, np.array(theta), 100, rng), errors(HOLES, np.array(theta), 10**6, rng)
    assert many.max() < 0.01
    assert many.mean() < few.mean() / 20


MERGED = np.array([[0.45, 0.10, 0.45], [0.05, 0.90, 0.05], [0.45, 0.10, 0.45]])


def test_what_is_not_identified_is_not_consistent(rng):
    found = consistency(MERGED)
    assert answers(MERGED) == [NO, YES, YES, YES]
    assert not found
    assert not found.consistent
    assert "no estimator can be consistent at both" in found.reason
    # (1, 0, 0) and (0, 0, 1) give the same reports: the errors at the two cannot both fall below
    # one half
    apart = [
        errors(MERGED, np.array(theta), 10**6, rng, runs=5).max()
        for theta in ([1.0, 0, 0], [0, 0, 1.0])
    ]
    assert max(apart) > 0.49


def test_zeros_and_no_identification():
    assert answers([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]) == [
        NO,
        YES,
        *[NOT_BY_THIS_ROUTE] * 2,
    ]


def test_fewer_reports_than_secrets():
    assert answers(ik.compose(ik.RandomizedResponse(5, 1.0), np.tile([0.3, 0.7], (5, 1)))) == [
        NO,
        YES,
        YES,
        YES,
    ]


def test_an_empty_column_does_not_matter():
    matrix = [[0.9, 0.0, 0.1], [0.3, 0.0, 0.7]]
    assert answers(matrix) == [YES] * 4
    assert bound(matrix) == pytest.approx(-np.log(0.1), rel=1e-12)


def test_one_secret():
    assert answers([[0.25, 0.75, 0.0]]) == [YES] * 4
    assert answers([[1.0]]) == [YES] * 4
    assert bound([[1.0]]) == 0
    assert bound([[1.0 + 5e-10]]) == 0  # within the tolerance of a row


@pytest.mark.parametrize("mechanism", ALL, ids=name_of)
def test_the_answers_agree_with_each_other(mechanism):
    found = consistency(mechanism)
    first, second, third, fourth = answers(mechanism)
    assert second is YES
    assert third is fourth
    assert found.consistent == (first is YES) == bool(ik.theory.identifiable(mechanism))
    assert (found.conditions[3].bound is not None) == (fourth is YES)


# Mechanisms of others.


@dataclass(frozen=True)
class Homemade(FiniteMechanism):
    """Reports the secret, or with probability `skip` always the first."""

    alphabet: ik.Alphabet
    skip: float
    epsilon: float = np.inf

    @property
    def _matrix(self):
        matrix = (1 - self.skip) * np.eye(self.k)
        matrix[:, 0] += self.skip
        return matrix


@dataclass(frozen=True)
class Endless(Mechanism):
    """Poisson noise, say."""

    alphabet: ik.Alphabet
    epsilon: float = np.inf

    def draw(self, secrets, rng):
        return rng.poisson(np.asarray(secrets) + 1.0)

    def check_reports(self, reports):
        return np.asarray(reports)

    def channel(self, reports):
        raise NotImplementedError


def test_an_unknown_mechanism_with_a_matrix():
    assert answers(Homemade(TRIANGLE, 0.2)) == [YES, YES, NOT_BY_THIS_ROUTE, NOT_BY_THIS_ROUTE]
    assert answers(Homemade(TRIANGLE, 1.0)) == [NO, YES, YES, YES]


def test_an_unknown_mechanism_without_one():
    with pytest.raises(
        ValueError,
        match=r"mechanism must have reports that can be listed, got Endless.* a MatrixMech",
    ):
        consistency(Endless(ik.Line(0, 3)))


def test_what_is_no_matrix():
    with pytest.raises(ik.errors.InvalidDistribution, match=r"row 1 sums to 0\.9"):
        consistency([[0.5, 0.5], [0.4, 0.5]])


def test_readable():
    found = consistency(HOLES)
    assert (
        repr(found)
        == "Consistency(consistent; identification yes, compactness yes, continuity not by this"
        " route, dominance not by this route)"
    )
    assert repr(consistency(MERGED)).startswith("Consistency(not consistent; identification no, ")
    lines = str(found).splitlines()
    assert lines[0].split() == ["condition", "answer", "reason"]
    column = lines[0].index("reason")
    starts = [line for line in lines[1:] if not line.startswith(" ")]
    assert [line.split()[0] for line in starts] == [*NAMES, "consistent"]
    assert all(line[column - 1] == " " and line[column] != " " for line in lines)
    assert max(len(line) for line in lines) <= 110
    # nothing is lost in wrapping
    words = " ".join(line[column:] for line in lines[1:]).split()
    assert (
        words
        == " ".join([*(condition.reason for condition in found.conditions), found.reason]).split()
    )
    assert (
        str(found.conditions[1])
        == "compactness: yes (the simplex over 3 secrets is closed and bounded)"
    )


def test_frozen():
    found = consistency(HOLES)
    with pytest.raises(FrozenInstanceError):
        found.conditions = ()
    with pytest.raises(FrozenInstanceError):
        found.conditions[0].answer = NO
    assert found == consistency(HOLES)


# People who choose their mechanism.


def test_a_mixture_is_answered_for_the_pairs():
    responses = [ik.RandomizedResponse(4, epsilon) for epsilon in (0.5, 2.0)]
    shares = np.array([0.25, 0.75])
    users = ik.FreeWill(responses, shares)
    assert answers(users) == [YES] * 4
    pairs = np.hstack([s * each.matrix() for s, each in zip(shares, responses, strict=True)])
    # E[d(A, Z)] with d the largest -log P(A, z | phi); the choice does not depend on the secret
    assert bound(users) == pytest.approx(
        sum(s * (bound(each) - np.log(s)) for s, each in zip(shares, responses, strict=True))
    )
    assert bound(users) >= -(shares @ np.log(pairs.reshape(4, 2, 4).min(axis=(0, 2)))) - 1e-12


def test_a_mixture_with_the_names_and_without_them():
    honest, contrary = (ik.MatrixMechanism([[p, 1 - p], [1 - p, p]]) for p in (0.75, 0.25))
    users = ik.FreeWill([honest, contrary])
    assert answers(users) == [YES] * 4
    assert answers(ik.average_mechanism(users.mechanisms, users.shares)) == [NO, YES, YES, YES]


def test_a_mixture_with_a_zero():
    users = ik.FreeWill([ik.MatrixMechanism(HOLES), ik.RandomizedResponse(3, 1.0)])
    found = consistency(users)
    assert answers(users) == [YES, YES, NOT_BY_THIS_ROUTE, NOT_BY_THIS_ROUTE]
    assert found.consistent
    assert "the entropy of the report is finite" in found.reason
    # a mechanism that nobody chooses does not count
    chosen = ik.FreeWill([ik.MatrixMechanism(HOLES), ik.RandomizedResponse(3, 1.0)], [0, 1])
    assert answers(chosen) == [YES] * 4


def test_a_mixture_of_reports_without_end():
    users = ik.FreeWill([ik.LinearGeometric(5, 0.5), ik.LinearGeometric(5, 1.0)])
    assert answers(users) == [YES] * 4
    assert bound(users) == pytest.approx(
        np.mean([bound(each) for each in users.mechanisms]) + np.log(2)
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "family", [ik.Exponential, ik.TruncatedGeometric, ik.LinearLaplace, ik.RandomizedResponse]
)
def test_the_truth_itself_has_the_conditions_of_its_matrix(family):
    mechanism = family(2, np.inf)
    assert answers(mechanism) == answers(ik.MatrixMechanism(np.eye(2)))
    assert bound(mechanism) is None
    assert consistency(mechanism)
