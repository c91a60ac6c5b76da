"""Reports on a grid in tables: the names of columns say what the numbers are, geometries too."""

import dask.dataframe
import duckdb
import geopandas
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import shapely
from pyarrow import dataset

import ibukit as ik
from ibukit.cli import main
from ibukit.errors import AlphabetMismatch

# A degree of latitude is 22 units: (lat, lon) is inside if it is read as (x, y).
GRID = ik.Grid(5, 5, cell_size=(22.0, 16.0), unit="km", bounds=(45.0, 46.0, 9.0, 10.0))
NOISE = ik.PlanarLaplace(GRID, 0.8)
LAT, LON = np.array([45.51, 45.49, 45.05, 45.5, 46.02]), np.array([9.47, 9.52, 9.95, 9.5, 9.5])
X, Y = (LON - 9) * 80, (LAT - 45) * 110
OUTSIDE = np.array([False, False, False, False, True])


def engines(columns, folder):
    """The same columns in every engine, read at once or lazily."""
    frame = pd.DataFrame(columns)
    table = pa.Table.from_pandas(frame)
    frame.to_parquet(folder / "a.parquet")
    frame.to_csv(folder / "a.csv", index=False)
    return {
        "pandas": frame,
        "polars": pl.DataFrame(columns),
        "lazy polars": pl.LazyFrame(columns),
        "arrow": table,
        "arrow dataset": dataset.dataset(folder / "a.parquet"),
        "duckdb": duckdb.from_arrow(table),
        "dask": dask.dataframe.from_pandas(frame, npartitions=2),
        "parquet": folder / "a.parquet",
        "csv": folder / "a.csv",
    }


def points_in(tally):
    (part,) = tally.parts
    return np.repeat(part.reports[:, :2], part.counts, axis=0)


def sorted_rows(x, y):
    return np.array(sorted(zip(x, y, strict=True)))


PAIRS = {
    "lat and lon": ({"lat": LAT, "lon": LON}, ["lat", "lon"]),
    "lon and lat": ({"lat": LAT, "lon": LON}, ["lon", "lat"]),
    "words": ({"Latitude": LAT, "Longitude": LON}, ["Latitude", "Longitude"]),
    "lng": ({"lat": LAT, "lng": LON}, ["lat", "lng"]),
    "longer words": (
        {"pickup_latitude": LAT, "pickup_longitude": LON},
        ["pickup_latitude", "pickup_longitude"],
    ),
    "one word": (
        {"decimalLatitude": LAT, "decimalLongitude": LON},
        ["decimalLatitude", "decimalLongitude"],
    ),
    "x and y": ({"x": X, "y": Y}, ["x", "y"]),
    "y and x": ({"x": X, "y": Y}, ["y", "x"]),
    "with the unit": ({"x_km": X, "y_km": Y}, ["y_km", "x_km"]),
}


@pytest.mark.parametrize("names", PAIRS)
def test_names_say_what_points_are_in_every_engine(names, tmp_path):
    columns, report = PAIRS[names]
    for engine, table in engines(columns, tmp_path).items():
        tally = ik.Tally.from_table(table, NOISE.of_points, report=report)
        np.testing.assert_allclose(
            points_in(tally), sorted_rows(X, Y), atol=1e-9, err_msg=f"{engine}: {names}"
        )
    # The same columns at the other doors.
    frame = pd.DataFrame(columns)
    for door in (
        lambda given: NOISE.tally_points(given, outside="keep"),
        NOISE.of_points.tally,
        ik.PlanarGaussian(GRID, 5.0).tally,
    ):
        for given in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
            np.testing.assert_allclose(points_in(door(given)), sorted_rows(X, Y), atol=1e-9)


