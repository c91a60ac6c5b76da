"""Grids: distances, places on the globe, frames of rectangles."""

import math
import re

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from oracles import naive

# the boxes of the papers: south, north, west, east, rows, columns
BOXES = [
    (40.7044, 40.7942, -74.0205, -73.9374, 20, 14),  # Manhattan
    (37.7228, 37.7946, -122.5153, -122.3789, 16, 24),  # San Francisco
    (48.8286, 48.8947, 2.2855, 2.3909, 15, 15),  # Paris
]
KM_PER_DEGREE = math.pi / 180 * 6371.0088
UNIT_BOX = (0.0, 2.0, 10.0, 13.0)


@pytest.mark.parametrize(
    "cell_size",
    [1.0, 0.5, (0.5, 2.0), [3, 1], np.array([1.0, 0.25])],
    ids=["1", "0.5", "pair", "list", "array"],
)
@pytest.mark.parametrize(("n_rows", "n_cols"), [(3, 4), (1, 5), (5, 1), (1, 1)])
def test_distances_are_between_the_centres(n_rows, n_cols, cell_size):
    grid = ik.Grid(n_rows, n_cols, cell_size)
    height, width = np.broadcast_to(cell_size, 2)
    expected = naive.grid_distances(n_rows, n_cols, height, width)
    np.testing.assert_allclose(grid.distances(), expected, rtol=1e-15)
    centers = grid.centers()
    np.testing.assert_allclose(
        np.hypot(*(centers[:, None] - centers).transpose(2, 0, 1)), expected, rtol=1e-14
    )
    assert centers[0].tolist() == [height / 2, width / 2]


def test_distances_of_some_cells_are_those_of_all(rng):
    grid = ik.Grid(7, 9, cell_size=(0.3, 0.7), first=(2, -3))
    some, others = rng.permutation(63)[:20], rng.permutation(63)[:11]
    assert np.array_equal(
        grid._distances_between(some, others), grid.distances()[np.ix_(some, others)]
    )


def test_the_earth_mover_needs_no_distance_between_cells_that_keep_their_mass():
    grid, p = (
        ik.Grid(400, 400, cell_size=0.5),
        np.full(160_000, 1 / 160_000),
    )  # all pairs would be 205 GB
    q = p.copy()
    q[0], q[399] = q[0] - 1e-6, q[399] + 1e-6
    assert ik.emd(p, q, grid) == pytest.approx(1e-6 * 399 / 2, rel=1e-6)


def test_cells_are_counted_row_by_row_from_the_south_west():
    grid = ik.Grid(2, 3)
    assert grid.values.tolist() == [list(cell) for cell in naive.cells(2, 3)]
    assert grid.codes([[1, 0], [0, 2]]).tolist() == [3, 2]


@pytest.mark.parametrize("box", BOXES)
def test_cells_of_a_box_have_their_true_size(box):
    lat0, lat1, lon0, lon1, n_rows, n_cols = box
    height, width = ik.Grid.from_bounds(*box).cell_size
    on_the_sphere = (
        (lat1 - lat0) * KM_PER_DEGREE / n_rows,
        (lon1 - lon0) * KM_PER_DEGREE * math.cos(math.radians((lat0 + lat1) / 2)) / n_cols,
    )
    # the ellipsoid differs from the sphere by up to 0.56 per cent, at these latitudes by less than
    # 0.5
    np.testing.assert_allclose((height, width), on_the_sphere, rtol=0.005)


def test_a_nominal_cell_size_is_taken_as_given():
    manhattan = ik.Grid.from_bounds(*BOXES[0], cell_size=0.5)
    assert manhattan.cell_shape == (0.5, 0.5)
    assert manhattan.bounds == BOXES[0][:4]
    assert manhattan.unit == "km"


