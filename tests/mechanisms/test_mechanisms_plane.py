"""Planar geometric and planar Laplace noise against sums over a large window and quadrature."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

import ibukit as ik
from ibukit.mechanisms.spatial import _grid_mechanism
from ibukit.testing import check_mechanism
from oracles import naive

SHAPES = [
    (3, 3, 1.0, 1.0),
    (2, 4, 0.5, 0.8),
    (1, 4, 1.0, 1.0),
    (3, 1, 0.7, 0.7),
    (4, 3, 0.5, 0.2),
    (1, 1, 1.0, 1.0),
]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)
epsilons = pytest.mark.parametrize("eps", [1.0, 2.0, 20.0])
PLANAR = [ik.PlanarGeometric, ik.TruncatedPlanarGeometric, ik.PlanarLaplace]


def grid_of(shape):
    n_rows, n_cols, height, width = shape
    return ik.Grid(n_rows, n_cols, cell_size=(height, width))


def level(logs, distances):
    """The tight metric level of columns given by their logarithms."""
    k = len(logs)
    return max(
        np.abs(logs[x] - logs[y]).max() / distances[x, y]
        for x in range(k)
        for y in range(k)
        if x != y
    )


def laplace(shape, eps, pairs):
    """The oracle's masses of planar Laplace noise for (secret, report) pairs of cells."""
    n_rows, n_cols, height, width = shape
    boxes = [naive.planar_cell(x, z, n_rows, n_cols, height, width) for x, z in pairs]
    return np.array([naive.planar_laplace_polar(*box, eps) for box in boxes])


@pytest.mark.ledger("A-D10", "C-D3")
@shapes
@epsilons
def test_remapped_noise_is_that_of_a_large_window_cell_by_cell(shape, eps):
    mechanism = ik.TruncatedPlanarGeometric(grid_of(shape), eps)
    np.testing.assert_allclose(
        mechanism.matrix(), naive.truncated_planar_geometric(*shape, eps), rtol=1e-12
    )
    assert abs(mechanism.matrix().sum(axis=1) - 1).max() < 1e-12
    if mechanism.k > 1:
        tight = ik.privacy.epsilon_metric(mechanism)
        assert tight <= eps * (1 + 1e-12)
        if min(shape[:2]) >= 3:
            assert tight >= eps * (1 - 1e-12)


@pytest.mark.ledger("A-D10", "C-D3")
@shapes
@epsilons
def test_noise_on_the_infinite_grid(shape, eps):
    n_rows, n_cols, height, width = shape
    grid = grid_of(shape)
    window = [(row, col) for row in range(-6, n_rows + 6) for col in range(-4, n_cols + 4)]
    tally = ik.PlanarGeometric(grid, eps).tally(window)
    expected = naive.planar_geometric(naive.cells(n_rows, n_cols), window, height, width, eps)
    np.testing.assert_allclose(tally.matrix(), expected, rtol=1e-12)
    if len(grid) > 1:
        distances = naive.grid_distances(n_rows, n_cols, height, width)
        assert level(np.log(tally.matrix()), distances) == pytest.approx(eps, rel=1e-10)


@pytest.mark.ledger("A-D10", "C-D3")
@pytest.mark.parametrize("eps", [0.8, 3.0])
def test_all_cells_of_the_infinite_grid_have_probability_one(eps):
    window = np.indices((141, 141)).reshape(2, -1).T - 70  # exp(-0.8 * 68) = 2e-24
    tally = ik.PlanarGeometric(ik.Grid(2, 3), eps).tally(window)
    assert np.abs(tally.matrix().sum(axis=1) - 1).max() < 1e-12
    remapped = ik.TruncatedPlanarGeometric(ik.Grid(2, 3), eps)
    clipped = np.clip(tally.parts[0].reports, 0, [1, 2]) @ [3, 1]
    sums = np.array([tally.matrix()[:, clipped == z].sum(axis=1) for z in range(6)]).T
    np.testing.assert_allclose(remapped.matrix(), sums, rtol=1e-12)


@pytest.mark.parametrize(
    ("grid", "eps"), [(ik.Grid(50, 2), 1.0), (ik.Grid(20, 14, 0.5), 6.0), (ik.Grid(3, 60), 3.0)]
)
@pytest.mark.parametrize("mechanism", [ik.TruncatedPlanarGeometric, ik.PlanarLaplace])
def test_epsilon_holds_from_one_border_to_the_other(mechanism, grid, eps):
    """The border's sums need terms
    that are negligible beside 1 but not beside the others of a far secret.
    """
    assert ik.privacy.epsilon_metric(mechanism(grid, eps)) <= eps * (1 + 1e-12)


def test_what_lies_beyond_a_border_is_complete_at_the_far_end_too():
    """From far to the side, cells beyond the border shrink slowly with their distance from it."""
    mechanism = ik.TruncatedPlanarGeometric(ik.Grid(2, 100), 5.0)
    scale = naive.planar_lambda(1.0, 1.0, 5.0)
    for col in (0, 40, 99):
        columns = range(99, 160) if col == 99 else range(-60, 1) if col == 0 else [col]
        # secret in the south-west corner; the report's row takes all that is north of the grid
        expected = math.fsum(
            scale * math.exp(-5 * math.hypot(row, c)) for row in range(1, 400) for c in columns
        )
        assert mechanism.matrix()[0, 100 + col] == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.ledger("A-D11")