@pytest.mark.parametrize("names", PAIRS)
def test_names_say_which_cells_hold_points_in_every_engine(names, tmp_path):
    columns, report = PAIRS[names]
    codes = GRID.locate(np.column_stack([LAT, LON]), "nearest")
    plane = ik.PlanarGeometric(GRID, 0.8)
    cells = sorted(np.column_stack([LAT * 5 // 1 - 225, LON * 5 // 1 - 45]).astype(int).tolist())
    for engine, table in engines(columns, tmp_path).items():
        tally = ik.Tally.from_table(table, NOISE, report=report, unknown="nearest")
        seen = np.repeat(tally.parts[0].reports, tally.counts)
        assert seen.tolist() == sorted(codes.tolist()), f"{engine}: {names}"
        dropped = ik.Tally.from_table(table, NOISE, report=report, unknown="drop")
        assert (dropped.n, dict(dropped.dropped)) == (4, {"unknown": 1}), engine
        (part,) = ik.Tally.from_table(table, plane, report=report).parts
        assert np.repeat(part.reports, part.counts, axis=0).tolist() == cells, engine
        with pytest.raises(AlphabetMismatch, match='correct such rows, or say unknown="nearest"'):
            ik.Tally.from_table(table, NOISE, report=report)
    frame = pd.DataFrame(columns)
    assert GRID.locate(frame, "nearest").tolist() == codes.tolist()
    assert GRID.codes(frame[~OUTSIDE]).tolist() == codes[~OUTSIDE].tolist()
    (part,) = plane.tally(frame).parts
    assert np.repeat(part.reports, part.counts, axis=0).tolist() == cells


def test_whole_degrees_are_degrees_and_named_cells_are_cells(tmp_path):
    around_null = ik.Grid(4, 4, bounds=(-2.0, 2.0, -2.0, 2.0))
    mechanism = ik.RandomizedResponse(around_null, 1.0)
    for table in engines({"lat": [1, 1], "lon": [0, -2]}, tmp_path).values():
        tally = ik.Tally.from_table(table, mechanism, ["lat", "lon"])
        assert tally.parts[0].reports.tolist() == [12, 14]
    # Integers beside a missing one are floats in pandas.
    frame = pd.DataFrame({"row": [1, 1, None], "col": [0, 1, 0]})
    for report in (["row", "col"], ["col", "row"]):
        tally = ik.Tally.from_table(frame, mechanism, report, missing="drop")
        assert tally.parts[0].reports.tolist() == [4, 5]
    cells = ik.PlanarGeometric(ik.Grid(None, None), 1.0)
    frame = frame[:2].astype(int)
    expected = [[1, 0], [1, 1]]
    assert ik.Tally.from_table(frame, cells, ["col", "row"]).parts[0].reports.tolist() == expected
    assert cells.tally(frame[["col", "row"]]).parts[0].reports.tolist() == expected


@pytest.mark.parametrize("mechanism", [NOISE, ik.PlanarGeometric(GRID, 1.0)])
def test_whole_numbers_in_x_and_y_may_be_cells(mechanism):
    frame = pd.DataFrame({"x": [1, 2], "y": [3, 4]})
    with pytest.raises(ValueError, match="whole numbers in the columns x and y may be either"):
        ik.Tally.from_table(frame, mechanism, ["x", "y"])
    with pytest.raises(ValueError, match="whole numbers in the columns x and y may be either"):
        mechanism.tally(frame)
    assert ik.Tally.from_table(frame, NOISE.of_points, ["x", "y"]).n == 2


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["a", "b"], r"columns x and y, .* or lat and lon, .* got \['a', 'b'\]: rename them"),
        (["row", "col"], "must name the columns x and y"),
        (["x_m", "y_m"], "must name the columns x and y"),
        (["lat", "b"], "two columns that belong together"),
        (["lat", "x"], "two columns that belong together"),
        (["pickup_lat", "dropoff_lat"], "two columns that belong together"),
    ],
)
def test_columns_that_do_not_say_what_they_hold_are_refused(columns, said):
    frame = pd.DataFrame({columns[0]: X, columns[1]: Y})
    with pytest.raises(ValueError, match=said):
        ik.Tally.from_table(frame, NOISE.of_points, columns)
    with pytest.raises(ValueError, match="must have the columns lat and lon or x and y"):
        NOISE.tally_points(frame, outside="keep")


def test_degrees_in_columns_of_lengths_are_never_read_nor_dropped():
    for first, second in ((LON, LAT), (LAT, LON)):
        frame = pd.DataFrame({"x": first, "y": second})
        for unknown in ("raise", "drop"):
            for mechanism in (NOISE, NOISE.of_points, ik.PlanarGeometric(GRID, 1.0)):
                with pytest.raises(AlphabetMismatch, match="pass degrees in columns lat and lon"):
                    ik.Tally.from_table(frame, mechanism, ["x", "y"], unknown=unknown)
    # Columns that say the unit are believed.
    frame = pd.DataFrame({"x_km": LON, "y_km": LAT})
    tally = ik.Tally.from_table(frame, NOISE.of_points, ["x_km", "y_km"])
    np.testing.assert_array_equal(points_in(tally), sorted_rows(LON, LAT))


PLACES = geopandas.GeoSeries.from_xy(LON, LAT, crs=4326)


@pytest.mark.parametrize("crs", [4326, 32632, 3857])
def test_a_column_of_geometries_stands_for_degrees(crs):
    table = geopandas.GeoDataFrame({"day": [1, 1, 2, 2, 2]}, geometry=PLACES.to_crs(crs))
    tally = ik.Tally.from_table(table, NOISE.of_points, report="geometry")
    np.testing.assert_allclose(points_in(tally), sorted_rows(X, Y), atol=1e-5)
    same = ik.Tally.from_table(table, NOISE, report=["geometry"], unknown="nearest")
    codes = GRID.locate(PLACES, "nearest")
    assert np.repeat(same.parts[0].reports, same.counts).tolist() == sorted(codes.tolist())
    groups = ik.Tally.from_table(table, NOISE.of_points, report="geometry", groups="day")
    assert {day: group.n for day, group in groups.items()} == {1: 2, 2: 3}