def test_a_cell_holds_its_south_and_west_edge():
    grid = ik.Grid(2, 3, bounds=UNIT_BOX)
    lat = [0.0, 0.5, 1.0, 1.0, 1.999, 2.0, 2.0, 0.0]
    lon = [10.0, 11.0, 10.0, 12.0, 12.999, 13.0, 10.5, 13.0]
    assert grid.locate(lat, lon).tolist() == [0, 1, 3, 5, 5, 5, 3, 2]
    assert grid.locate(0.5, 11.5).tolist() == [1]
    assert grid.locate([], []).tolist() == []


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_edges_belong_to_one_cell_however_they_round(n_rows, n_cols, data):
    south, west = data.draw(st.floats(-89, 88)), data.draw(st.floats(-179, 178))
    north, east = south + data.draw(st.floats(0.01, 1)), west + data.draw(st.floats(0.01, 1))
    grid = ik.Grid(n_rows, n_cols, bounds=(south, north, west, east))
    lat_edges, lon_edges = grid.edges()
    row, col = data.draw(st.integers(0, n_rows - 1)), data.draw(st.integers(0, n_cols - 1))
    corner, middle = (
        (lat_edges[row], lon_edges[col]),
        (lat_edges[row : row + 2].mean(), lon_edges[col : col + 2].mean()),
    )
    assert grid.locate(*corner).tolist() == [row * n_cols + col]
    assert grid.locate(*middle).tolist() == [row * n_cols + col]
    just_south = math.nextafter(lat_edges[row], -math.inf), lon_edges[col]
    assert grid.locate(*just_south, outside="drop").tolist() == (
        [(row - 1) * n_cols + col] if row else []
    )


@pytest.mark.parametrize(
    ("lat", "lon"),
    [
        (-0.001, 11.0),
        (2.001, 11.0),
        (1.0, 9.999),
        (1.0, 13.001),
        (math.inf, 11.0),
        (1.0, -math.inf),
    ],
)
def test_points_outside_are_named_or_dropped_when_asked(lat, lon):
    grid = ik.Grid(2, 3, bounds=UNIT_BOX)
    with pytest.raises(
        ik.errors.AlphabetMismatch,
        match=rf"1 of 2 points are outside .* lat={lat}, lon={lon}.*drop",
    ):
        grid.locate([1.5, lat], [12.5, lon])
    assert grid.locate([1.5, lat], [12.5, lon], outside="drop").tolist() == [5]


@pytest.mark.parametrize(("lat", "lon"), [(math.nan, 11.0), (1.0, math.nan)])
@pytest.mark.parametrize("outside", ["raise", "drop"])
def test_a_missing_position_is_never_dropped_silently(lat, lon, outside):
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"lat and lon .* NaN"):
        ik.Grid(2, 3, bounds=UNIT_BOX).locate([lat], [lon], outside=outside)


def test_locate_needs_bounds_and_a_known_policy():
    with pytest.raises(ValueError, match=r"bounds.*Grid\.from_bounds"):
        ik.Grid(2, 3).locate(1.0, 11.0)
    with pytest.raises(ValueError, match=r"outside must be .* got 'ignore'"):
        ik.Grid(2, 3, bounds=UNIT_BOX).locate(1.0, 11.0, outside="ignore")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 3), "n_rows must be at least 1, got 0"),
        ((3, -1), "n_cols must be at least 1, got -1"),
        ((3.0, 3), r"n_rows must be a whole number, got 3\.0"),
        ((3, True), "n_cols must be a whole number, got True"),
        ((3, 3, 0.0), r"cell_size must be a finite number above 0, got 0\.0"),
        ((3, 3, -1.0), r"cell_size must be a finite number above 0, got -1\.0"),
        ((3, 3, math.nan), "cell_size must be a finite number above 0, got nan"),
        ((3, 3, (1.0, math.inf)), "cell_size must be a finite number above 0, got inf"),
        ((3, 3, "1"), "cell_size must be a number, got '1'"),
        ((3, 3, (1, 2, 3)), r"cell_size must be .* pair .* got \(1, 2, 3\)"),
    ],
)
def test_what_is_not_a_grid_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ik.Grid(*arguments)


