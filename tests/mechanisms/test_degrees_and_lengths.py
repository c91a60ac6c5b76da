"""Degrees are not read as lengths, whatever holds them, and lengths not as degrees."""

import numpy as np
import pandas as pd
import pytest

import ibukit as ik

GRID = ik.Grid(3, 4, cell_size=(0.5, 0.7))
MILAN = ik.Grid.from_bounds(45.40, 45.50, 9.10, 9.20, 5, 5)
LOMBARDY = ik.Grid.from_bounds(45.0, 46.0, 9.0, 10.0, 5, 5)


@pytest.mark.parametrize("grid", [MILAN, LOMBARDY], ids=["small", "large"])
@pytest.mark.parametrize("order", [[0, 1], [1, 0]], ids=["lat first", "lon first"])
@pytest.mark.parametrize("outside", ["raise", "keep", "drop"])
def test_degrees_in_an_array_are_not_lengths(grid, order, outside):
    rng = np.random.default_rng(5)
    south, north, west, east = grid.bounds
    degrees = np.column_stack([rng.uniform(south, north, 30), rng.uniform(west, east, 30)])
    # Noise takes some of them out of the bounds.
    degrees[:6] += [0.0, 1.5 * (east - west)]
    first = "latitude" if order == [0, 1] else "longitude"
    points = degrees[:, order]
    said = f"degrees inside its bounds if the {first} comes first.* in columns lat and lon"
    with pytest.raises(ik.errors.AlphabetMismatch, match=said):
        ik.PlanarLaplace(grid, 1.0).tally_points(points, outside)
    for mechanism in (ik.PlanarLaplace(grid, 1.0).of_points, ik.PlanarGaussian(grid, 1.0)):
        with pytest.raises(ik.errors.AlphabetMismatch, match=said):
            mechanism.tally(points)
    # What the message advises.
    frame = pd.DataFrame(degrees, columns=["lat", "lon"])
    tally = ik.PlanarLaplace(grid, 1.0).tally_points(frame, "keep")
    expected = (degrees - [south, west]) / [north - south, east - west]
    expected = expected[:, ::-1] * [5 * grid.cell_shape[1], 5 * grid.cell_shape[0]]
    np.testing.assert_allclose(
        tally.parts[0].reports[:, :2], expected[np.lexsort(expected.T[::-1])], atol=1e-9
    )
    lengths = pd.DataFrame(points, columns=["x_km", "y_km"])
    assert ik.PlanarLaplace(grid, 1.0).tally_points(lengths, "keep").n == 30


def test_lengths_of_people_all_over_the_grid_are_lengths(rng):
    for grid in (MILAN, LOMBARDY):
        mechanism = ik.PlanarLaplace(grid, 0.8)
        points = mechanism.of_points.randomize(rng.integers(0, 25, 500), rng)
        assert mechanism.of_points.tally(points).n == 500
        frame = pd.DataFrame(points, columns=["x", "y"])
        same = mechanism.tally_points(frame[["y", "x"]], "keep").parts[0].reports
        assert np.array_equal(same, mechanism.tally_points(points, "keep").parts[0].reports)
        unnamed = mechanism.tally_points(pd.DataFrame(points), "keep").parts[0].reports
        assert np.array_equal(same, unnamed)


def test_a_frame_that_does_not_say_what_it_holds_is_refused():
    mechanism = ik.PlanarLaplace(MILAN, 1.0)
    for columns in (["a", "b"], ["x_m", "y_m"], ["row", "col"], ["lat", "y"]):
        frame = pd.DataFrame([[1.0, 2.0]], columns=columns)
        for door in (mechanism.tally_points, mechanism.of_points.tally):
            with pytest.raises(ValueError, match="must have the columns lat and lon or x and y"):
                door(frame)
    twice = pd.DataFrame([[45.45, 9.15, 45.41]], columns=["lat", "lon", "latitude"])
    with pytest.raises(
        ValueError, match=r"only two of them, but it has \['lat', 'latitude', 'lon'\]"
    ):
        mechanism.tally_points(twice)
    with pytest.raises(ValueError, match="the grid has no bounds"):
        ik.PlanarLaplace(GRID, 1.0).tally_points(twice[["lat", "lon"]])


def test_the_first_advice_for_points_outside_is_how_to_read_them():
    with pytest.raises(ik.errors.AlphabetMismatch) as caught:
        ik.PlanarLaplace(MILAN, 1.0).tally_points([[-5.0, 2.0]])
    said = str(caught.value)
    assert 0 < said.index("columns lat and lon") < said.index('outside="keep"')
    assert "so that the estimate is wrong there" in said


def test_a_missing_length_in_a_frame_is_refused():
    frame = pd.DataFrame({"x": [1.0, np.nan], "y": [1.0, 2.0]})
    with pytest.raises(ik.errors.AlphabetMismatch, match="NaN where one is missing"):
        ik.PlanarLaplace(MILAN, 1.0).tally_points(frame, "keep")


def test_secrets_of_a_grid_without_an_end_are_read_by_their_names(rng):
    mechanism = ik.PlanarGeometric(ik.Grid(None, None, 2.0, "km"), 12.0)
    cells = pd.DataFrame({"col": [1, -7], "row": [3, 4]})
    assert mechanism.randomize(cells, rng).tolist() == [[3, 1], [4, -7]]
    lengths = pd.DataFrame({"x": [3.5, -13.0], "y": [6.1, 8.2]})
    assert mechanism.randomize(lengths, rng).tolist() == [[3, 1], [4, -7]]
    with pytest.raises(ValueError, match=r"secrets must be coordinates.* the grid has no bounds"):
        mechanism.randomize(pd.DataFrame({"lat": [45.0], "lon": [9.0]}), rng)
