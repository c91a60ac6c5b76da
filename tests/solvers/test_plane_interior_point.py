"""The interior point for planar channels against the dense one,
and on grids that only it can do.
"""

import warnings
from functools import cache

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import offset_masses, plane
from ibukit.solvers import interior_point
from ibukit.solvers import plane as _plane_interior_point
from ibukit.solvers._plane_cross_over import cross_over
from ibukit.solvers._plane_preconditioner import Preconditioner
from ibukit.solvers.interior_point_model import QuadraticTerm

GRIDS = [
    (18, 18, 1.0),
    (7, 20, 1.0),
    (20, 9, (1.0, 0.3)),
    (1, 90, 1.0),
]
TURNED = [(9, 20, (1.0, 0.3)), (2, 60, 1.0), (60, 1, 1.0)]  # and one that is nearly a row
EPSILONS = [0.1, 0.3, 1.0, 3.0]
FEW_AND_MANY = [[300], [10**6]] * 2  # at each epsilon one, `make slow` has both
BOTH = [[300, 10**6]] * 4
NAMES = ["truncated geometric", "laplace", "exponential"]


@cache
def masses(name, grid, eps):
    """What the noise gives to each cell:
    of wide Laplace noise it takes a second, and tests ask more than once.
    """
    return (
        offset_masses.geometric_table
        if name == "truncated geometric"
        else offset_masses.laplace_table
    )(grid, eps)


def make(name, grid, eps, reports):
    if name == "exponential":
        return plane.row_normalised(grid, eps, reports)
    return plane.remapped(grid, masses(name, grid, eps).copy(), reports)


def instance(name, grid, eps, n, rng):
    """A channel on the reports seen and q: some secrets with much mass, many with a little."""
    k = len(grid)
    theta = rng.dirichlet(np.full(k, 0.1)) * 0.9 + rng.dirichlet(np.ones(k)) * 0.1
    everything = make(name, grid, eps, np.arange(k))
    counts = rng.multinomial(
        n, theta @ everything.matrix() if k < 1000 else normal(everything.forward(theta))
    )
    seen = np.flatnonzero(counts)
    return make(name, grid, eps, seen), counts[seen] / n


def normal(p):
    return p / p.sum()


def excess(columns, q, theta):
    return (columns @ (q / (theta @ columns))).max() - 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("shape", "numbers"),
    [*(pytest.param(shape, FEW_AND_MANY, id=str(shape)) for shape in GRIDS)]
    + [
        pytest.param(shape, BOTH, marks=pytest.mark.slow, id=f"{shape}, both")
        for shape in [*GRIDS, *TURNED]
    ],
)
def test_it_agrees_with_the_dense_interior_point_within_the_sum_of_the_gaps(name, shape, numbers):
    rng = np.random.default_rng(sum(shape[:2]))
    grid = ik.Grid(shape[0], shape[1], cell_size=shape[2])
    # the quadrature of wide Laplace noise takes long
    for eps, reports in list(zip(EPSILONS, numbers, strict=True))[name == "laplace" :]:
        for n in reports:
            channel, q = instance(name, grid, eps, n, rng)
            columns = channel.matrix()
            theta, steps = _plane_interior_point.maximise(channel, q, 1e-9)
            assert (theta >= 0).all()
            assert theta.sum() == pytest.approx(1, abs=1e-12)
            assert 0 < steps <= 30
            mine = excess(columns, q, theta)
            assert mine <= 1.001e-9
            other, _ = interior_point.maximise(columns, q, 1e-9)
            difference = q @ np.log(theta @ columns) - q @ np.log(other @ columns)
            assert -mine - 1e-14 <= difference <= excess(columns, q, other) + 1e-14


def test_reports_beyond_the_grid_on_the_infinite_plane():
    rng = np.random.default_rng(0)
    mechanism = ik.PlanarGeometric(ik.Grid(16, 12), 0.7)
    reports = mechanism.randomize(rng.choice(192, 3000, p=rng.dirichlet(np.full(192, 0.1))), rng)
    tally = mechanism.tally(reports)
    cells = tally.parts[0].reports
    beyond = mechanism._beyond(cells)
    channel, far = plane.infinite(mechanism.alphabet, 0.7, mechanism._table[0, 0], cells, beyond)
    channel.columns[:] = mechanism._columns(cells[far])
    theta, steps = _plane_interior_point.maximise(channel, tally.frequencies, 1e-9)
    assert steps <= 30
    assert excess(tally.matrix(), tally.frequencies, theta) <= 1.001e-9


