"""Planar kernels by Fourier transform against their dense matrices:
accuracy, transposes, and the laws of draws.
"""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chi2

import ibukit as ik
from ibukit._ground.rounding import UNIT_ROUNDOFF
from ibukit.channels import DenseChannel, offset_masses, plane
from ibukit.channels.fourier.rounding import Margins
from ibukit.channels.plane import MAX_MATRIX_ENTRIES, PlaneChannel
from oracles import naive

SHAPES = [(1, 1), (1, 9), (7, 1), (2, 2), (2, 6), (3, 3), (5, 8), (12, 31), (24, 24)]
SIZES = [1.0, (0.5, 1.3)]
EPSILONS = [0.3, 1.0, 6.0]
NAMES = ["truncated geometric", "laplace", "exponential", "infinite"]
LARGE = ik.Grid(47, 46)


def seen(grid, rng, share=0.4):
    return np.unique(rng.integers(0, len(grid), max(1, int(share * len(grid)))))


def case(name, grid, eps, rng, reports=None):
    """A channel by convolution, and the dense matrix that the small mechanism has."""
    if name == "infinite":
        mechanism = ik.PlanarGeometric(grid, eps)
        cells = np.unique(
            rng.integers(-9, [grid.n_rows + 9, grid.n_cols + 9], size=(300, 2)), axis=0
        )
        dense = mechanism._columns(cells)
        channel, far = plane.infinite(
            grid, eps, mechanism._table[0, 0], cells, mechanism._beyond(cells)
        )
        channel.columns[:] = dense[:, far]
        return channel, dense
    reports = seen(grid, rng) if reports is None else reports
    if name == "exponential":
        channel = plane.row_normalised(grid, eps / 2, reports)
        return channel, ik.Exponential(grid, eps).matrix()[:, reports]
    make = (
        offset_masses.geometric_table
        if name == "truncated geometric"
        else offset_masses.laplace_table
    )
    kind = ik.TruncatedPlanarGeometric if name == "truncated geometric" else ik.PlanarLaplace
    return plane.remapped(grid, make(grid, eps), reports), kind(grid, eps).matrix()[:, reports]


@pytest.mark.parametrize("factor", [1.0, 1e-12, 1e12])
def test_a_kernel_reaches_as_far_in_any_unit(factor, rng):
    """What is left out of it is small beside its own largest number:
    its unit stands in the reports' scale.
    """
    cells = np.column_stack([np.zeros(200, dtype=int), np.arange(200)])
    kernel = np.exp(-np.arange(200.0))
    ones, none = np.ones(200), np.empty((200, 0))
    channel = PlaneChannel(
        (1, 200),
        ones,
        factor * kernel[None, None],
        np.zeros(200, dtype=int),
        cells,
        ones / factor,
        none,
    )
    theta = rng.dirichlet(ones)
    offsets = abs(np.subtract.outer(np.arange(200), np.arange(200)))
    np.testing.assert_allclose(channel.forward(theta), theta @ kernel[offsets], rtol=1e-12)


@pytest.mark.parametrize("shape", [(40, 3), (3, 40), (12, 12), (1, 500)], ids=str)
@pytest.mark.parametrize("sides", [(1.0, 1.0), (0.5, 2.0)], ids=str)
def test_noise_reaches_as_far_as_a_half_line_of_offsets_needs(shape, sides):
    """At a distance D to its side the first term left out is e^-45 of the nearest,
    and the one before is not.
    """
    grid, eps = ik.Grid(*shape, cell_size=sides), 0.3
    for axis, cells in enumerate(offset_masses.reach(grid, eps)):
        # how far the noise goes beyond the grid on this axis, from the far corner of the other
        beside = eps * shape[1 - axis] * grid.cell_shape[1 - axis]
        beyond = eps * (cells - shape[axis] + np.array([0, -1])) * grid.cell_shape[axis]
        farther = np.hypot(beside, beyond) - beside
        assert farther[0] >= offset_masses.MAX_NATS_AWAY * (1 - 1e-12) > farther[1]


