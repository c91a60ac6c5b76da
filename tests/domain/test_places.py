"""Points as people have them: which cells hold them, and the grid that holds them all."""

import math
import re

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import ibukit as ik

CITIES = {  # south, north, west, east
    "Manhattan": (40.7, 40.8, -74.02, -73.93),
    "Quito": (-0.4, 0.1, -78.6, -78.4),
    "Sydney": (-34.0, -33.7, 150.9, 151.3),
    "Tromso": (69.6, 69.7, 18.8, 19.1),
}
MANHATTAN = ik.Grid.from_bounds(*CITIES["Manhattan"], 20, 14)
UTM18 = 32618
# the WGS 84 ellipsoid
A, E2 = 6378137.0, 0.00669437999014


def points_in(name, n=50, seed=1):
    south, north, west, east = CITIES[name]
    u, v = np.random.default_rng(seed).random((2, n))
    return np.column_stack([south + u * (north - south), west + v * (east - west)])


def series(points, crs=4326):
    return geopandas.GeoSeries(shapely.points(points[:, ::-1]), crs=4326).to_crs(crs)


def along_the_meridian(south, north):
    """Metres, by the radius of curvature at each latitude."""
    lat = np.radians(np.linspace(south, north, 20_001))
    radius = A * (1 - E2) / (1 - E2 * np.sin(lat) ** 2) ** 1.5
    return float(np.trapezoid(radius, lat))


def along_the_parallel(lat, west, east):
    lat = math.radians(lat)
    return A * math.cos(lat) / math.sqrt(1 - E2 * math.sin(lat) ** 2) * math.radians(east - west)


@pytest.mark.parametrize("size", [100.0, 500.0, 1234.5, 90_000.0])
@pytest.mark.parametrize("name", CITIES)
def test_cells_have_the_side_that_was_asked_for(name, size):
    points = points_in(name)
    grid = ik.Grid.covering(points, size)
    (south, west), (north, east) = points.min(axis=0), points.max(axis=0)
    lat0, lat1, lon0, lon1 = grid.bounds
    middle = (south + north) / 2
    assert grid.n_rows == math.ceil(along_the_meridian(south, north) / size)
    assert grid.n_cols == math.ceil(along_the_parallel(middle, west, east) / size)
    # the geodesic is shorter than the parallel, over 90 km at latitude 70 by 2e-5
    assert along_the_meridian(lat0, lat1) / grid.n_rows == pytest.approx(size, rel=1e-5)
    assert along_the_parallel(middle, lon0, lon1) / grid.n_cols == pytest.approx(size, rel=1e-4)
    assert (grid.cell_size, grid.unit) == (size / 1000, "km")
    # widened to both sides alike
    assert (lat0 + lat1) / 2 == pytest.approx(middle, abs=1e-8)
    assert (lon0 + lon1) / 2 == pytest.approx((west + east) / 2, abs=1e-8)


@given(
    st.lists(st.tuples(st.floats(-80, 80), st.floats(-170, 170)), min_size=1, max_size=3),
    st.floats(0.001, 0.3),
    st.floats(200, 20_000),
)
@settings(max_examples=50)
def test_all_points_are_inside(corners, spread, size):
    base = np.array(corners[0])
    points = base + spread * (np.array(corners) / [80, 170])
    grid = ik.Grid.covering(points, size)
    codes = grid.locate(points)
    cells = np.column_stack(np.divmod(codes, grid.n_cols))
    for axis, edges in enumerate(grid.edges()):
        assert (edges[cells[:, axis]] <= points[:, axis]).all()
        assert (edges[cells[:, axis] + 1] >= points[:, axis]).all()


