"""Likely subsets of a map:
what no cell beats, the region around the hull, and where that region is not enough.
"""

import numpy as np
import pytest
import shapely

import ibukit as ik
import likely_cases as cases
from ibukit.identification._planar_cuts import margin, undominated_cells


def beaten_by_some(grid, reports):
    """Definition 2 for probabilities that fall with distance: by all pairs of cells."""
    d = np.hypot(*((grid.values[:, None] - reports) * grid.cell_shape).transpose(2, 0, 1))
    closer = (d[:, None] <= d + 1e-9).all(axis=2) & (d[:, None] < d - 1e-9).any(axis=2)
    return closer.any(axis=0)


def layout(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    # some spread out, some nearly on a line
    reports = rng.integers(0, 14, (n, 2)) * ([1, 1] if seed % 2 else [1, 0]) + rng.integers(
        0, 2, (n, 2)
    )
    return ik.Grid(15, 15, cases.CELLS[seed % 4]), reports


@pytest.mark.ledger("A-P7")
@pytest.mark.parametrize("seed", range(40))
def test_the_half_planes_leave_what_no_cell_beats_and_the_region_holds_it(seed):
    grid, reports = layout(seed)
    kept = ik.theory.likely_subset(ik.PlanarGeometric(grid, 1.0), reports)
    np.testing.assert_array_equal(kept, np.flatnonzero(~beaten_by_some(grid, reports)))
    # the polygon's round corners are polygons
    region = ik.theory.likely_region(grid, reports).buffer(1e-3)
    assert shapely.contains(region, shapely.points(grid.centers()[kept][:, ::-1])).all()


@pytest.mark.ledger("A-P7")
def test_reports_of_cells_need_less_than_half_of_the_margin_and_others_all_of_it():
    reach = []
    for row, col in ((1, 1), (1, 5), (12, 31), (5, 38), (6, 56), (21, 34)):
        reports = np.array([[0, 0], [row, col]])
        away = shapely.distance(
            shapely.points(undominated_cells(reports, (1.0, 1.0))), shapely.LineString(reports)
        )
        reach.append(away.max() / margin(np.sqrt(0.5), float(np.hypot(row, col))))
    assert 0.45 < max(reach) < 0.5
    # a report where four cells meet: none of them beats another, and each is as far away as the
    # margin
    grid = ik.Grid(4, 4)
    kept = grid.values[~beaten_by_some(grid, np.array([[1.5, 1.5]]))]
    assert kept.tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert np.hypot(*(kept - 1.5).T) == pytest.approx(margin(np.sqrt(0.5), 0.0))


@pytest.mark.erratum("A17")
@pytest.mark.ledger("A-P7")
def test_the_margin_of_figure_14():
    assert margin(0.3 / np.sqrt(2), 8.25) == pytest.approx(1.8829, abs=5e-5)
    assert margin(0.21, 8.25) == pytest.approx(1.8733, abs=5e-5)


def test_the_region_is_the_hull_grown_by_the_margin():
    grid = ik.Grid(30, 30, cell_size=0.3)
    reports = [[5, 5], [5, 25], [25, 25], [14, 14]]
    region = ik.theory.likely_region(grid, reports)
    hull = shapely.Polygon([(5, 5), (25, 5), (25, 25)])
    d_max = 0.3 * np.hypot(20, 20)
    delta = np.sqrt(0.045 + 2 * np.sqrt(0.045) * d_max)
    expected = hull.area * 0.09 + hull.length * 0.3 * delta + np.pi * delta**2
    assert region.area == pytest.approx(expected, rel=1e-3)
    # a single report: everything within the half diagonal of its cell
    assert ik.theory.likely_region(grid, [[3, 4]]).area == pytest.approx(np.pi * 0.045, rel=1e-3)


def test_offsets_a_few_cells_long_are_not_enough():
    # why the half-planes go up to twice the margin
    reports = np.array([[0, 0], [21, 34]])
    all_cells = {tuple(cell) for cell in undominated_cells(reports, (1.0, 1.0)).tolist()}
    grid = ik.Grid(22, 35)
    near = np.array([[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)])
    along = near @ reports.T
    left = ((grid.values @ near.T) > along.min(axis=1) - (near**2).sum(axis=1) / 2).all(axis=1)
    assert all_cells < {tuple(cell) for cell in grid.values[left].tolist()}


@pytest.mark.erratum("A22")
@pytest.mark.parametrize(
    ("kind", "lost"),
    [(ik.TruncatedPlanarGeometric, 0.0140), (ik.Exponential, 0.0071), (ik.PlanarLaplace, 0.0140)],
    ids=["truncated geometric", "exponential", "Laplace"],
)
def test_half_the_diagonal_of_a_cell_is_not_a_margin_on_a_bounded_map(kind, lost):
    """The margin of the paper is over all of the plane,
    so on a map it keeps every cell; this one is smaller.
    """
    grid = ik.Grid(20, 14, cell_size=0.5)
    mechanism = kind(grid, 0.2)
    reports = grid.codes([[5, 0], [0, 5]])
    region = ik.theory.likely_region(grid, grid.values[reports])
    centres = shapely.points(grid.centers()[:, ::-1])
    inside = shapely.intersects(region, centres)
    best = ik.mle(mechanism.tally(reports, codes=True), tol=1e-12)
    # nearly all of the mass lies on the corner, 1.77 km from the hull
    assert best.distribution[0] > 0.9
    assert shapely.distance(
        centres[0], shapely.LineString(grid.centers()[reports][:, ::-1])
    ) == pytest.approx(1.768, abs=5e-4)
    assert -region.bounds[0] + 0.25 == pytest.approx(1.620, abs=5e-4)
    assert not inside[0]
    rows, counts = cases.columns(mechanism, reports)
    confined = ik.mle(cases.on_these(rows[inside], counts), tol=1e-12)
    assert best.log_likelihood - confined.log_likelihood == pytest.approx(lost, abs=5e-4)
    # ours has the corner
    assert 0 in ik.theory.likely_subset(mechanism, reports, codes=True)


@pytest.mark.parametrize("kind", [ik.TruncatedPlanarGeometric, ik.PlanarLaplace])
@pytest.mark.parametrize("cell_size", [0.5, (0.3, 1.1)])
def test_towards_the_reports_along_an_axis_every_report_becomes_likelier(kind, cell_size):
    # so the bounding box of the reports is enough: also for reports at the border, which stand for
    # all beyond
    grid = ik.Grid(6, 7, cell_size)
    matrix = kind(grid, 0.7).matrix().reshape(6, 7, 6, 7)
    for z in range(6):
        for x in range(z, 5):  # farther to the north, as long as the report is not there
            assert (matrix[x + 1, :, z] < matrix[x, :, z]).all()
        for x in range(1, z + 1):
            assert (matrix[x - 1, :, z] < matrix[x, :, z]).all()
    for z in range(7):
        for x in range(z, 6):
            assert (matrix[:, x + 1, :, z] < matrix[:, x, :, z]).all()


def test_for_the_exponential_mechanism_it_does_not():
    grid = ik.Grid(6, 30)
    mechanism, reports = ik.Exponential(grid, 0.3), grid.codes([[1, 0], [1, 29]])
    matrix = mechanism.matrix()
    above, below = grid.codes([[1, 15], [0, 15]])
    assert (matrix[below, reports] > matrix[above, reports]).all()


def test_reports_outside_the_grid_leave_the_cells_next_to_them(rng):
    grid = ik.Grid(6, 8, cell_size=0.5)
    mechanism = ik.PlanarGeometric(grid, 1.0)
    reports = [[-3, 2], [2, 3], [2, -1]]
    kept = grid.values[ik.theory.likely_subset(mechanism, reports, codes=True)]
    assert kept.min(axis=0).tolist() == [0, 0]
    assert kept.max(axis=0).tolist() == [2, 3]
    for _ in range(10):
        reports = mechanism.draw(rng.integers(0, len(grid), 5), rng)
        estimate = ik.mle(mechanism.tally(reports, codes=True))
        left_out = np.delete(
            estimate.distribution, ik.theory.likely_subset(mechanism, reports, codes=True)
        )
        assert left_out.max(initial=0) < 1e-9


def test_where_comparing_all_pairs_is_too_much_the_box_is_left(monkeypatch):
    grid = ik.Grid(12, 12)
    mechanism, reports = ik.TruncatedPlanarGeometric(grid, 1.0), grid.codes([[2, 3], [9, 8]])
    compared = ik.theory.likely_subset(mechanism, reports, codes=True)
    monkeypatch.setattr("ibukit.identification.likely_subsets.MAX_COMPARED", 50)
    box = ik.theory.likely_subset(mechanism, reports, codes=True)
    assert len(box) == 8 * 6
    assert set(compared.tolist()) < set(box.tolist())