@pytest.mark.parametrize("sides", [(1.0, 1.0), (0.5, 3.0)], ids=str)
@pytest.mark.parametrize("eps", [0.5, 3.0, 12.0])
def test_what_leaves_the_origins_cell_and_what_stays_is_all(eps, sides):
    """The density eps^2 / (2 pi) e^(-eps r), added up over the cell by a fine grid of midpoints."""
    grid = ik.Grid(1, 1, cell_size=sides)
    y, x = (side * ((np.arange(1500) + 0.5) / 1500 - 0.5) for side in grid.cell_shape)
    density = eps**2 / (2 * np.pi) * np.exp(-eps * np.hypot(y[:, None], x))
    inside = density.mean() * np.prod(grid.cell_shape)
    assert offset_masses.laplace_escape(grid, eps) == pytest.approx(1 - inside, rel=1e-3)


def spiky(k, rng):
    """All mass on one secret; half on two; gamma; uniform."""
    one, two = np.zeros(k), rng.dirichlet(np.full(k, 1e-2)) / 2
    one[rng.integers(k)] = 1
    two[rng.integers(k, size=2)] += 0.25
    return [one, two, rng.dirichlet(np.full(k, 0.1)), np.full(k, 1 / k)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_forward_and_adjoint_are_those_of_the_dense_matrix(name, shape, monkeypatch):
    # the four columns that a large grid would give to the farthest reports, here for a small one
    monkeypatch.setattr(plane, "MAX_MATRIX_ENTRIES", 4 * np.prod(shape))
    rng = np.random.default_rng(sum(shape))
    for size in SIZES:
        grid = ik.Grid(*shape, cell_size=size)
        for eps in EPSILONS[
            name == "laplace" and size != 1.0 :
        ]:  # the quadrature of wide Laplace noise takes long
            channel, dense = case(name, grid, eps, rng)
            np.testing.assert_allclose(channel.matrix(), dense, rtol=1e-12)
            secret = len(grid) // 2
            np.testing.assert_allclose(
                channel.rows(np.array([secret]))[0], dense[secret], rtol=1e-12
            )
            for theta in spiky(len(grid), rng):
                p = theta @ dense
                assert (
                    np.abs(channel.convolve(theta) - p) <= 1e-13 * dense.max(axis=0)
                ).all() or name == "infinite"
                np.testing.assert_allclose(channel.forward(theta), p, rtol=1e-10)
                # the weights of a certificate: as large as g <= 1 allows, on any subset of the
                # reports
                w = rng.random(len(p)) * (rng.random(len(p)) < 0.5) / dense.max(axis=0)
                g = dense @ w
                assert np.abs(channel.adjoint(w) - g).max() <= 1e-12 * g.max()
            w = rng.normal(size=len(p))
            size_of_g = np.abs(dense @ np.abs(w)).max()
            assert np.abs(channel.adjoint(w) - dense @ w).max() <= 1e-13 * size_of_g
            left, right = channel.convolve(theta) @ w, theta @ channel.adjoint(w)
            assert abs(left - right) <= 1e-13 * (np.abs(w) @ p)


def test_the_terms_are_summed_only_where_a_transform_could_be_wrong(monkeypatch):
    # at 6 nats a cell a spike is e^-84 away from the far corner, where a transform holds nothing
    # but rounding
    grid = ik.Grid(15, 15)
    channel, dense = case(
        "truncated geometric", grid, 6.0, np.random.default_rng(0), np.arange(225)
    )
    corner = np.eye(1, 225)[0]
    assert (np.abs(channel.convolve(corner) / dense[0] - 1) > 1e-3).sum() > 150
    np.testing.assert_allclose(channel.forward(corner), dense[0], rtol=1e-13)
    uniform = np.full(225, 1 / 225)
    summed = []
    monkeypatch.setattr(
        PlaneChannel,
        "_direct_sums",
        lambda self, mass, weak: summed.append(len(weak)) or dense[0][weak],
    )
    channel.forward(uniform)
    assert not summed
    channel.forward(corner)
    assert summed[0] > 150


@pytest.mark.parametrize("name", NAMES)
def test_no_secret_is_ruled_out_by_rounding(name):
    grid = ik.Grid(30, 30)
    channel, dense = case(name, grid, 3.0, np.random.default_rng(1))
    w = np.zeros(dense.shape[1])
    w[0] = 1.0
    g = channel.adjoint(w)
    assert (g >= 0).all()
    if name != "infinite":
        assert g.min() > 0
        assert (g <= dense[:, 0] + 1e-13).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_squared_channel_gives_the_diagonal_of_the_normal_matrix(name):
    rng = np.random.default_rng(2)
    channel, dense = case(name, ik.Grid(9, 14, cell_size=(1.0, 0.7)), 0.8, rng)
    w = rng.random(dense.shape[1])
    np.testing.assert_allclose(
        channel.adjoint_of_squares(w), np.diag((dense * w) @ dense.T), rtol=1e-11
    )


@pytest.mark.parametrize("name", NAMES)
def test_pickling_keeps_the_parameters_and_drops_the_spectra(name):
    rng = np.random.default_rng(3)
    channel, _ = case(name, ik.Grid(12, 9), 0.8, rng)
    before = len(pickle.dumps(channel))
    theta = rng.dirichlet(np.ones(108))
    p = channel.forward(theta)
    assert len(pickle.dumps(channel)) == before
    assert (pickle.loads(pickle.dumps(channel)).forward(theta) == p).all()


@pytest.mark.parametrize("size", [1.0, (0.5, 1.3)])
def test_row_sums_of_the_exponential_mechanism(size):
    grid = ik.Grid(13, 8, cell_size=size)
    channel = plane.row_normalised(grid, 0.4, np.arange(len(grid)))
    np.testing.assert_allclose(channel.matrix().sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(
        channel.factor, 1 / np.exp(-0.4 * grid.distances()).sum(axis=1), rtol=1e-14
    )


def test_a_cell_reached_by_going_round_the_padded_grid_would_be_seen():
    # the reach ends at e^-45; a padding shorter than grid plus reach would bring the other side's
    # mass back
    grid = ik.Grid(1, 400)
    channel, dense = case(
        "truncated geometric", grid, 1.5, np.random.default_rng(4), np.arange(400)
    )
    assert channel._lengths[1] < 2 * 400 - 1
    theta = np.zeros(400)
    theta[-2] = 1
    assert np.abs(channel.convolve(theta) - dense[-2]).max() < 1e-15


def large_mechanisms():
    noise = [ik.TruncatedPlanarGeometric(LARGE, 0.4), ik.PlanarLaplace(LARGE, 0.4)]
    return [*noise, ik.Exponential(LARGE, 0.8), ik.TightConstraints(LARGE, 1.5)]


@pytest.mark.parametrize("name", ["exponential", "infinite"])
def test_reports_in_the_middle_of_a_much_larger_grid(name):
    # largest offset and reach together are less than the side of the grid
    grid, rng = ik.Grid(60, 9), np.random.default_rng(1)
    if name == "exponential":
        channel, dense = case(name, grid, 9.0, rng, grid.codes([[29, 4], [30, 3]]))
    else:
        mechanism, cells = ik.PlanarGeometric(grid, 4.5), np.array([[29, 4], [30, 3]])
        channel, far = plane.infinite(grid, 4.5, mechanism._table[0, 0], cells, np.zeros(2))
        assert len(far) == 0
        dense = mechanism._columns(cells)
    assert channel._largest_offsets[0] + channel._reach[0] + 1 < 60
    theta = rng.dirichlet(np.ones(len(grid)))
    np.testing.assert_allclose(channel.forward(theta), theta @ dense, rtol=1e-9)
    np.testing.assert_allclose(
        channel.adjoint(np.array([1.0, 2.0])), dense @ [1.0, 2.0], atol=1e-14
    )


def test_large_grids_use_convolutions_and_small_ones_do_not():
    for mechanism in large_mechanisms():
        assert isinstance(mechanism.channel(np.arange(mechanism.k)), PlaneChannel)
        few = mechanism.channel(np.array([0, 50, 2000]))
        assert isinstance(few, DenseChannel)
        np.testing.assert_allclose(few.columns, mechanism.matrix()[:, [0, 50, 2000]], rtol=1e-13)
        assert isinstance(
            type(mechanism)(ik.Grid(20, 14), 1.5).channel(np.arange(280)), DenseChannel
        )
        theta = np.random.default_rng(0).dirichlet(np.full(mechanism.k, 0.1))
        np.testing.assert_allclose(mechanism.forward(theta), theta @ mechanism.matrix(), rtol=1e-10)
        np.testing.assert_allclose(mechanism.adjoint(theta), mechanism.matrix() @ theta, rtol=1e-10)
    window = np.indices((70, 70)).reshape(2, -1).T - 12
    assert len(window) * len(LARGE) > MAX_MATRIX_ENTRIES
    assert isinstance(ik.PlanarGeometric(LARGE, 0.4).channel(window), PlaneChannel)
    assert isinstance(ik.PlanarGeometric(ik.Grid(20, 14), 0.4).channel(window), DenseChannel)
    assert isinstance(ik.PlanarGeometric(LARGE, 0.4).channel(window * 1000 + 500_000), DenseChannel)


def test_reports_far_out_on_the_infinite_grid_keep_their_columns():
    mechanism = ik.PlanarGeometric(LARGE, 2.0)
    window = np.indices((80, 80)).reshape(2, -1).T - 17
    reports = np.concatenate([window, [[-400, 3], [20, 900], [5000, 5000]]])
    tally = mechanism.tally(reports)
    channel = tally.operator
    assert isinstance(channel, PlaneChannel)
    assert channel.columns.shape == (LARGE.n_rows * LARGE.n_cols, MAX_MATRIX_ENTRIES // len(LARGE))
    assert (tally.log_scale < 0).sum() == 3
    dense = mechanism._columns(tally.parts[0].reports)
    np.testing.assert_allclose(channel.matrix(), dense, rtol=1e-11)
    theta = np.random.default_rng(0).dirichlet(np.full(len(LARGE), 0.01))
    np.testing.assert_allclose(channel.forward(theta), theta @ dense, rtol=1e-10)
    w = 1 / dense.max(axis=0)
    np.testing.assert_allclose(channel.adjoint(w), dense @ w, rtol=1e-9)


def surprise(counts, expected):
    """Chi-square tail of counts in blocks of at least 30 expected."""
    order = np.argsort(expected, kind="stable")
    blocks = np.cumsum(expected[order]) // 40
    observed, wanted = (
        np.bincount(blocks.astype(int), weights=a[order]) for a in (counts, expected)
    )
    keep = wanted >= 30
    statistic = ((observed - wanted)[keep] ** 2 / wanted[keep]).sum()
    return chi2.sf(statistic, keep.sum())


@pytest.mark.parametrize("index", range(4))
def test_simulated_tallies_of_large_grids_follow_the_matrix(index):
    mechanism = large_mechanisms()[index]
    rng = np.random.default_rng(5)
    users = np.zeros(mechanism.k, dtype=int)
    users[[0, 46 * 20 + 10, 46 * 46 + 45]] = (
        20_000  # these go by rows: two corners and an inner cell
    )
    users[rng.integers(0, mechanism.k, 50)] += 60  # these one by one
    tally = mechanism.simulate(users, rng)
    counts = np.bincount(tally.parts[0].reports, weights=tally.counts, minlength=mechanism.k)
    assert counts.sum() == users.sum()
    expected = users @ mechanism.matrix()
    assert surprise(counts, expected) > 1e-3
    other = type(mechanism)(LARGE, mechanism.epsilon * 1.1)
    assert surprise(counts, users @ other.matrix()) < 1e-9


def test_reports_of_the_exponential_mechanism_on_a_large_grid_follow_the_matrix():
    mechanism = ik.Exponential(LARGE, 0.8)
    secrets = np.repeat([3, 1000], 20_000)
    reports = mechanism.randomize(secrets, np.random.default_rng(6))
    counts = np.bincount(reports, minlength=mechanism.k)
    assert surprise(counts, 20_000 * mechanism.matrix()[[3, 1000]].sum(axis=0)) > 1e-3
    assert surprise(counts, 20_000 * mechanism.matrix()[[3, 1100]].sum(axis=0)) < 1e-9


def test_a_large_grid_is_estimated_without_its_matrix(monkeypatch):
    mechanism = ik.TruncatedPlanarGeometric(ik.Grid(120, 120), 0.5)
    monkeypatch.setattr(offset_masses, "remapped_matrix", None)
    users = np.zeros(mechanism.k, dtype=int)
    users[[7000, 7100, 14_399]] = 5000
    tally = mechanism.simulate(users, np.random.default_rng(7))
    estimate = ik.ibu(tally, stop=ik.Steps(5))
    assert estimate.distribution.sum() == pytest.approx(1, abs=1e-12)
    assert (
        0.97 < tally.forward(users / 15_000).sum() < 1
    )  # the rest is on cells that no one reported


def test_remapped_noise_on_a_grid_agrees_with_the_oracle():
    kernels = plane.remapped(
        ik.Grid(4, 3, (0.5, 0.2)),
        offset_masses.geometric_table(ik.Grid(4, 3, (0.5, 0.2)), 1.0),
        np.arange(12),
    )
    np.testing.assert_allclose(
        kernels.matrix(), naive.truncated_planar_geometric(4, 3, 0.5, 0.2, 1.0), rtol=1e-12
    )


@pytest.mark.parametrize(("height", "width", "rel"), [(489.0, 288.0, 5e-12), (60.0, 50.0, 1e-13)])
def test_laplace_noise_of_cells_far_wider_than_it(height, width, rel):
    """Where it ends after a few cells each mass has its digits,
    however small: privacy is about ratios.
    """
    table = offset_masses.laplace_table(ik.Grid(1, 1, (height, width)), 1.0)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    panels = np.arange(-39, 40, 2) / 40  # the middles of 40 in a cell
    at, each = (panels[:, None] + nodes / 40).ravel() / 2, np.tile(weights / 80, 40)
    for i, j in [(0, 1), (1, 0), (1, 1)]:
        density = np.exp(-np.hypot((i + at[:, None]) * height, (j + at) * width)) / (2 * np.pi)
        assert table[i, j] == pytest.approx(each @ density @ each * height * width, rel=rel, abs=0)


@pytest.mark.parametrize("shape", [1.0, (1.0, 2.0), (3.0, 0.5)])
def test_what_leaves_a_cell_is_at_least_the_mass_of_the_two_nearest(shape):
    """No more: a sum in doubles adds one pair at a time, and rounds each to nothing."""
    grid = ik.Grid(9, 9, shape)
    epsilon = 10 / min(grid.cell_shape)
    table = offset_masses.geometric_table(grid, epsilon)
    two = 2 * max(table[0, 1], table[1, 0]) / table[0, 0]
    assert offset_masses.geometric_escape(grid, epsilon) == pytest.approx(two, rel=1e-9)
    assert 1 - table[0, 0] > two * 0.999


def test_a_probability_that_is_summed_directly_is_lowered_by_less_than_a_transformed_one():
    margins = Margins((64, 64), np.ones(1), np.full(1, 0.01), np.zeros(1), k=20, distinct=True)
    job = SimpleNamespace(kind=0, piece=None)
    values, weak = np.full(2, 0.25), np.array([1])
    transformed, summed = margins.lowered(job, values, 1.0, 1.0, weak, too_many=False)
    assert 0.25 * (1 - 1e-12) < transformed < summed < 0.25 * (1 - 20 * UNIT_ROUNDOFF)
    # Of too many only the heavy mass is summed directly.
    assert margins.lowered(job, values, 1.0, 1.0, weak, too_many=True)[1] < summed


def test_sums_term_by_term_are_lowered_by_their_rounding(rng):
    grid = ik.Grid(3, 4)
    channel = plane.row_normalised(grid, 1.0, np.arange(12))
    mass = rng.random((3, 4))
    margins = SimpleNamespace(sharp=True, lowered=lambda *_: np.zeros(12))
    job = SimpleNamespace(reports=slice(None))
    lower = channel._lowered(margins, job, np.ones(12), mass, np.arange(0), 1.0)
    sums = channel._direct_sums(mass.ravel(), np.arange(12))
    assert (sums * (1 - 1e-13) < lower).all()
    assert (lower < sums * (1 - 12 * UNIT_ROUNDOFF)).all()


@pytest.mark.parametrize("rows", [2, 3, 5, 8, 9])
@pytest.mark.parametrize("cols", [4, 6, 12, 15])
def test_no_offset_within_reach_wraps_around_onto_another(rows, cols):
    channel = plane.row_normalised(ik.Grid(rows, cols), 1.0, np.arange(rows * cols))
    offsets = zip(channel._lengths, channel._largest_offsets, channel._reach, strict=True)
    assert all(length > largest + reach for length, largest, reach in offsets)
