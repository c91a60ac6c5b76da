"""The conditions for consistency: every family's answers, the bounds behind them, and what zeros change."""

import itertools
from dataclasses import FrozenInstanceError, dataclass
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import logsumexp

import ibukit as ik
from ibukit.mechanisms import FiniteMechanism, Mechanism
from ibukit.theory import _dominance
from ibukit.theory.consistency import Answer, consistency
from mechanism_cases import ALL, FINITE, KINDS, OBLONG, TRIANGLE
from mechanism_cases import name as name_of
from oracles import naive

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


# The smallest entry, read from the matrix where doubles hold it.

POSITIVE = [mechanism for mechanism in FINITE if (mechanism.matrix() > 0).all()]
IN_THE_PLANE = (ik.TruncatedPlanarGeometric, ik.PlanarLaplace)


@pytest.mark.ledger("A-E2", "A-62")
@pytest.mark.parametrize("mechanism", POSITIVE, ids=name_of)
def test_finite_reports_are_dominated_by_the_smallest_entry(mechanism):
    surprise = -np.log(mechanism.matrix().min())
    if isinstance(mechanism, IN_THE_PLANE):
        # not more than twice too large, and never too small
        assert surprise * (1 - 1e-12) <= bound(mechanism) <= 2 * surprise + 10
    else:
        assert bound(mechanism) == pytest.approx(surprise, rel=1e-9)


def entries(mechanism):
    """All entries of the matrix with sixty digits, by the papers' formulas."""
    k, eps = mechanism.k, Decimal(mechanism.epsilon)
    if isinstance(mechanism, ik.RandomizedResponse):
        return [weight / (k - 1 + eps.exp()) for weight in (eps.exp(), Decimal(1))]
    if isinstance(mechanism, (ik.Rappor, ik.OptimizedUnaryEncoding)):
        two_sided = isinstance(mechanism, ik.Rappor)
        level = (eps / 2 if two_sided else eps).exp()
        flip, own = 1 / (1 + level), 1 / (1 + level) if two_sided else Decimal("0.5")
        return [hidden * flip**ones * (1 - flip) ** (k - 1 - ones) for hidden in (own, 1 - own) for ones in range(k)]
    a = (-eps).exp()
    pairs = list(itertools.product(range(k), repeat=2))
    if isinstance(mechanism, ik.TruncatedGeometric):
        return [a ** abs(x - z) / (1 + a) * (1 if z in (0, k - 1) else 1 - a) for x, z in pairs]
    if isinstance(mechanism, ik.LinearLaplace):

        def below(t):
            return (eps * t).exp() / 2 if t <= 0 else 1 - (-eps * t).exp() / 2

        half, found = Decimal("0.5"), []
        for x, z in pairs:
            x, z = (x, z) if z <= x else (k - 1 - x, k - 1 - z)  # mirrored, so that no tail is 1 minus a tail
            upper = 1 if z == k - 1 else below(z - x + half)
            found.append(upper - (0 if z == 0 else below(z - x - half)))
        return found
    assert isinstance(mechanism, ik.Exponential)
    weights = {(x, z): (-eps / 2 * abs(x - z)).exp() for x, z in pairs}
    return [weight / sum(weights[x, u] for u in range(k)) for (x, z), weight in weights.items()]


FORMULAS = [
    ik.RandomizedResponse,
    ik.Rappor,
    ik.OptimizedUnaryEncoding,
    ik.TruncatedGeometric,
    ik.LinearLaplace,
    ik.Exponential,
]


@pytest.mark.ledger("A-62")
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 0.7, 3.0, 40.0, 600.0])
@pytest.mark.parametrize("k", [2, 3, 4, 9])
@pytest.mark.parametrize("family", FORMULAS)
def test_the_smallest_entry_in_exact_arithmetic(family, k, epsilon):
    mechanism = family(ik.Line(0, k - 1), epsilon)
    with localcontext() as context:
        context.prec, context.Emin = 400, -(10**9)  # Laplace masses are differences
        exact = float(-min(entries(mechanism)).ln())
    assert bound(mechanism) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    "mechanism",
    [
        ik.RandomizedResponse(5, 800.0),
        ik.TruncatedGeometric(100, 20.0),
        ik.LinearLaplace(100, 20.0),
        ik.Exponential(ik.Line(0, 99), 40.0),
        ik.TruncatedPlanarGeometric(ik.Grid(20, 20), 50.0),
        ik.PlanarLaplace(ik.Grid(20, 20), 50.0),
    ],
    ids=name_of,
)
def test_what_underflows_is_positive_all_the_same(mechanism):
    assert answers(mechanism) == [YES] * 4
    assert bound(mechanism) > 745  # -log of the smallest double
    # the same numbers without their formula: zeros are zeros
    assert (mechanism.matrix() == 0).any()
    assert answers(ik.MatrixMechanism(mechanism.matrix()))[2:] == [NOT_BY_THIS_ROUTE] * 2


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_thousands_of_bits(epsilon):
    assert answers(ik.Rappor(2000, epsilon)) == [YES] * 4
    assert bound(ik.Rappor(2000, epsilon)) == pytest.approx(2000 * np.log1p(np.exp(epsilon / 2)), rel=1e-12)
    assert answers(ik.OptimizedUnaryEncoding(2000, epsilon)) == [YES] * 4