@pytest.mark.parametrize("name", CITIES)
def test_points_on_the_edge_are_inside_and_add_no_cells(name):
    grid = ik.Grid.covering(points_in(name), 500)
    lat0, lat1, lon0, lon1 = grid.bounds
    corners = np.array([(lat0, lon0), (lat0, lon1), (lat1, lon0), (lat1, lon1)])
    again = ik.Grid.covering(corners, 500)
    assert (again.n_rows, again.n_cols) == (grid.n_rows, grid.n_cols)
    np.testing.assert_allclose(again.bounds, grid.bounds, rtol=0, atol=3e-9)
    k, c = len(grid), grid.n_cols
    assert (
        again.locate(corners).tolist() == grid.locate(corners).tolist() == [0, c - 1, k - c, k - 1]
    )


@pytest.mark.parametrize("crs", [4326, 4269, UTM18, 3857, "EPSG:2263"])
def test_any_crs_gives_the_same_grid_and_the_same_cells(crs):
    points = points_in("Manhattan")
    grid = ik.Grid.covering(points)
    there = series(points, crs)
    assert ik.Grid.covering(there) == grid
    assert np.array_equal(grid.locate(there), grid.locate(points))


def test_outlines_are_covered():
    disc = geopandas.GeoSeries([shapely.Point(583_960, 4_507_523).buffer(3000)], crs=UTM18)
    grid = ik.Grid.covering(geopandas.GeoDataFrame({"name": ["disc"]}, geometry=disc), 1000)
    assert (grid.n_rows, grid.n_cols) == (7, 7)  # 6 km, and a little turned
    lat0, lat1, lon0, lon1 = grid.bounds
    assert shapely.box(lon0, lat0, lon1, lat1).covers(disc.to_crs(4326).iloc[0])


def test_one_point_has_one_cell():
    grid = ik.Grid.covering([(48.85, 2.35)], 250)
    assert len(grid) == 1
    assert np.mean(np.reshape(grid.bounds, (2, 2)), axis=1) == pytest.approx([48.85, 2.35])


@pytest.mark.parametrize(
    ("points", "size", "error", "said"),
    [
        ([], 500, ValueError, "points must hold at least one"),
        (series(np.zeros((0, 2))), 500, ValueError, "points must hold at least one"),
        (
            [(40.7, -74.0), (0.0, 0.0)],
            500,
            ik.errors.TooLarge,
            r"cell_size is in metres .* \(0, 0\)",
        ),
        ([(40.7, -74.0), (40.8, -73.9)], 0.5, ik.errors.TooLarge, "cell_size is in metres"),
        (
            [(-17.0, 179.9), (-17.1, -179.9)],
            500,
            ValueError,
            "lon -179.9 and 179.9, .* cross longitude 180",
        ),
        ([(-17.0, 179.999)], 5000, ValueError, "cross longitude 180"),
        ([(90.0, 0.0)], 500, ValueError, "cannot contain a pole"),
        ([(89.999, 0.0)], 5000, ValueError, "cannot contain a pole"),
        ([(89.9999, 0.0), (89.99, 179.0)], 500, ValueError, "cannot contain a pole"),
        (
            [(4_507_523.0, 583_960.0)],
            500,
            ik.errors.AlphabetMismatch,
            "-90..90 .* another CRS go in as a GeoSeries",
        ),
        (
            [(40.7, -74.0), (math.nan, 0.0)],
            500,
            ik.errors.AlphabetMismatch,
            "1 of 2 points have NaN, .* index 1",
        ),
        ([(40.7, -74.0)], 0, ValueError, "cell_size must be a finite number above 0"),
        ([(40.7, -74.0)], (500, 500), ValueError, "cell_size must be a number"),
    ],
)
def test_what_cannot_be_covered(points, size, error, said):
    with pytest.raises(error, match=said):
        ik.Grid.covering(points, size)


# Forms of points


