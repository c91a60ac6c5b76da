"""What dominates |log P(z given phi)| for all phi:
smallest entries by formula, and bounds for unbounded noise.
"""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import logsumexp

import ibukit as ik
from ibukit.identification import _dominance
from ibukit.identification.consistency import Answer, consistency
from instances import unchecked
from mechanism_cases import FINITE, OBLONG
from mechanism_cases import name as name_of
from oracles import naive

YES, NOT_BY_THIS_ROUTE = Answer.YES, Answer.NOT_BY_THIS_ROUTE


def answers(mechanism):
    return [condition.answer for condition in consistency(mechanism).conditions]


def bound(mechanism):
    return consistency(mechanism).conditions[3].bound


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
        return [
            hidden * flip**ones * (1 - flip) ** (k - 1 - ones)
            for hidden in (own, 1 - own)
            for ones in range(k)
        ]
    if isinstance(mechanism, ik.SubsetSelection):
        sets = math.comb(k - 1, mechanism.size - 1) * eps.exp() + math.comb(k - 1, mechanism.size)
        return [eps.exp() / sets, 1 / sets]
    a = (-eps).exp()
    pairs = list(itertools.product(range(k), repeat=2))
    if isinstance(mechanism, ik.TruncatedGeometric):
        return [a ** abs(x - z) / (1 + a) * (1 if z in (0, k - 1) else 1 - a) for x, z in pairs]
    if isinstance(mechanism, ik.LinearLaplace):

        def below(t):
            return (eps * t).exp() / 2 if t <= 0 else 1 - (-eps * t).exp() / 2

        half, found = Decimal("0.5"), []
        for x, z in pairs:
            x, z = (
                (x, z) if z <= x else (k - 1 - x, k - 1 - z)
            )  # mirrored, so that no tail is 1 minus a tail
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
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 0.7, 3.0, 36.0])
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
        unchecked(ik.RandomizedResponse, 5, 800.0),
        ik.TruncatedGeometric(100, 20.0),
        ik.LinearLaplace(100, 20.0),
        ik.Exponential(ik.Line(0, 99), 40.0),
        ik.TruncatedPlanarGeometric(ik.Grid(20, 20), 36.0),
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
    assert bound(ik.Rappor(2000, epsilon)) == pytest.approx(
        2000 * np.log1p(np.exp(epsilon / 2)), rel=1e-12
    )
    assert answers(ik.OptimizedUnaryEncoding(2000, epsilon)) == [YES] * 4


# Untruncated noise: infinitely many reports, a bound d(z) for each, and its mean.


def log_probabilities(mechanism, reports, phi):
    """Of untruncated noise, in logarithms:
    log sum_x phi_x e^(-eps |z - x|) plus the logarithm of the constant.
    """
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
GRIDS = [
    ik.PlanarGeometric(grid, eps)
    for grid in (ik.Grid(1, 1), OBLONG, ik.Grid(1, 6))
    for eps in (0.6, 1.0, 4.0)
]


def window(mechanism, decades=45.0):
    """Reports as far out as matters to the sum: beyond, there is less than e^-45 of it."""
    reach = int(decades / mechanism.epsilon) + 2
    if isinstance(mechanism, ik.LinearGeometric):
        return np.arange(mechanism.alphabet.first - reach, mechanism.alphabet.last + reach + 1)
    grid = mechanism.alphabet
    north, east = (int(np.ceil(reach / side)) for side in grid.cell_shape)
    return np.array(
        list(
            itertools.product(range(-north, grid.n_rows + north), range(-east, grid.n_cols + east))
        )
    )


def on_line(mechanism, reports):
    """d(z) = eps (|z - a| + l) - log c, with a the first value of the line,
    l = last - first, shape of `reports`.
    """
    first, last = mechanism.alphabet.first, mechanism.alphabet.last
    return mechanism.epsilon * (np.abs(reports - first) + (last - first)) + _dominance._minus_log_c(
        mechanism
    )


@pytest.mark.parametrize("size", [0.5, (3.0, 0.25), (0.25, 3.0)])
def test_no_two_cells_are_farther_apart_than_the_corners(size):
    for shape in ((3, 5), (5, 3), (1, 4), (4, 1)):
        mechanism = ik.PlanarGeometric(ik.Grid(*shape, size), 1.0)
        assert _dominance._diagonal(mechanism) == pytest.approx(
            mechanism.alphabet.distances().max(), rel=1e-12
        )


def on_plane(mechanism, reports):
    """d(z) = eps (|z - a| + l) - log lambda, with a a corner's cell,
    l the distance to the opposite corner's cell.
    """
    away = (reports - mechanism.alphabet.first) * np.array(mechanism.alphabet.cell_shape)
    away = np.hypot(away[:, 0], away[:, 1])
    return mechanism.epsilon * (away + _dominance._diagonal(mechanism)) - np.log(
        mechanism._table[0, 0]
    )


@pytest.mark.ledger("A-E2", "A-P3")
@pytest.mark.parametrize("mechanism", LINES, ids=name_of)
def test_on_a_line_the_bound_holds_for_every_report(mechanism, rng):
    # far beyond what doubles can hold as probabilities
    reports = np.concatenate([window(mechanism), [-(10**9), -5000, 5000, 10**9]])
    d = on_line(mechanism, reports)
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
    assert not dominates(mechanism, reports, on_line(shorter, reports), rng)


def expected(mechanism, reports, d, phi):
    """E[d(Z)] by summing over the reports; what is left out has to be next to nothing."""
    p = np.exp(log_probabilities(mechanism, reports, phi))
    assert p.sum() == pytest.approx(1, abs=1e-12)
    return p @ d


@pytest.mark.ledger("A-E2", "A-P3")
@pytest.mark.parametrize("mechanism", LINES, ids=name_of)
def test_on_a_line_the_mean_of_the_bound_is_the_closed_form(mechanism, rng):
    reports = window(mechanism)
    d = on_line(mechanism, reports)
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
    assert weights @ on_line(mechanism, reports) == pytest.approx(closed, rel=1e-10)
    assert closed >= bound(mechanism) * (1 - 1e-12)


@pytest.mark.parametrize("mechanism", GRIDS, ids=name_of)
def test_on_a_plane_the_bound_holds_for_every_report_and_has_a_mean(mechanism, rng):
    reports = window(mechanism)
    d = on_plane(mechanism, reports)
    near = rng.permutation(reports)[:3000]
    assert dominates(mechanism, near, on_plane(mechanism, near), rng)
    assert not dominates(mechanism, near, on_plane(mechanism, near) - 1e-3, rng)
    worst = max(expected(mechanism, reports, d, vertex) for vertex in np.eye(mechanism.k)[[0, -1]])
    assert worst * (1 - 1e-10) <= bound(mechanism)
    if mechanism.k == 1:
        assert bound(mechanism) == pytest.approx(worst, rel=1e-10)


@pytest.mark.parametrize("epsilon", [5e-15, 1e-6, 20.0, 36.0])
def test_extreme_noise_on_a_line_has_a_finite_mean(epsilon):
    assert np.isfinite(bound(ik.LinearGeometric(ik.Line(0, 10**6), epsilon)))
    assert answers(ik.LinearGeometric(10, epsilon)) == [YES] * 4