@shapes
@pytest.mark.parametrize("eps", [0.3, 1.0, 5.0, 60.0])
def test_planar_laplace_is_the_integral_of_the_density(shape, eps):
    mechanism = ik.PlanarLaplace(grid_of(shape), eps)
    places = naive.cells(*shape[:2])
    expected = laplace(shape, eps, [(x, z) for x in places for z in places]).reshape(
        len(places), -1
    )
    np.testing.assert_allclose(mechanism.matrix(), expected, rtol=1e-12)
    assert abs(mechanism.matrix().sum(axis=1) - 1).max() < 1e-12
    if mechanism.k > 1:
        assert ik.privacy.epsilon_metric(mechanism) < eps


@pytest.mark.parametrize(
    ("x", "z"),
    [
        ((1, 1), (1, 2)),
        ((1, 1), (2, 2)),
        ((0, 0), (3, 2)),
        ((0, 0), (1, 2)),
        ((3, 4), (0, 0)),
        ((2, 1), (0, 2)),
    ],
    ids=["adjacent", "diagonal", "border", "inside", "far corner", "other border"],
)
@pytest.mark.parametrize("eps", [0.5, 4.0])
def test_planar_laplace_by_quadrature_in_both_coordinates(x, z, eps):
    grid = ik.Grid(4, 5, cell_size=(1.0, 0.6))
    box = naive.planar_cell(x, z, 4, 5, 1.0, 0.6)
    got = ik.PlanarLaplace(grid, eps).matrix()[grid.codes([x])[0], grid.codes([z])[0]]
    assert got == pytest.approx(naive.planar_laplace_cartesian(*box, eps), rel=1e-11, abs=0)


@pytest.mark.parametrize(
    ("height", "width", "eps"),
    [(1.0, 1.0, 0.04), (1.0, 0.06, 1.0), (0.1, 2.0, 1.0), (1.0, 1.0, 70.0)],
)
def test_planar_laplace_of_small_long_and_large_cells(height, width, eps):
    shape = (9, 9, height, width)
    matrix = ik.PlanarLaplace(grid_of(shape), eps).matrix()
    assert abs(matrix.sum(axis=1) - 1).max() < 1e-12
    pairs = [((4, 4), z) for z in [(4, 4), (4, 5), (5, 4), (6, 6), (0, 4), (8, 8)]] + [
        ((0, 0), (0, 0)),
        ((8, 1), (7, 3)),
    ]
    got = np.array([matrix[x[0] * 9 + x[1], z[0] * 9 + z[1]] for x, z in pairs])
    expected = laplace(shape, eps, pairs)
    seen = expected > 1e-250  # below, a double has fewer digits
    assert seen.sum() >= 5
    np.testing.assert_allclose(got[seen], expected[seen], rtol=1e-11)


@pytest.mark.parametrize("mechanism", [ik.TruncatedPlanarGeometric, ik.PlanarLaplace])
@given(
    rows=st.integers(1, 4),
    cols=st.integers(1, 4),
    height=st.floats(0.4, 2),
    width=st.floats(0.4, 2),
    eps=st.floats(0.5, 3),
)
@settings(max_examples=20)
def test_the_plane_may_be_turned_mirrored_and_scaled(mechanism, rows, cols, height, width, eps):
    k = rows * cols
    matrix = mechanism(ik.Grid(rows, cols, (height, width)), eps).matrix()
    turned = np.arange(k).reshape(rows, cols).T.ravel()
    other = mechanism(ik.Grid(cols, rows, (width, height)), eps).matrix()
    np.testing.assert_allclose(other, matrix[np.ix_(turned, turned)], rtol=1e-12)
    np.testing.assert_allclose(matrix[::-1, ::-1], matrix, rtol=1e-12)
    scaled = mechanism(ik.Grid(rows, cols, (2 * height, 2 * width)), eps / 2).matrix()
    np.testing.assert_allclose(scaled, matrix, rtol=1e-12)


@pytest.mark.parametrize(
    "far", [(-(10**6), 3), (400, -400), (2, 470), (-455, 0), (10**5, 10**5)], ids=str
)
def test_cells_far_out_are_possible_and_known_in_logarithms(far, rng):
    shape, eps = (2, 3, 1.0, 1.5), 1.0
    theta = rng.dirichlet(np.ones(6))
    tally = ik.PlanarGeometric(grid_of(shape), eps).tally([far, (1, 1)])
    log_p = np.log(tally.forward(theta)) + tally.log_scale
    d = np.array(
        [
            [math.hypot(u - r, (v - c) * 1.5) for u, v in sorted([far, (1, 1)])]
            for r, c in naive.cells(2, 3)
        ]
    )
    log_noise = math.log(naive.planar_lambda(1.0, 1.5, eps)) - eps * d
    np.testing.assert_allclose(
        log_p, logsumexp(np.log(theta)[:, None] + log_noise, axis=0), rtol=1e-12
    )
    assert ik.ibu(tally, stop=ik.Steps(3)).log_likelihood < -400