def forms():
    points = points_in("Manhattan")
    lat, lon = points.T
    frame = pd.DataFrame({"lon": lon, "who": "x", "lat": lat}, index=range(100, 150))
    return {
        "array": points,
        "list": points.tolist(),
        "list of tuples": [tuple(pair) for pair in points],
        "Series of tuples": pd.Series([tuple(pair) for pair in points]),
        "GeoSeries": series(points),
        "GeoDataFrame": geopandas.GeoDataFrame(frame, geometry=series(points, UTM18).values),
        "points with heights": geopandas.GeoSeries(
            shapely.points(np.column_stack([lon, lat, lat])), crs=4326
        ),
        "frame": frame,
        "objects": points.astype(object),
    }


@pytest.mark.parametrize("form", forms())
def test_points_in_every_form(form):
    points = points_in("Manhattan")
    rows, cols = (
        ((at - low) // ((high - low) / n)).astype(int)
        for at, low, high, n in zip(points.T, (40.7, -74.02), (40.8, -73.93), (20, 14), strict=True)
    )
    expected = (rows * 14 + cols).tolist()
    assert MANHATTAN.locate(forms()[form]).tolist() == expected
    assert MANHATTAN.codes(forms()[form]).tolist() == expected
    assert ik.Grid.covering(forms()[form]) == ik.Grid.covering(points)


@pytest.mark.parametrize("form", forms())
@pytest.mark.parametrize("kind", [ik.PlanarLaplace, ik.RandomizedResponse])
def test_mechanisms_take_points_for_secrets_and_for_reports(kind, form):
    mechanism, points = kind(MANHATTAN, 2.0), forms()[form]
    codes = MANHATTAN.locate(points)
    tally, same = mechanism.tally(points), mechanism.tally(codes, codes=True)
    assert np.array_equal(tally.parts[0].reports, same.parts[0].reports)
    assert np.array_equal(tally.counts, same.counts)
    drawn = mechanism.randomize(points, np.random.default_rng(7))
    expected = mechanism.randomize(codes, np.random.default_rng(7), codes=True)
    assert np.array_equal(drawn, MANHATTAN.labels_of(expected))


def test_reports_outside_are_not_counted_as_anything():
    mechanism = ik.PlanarLaplace(MANHATTAN, 2.0)
    reports = series(np.array([(40.75, -74.0), (40.75, -74.1)]))
    with pytest.raises(
        ik.errors.AlphabetMismatch, match=r'take grid\.locate\(points, outside="nearest"\)'
    ):
        mechanism.tally(reports)
    nearest = MANHATTAN.locate(reports, outside="nearest")
    assert mechanism.tally(nearest, codes=True).n == 2
    assert (
        mechanism.tally(nearest).n == 2
    )  # a label is a pair: one number a cell can only be its place


def test_the_old_form_of_locate():
    lat, lon = points_in("Manhattan").T
    expected = MANHATTAN.locate(points_in("Manhattan")).tolist()
    assert MANHATTAN.locate(lat, lon).tolist() == expected
    assert MANHATTAN.locate(lat=lat, lon=lon, outside="raise").tolist() == expected
    assert MANHATTAN.locate([50.0, *lat], [0.0, *lon], "drop").tolist() == expected
    assert MANHATTAN.locate([(50.0, 0.0)], "drop").tolist() == []


GOOD = shapely.Point(-74.0, 40.75)
MISSING = [
    geopandas.GeoSeries([GOOD, None], crs=4326),
    geopandas.GeoSeries([GOOD, shapely.Point()], crs=4326),
    geopandas.GeoSeries([GOOD, shapely.Point(math.nan, 40.75)], crs=4326),
    [(40.75, -74.0), (None, None)],
    [(40.75, -74.0), (math.nan, -74.0)],
    np.ma.masked_array([(40.75, -74.0), (40.76, -74.0)], mask=[[False] * 2, [False, True]]),
    pd.DataFrame({"lat": pd.array([40.75, None], dtype="Float64"), "lon": [-74.0, -74.0]}),
]


@pytest.mark.parametrize("points", MISSING)
@pytest.mark.parametrize("outside", ["raise", "nearest", "drop"])
def test_a_missing_place_is_never_dropped_nor_moved(points, outside):
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"missing|NaN|masked"):
        MANHATTAN.locate(points, outside)
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"missing|NaN|masked"):
        MANHATTAN.codes(points)
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"missing|NaN|masked"):
        ik.Grid.covering(points)