# Untruncated noise: infinitely many reports, a bound d(z) for each, and its mean.


def log_probabilities(mechanism, reports, phi):
    """Of untruncated noise, in logarithms: log sum_x phi_x e^(-eps |z - x|) plus the logarithm of the constant."""
    eps = mechanism.epsilon
    if isinstance(mechanism, ik.LinearGeometric):
        away = np.abs(reports[:, None] - mechanism.alphabet.values)
        constant = np.log(np.tanh(eps / 2))
    else:
        shape = np.array(mechanism.alphabet.cell_shape)
        away = np.linalg.norm((reports[:, None, :] - mechanism.alphabet.values) * shape, axis=2)
        constant = np.log(naive.planar_lambda(*shape, eps))
    return logsumexp(-eps * away, axis=1, b=phi) + constant


def dominates(mechanism, reports, d, rng):
    """Whether d(z) >= |log P(z given phi)| for the vertices and for random phi."""
    k = mechanism.k
    phis = [*np.eye(k), *rng.dirichlet(np.ones(k), 20), *rng.dirichlet(np.full(k, 0.05), 20)]
    worst = np.max([np.abs(log_probabilities(mechanism, reports, phi)) for phi in phis], axis=0)
    return bool((d >= worst * (1 - 1e-12)).all())


LINES = [
    ik.LinearGeometric(line, eps)
    for line in (ik.Line(7, 7), ik.Line(-4, 3), ik.Line(0, 29))
    for eps in (0.05, 0.5, 1.0, 4.0)
]
GRIDS = [ik.PlanarGeometric(grid, eps) for grid in (ik.Grid(1, 1), OBLONG, ik.Grid(1, 6)) for eps in (0.6, 1.0, 4.0)]


def window(mechanism, decades=45.0):
    """Reports as far out as matters to the sum: beyond, there is less than e^-45 of it."""
    reach = int(decades / mechanism.epsilon) + 2
    if isinstance(mechanism, ik.LinearGeometric):
        return np.arange(mechanism.alphabet.first - reach, mechanism.alphabet.last + reach + 1)
    grid = mechanism.alphabet
    north, east = (int(np.ceil(reach / side)) for side in grid.cell_shape)
    return np.array(list(itertools.product(range(-north, grid.n_rows + north), range(-east, grid.n_cols + east))))


@pytest.mark.ledger("A-E2", "A-P3")
@pytest.mark.parametrize("mechanism", LINES, ids=name_of)
def test_on_a_line_the_bound_holds_for_every_report(mechanism, rng):
    # far beyond what doubles can hold as probabilities
    reports = np.concatenate([window(mechanism), [-(10**9), -5000, 5000, 10**9]])
    d = _dominance.on_line(mechanism, reports)
    assert dominates(mechanism, reports, d, rng)
    # and is attained by the far end for reports on the near side
    far = np.abs(log_probabilities(mechanism, reports, np.eye(mechanism.k)[-1]))
    near = reports <= mechanism.alphabet.first
    np.testing.assert_allclose(d[near], far[near], rtol=1e-12)


@pytest.mark.parametrize("mechanism", [m for m in LINES if m.k > 1], ids=name_of)
def test_a_bound_for_a_shorter_line_is_found_too_small(mechanism, rng):
    line = mechanism.alphabet
    shorter = ik.LinearGeometric(ik.Line(line.first, line.last - 1), mechanism.epsilon)
    reports = window(mechanism)
    assert not dominates(mechanism, reports, _dominance.on_line(shorter, reports), rng)


def expected(mechanism, reports, d, phi):
    """E[d(Z)] by summing over the reports; what is left out has to be next to nothing."""
    p = np.exp(log_probabilities(mechanism, reports, phi))
    assert p.sum() == pytest.approx(1, abs=1e-12)
    return p @ d


@pytest.mark.ledger("A-E2", "A-P3")
@pytest.mark.parametrize("mechanism", LINES, ids=name_of)
def test_on_a_line_the_mean_of_the_bound_is_the_closed_form(mechanism, rng):
    reports = window(mechanism)
    d = _dominance.on_line(mechanism, reports)
    worst = expected(mechanism, reports, d, np.eye(mechanism.k)[-1])
    assert bound(mechanism) == pytest.approx(worst, rel=1e-10)
    for phi in rng.dirichlet(np.full(mechanism.k, 0.3), 20):
        assert expected(mechanism, reports, d, phi) <= worst * (1 + 1e-12)


