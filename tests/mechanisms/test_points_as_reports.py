"""Reports of the planar geometric mechanism as points:
the cells of the infinite grid that hold them.
"""

import geopandas
import numpy as np
import pandas as pd
import polars as pl
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch

GRID = ik.Grid.from_bounds(40.7, 40.8, -74.0, -73.9, 7, 3)
PLANE = ik.PlanarGeometric(GRID, 1.0)


def cells_of(tally):
    (part,) = tally.parts
    return np.repeat(part.reports, part.counts, axis=0).tolist()


def test_points_inside_are_where_the_grid_locates_them():
    rng = np.random.default_rng(1)
    points = np.column_stack([rng.uniform(40.7, 40.8, 500), rng.uniform(-74.0, -73.9, 500)])
    on_edges = np.stack(np.meshgrid(*(axis[:-1] for axis in GRID.edges())), axis=-1).reshape(-1, 2)
    for some in (points, on_edges):
        codes = [3 * row + col for row, col in cells_of(PLANE.tally(some))]
        assert codes == sorted(GRID.locate(some).tolist())


def test_points_outside_are_in_the_cells_that_continue_the_grid():
    height, width = 0.1 / 7, 0.1 / 3
    cells = np.array([[-1, 0], [-4, -3], [7, 3], [11, -2], [3, 40]])
    for at in (0.01, 0.5, 0.99):
        points = [40.7, -74.0] + (cells + at) * [height, width]
        assert cells_of(PLANE.tally(points)) == sorted(cells.tolist())
    corners = [(40.8, -73.9), (40.7, -74.0)]  # a cell holds its south and west edge
    assert cells_of(PLANE.tally(corners)) == [[0, 0], [7, 3]]


def test_points_come_in_every_form():
    lat, lon = np.array([40.75, 40.69, 40.81]), np.array([-73.95, -73.99, -74.01])
    series = geopandas.GeoSeries(geopandas.points_from_xy(lon, lat), crs=4326)
    expected = cells_of(PLANE.tally(np.column_stack([lat, lon])))
    assert expected == [[-1, 0], [3, 1], [7, -1]]
    pairs, frame = list(zip(lat, lon, strict=True)), pd.DataFrame({"lat": lat, "lon": lon})
    for form in (series, series.to_crs(32618), frame, pairs):
        assert cells_of(PLANE.tally(form)) == expected
    assert (
        cells_of(ik.Tally.from_table(pl.DataFrame({"a": lat, "b": lon}), PLANE, ["a", "b"]))
        == expected
    )


def test_cells_are_still_cells():
    cells = [[3, 1], [-2, 7]]
    assert cells_of(PLANE.tally(cells)) == sorted(cells)
    assert cells_of(PLANE.tally(pd.DataFrame({"row": [3, -2], "col": [1, 7]}))) == sorted(cells)
    assert (
        cells_of(PLANE.tally(PLANE.randomize([(40.75, -73.95)] * 9, np.random.default_rng(1))))
        != []
    )
    table = pl.DataFrame({"row": [3, -2, None], "col": [1, 7, 0]})
    assert cells_of(ik.Tally.from_table(table, PLANE, ["row", "col"], missing="drop")) == sorted(
        cells
    )


def test_a_grid_that_begins_elsewhere_names_cells_from_there():
    moved = ik.Grid(7, 3, GRID.cell_size, unit="km", bounds=GRID.bounds, first=(10, 20))
    points = [(40.75, -73.95), (40.69, -73.99)]
    tally = ik.PlanarGeometric(moved, 1.0).tally(points)
    assert cells_of(tally) == [[9, 20], [13, 21]]
    np.testing.assert_allclose(tally.matrix(), PLANE.tally(points).matrix())


def test_the_way_across_longitude_180_is_the_short_one():
    edges = {"lat0": -19.0, "lat1": -17.0, "lon0": 177.0, "lon1": 180.0}
    fiji = ik.PlanarGeometric(ik.Grid.from_bounds(**edges, n_rows=2, n_cols=3), 0.1)
    assert cells_of(fiji.tally([(-17.5, -179.5), (-17.5, 179.5)])) == [[1, 2], [1, 3]]


WRONG = {
    "whole floats": (PLANE, [(41.0, -74.0)], "integers if they are .row, column."),
    "metres": (PLANE, [(4510000.5, 583000.5)], "lat must be -90..90"),
    "missing": (PLANE, [(40.75, np.nan)], "have NaN"),
    "no bounds": (
        ik.PlanarGeometric(ik.Grid(7, 3), 1.0),
        [(40.75, -73.95)],
        "reports must be whole numbers",
    ),
    "no CRS": (PLANE, geopandas.GeoSeries.from_xy([-73.95], [40.75]), "reports must have a CRS"),
    "codes": (PLANE, [3, 4], "reports must be .row, column. pairs"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_point_is_refused(what):
    mechanism, reports, said = WRONG[what]
    with pytest.raises((ValueError, AlphabetMismatch), match=said):
        mechanism.tally(reports)