def test_a_missing_geometry_is_a_missing_report():
    table = geopandas.GeoDataFrame(geometry=[PLACES[0], None, shapely.Point()], crs=4326)
    with pytest.raises(ValueError, match='missing="drop", which is right only if they are like'):
        ik.Tally.from_table(table, NOISE.of_points, report="geometry")
    tally = ik.Tally.from_table(table, NOISE.of_points, report="geometry", missing="drop")
    assert (tally.n, dict(tally.dropped)) == (1, {"missing": 2})


def geometries_elsewhere():
    """Geometries in forms that do not say their CRS, or are no points."""
    area = geopandas.GeoDataFrame(geometry=PLACES.to_crs(3857).buffer(10))
    return {
        "no CRS": (
            geopandas.GeoDataFrame(geometry=PLACES.set_crs(None, allow_override=True)),
            "CRS",
        ),
        "areas": (area, "must be points, got Polygon"),
        "objects": (pd.DataFrame({"geometry": list(PLACES)}), "holds geometries, got Point"),
        "bytes": (pl.DataFrame({"geometry": PLACES.to_wkb().tolist()}), "geometries, got bytes"),
        "texts": (pl.DataFrame({"geometry": PLACES.to_wkt().tolist()}), "geometries, got str"),
    }


@pytest.mark.parametrize("what", geometries_elsewhere())
@pytest.mark.parametrize("unknown", ["raise", "drop"])
@pytest.mark.parametrize("mechanism", [NOISE, NOISE.of_points, ik.PlanarGeometric(GRID, 1.0)])
def test_geometries_are_refused_and_never_dropped(what, unknown, mechanism):
    table, said = geometries_elsewhere()[what]
    with pytest.raises(ValueError, match=said) as caught:
        ik.Tally.from_table(table, mechanism, report="geometry", unknown=unknown)
    assert "drop" not in str(caught.value)


def test_a_file_of_geometries_is_read_by_geopandas(tmp_path):
    geopandas.GeoDataFrame(geometry=PLACES).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"geometries, got bytes: .*geopandas\.read_parquet"):
        ik.Tally.from_table(tmp_path / "a.parquet", NOISE.of_points, report="geometry")


def test_cells_outside_are_moved_to_the_nearest():
    table = pd.DataFrame({"row": [-3, 2, 9], "col": [2, 2, 7]})
    tally = ik.Tally.from_table(table, NOISE, ["row", "col"], unknown="nearest")
    assert tally.parts[0].reports.tolist() == [2, 12, 24]


def test_what_is_no_place_is_not_moved():
    table = pd.DataFrame({"lat": ["45.5", "?"], "lon": [9.5, 9.5]})
    with pytest.raises(AlphabetMismatch, match=r"\('\?', 9.5\)"):
        ik.Tally.from_table(table, NOISE, ["lat", "lon"], unknown="nearest")
    metres = pd.DataFrame({"lat": [5_040_000.0, 45.5], "lon": [540_000.0, 9.5]})
    for unknown, mechanism in (("nearest", NOISE), ("keep", NOISE.of_points)):
        with pytest.raises(AlphabetMismatch, match=r"5040000\.0"):
            ik.Tally.from_table(metres, mechanism, ["lat", "lon"], unknown=unknown)
    tally = ik.Tally.from_table(metres, NOISE.of_points, ["lat", "lon"], unknown="drop")
    assert (tally.n, dict(tally.dropped)) == (1, {"unknown": 1})


def test_longitudes_before_latitudes_are_not_moved_to_the_border():
    table = pd.DataFrame({"a": LON, "b": LAT})
    with pytest.raises(AlphabetMismatch, match="latitude and longitude exchanged"):
        ik.Tally.from_table(table, NOISE, ["a", "b"], unknown="nearest")


KEEP = "unknown must not be 'keep' for"
NEAREST = "unknown must not be 'nearest' for"


