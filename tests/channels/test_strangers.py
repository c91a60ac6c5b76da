"""Classes that inherit from ours but have another law: shortcuts may be inherited, proofs may not.

Each question is asked of a stranger and of its own matrix, written out; the two answers agree, or
the stranger's structure is refused by a named error.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest

import ibukit as ik
from ibukit import theory
from ibukit.channels import BitChannel, LineChannel, ResponseChannel, facts

MERGED = np.array([[0.6, 0.2, 0.2], [0.2, 0.4, 0.4], [0.2, 0.4, 0.4]])
ZEROS = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])


class Mute(ik.RandomizedResponse):
    """Reports that say nothing; its channel is our own, with other numbers."""

    truth = lie = 1 / 3


class Listed:
    """A law of its own, whatever the class inherits besides."""

    @cached_property
    def _matrix(self):
        return self.law

    def channel(self, reports):
        return ik.MatrixMechanism(self.law).channel(reports)

    randomize = ik.MatrixMechanism.randomize
    simulate = ik.MatrixMechanism.simulate


class MergedResponse(Listed, ik.RandomizedResponse):
    law = MERGED


class ZeroResponse(Listed, ik.RandomizedResponse):
    law = ZEROS


class MergedGeometric(Listed, ik.TruncatedGeometric):
    law = MERGED


class MergedExponential(Listed, ik.Exponential):
    law = MERGED


class MergedLaplace(Listed, ik.LinearLaplace):
    law = MERGED


class ZeroGeometric(Listed, ik.TruncatedGeometric):
    law = ZEROS


class MuteRappor(ik.Rappor):
    """All bits are alike, the secret's own among them."""

    p_one = p_zero = 0.3
    p_hidden = 0.7


KINDS = (
    Mute,
    MergedResponse,
    ZeroResponse,
    MergedGeometric,
    ZeroGeometric,
    MergedExponential,
    MergedLaplace,
)
STRANGERS = [*(kind(3, 1.0) for kind in KINDS), MuteRappor(3, 1.0)]
NAMES = [type(stranger).__name__ for stranger in STRANGERS]
strangers = pytest.mark.parametrize("stranger", STRANGERS, ids=NAMES)


def written_out(mechanism):
    return ik.MatrixMechanism(mechanism.matrix())


def answer(question, mechanism):
    """What is answered, or the error's name."""
    try:
        return question(mechanism)
    except ik.IbukitError as error:
        return type(error).__name__


def agree(question, stranger, compare=np.testing.assert_allclose):
    own, matrix = answer(question, stranger), answer(question, written_out(stranger))
    if isinstance(own, str) or isinstance(matrix, str):
        assert own == matrix
    else:
        compare(own, matrix)


def same(a, b):
    assert a == b


@strangers
def test_identifiable_reads_the_strangers_own_matrix(stranger):
    agree(lambda m: (theory.identifiable(m).rank, bool(theory.identifiable(m))), stranger, same)
    agree(
        lambda m: theory.identifiable(m).singular_values,
        stranger,
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12),
    )


@strangers
def test_consistency_reads_the_strangers_own_matrix(stranger):
    agree(
        lambda m: [condition.answer for condition in theory.consistency(m).conditions],
        stranger,
        same,
    )
    agree(
        lambda m: theory.consistency(m).conditions[-1].bound,
        stranger,
        lambda a, b: same(a is None, b is None),
    )


THETA = np.array([0.5, 0.3, 0.2])
NUMBERS = {
    "asymptotic_mse": lambda m: theory.asymptotic_mse(m, THETA),
    "asymptotic_mse, uniform": lambda m: theory.asymptotic_mse(m, ik.uniform(3)),
    "asymptotic_emd": lambda m: theory.asymptotic_emd(m, THETA),
    "mle_error_bound": lambda m: theory.mle_error_bound(m, 1000),
}
INVERSES = {
    "inv_squared_error": lambda m: theory.inv_squared_error(m, THETA),
    "inv_squared_error_range": theory.inv_squared_error_range,
    "compound_squared_error": lambda m: theory.compound_squared_error([m, written_out(m)], THETA),
}


@pytest.mark.parametrize("question", NUMBERS.values(), ids=NUMBERS)
@strangers
def test_limits_and_bounds_are_those_of_the_strangers_own_matrix(stranger, question):
    agree(question, stranger)


@pytest.mark.parametrize("question", INVERSES.values(), ids=INVERSES)
@strangers
def test_what_inversion_costs_is_that_of_the_strangers_own_matrix(stranger, question):
    if type(stranger) is MuteRappor:
        with pytest.raises(ik.IbukitError):
            question(stranger)
    else:
        agree(question, stranger)