@pytest.mark.parametrize(
    "bounds",
    [
        (1, 0, 0, 1),
        (0, 1, 1, 0),
        (0, 0, 0, 1),
        (-91, 0, 0, 1),
        (0, 1, 0, 181),
        (math.nan, 1, 0, 1),
        (0, 1, 0),
    ],
)
def test_bounds_must_increase_and_be_on_the_globe(bounds):
    with pytest.raises(ValueError, match=r"bounds must be .*got \("):
        ik.Grid(2, 2, bounds=bounds)
    if len(bounds) == 4:
        with pytest.raises(ValueError, match=r"bounds must be .*got \("):
            ik.Grid.from_bounds(*bounds, 2, 2)


@pytest.mark.parametrize(
    "grid",
    [
        ik.Grid.from_bounds(*BOXES[0]),
        ik.Grid(4, 3, cell_size=0.5),
        ik.Grid(2, 5, cell_size=(0.5, 0.25)),
        ik.Grid(1, 1),
    ],
)
def test_to_a_frame_and_back(grid, rng):
    values = rng.random(len(grid))
    frame = grid.to_geodataframe(values, name="mass")
    again, same = ik.Grid.from_geodataframe(frame.sample(frac=1, random_state=1), name="mass")
    assert again == grid
    assert np.array_equal(same, values)
    if grid.bounds:
        assert frame.crs.to_epsg() == 4326
        points = (
            frame.geometry.centroid
            if frame.crs is None
            else frame.set_crs(None, allow_override=True).centroid
        )
        assert np.array_equal(grid.locate(points.y, points.x), np.arange(len(grid)))
    else:
        assert frame.crs is None
        np.testing.assert_allclose(
            np.column_stack([frame.centroid.y, frame.centroid.x]),
            grid.centers(),
            rtol=0,
            atol=1e-12,
        )


def test_a_frame_holds_the_nominal_size_only_if_told():
    grid = ik.Grid.from_bounds(*BOXES[0], cell_size=0.5)
    frame = grid.to_geodataframe(np.zeros(280))
    assert ik.Grid.from_geodataframe(frame, cell_size=0.5)[0] == grid
    assert ik.Grid.from_geodataframe(frame)[0] != grid


def test_frames_that_are_no_grid_are_refused():
    grid = ik.Grid(2, 2, bounds=UNIT_BOX)
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"values .* 4 cells, got \(3,\)"):
        grid.to_geodataframe([1, 2, 3])
    frame = grid.to_geodataframe([1, 2, 3, 4])
    with pytest.raises(
        ValueError, match=r"frame must have the columns row, col and mass; \['mass'\] missing"
    ):
        ik.Grid.from_geodataframe(frame, name="mass")
    with pytest.raises(
        ValueError, match="frame must have each of the 2 x 2 cells once, but it has 3 rows"
    ):
        ik.Grid.from_geodataframe(frame.iloc[1:])
    with pytest.raises(ValueError, match="it has 5 rows"):
        ik.Grid.from_geodataframe(frame.iloc[[0, 0, 1, 2, 3]])
    with pytest.raises(ValueError, match=r"EPSG:4326 .* it has EPSG:3857"):
        ik.Grid.from_geodataframe(frame.to_crs(3857))


def test_labels_of_a_grid_are_pairs():
    with pytest.raises(
        ValueError, match=r"labels must be \(row, column\) pairs of integers, .* got shape \(1, 3\)"
    ):
        ik.Grid(2, 2).codes([[0, 0, 0]])
    with pytest.raises(
        ValueError, match=r"got shape \(2,\); these look like codes: say codes=True"
    ):
        ik.Grid(2, 2).codes([0, 1])


# The order of the edges

AROUND = {  # west, south, east, north, as `total_bounds` has it: cities and countries
    "Paris": (2.22, 48.81, 2.47, 48.91),
    "Alexandria": (29.8, 31.1, 30.1, 31.3),
    "Moscow": (37.3, 55.5, 37.9, 56.0),
    "Volgograd": (44.3, 48.6, 44.7, 48.9),
    "Bogota": (-74.2, 4.5, -74.0, 4.8),
    "Tokyo": (139.6, 35.5, 139.9, 35.8),
    "Nairobi": (36.6, -1.4, 37.1, -1.1),
    "Reykjavik": (-22.0, 64.0, -21.6, 64.2),
    "France": (-5.1, 41.3, 9.6, 51.1),
    "Greece": (19.4, 34.8, 29.6, 41.7),
    "United States": (-124.7, 24.5, -67.0, 49.4),
    "Brazil": (-74.0, -33.7, -34.8, 5.3),
}