@pytest.mark.parametrize("name", NAMES)
def test_the_preconditioner_is_near_the_inverse(name):
    # eigenvalues of the product: conjugate gradients need about the root of their ratio in
    # iterations
    for shape, eps, most in (
        ((30, 30, 1.0), 0.5, 20),
        ((12, 40, 1.0), 0.1, 60),
        ((40, 12, (1.0, 0.5)), 1.0, 20),
    ):
        grid = ik.Grid(*shape[:2], cell_size=shape[2])
        channel = make(name, grid, eps, np.arange(len(grid)))
        matrix = channel.matrix()
        normal_matrix = (matrix / matrix.mean(axis=0)) @ matrix.T
        h = channel.adjoint_of_squares(1 / matrix.mean(axis=0))
        np.testing.assert_allclose(h, np.diag(normal_matrix), rtol=1e-9)
        d = h * np.exp(np.random.default_rng(1).uniform(-6, 3, len(h)))
        preconditioner = Preconditioner(channel)
        assert preconditioner.factor(d, h)
        inverse = np.array([preconditioner.solve(row) for row in np.eye(len(h))])
        assert np.abs(inverse - inverse.T).max() <= 1e-4 * inverse.max()
        root = np.linalg.cholesky(normal_matrix + np.diag(d))
        eigenvalues = np.linalg.eigvalsh(root.T @ (inverse + inverse.T) / 2 @ root)
        assert eigenvalues[0] > 0
        assert eigenvalues[-1] / eigenvalues[0] < most
        diagonal = np.linalg.eigvalsh(root.T @ (root / (d + h)[:, None]))
        assert diagonal[-1] / diagonal[0] > 5 * most or name != "truncated geometric"


@pytest.mark.parametrize("centring", [1.0, 0.2, 0.0])
def test_what_a_solution_leaves_is_a_share_of_each_product_or_of_their_mean(centring):
    rng = np.random.default_rng(12)
    channel, q = instance("truncated geometric", ik.Grid(30, 34), 0.3, 10**5, rng)
    model = _plane_interior_point.PlaneModel(channel, Preconditioner(channel))
    points = interior_point.central_path(model, q, np.full(channel.k, 1 / channel.k), careful=False)
    point = next(found for found in points if found.mu < 1e-8)
    assert (point.theta * point.s).max() > 5 * point.mu, "or the two would be the same"
    rhs = rng.normal(size=channel.k) * point.s
    solution = model.system(point, QuadraticTerm.none(), False)(rhs, None, centring)
    rest = (
        rhs
        - point.s / point.theta * solution
        - channel.gram_product(point.lam / point.nu, solution)
    )
    allowed = model.residual * max(centring, 0.05) * np.maximum(point.mu, point.theta * point.s)
    off = np.abs(point.theta * rest) / allowed
    assert 1e-3 < off.max() <= 1 + 1e-6  # and not many digits more than that


def test_strips_overlap_and_their_windows_are_a_partition():
    grid = ik.Grid(80, 90)
    strips = Preconditioner(make("exponential", grid, 0.5, np.arange(len(grid))))._strips
    assert len(strips) > 2
    total = np.zeros(80)
    for strip in strips:
        total[strip.start : strip.stop] += strip.window[:, 0] ** 2
    np.testing.assert_allclose(total, 1, rtol=1e-14)
    assert len(Preconditioner(make("exponential", grid, 0.02, np.arange(len(grid))))._strips) == 1


def test_secrets_without_mass_get_exactly_none():
    rng = np.random.default_rng(3)
    grid = ik.Grid(24, 24)
    theta = np.zeros(576)
    theta[[30, 300, 500]] = [0.5, 0.3, 0.2]
    everything = make("truncated geometric", grid, 0.5, np.arange(576))
    counts = rng.multinomial(100_000, theta @ everything.matrix())
    seen = np.flatnonzero(counts)
    channel = make("truncated geometric", grid, 0.5, seen)
    found, _ = _plane_interior_point.maximise(channel, counts[seen] / 100_000, 1e-9)
    assert (found > 0).sum() < 60
    assert np.abs(found - theta).max() < 0.05