@pytest.mark.parametrize("lat", [[40.75, None], np.ma.masked_array([40.75, 1], [False, True])])
def test_a_missing_latitude(lat):
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"NaN|masked"):
        MANHATTAN.locate(lat, [-74.0, -74.0], outside="nearest")


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (geopandas.GeoSeries([GOOD]), r"points must have a CRS.*points\.set_crs\(4326\)"),
        (
            geopandas.GeoSeries([GOOD, GOOD.buffer(1)], crs=4326),
            r"must be points, got Polygon: .*representative_point",
        ),
        (
            geopandas.GeoSeries([shapely.MultiPoint([GOOD])], crs=4326),
            "must be points, got MultiPoint",
        ),
        ([GOOD], "points must be a GeoSeries or GeoDataFrame with a CRS"),
        (
            pd.DataFrame({"easting": [-74.0], "northing": [40.75]}),
            r"without a CRS, got \['easting', 'northing'\]: .*points_from_xy\(easting, northing",
        ),
        (
            pd.DataFrame({"east": [-74.0], "north": [40.75]}),
            r"columns lat and lon or x and y, .* it has \['east', 'north'\]",
        ),
        ([40.75, -74.0], r"pairs, shape \(n, 2\), got shape \(2,\)"),
        (40.75, r"got shape \(\)"),
        ([("40.75", "-74.0")], "got an array of type <U5"),
    ],
)
def test_what_is_no_point_is_refused(points, said):
    with pytest.raises(ValueError, match=said):
        MANHATTAN.locate(points)


def test_a_place_that_another_crs_does_not_have():
    nowhere = geopandas.GeoSeries([shapely.Point(1e12, 1e12)] * 2, crs=UTM18)
    with pytest.raises(ik.errors.AlphabetMismatch, match="some cannot be converted to longitude"):
        MANHATTAN.locate(nowhere, "nearest")


def test_the_advice_for_missing_places_finds_the_others():
    points = geopandas.GeoSeries(
        [GOOD, None, shapely.Point(), shapely.Point(math.nan, 40.75)], crs=4326
    )
    with pytest.raises(
        ik.errors.AlphabetMismatch, match="3 of 4 are missing, empty or not a number, the first at"
    ) as caught:
        MANHATTAN.locate(points)
    advice = str(caught.value).rpartition("e.g. by ")[2]
    kept = eval(advice, {"points": points})
    assert MANHATTAN.locate(kept).tolist() == MANHATTAN.locate([(40.75, -74.0)]).tolist()


# Points outside


@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_cell_is_the_one_at_the_least_distance(seed):
    rng = np.random.default_rng(seed)
    grid = ik.Grid(4, 5, bounds=(40.0, 40.4, -74.5, -74.0))
    points = np.column_stack([rng.uniform(39.5, 41, 300), rng.uniform(-75.5, -73.5, 300)])
    rectangles = grid.to_geodataframe(np.zeros(20)).geometry.to_numpy()
    distances = shapely.distance(shapely.points(points[:, ::-1])[:, None], rectangles)
    expected = distances.argmin(axis=1)
    assert (distances.min(axis=1) > 0).mean() > 0.5
    assert np.array_equal(grid.locate(points, "nearest"), expected)
    assert np.array_equal(grid.locate(points, "drop"), expected[distances.min(axis=1) == 0])