@pytest.mark.parametrize("name", AROUND)
@pytest.mark.parametrize(
    "make",
    [
        lambda edges: ik.Grid.from_bounds(*edges, 20, 14),
        lambda edges: ik.Grid(20, 14, bounds=edges),
    ],
    ids=["from_bounds", "bounds"],
)
def test_total_bounds_are_refused_with_the_right_call(name, make):
    west, south, east, north = AROUND[name]
    frame = geopandas.GeoSeries([shapely.box(*AROUND[name])], crs=4326)
    with pytest.raises(
        ValueError, match=r"total_bounds of a GeoDataFrame is \(west, south, east, north\)"
    ) as caught:
        make(frame.total_bounds)
    call = re.search(r"Grid\.from_bounds\([^a-z]*, n_rows, n_cols\)", str(caught.value))[0]
    grid = eval(call, {"Grid": ik.Grid, "n_rows": 20, "n_cols": 14})
    assert grid.bounds == (south, north, west, east)


HONEST = {
    "Manhattan": BOXES[0][:4],
    "Sydney": (-34.0, -33.7, 150.9, 151.3),
    "Nairobi": (-1.4, -1.1, 36.6, 37.1),
    "Bangalore": (12.8, 13.1, 77.4, 77.8),
    "Cairo": (29.9, 30.2, 31.1, 31.5),
    "Ethiopia": (3.4, 14.9, 33.0, 48.0),
    "South Africa": (-34.8, -22.1, 16.5, 32.9),
    "Europe": (35.0, 71.0, -10.0, 40.0),
    "the globe": (-90.0, 90.0, -180.0, 180.0),
}


@pytest.mark.parametrize("name", HONEST)
def test_boxes_in_the_right_order_are_not_in_doubt(name):
    assert ik.Grid.from_bounds(*HONEST[name], 20, 14).bounds == HONEST[name]
    assert ik.Grid(20, 14, bounds=np.array(HONEST[name])).bounds == HONEST[name]


def test_a_box_that_is_in_doubt_is_taken_by_name():
    chad = {"lat0": 7.4, "lat1": 23.5, "lon0": 13.4, "lon1": 24.0}
    with pytest.raises(
        ValueError, match=r"box of 16\.1 x 10\.6 degrees; .* by name: .*lat0=7\.4, .*lon1=24\.0"
    ):
        ik.Grid.from_bounds(*chad.values(), 20, 14)
    grid = ik.Grid.from_bounds(**chad, n_rows=20, n_cols=14)
    assert (
        grid.bounds == ik.Grid(20, 14, bounds=tuple(chad.values())).bounds == tuple(chad.values())
    )
    # and a frame of it comes back
    again, _ = ik.Grid.from_geodataframe(grid.to_geodataframe(np.zeros(280)))
    assert again == grid


def test_grids_are_equal_only_if_all_their_parts_are():
    parts = {"cell_size": (1.0, 2.0), "bounds": (0.0, 1.0, 2.0, 3.0), "first": (2, 1)}
    grid = ik.Grid(3, 4, **parts)
    assert grid == ik.Grid(3, 4, **parts)
    others = [
        ("cell_size", (1.0, 2.5)),
        ("cell_size", (1.5, 2.0)),
        ("bounds", (0.0, 1.0, 2.0, 3.5)),
        ("first", (2, 2)),
    ]
    assert all(grid != ik.Grid(3, 4, **parts | {name: other}) for name, other in others)
    assert grid not in (ik.Grid(4, 4, **parts), ik.Grid(3, 3, **parts), ik.Grid(4, 3, **parts))