@pytest.mark.ledger("A-E2")
@pytest.mark.parametrize("mechanism", [m for m in LINES if m.epsilon * m.k < 20], ids=name_of)
def test_the_papers_sum_is_finite_and_larger(mechanism):
    """sum_z c e^(-eps (|z - a| - l)) d(z) = e^(eps l) (eps l - log c + eps / sinh eps)."""
    eps, length = mechanism.epsilon, mechanism.alphabet.last - mechanism.alphabet.first
    reports, log_c = window(mechanism), np.log(np.tanh(eps / 2))
    weights = np.exp(log_c - eps * (np.abs(reports - mechanism.alphabet.first) - length))
    closed = np.exp(eps * length) * (eps * length - log_c + eps / np.sinh(eps))
    assert weights @ _dominance.on_line(mechanism, reports) == pytest.approx(closed, rel=1e-10)
    assert closed >= bound(mechanism) * (1 - 1e-12)


@pytest.mark.parametrize("mechanism", GRIDS, ids=name_of)
def test_on_a_plane_the_bound_holds_for_every_report_and_has_a_mean(mechanism, rng):
    reports = window(mechanism)
    d = _dominance.on_plane(mechanism, reports)
    near = rng.permutation(reports)[:3000]
    assert dominates(mechanism, near, _dominance.on_plane(mechanism, near), rng)
    assert not dominates(mechanism, near, _dominance.on_plane(mechanism, near) - 1e-3, rng)
    worst = max(expected(mechanism, reports, d, vertex) for vertex in np.eye(mechanism.k)[[0, -1]])
    assert worst * (1 - 1e-10) <= bound(mechanism)
    if mechanism.k == 1:
        assert bound(mechanism) == pytest.approx(worst, rel=1e-10)


@pytest.mark.parametrize("epsilon", [1e-17, 1e-6, 50.0, 800.0])
def test_extreme_noise_on_a_line_has_a_finite_mean(epsilon):
    assert np.isfinite(bound(ik.LinearGeometric(ik.Line(0, 10**6), epsilon)))
    assert answers(ik.LinearGeometric(10, epsilon)) == [YES] * 4


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
    # the discontinuity: the report occurs at the truth, and next to the vertex its log-probability falls without end
    logs = [np.log(np.array([1 - t, t, 0]) @ HOLES[:, 2]) for t in (1e-2, 1e-10, 1e-100, 1e-300)]
    assert np.diff(logs).max() < -10
    assert np.array([1, 0, 0]) @ HOLES[:, 2] == 0


def errors(matrix, theta, n, rng, runs=40):
    """Total variation between the truth and the estimates of `runs` samples of n reports."""
    mechanism = ik.MatrixMechanism(matrix)
    tallies = [mechanism.tally_counts(rng.multinomial(n, mechanism.forward(theta))) for _ in range(runs)]
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
    # (1, 0, 0) and (0, 0, 1) give the same reports: the errors at the two cannot both fall below one half
    apart = [errors(MERGED, np.array(theta), 10**6, rng, runs=5).max() for theta in ([1.0, 0, 0], [0, 0, 1.0])]
    assert max(apart) > 0.49


def test_zeros_and_no_identification():
    assert answers([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]) == [NO, YES, *[NOT_BY_THIS_ROUTE] * 2]


def test_fewer_reports_than_secrets():
    assert answers(ik.compose(ik.RandomizedResponse(5, 1.0), np.tile([0.3, 0.7], (5, 1)))) == [NO, YES, YES, YES]


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

    def randomize(self, secrets, rng):
        return rng.poisson(np.asarray(secrets) + 1.0)

    def check_reports(self, reports):
        return np.asarray(reports)

    def channel(self, reports):
        raise NotImplementedError


def test_an_unknown_mechanism_with_a_matrix():
    assert answers(Homemade(TRIANGLE, 0.2)) == [YES, YES, NOT_BY_THIS_ROUTE, NOT_BY_THIS_ROUTE]
    assert answers(Homemade(TRIANGLE, 1.0)) == [NO, YES, YES, YES]


def test_an_unknown_mechanism_without_one():
    with pytest.raises(ValueError, match=r"mechanism must have reports that can be listed, got Endless.* as a Matrix"):
        consistency(Endless(ik.Line(0, 3)))


def test_what_is_no_matrix():
    with pytest.raises(ik.InvalidDistribution, match=r"row 1 sums to 0\.9"):
        consistency([[0.5, 0.5], [0.4, 0.5]])


def test_readable():
    found = consistency(HOLES)
    assert repr(found) == (
        "Consistency(consistent; identification yes, compactness yes, continuity not by this route, "
        "dominance not by this route)"
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
    assert words == " ".join([*(condition.reason for condition in found.conditions), found.reason]).split()
    assert str(found.conditions[1]) == "compactness: yes (the simplex over 3 secrets is closed and bounded)"


def test_frozen():
    found = consistency(HOLES)
    with pytest.raises(FrozenInstanceError):
        found.conditions = ()
    with pytest.raises(FrozenInstanceError):
        found.conditions[0].answer = NO
    assert found == consistency(HOLES)