def test_reports_of_planar_laplace_go_where_the_mechanism_puts_them(rng):
    grid = ik.Grid.from_bounds(40.7, 40.72, -74.0, -73.97, 4, 5)
    mechanism = ik.PlanarLaplace(grid, 1.0)
    height, width = grid.cell_shape
    lat0, lat1, lon0, lon1 = grid.bounds
    radius, angle = rng.gamma(2.0, 1.0, 40_000), rng.uniform(0, 2 * math.pi, 40_000)
    person = 7  # row 1, column 2
    lat = lat0 + (1.5 + radius * np.sin(angle) / height) * (lat1 - lat0) / 4
    lon = lon0 + (2.5 + radius * np.cos(angle) / width) * (lon1 - lon0) / 5
    seen = {
        outside: np.bincount(grid.locate(np.column_stack([lat, lon]), outside), minlength=20)
        for outside in ("nearest", "drop")
    }
    off = {
        way: ik.total_variation(counts / counts.sum(), mechanism.matrix()[person])
        for way, counts in seen.items()
    }
    assert off["nearest"] < 0.02
    assert off["drop"] > 0.2


def test_the_nearest_way_round_the_globe():
    fiji = ik.Grid(1, 3, bounds=(-18.0, -17.0, 177.0, 180.0))
    assert fiji.locate([(-17.5, -179.9), (-17.5, 176.9)], "nearest").tolist() == [2, 0]


def test_what_is_not_on_the_globe_has_no_nearest_cell():
    for wrong in [(4_507_523.0, 583_960.0), (math.inf, -74.0), (40.75, -181.0)]:
        with pytest.raises(
            ik.errors.AlphabetMismatch, match=r"lat must be -90\.\.90 and lon -180\.\.180, got"
        ):
            MANHATTAN.locate([(40.75, -74.0), wrong], "nearest")


def test_the_advice_suits_what_the_points_are():
    with pytest.raises(ik.errors.AlphabetMismatch) as caught:
        MANHATTAN.locate([(40.75, -74.0), (41.0, -74.0)])
    said = str(caught.value)
    assert "1 of 2 points are outside the grid, the first is lat=41.0, lon=-74.0." in said
    assert re.search(
        r'reports of a planar mechanism, take grid\.locate\(points, outside="nearest"\)', said
    )
    assert re.search(
        r'positions of people, take a larger grid, as Grid\.covering.*outside="drop"', said
    )
    with pytest.raises(
        ik.errors.AlphabetMismatch, match="latitude and longitude exchanged it is inside"
    ):
        MANHATTAN.locate([(-74.0, 40.75)])
    with pytest.raises(
        ik.errors.AlphabetMismatch, match=r"labels contains \(40, -74\): .* are floats"
    ):
        MANHATTAN.codes([(40, -74)])


# Codes


@pytest.mark.parametrize(
    "labels",
    [
        [(1, 2), (0, 0)],
        np.array([[1, 2], [0, 0]], dtype=np.uint8),
        pd.Series([(1, 2), (0, 0)]),
        pd.MultiIndex.from_tuples([(1, 2), (0, 0)]),
        pd.DataFrame({"col": [2, 0], "row": [1, 0]}),
        pd.DataFrame({"col": [2, 0], "row": [1, 0]}, dtype="Int64"),
    ],
)
def test_pairs_of_integers_are_cells(labels):
    assert MANHATTAN.codes(labels).tolist() == [16, 0]
    assert ik.Grid(20, 14).codes(labels).tolist() == [16, 0]


def test_pairs_of_floats_are_degrees():
    around_null = ik.Grid(4, 4, bounds=(-2.0, 2.0, -2.0, 2.0))
    assert around_null.codes([(1.0, 1.0)]).tolist() == [15]
    assert around_null.codes([(1, 1)]).tolist() == [5]
    with pytest.raises(ValueError, match=r"pairs of integers.*no bounds"):
        ik.Grid(4, 4).codes([(1.0, 1.0)])
    with pytest.raises(
        ik.errors.AlphabetMismatch, match=r"outside the grid, the first is lat=41\.0, lon=1\.0"
    ):
        MANHATTAN.codes([(41.0, 1.0)])