@pytest.mark.erratum("A22")
def test_the_nearer_secret_need_not_be_likelier_at_a_border():
    grid = ik.Grid(20, 14, cell_size=0.5)
    matrix, d = ik.TruncatedPlanarGeometric(grid, 1.0).matrix(), grid.distances()
    oracle = naive.truncated_planar_geometric(3, 4, 1.0, 1.0, 1.0)
    far = naive.grid_distances(3, 4)
    for channel, distances in ((matrix, d), (oracle, far)):
        # each column: some pair x, y of secrets with d(x, z) < d(y, z) and yet P(z | x) < P(z | y)
        violated = [
            ((column[:, None] < column * (1 - 1e-9)) & (away[:, None] < away)).any()
            for column, away in zip(channel.T, distances.T, strict=True)
        ]
        n_rows, n_cols = (20, 14) if len(channel) == 280 else (3, 4)
        inside = np.pad(np.ones((n_rows - 2, n_cols - 2), dtype=bool), 1).ravel()
        assert np.any(violated)
        assert not np.any(np.array(violated)[inside])
    # noise that stays where it falls has the property everywhere
    untruncated = ik.PlanarGeometric(grid, 1.0).tally(grid.values).matrix()
    assert not ((untruncated[:, None] < untruncated * (1 - 1e-9)) & (d[:, None] < d - 1e-9)).any()


@pytest.mark.parametrize("mechanism", PLANAR)
@pytest.mark.parametrize(
    "alphabet", [ik.Line(0, 8), 9, ik.Alphabet([1, 2])], ids=["line", "int", "labels"]
)
def test_noise_on_the_plane_needs_a_grid(mechanism, alphabet):
    with pytest.raises(TypeError, match=r"alphabet must be a Grid, .*got (9|Line|Alphabet)"):
        mechanism(alphabet, 1.0)


@pytest.mark.parametrize("mechanism", PLANAR)
@pytest.mark.parametrize("eps", [1e-3, 1e-100, 5e-324])
def test_noise_over_millions_of_cells_is_refused(mechanism, eps):
    with pytest.raises(
        ValueError, match=f"must have larger cells: at epsilon={eps:g} per km .*take larger cells"
    ):
        mechanism(ik.Grid(3, 3, cell_size=0.5, unit="km"), eps)
    with pytest.raises(
        ValueError,
        match=rf"at epsilon={eps:g} per unit of distance .*cells of 0\.5 x 0\.5 units, and at",
    ):
        mechanism(ik.Grid(3, 3, cell_size=0.5), eps)
    assert mechanism(ik.Grid(3, 3, cell_size=100.0), 0.01 + eps).k == 9


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        ([[0.5, 1]], r"reports must be whole numbers, got 0\.5 at index \(0, 0\)"),
        ([[0, 1, 2]], r"reports must be \(row, column\) pairs, shape \(n, 2\), got \(1, 3\)"),
        ([0, 1], r"reports must have 2 dimension\(s\), got shape \(2,\)"),
        (np.empty((0, 2)), "the tally is empty"),
    ],
)
def test_reports_that_are_no_cells(reports, message):
    with pytest.raises(ValueError, match=message):
        ik.PlanarGeometric(ik.Grid(2, 2), 1.0).tally(reports)


def test_a_population_stands_where_its_grid_does(rng):
    """With next to no noise the reports are the secrets, drawn for all users at once, too."""
    grid, users = ik.Grid(2, 3, first=(5, -4)), [2**26, 0, 3, 1, 0, 2**25]
    tally = ik.PlanarGeometric(grid, 34.0).simulate(users, rng)
    seen = np.flatnonzero(users)
    assert tally.parts[0].reports.tolist() == grid.labels_of(seen).tolist()
    assert tally.counts.tolist() == np.array(users)[seen].tolist()


def test_a_grid_of_more_entries_than_a_matrix_may_have_keeps_its_law(monkeypatch, rng):
    """By rows for many users of a cell, one by one for few, in blocks;
    false alarms 1e-9 a comparison.
    """
    monkeypatch.setattr(_grid_mechanism, "MAX_MATRIX_ENTRIES", 9 * 9)
    monkeypatch.setattr(_grid_mechanism, "USERS_PER_ROW", 1)  # up to 12 users of a cell are few
    monkeypatch.setattr(_grid_mechanism, "USERS_AT_ONCE", 5)
    assert not ik.TruncatedPlanarGeometric(ik.Grid(3, 3), 1.0)._is_large_grid
    mechanism = ik.TruncatedPlanarGeometric(ik.Grid(3, 4), 1.0)
    assert mechanism._is_large_grid
    check_mechanism(mechanism, rng=rng, n=3000)
    few = sum(mechanism.simulate(np.full(12, 12), rng) for _ in range(30))
    assert few.n == 30 * 144
    seen = np.zeros(12)
    for part in few.parts:
        np.add.at(seen, part.reports, part.counts)
    assert stats.chisquare(seen, few.n * mechanism.matrix().mean(axis=0)).pvalue > 1e-9