@pytest.mark.parametrize("counts", [[50, 25, 25], [5, 0, 3], [0, 7, 0]], ids=str)
@strangers
def test_what_the_reports_tell_is_told_of_the_strangers_own_matrix(stranger, counts):
    if type(stranger) is MuteRappor:
        counts = [*counts, 0, 2, 0, 1, 0]
    own, matrix = stranger.tally_counts(counts), written_out(stranger).tally_counts(counts)
    assert bool(theory.strictly_concave(own)) == bool(theory.strictly_concave(matrix))
    assert theory.strictly_concave(own).rank == theory.strictly_concave(matrix).rank
    one, other = theory.mle_set(own), theory.mle_set(matrix)
    assert (one.unique, one.dimension) == (other.unique, other.dimension)
    np.testing.assert_allclose([one.lower, one.upper], [other.lower, other.upper], atol=1e-6)
    assert len(theory.fixed_points(own)) == len(theory.fixed_points(matrix))
    best = max(ik.mle(own).log_likelihood, ik.mle(matrix).log_likelihood)
    assert ik.mle(own).log_likelihood == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("reports", [[0, 2], [1], [0, 1, 1]], ids=str)
@strangers
def test_likely_secrets_are_those_of_the_strangers_own_matrix(stranger, reports):
    if type(stranger) is MuteRappor:
        reports = np.eye(3, dtype=np.uint8)[reports]
        listed = [4 >> x for x in np.argmax(reports, axis=1)]
    else:
        listed = reports
    matrix = written_out(stranger)
    np.testing.assert_array_equal(
        theory.dominated(stranger, reports), theory.dominated(matrix, listed)
    )
    np.testing.assert_array_equal(
        theory.likely_subset(stranger, reports), theory.likely_subset(matrix, listed)
    )


@strangers
def test_inversion_inverts_the_strangers_own_matrix(stranger):
    if type(stranger) is not MuteRappor:
        agree(lambda m: ik.inv(m.tally_counts([50, 30, 20]), post="none").distribution, stranger)


@dataclass(frozen=True, eq=False)
class MergedChannel(ResponseChannel):
    """Inherits k-RR's structure and means something else by it."""

    def forward(self, theta):
        return theta @ MERGED[:, self.reports]

    def adjoint(self, w):
        return MERGED[:, self.reports] @ w


@dataclass(frozen=True)
class Merging(ik.MatrixMechanism):
    def __init__(self):
        super().__init__(MERGED)

    def channel(self, reports):
        return MergedChannel(3, reports, 0.6, 0.2)


def test_a_channel_that_inherits_from_ours_gets_no_proof_of_ours():
    own, matrix = (
        Merging().tally_counts([50, 25, 25]),
        ik.MatrixMechanism(MERGED).tally_counts([50, 25, 25]),
    )
    assert not theory.mle_set(own).unique
    assert theory.mle_set(own).dimension == theory.mle_set(matrix).dimension == 1
    assert not theory.strictly_concave(own)


KRR = ResponseChannel(3, np.arange(3), 0.5, 0.25)
LINE = LineChannel(3, 0.5, np.arange(3), np.ones(3))
BITS = BitChannel(3, np.zeros((2, 1), np.uint8), 2.0, 0.5, np.ones(2))


@pytest.mark.parametrize(
    ("fact", "channel", "broken"),
    [
        (facts.as_response, KRR, {"diagonal": 0.25}),
        (facts.as_response, KRR, {"off": -0.1}),
        (facts.as_line, LINE, {"decay": 1.0}),
        (facts.as_line, LINE, {"decay": 0.0}),
        (facts.as_bits, BITS, {"one": 0.5}),
    ],
)
def test_a_theorem_is_applied_where_its_conditions_hold(fact, channel, broken):
    assert fact(channel) is channel
    assert fact(replace(channel, **broken)) is None
    heir = type("Heir", (type(channel),), {})
    assert fact(heir(**vars(channel))) is None


class Thicker(ik.LinearGeometric):
    """Might have other noise: what is proved of ours is not said of it."""


class Doubled(Thicker):
    """Each report with a coin beside it that says nothing, and a class that says so."""

    def as_finite(self):
        return ik.TruncatedGeometric(self.alphabet, self.epsilon)


LISTED = {
    **NUMBERS,
    "bayes_limits": lambda m: theory.bayes_limits(m, 0.5, rng=np.random.default_rng(1), draws=100),
}


@pytest.mark.parametrize("question", LISTED.values(), ids=LISTED)
def test_one_rule_says_whose_reports_can_be_listed(question):
    truncated = question(ik.TruncatedGeometric(3, 1.0))
    assert question(ik.LinearGeometric(3, 1.0)) == truncated
    assert question(Doubled(3, 1.0)) == truncated
    for endless in (Thicker(3, 1.0), ik.PlanarGeometric(ik.Grid(1, 3), 1.0)):
        with pytest.raises(ValueError, match=r"can be listed, got .*; take a truncated kind"):
            question(endless)


def test_what_can_be_listed_is_its_own_list():
    assert ik.LinearGeometric(ik.Line(3, 3), 1.0).as_finite().matrix() == [[1.0]]
    rappor = ik.Rappor(3, 1.0)
    assert rappor.as_finite() is rappor