@pytest.mark.parametrize(
    "labels", [[], np.zeros((0, 2)), np.zeros(0, dtype=int), pd.DataFrame({"row": [], "col": []})]
)
def test_no_labels_have_no_codes(labels):
    assert ik.Grid(4, 4).codes(labels).tolist() == MANHATTAN.codes(labels).tolist() == []


@pytest.mark.parametrize(
    "labels", [[0, 1, 279], np.array([5]), pd.Series([0, 1])], ids=["list", "array", "Series"]
)
def test_codes_are_not_taken_for_labels(labels):
    with pytest.raises(ValueError, match="these look like codes: say codes=True"):
        MANHATTAN.codes(labels)


def test_columns_say_what_they_are():
    frame = pd.DataFrame({"row": [1.0, 0.0], "col": [2.0, math.nan]})
    assert MANHATTAN.codes(frame[:1]).tolist() == [16]
    with pytest.raises(ValueError, match="labels must be whole numbers, got nan"):
        MANHATTAN.codes(frame)
    assert ik.Grid(2, 2, bounds=(0.0, 2.0, 0.0, 2.0)).codes(
        pd.DataFrame({"lat": [1], "lon": [0]})
    ).tolist() == [2]


def test_a_frame_that_has_both_is_refused():
    frame = pd.DataFrame({"row": [0], "col": [0], "lat": [40.75], "lon": [-74.0]})
    with pytest.raises(ValueError, match="must have the columns row and col or lat and lon"):
        MANHATTAN.codes(frame)
    assert (
        MANHATTAN.codes(frame[["lat", "lon"]]).tolist() == MANHATTAN.locate(frame).tolist() != [0]
    )


# Lengths, and what is misread


def test_lengths_are_located_with_and_without_a_place():
    rng = np.random.default_rng(3)
    for grid in (MANHATTAN, ik.Grid(4, 5, (2.0, 3.0)), ik.Grid(4, 5, 2.0, first=(7, -3))):
        height, width = grid.cell_shape
        row, col = rng.integers(0, grid.n_rows, 40), rng.integers(0, grid.n_cols, 40)
        frame = pd.DataFrame({"x": (col + 0.3) * width, "y": (row + 0.6) * height})
        expected = (row * grid.n_cols + col).tolist()
        assert grid.locate(frame).tolist() == grid.codes(frame).tolist() == expected
        frame.loc[0] = [-5.0, 0.1]
        assert grid.locate(frame, "nearest").tolist() == [0, *expected[1:]]
        assert grid.locate(frame, "drop").tolist() == expected[1:]
        with pytest.raises(ik.errors.AlphabetMismatch, match=r"the first is y=0\.1, x=-5\.0"):
            grid.locate(frame)


@pytest.mark.parametrize(
    "names", [("latitude", "longitude"), ("Lat", "Lng"), ("decimalLatitude", "decimalLongitude")]
)
def test_other_names_of_degrees(names):
    points = points_in("Manhattan")
    frame = pd.DataFrame(points, columns=list(names))[list(names[::-1])]
    assert MANHATTAN.locate(frame).tolist() == MANHATTAN.locate(points).tolist()
    assert ik.Grid.covering(frame) == ik.Grid.covering(points)


@pytest.mark.parametrize("outside", ["nearest", "drop"])
def test_what_is_misread_is_not_moved_and_not_left_out(outside):
    points = points_in("Manhattan")
    with pytest.raises(ik.errors.AlphabetMismatch, match="longitude exchanged it is inside"):
        MANHATTAN.locate(points[:, ::-1], outside)
    lengths = np.random.default_rng(1).uniform(0, 7, (50, 2))
    with pytest.raises(ik.errors.AlphabetMismatch, match="50 of 50 are in it as x and y"):
        MANHATTAN.locate(lengths, outside)
    # Places that are only near the grid, and places elsewhere, are no mistakes.
    assert len(MANHATTAN.locate([(40.65, -74.1), (48.9, 2.3)], outside)) in (0, 2)