def test_what_cannot_be_reached_is_the_best_point_and_no_nan():
    channel, q = instance("laplace", ik.Grid(12, 12), 0.4, 5000, np.random.default_rng(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theta, steps = _plane_interior_point.maximise(channel, q, 0.0)
    assert np.isfinite(theta).all()
    assert theta.sum() == pytest.approx(1, abs=1e-12)
    assert excess(channel.matrix(), q, theta) < 1e-9
    assert steps <= sum(settings.max_iter for settings in _plane_interior_point.TRIES)


@pytest.mark.parametrize(
    "shape",
    [(64, 64), *(pytest.param(shape, marks=pytest.mark.slow) for shape in ((40, 100), (130, 33)))],
    ids=str,
)
@pytest.mark.parametrize("eps", [0.05, pytest.param(0.2, marks=pytest.mark.slow), 1.0, 3.0])
def test_grids_of_thousands_of_cells(shape, eps):
    for name in ("truncated geometric", "exponential"):
        channel, q = instance(name, ik.Grid(*shape), eps, 10**5, np.random.default_rng(5))
        theta, steps = _plane_interior_point.maximise(channel, q, 1e-8)
        assert steps <= 30
        assert channel.adjoint(q / channel.forward(theta)).max() - 1 <= 1e-8


def city(side, rng):
    """Mass on 1500 cells around 25 centres, and a little nearly everywhere."""
    theta = np.zeros((side, side))
    centres = rng.uniform(0.08 * side, 0.92 * side, size=(25, 2))
    for j in range(1500):
        row, col = np.clip(
            np.round(centres[rng.integers(25)] + rng.normal(0, 0.035 * side, 2)), 0, side - 1
        )
        theta[int(row), int(col)] += 1 / (j + 1)
    background = rng.gamma(0.05, size=side * side)
    return 0.95 * theta.ravel() / theta.sum() + 0.05 * background / background.sum()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["truncated geometric", "exponential"])
def test_a_city_of_65536_cells_and_ten_million_reports(name):
    rng = np.random.default_rng(6)
    grid = ik.Grid(256, 256)
    theta = city(256, rng)
    counts = rng.multinomial(
        10**7, normal(make(name, grid, 0.2, np.arange(len(grid))).forward(theta))
    )
    seen = np.flatnonzero(counts)
    channel, q = make(name, grid, 0.2, seen), counts[seen] / 10**7
    found, steps = _plane_interior_point.maximise(channel, q, 1e-8)
    assert steps <= 30
    assert channel.adjoint(q / channel.forward(found)).max() - 1 <= 1e-8
    assert (found > 0).sum() < 5000
    # the truth itself cannot be likelier by more than the gap
    assert q @ np.log(channel.forward(theta)) <= q @ np.log(channel.forward(found)) + 1e-8


def test_the_cross_over_finds_the_dense_solutions_support():
    rng = np.random.default_rng(7)
    for name in NAMES:
        channel, q = instance(name, ik.Grid(15, 18), 0.8, 20_000, rng)
        theta, _ = _plane_interior_point.maximise(channel, q, 1e-9)
        other, _ = interior_point.maximise(channel.matrix(), q, 1e-12)
        assert ((theta > 0) == (other > 1e-9)).all()
        np.testing.assert_allclose(theta, other, atol=1e-6)


def test_the_cross_over_takes_back_a_wrong_guess():
    channel, q = instance("exponential", ik.Grid(15, 18), 0.8, 20_000, np.random.default_rng(8))
    theta, _ = _plane_interior_point.maximise(channel, q, 1e-10)
    support = np.flatnonzero(theta)
    slack = np.where(theta > 0, 0.0, 1.0)
    slack[support[:: len(support) // 3]] = 1.0  # these are guessed to be 0
    outside = np.flatnonzero(theta == 0)[:3]
    guess = theta.copy()
    guess[outside] = 1e-3
    slack[outside] = 0.0  # and these not to be
    excess_found, found = cross_over(channel, q, guess, slack, Preconditioner(channel), 1e-9)
    assert excess_found <= 1e-9
    assert ((found > 0) == (theta > 0)).all()
    np.testing.assert_allclose(found, theta, atol=1e-7)
