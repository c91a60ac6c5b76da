"""Districts of a map as questions: cells weigh as much as the share of their area."""

import geopandas
import numpy as np
import pytest
from shapely.geometry import Point, Polygon, box

import ibukit as ik
from ibukit.domain.districts import weights_of_districts
from ibukit.errors import AlphabetMismatch

PARIS = ik.Grid.from_bounds(48.84, 48.88, 2.30, 2.36, n_rows=4, n_cols=6)
PLAIN = ik.Grid(2, 3, cell_size=0.5, unit="km")


def districts(*shapes, crs="EPSG:4326", names=None):
    return geopandas.GeoDataFrame(geometry=list(shapes), crs=crs, index=names)


def test_half_a_cell_weighs_a_half():
    found = weights_of_districts(districts(box(2.30, 48.84, 2.325, 48.86)), PARIS)
    # Two rows in the south, two columns and a half.
    right = np.outer([1, 1, 0, 0], [1, 1, 0.5, 0, 0, 0])
    assert np.allclose(found, right.reshape(1, -1), atol=1e-9)


def test_any_reference_system_and_a_plain_grid_in_its_own_unit():
    shape = districts(box(2.30, 48.84, 2.325, 48.86))
    moved = shape.to_crs("EPSG:2154")
    assert np.allclose(
        weights_of_districts(moved, PARIS), weights_of_districts(shape, PARIS), atol=2e-3
    )
    plain = districts(box(0, 0, 0.75, 0.5), crs=None)
    assert np.allclose(weights_of_districts(plain, PLAIN), [[1, 0.5, 0, 0, 0, 0]])


def test_districts_that_tile_the_grid_add_up_to_one_and_have_their_names():
    west, east = box(2.2, 48, 2.333, 49), box(2.333, 48, 2.5, 49)
    town = districts(west, east, names=["west", "east"])
    mechanism = ik.RandomizedResponse(PARIS, epsilon=3.0)
    rng = np.random.default_rng(1)
    estimate = ik.mle(mechanism.simulate(rng.multinomial(5000, ik.uniform(24)), rng))
    summary = estimate.summary(of=town)
    assert list(summary.table.index) == ["west", "east"]
    assert summary.table["estimate"].sum() == pytest.approx(1)
    lower, upper = estimate.interval(0.95, of=town)
    assert np.allclose(lower, summary.table["lower"])
    assert (lower < summary.table["estimate"]).all()
    assert (summary.table["estimate"] < upper).all()
    assert estimate.standard_errors(of=town).shape == (2,)
    assert ik.plan(mechanism, of=town.iloc[[0]], width=0.1).n > 0


@pytest.mark.parametrize(
    ("grid", "shapes", "error", "message"),
    [
        (PARIS, districts(box(2.3, 48.8, 2.4, 48.9), crs=None), ValueError, "reference system"),
        (PLAIN, districts(box(2.3, 48.8, 2.4, 48.9)), ValueError, "own unit"),
        (PARIS, districts(Point(2.32, 48.85)), ValueError, "got a Point at 0"),
        (PARIS, districts(box(12, 48, 13, 49), names=["Ulm"]), ValueError, "'Ulm' covers no cell"),
        (
            PARIS,
            districts(Polygon([(2.3, 48.84), (2.36, 48.88), (2.36, 48.84), (2.3, 48.88)])),
            ValueError,
            "make_valid",
        ),
        (ik.Alphabet(["a", "b"]), districts(box(0, 0, 1, 1)), AlphabetMismatch, "only a Grid"),
    ],
)
# an older geopandas hands a point to pyproj in a way that numpy deprecates
@pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")
def test_districts_that_mean_nothing_certain_are_refused(grid, shapes, error, message):
    estimate = ik.mle(
        ik.RandomizedResponse(grid, epsilon=2.0).tally_counts(np.arange(1, len(grid) + 1))
    )
    with pytest.raises(error, match=message):
        estimate.interval(0.95, of=shapes)