@pytest.mark.parametrize(
    ("mechanism", "unknown", "said"),
    [
        (NOISE, "keep", f"{KEEP} PlanarLaplace: what it cannot report has no likelihood"),
        (NOISE.of_points, "nearest", f"{NEAREST} PlanarLaplacePoints: its reports outside the"),
        (ik.PlanarGeometric(GRID, 1.0), "nearest", f"{NEAREST} PlanarGeometric: its reports out"),
        (ik.RandomizedResponse(3, 1.0), "nearest", f"{NEAREST} RandomizedResponse: its reports"),
        (ik.RandomizedResponse(3, 1.0), "keep", f"{KEEP} RandomizedResponse"),
        (ik.LinearGeometric(ik.Line(0, 3), 1.0), "nearest", f"{NEAREST} LinearGeometric"),
    ],
)
def test_a_word_has_the_same_meaning_everywhere_or_is_refused(mechanism, unknown, said):
    table = pd.DataFrame({"lat": LAT, "lon": LON, "report": 1})
    report = ["lat", "lon"] if isinstance(mechanism.alphabet, ik.Grid) else "report"
    with pytest.raises(ValueError, match=said):
        ik.Tally.from_table(table, mechanism, report, unknown=unknown)


def test_points_outside_are_kept_where_they_are():
    table = pd.DataFrame({"lat": LAT, "lon": LON})
    kept = NOISE.tally_points(table, outside="keep")
    for unknown in ("raise", "keep", "drop"):
        tally = ik.Tally.from_table(table, NOISE.of_points, ["lat", "lon"], unknown=unknown)
        np.testing.assert_array_equal(points_in(tally), points_in(kept))


def test_a_number_of_columns_that_is_not_two_is_named():
    table = pd.DataFrame({"report": [1.0], "x": 1.0, "y": 2.0})
    with pytest.raises(ValueError, match="two columns for PlanarLaplacePoints on a grid, x and y"):
        ik.Tally.from_table(table, NOISE.of_points)
    with pytest.raises(ValueError, match="on a grid, latitude and longitude, or one of geometries"):
        ik.Tally.from_table(table, NOISE, ["report", "x", "y"])


def test_the_command_line_reads_names_and_moves_what_is_outside(tmp_path, capsys):
    pd.DataFrame({"lat": LAT, "lon": LON}).to_csv(tmp_path / "a.csv", index=False)
    grid = ["--rows", "5", "--cols", "5", "--bounds", "45,46,9,10", "--epsilon", "0.8"]
    command = ["estimate", str(tmp_path / "a.csv"), "--mechanism", "planar-laplace", *grid]
    out = {}
    for first, second in (("lat", "lon"), ("lon", "lat")):
        columns = ["--column", first, "--column", second]
        assert main([*command, *columns, "--unknown", "nearest"]) == 0
        out[first] = capsys.readouterr().out
    assert out["lat"] == out["lon"]
    assert main([*command, "--column", "lat", "--column", "lon"]) == 2
    assert "--unknown nearest if the mechanism" in capsys.readouterr().err


@pytest.mark.parametrize("grid", [GRID, ik.Grid(5, 5, cell_size=(22.0, 16.0), unit="km")])
@pytest.mark.parametrize("names", [["easting", "northing"], ["UTM_Northing", "UTM_Easting_m"]])
def test_eastings_and_northings_without_a_crs_are_refused(grid, names):
    # Small whole numbers, which a grid without bounds would take for rows and columns.
    table = pd.DataFrame({names[0]: [3.0, 4.0], names[1]: [1.0, 2.0]})
    mechanisms = [ik.TruncatedPlanarGeometric, ik.PlanarGeometric]
    doors = [
        *(lambda m=m: ik.Tally.from_table(table, m(grid, 1.0), report=names) for m in mechanisms),
        lambda: ik.Tally.from_table(table, ik.PlanarLaplace(grid, 1.0).of_points, report=names),
        lambda: ik.PlanarLaplace(grid, 1.0).tally_points(table, outside="keep"),
        lambda: grid.locate(table),
        lambda: grid.codes(table),
    ]
    for door in doors:
        with pytest.raises(ValueError, match=r"without a CRS.* name the columns x and y"):
            door()


def test_eastings_and_northings_with_a_crs_are_read_as_the_message_says():
    places = geopandas.GeoSeries.from_xy(LON, LAT, crs=4326).to_crs(32632)
    table = pd.DataFrame({"easting": places.x, "northing": places.y})
    with pytest.raises(ValueError, match="points_from_xy") as caught:
        ik.Tally.from_table(table, NOISE.of_points, report=["easting", "northing"])
    advice = str(caught.value).partition("Pass ")[2].partition(", for ")[0]
    names = {"geopandas": geopandas, "table": table}
    names |= {"easting": table.easting, "northing": table.northing}
    frame = eval(advice.replace("...", "32632"), names)
    tally = ik.Tally.from_table(frame, NOISE.of_points, report="geometry")
    np.testing.assert_allclose(points_in(tally), sorted_rows(X, Y), atol=1e-6)
    other = {"easting": X, "northing": Y, "row": [0, 1, 2, 3, 4], "col": [0, 0, 1, 2, 3]}
    kept = ik.TruncatedPlanarGeometric(GRID, 1.0)
    assert ik.Tally.from_table(pd.DataFrame(other), kept, report=["row", "col"]).n == 5
