"""Laplace noise as it is released:
geometric on a fine lattice, its law beside the continuous one, and its level.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import ibukit as ik
from bit_trees import Seeded, assert_law
from ibukit.errors import NoExactSampler
from ibukit.exact import OPERATING_SYSTEM
from ibukit.mechanisms.points import LinearLaplacePoints, PlanarLaplacePoints, lattice
from ibukit.mechanisms.points.lattice import LatticeAxis, LineLattice, PlaneLattice

LINE = ik.Line(3, 6)
GRID = ik.Grid(3, 4, cell_size=(0.5, 0.7), first=(2, -1))
ALL = [ik.LinearLaplace(LINE, 0.7), ik.PlanarLaplace(GRID, 1.3), LinearLaplacePoints(LINE, 0.7)]
ALL.append(PlanarLaplacePoints(GRID, 1.3))
names = pytest.mark.parametrize("mechanism", ALL, ids=lambda mechanism: type(mechanism).__name__)


def masses(steps, reach):
    """LatticeAxis from -reach to reach, and where each comes from and goes to,
    shape (cells, cells, 2 reach + 1).
    """
    noise = np.arange(-reach, reach + 1)
    places = steps.centre(np.arange(steps.cells))[:, None] + noise
    return noise, steps.nearest(places)[:, None] == np.arange(steps.cells)[:, None]


def matrix_of_line(steps):
    """The law of codes by sums over the lattice."""
    noise, goes = masses(steps, math.ceil(45 / steps.nats))
    weights = np.exp(-float(steps.nats) * np.abs(noise))
    return goes @ (weights / weights.sum())


def matrix_of_plane(north, east):
    """The law of codes by sums over the lattice; the noise is cut off at e^-25."""
    (i, rows), (j, cols) = (masses(steps, math.ceil(25 / steps.nats)) for steps in (north, east))
    weights = np.exp(-np.hypot(i[:, None] * float(north.nats), j * float(east.nats)))
    by_row = np.tensordot(rows.astype(float), weights / weights.sum(), axes=1)
    matrix = np.tensordot(
        by_row, cols.astype(float), axes=(2, 2)
    )  # (row, to row, column, to column)
    k = north.cells * east.cells
    return matrix.transpose(0, 2, 1, 3).reshape(k, k)


@pytest.mark.parametrize("fineness", [1, 4, 32])
def test_the_law_is_that_of_continuous_noise_up_to_what_is_said(fineness, monkeypatch):
    monkeypatch.setattr(lattice, "STEPS_PER_SCALE", fineness)
    line, plane = LineLattice(LINE, 3.0), PlaneLattice(GRID, 3.0)
    for matrix, expected, eta in (
        (matrix_of_line(line.steps), ik.LinearLaplace(LINE, 3.0).matrix(), 1 / fineness),
        (
            matrix_of_plane(plane.north, plane.east),
            ik.PlanarLaplace(GRID, 3.0).matrix(),
            math.sqrt(2) / fineness,
        ),
    ):
        off = np.abs(np.log(matrix / expected)).max()
        assert 1e-8 < off <= eta  # a lattice it is, and near enough


def test_steps_are_as_fine_as_is_said_and_no_finer():
    for epsilon, side, cells in [
        (0.1, 0.7, 20),
        (3.0, 1.0, 5),
        (72.0, 1.0, 4),
        (5e-15, 1.0, 9),
        (1e-7, 0.5, 3),
    ]:
        steps = LatticeAxis.of(epsilon, side, cells)
        assert steps.nats * steps.each == Fraction(epsilon) * Fraction(side)
        assert steps.each % 2 == 1  # no place is between two cells
        assert steps.nats <= Fraction(1, 2**20)
        assert steps.each <= 2 or Fraction(epsilon) * Fraction(side) / (steps.each - 2) > Fraction(
            1, 2**20
        )
        assert steps.nearest(steps.centre(np.arange(cells))).tolist() == list(range(cells))
        half = steps.each // 2
        edges = steps.centre(np.arange(cells))[:, None] + [-half, half]
        assert steps.nearest(edges).tolist() == [[cell, cell] for cell in range(cells)]
        assert steps.nearest(edges[:-1, 1] + 1).tolist() == list(range(1, cells))
        assert steps.nearest(np.array([-(2**60), 2**60])).tolist() == [0, cells - 1]


def test_the_law_of_the_lattice_by_every_branch_of_its_bits(monkeypatch):
    """Three steps of 1.5 nats a unit; the matrix is that of the sums."""
    monkeypatch.setattr(lattice, "STEPS_PER_SCALE", Fraction(1, 2))
    mechanism = ik.LinearLaplace(ik.Line(3, 5), 4.5)
    steps = LineLattice(mechanism.alphabet, 4.5).steps
    assert (steps.each, steps.nats) == (3, Fraction(3, 2))
    for secret, row in enumerate(matrix_of_line(steps)):
        expected = dict(enumerate(row.tolist()))
        assert_law(
            lambda source, x=secret: int(mechanism._release_from([x], True, source)[0]),
            expected,
            3,
            11,
            most_left=0.3,
        )
    with pytest.raises(AssertionError):
        assert_law(
            lambda source: int(mechanism._release_from([1], True, source)[0]),
            expected,
            3,
            11,
            most_left=0.3,
        )


def test_both_directions_have_their_own_steps(rng, monkeypatch):
    """A step a cell, so that steps to the north are shorter than those to the east."""
    monkeypatch.setattr(lattice, "STEPS_PER_SCALE", Fraction(1, 10))
    made, n = PlaneLattice(ik.Grid(3, 3, cell_size=(0.4, 1.5)), 1.5), 10_000
    assert (made.north.each, made.east.each) == (1, 1)
    counts = np.bincount(made.codes(np.full(n, 3), Seeded(rng)), minlength=9)
    assert stats.chisquare(counts, n * matrix_of_plane(made.north, made.east)[3]).pvalue > 1e-6
    turned = matrix_of_plane(made.east, made.north)[3]
    assert stats.chisquare(counts, n * turned).pvalue < 1e-6


@pytest.mark.parametrize("mechanism", ALL[:2], ids=lambda mechanism: type(mechanism).__name__)
def test_codes_have_the_law_of_the_matrix(mechanism, rng):
    n, secret = 30_000, mechanism.k - 2
    counts = np.bincount(
        mechanism._release_from(np.full(n, secret), True, Seeded(rng)), minlength=mechanism.k
    )
    assert stats.chisquare(counts, n * mechanism.matrix()[secret]).pvalue > 1e-6
    other = type(mechanism)(mechanism.alphabet, mechanism.epsilon * 1.06)
    assert stats.chisquare(counts, n * other.matrix()[secret]).pvalue < 1e-6


def test_points_have_the_law_of_the_noise(rng):
    off = ALL[3]._release_from(np.full(20_000, 6), True, Seeded(rng)) - [2.5 * 0.7, 1.5 * 0.5]
    radius, angle = np.hypot(*off.T), np.arctan2(off[:, 1], off[:, 0])
    assert stats.kstest(radius, stats.gamma(2, scale=1 / 1.3).cdf).pvalue > 1e-6
    assert stats.kstest(radius, stats.gamma(2, scale=1.05 / 1.3).cdf).pvalue < 1e-6
    assert stats.kstest(angle, stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > 1e-6
    off = ALL[2]._release_from(np.full(20_000, 2), True, Seeded(rng)) - 5
    assert stats.kstest(off, stats.laplace(scale=1 / 0.7).cdf).pvalue > 1e-6
    assert stats.kstest(off, stats.laplace(scale=1.1 / 0.7).cdf).pvalue < 1e-6


@pytest.mark.parametrize("kind", [LineLattice, PlaneLattice])
def test_all_secrets_have_the_same_noise_on_one_lattice(kind):
    """The same bits, moved by the way from one centre to the other:
    so no place has another constant.
    """
    made = kind(LINE if kind is LineLattice else GRID, 1.3)
    secrets = np.arange(4)
    places = [made.draw(np.full(50, x), Seeded(np.random.default_rng(5))) for x in secrets]
    for x in secrets:
        moved = [x * made.steps.each] if kind is LineLattice else [0, x * made.east.each]
        assert (places[x] == places[0] + moved).all()
    if kind is PlaneLattice:
        north = made.draw(np.full(50, 9), Seeded(np.random.default_rng(5)))
        assert (north == places[1] + [2 * made.north.each, 0]).all()


def test_a_report_is_made_of_its_place_alone(monkeypatch):
    """Doubles are added to no centre:
    two secrets that reach one place report the same double there.
    """
    monkeypatch.setattr(lattice, "STEPS_PER_SCALE", 2)
    made = PlaneLattice(GRID, 1.3)
    secrets = np.repeat(np.arange(12), 300)
    places = made.draw(secrets, Seeded(np.random.default_rng(7)))
    points = made.points(secrets, Seeded(np.random.default_rng(7)))
    together = len(np.unique(np.column_stack([places, points]), axis=0))
    assert len(np.unique(places, axis=0)) == len(np.unique(points, axis=0)) == together < 3600
    # negative control: the centre, in doubles, plus the noise, in doubles
    row, col = np.divmod(secrets, 4)
    own = np.column_stack([made.north.centre(row), made.east.centre(col)])
    sides = np.array([0.5, 0.7])
    added = (np.column_stack([row, col]) + 0.5) * sides + (places - own) * (
        sides / [made.north.each, made.east.each]
    )
    assert len(np.unique(np.column_stack([places, added]), axis=0)) > together
    line = LineLattice(LINE, 2.0)
    at = line.draw(np.arange(4), Seeded(np.random.default_rng(7)))
    assert (
        line.points(np.arange(4), Seeded(np.random.default_rng(7))).tolist()
        == (3 + at / line.steps.each).tolist()
    )


@names
def test_the_level_is_epsilon(mechanism):
    assert mechanism.release_epsilon == mechanism.epsilon
    assert (
        mechanism.release([], codes=True).shape
        == mechanism.randomize([], np.random.default_rng(1), codes=True).shape
    )


def test_reports_of_points_go_into_a_tally(rng):
    mechanism, theta = ik.PlanarLaplace(GRID, 4.0), np.arange(1, 13) / 78
    secrets = GRID.values[rng.choice(12, 1500, p=theta)]
    points = mechanism.of_points._release_from(secrets, False, Seeded(rng))
    estimate = ik.mle(mechanism.tally_points(points, outside="keep"))
    assert ik.squared_l2(estimate.distribution, theta) < ik.squared_l2(ik.uniform(12), theta) / 3
    line = ik.LinearLaplace(LINE, 2.0)
    assert line.tally_points(line.of_points.release([3, 4, 6])).n == 3


@pytest.mark.parametrize(
    "mechanism", [ik.PlanarLaplace(ik.Grid(300, 200), 2.0), ik.LinearLaplace(100_000, 0.01)]
)
def test_no_matrix_is_needed(mechanism):
    """It would take gigabytes."""
    secrets = np.full(50, mechanism.k // 2)
    reports = mechanism.release(secrets, codes=True)
    assert len(set(reports.tolist())) > 5
    assert mechanism.release_epsilon == mechanism.epsilon


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (LinearLaplacePoints(LINE, 1e-300), r"1e-300 times 1, must be from 2\^-50 to 2\^41 / 4"),
        (LinearLaplacePoints(LINE, 2.0**-51), r"4\.44089e-16 times 1, must"),
        (LinearLaplacePoints(LINE, 1e12), r"1e\+12 times 1, must"),
        (PlanarLaplacePoints(GRID, 1e300), r"1e\+300 times 0\.5, must be from 2\^-50 to 2\^41 / 3"),
        (PlanarLaplacePoints(ik.Grid(2, 2, cell_size=(1.0, 1e-200)), 1.0), "1 times 1e-200, must"),
    ],
)
def test_steps_that_do_not_fit_are_refused(mechanism, words):
    with pytest.raises(NoExactSampler, match="epsilon times the distance of neighbours, " + words):
        mechanism.release([0], codes=True)
    with pytest.raises(NoExactSampler):
        _ = mechanism.release_epsilon


def test_the_ends_of_what_fits():
    for epsilon in (2.0**-50, 2.0**39):
        mechanism = LinearLaplacePoints(LINE, epsilon)
        assert mechanism.release_epsilon == epsilon
        off = (
            np.abs(mechanism._release_from(np.zeros(20, dtype=int), True, OPERATING_SYSTEM) - 3)
            * epsilon
        )
        assert (
            1e-3 < np.median(off) < 7 or epsilon > 1
        )  # and far above 1 doubles next to 3 are coarser than the noise


@pytest.mark.parametrize("length", [1.0, 3.5 * 2**-20, 4.5 * 2**-20, 6 * 2**-20, 0.7, 0.3])
def test_a_cell_has_the_least_odd_number_of_steps_that_are_fine_enough(length):
    steps = LatticeAxis.of(length, 1.0, 4)
    assert steps.each % 2 == 1
    assert steps.nats == Fraction(length) / steps.each <= Fraction(1, lattice.STEPS_PER_SCALE)
    assert steps.each == 1 or Fraction(length) / (steps.each - 2) > Fraction(
        1, lattice.STEPS_PER_SCALE
    )
