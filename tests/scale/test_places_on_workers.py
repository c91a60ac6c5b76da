"""Partitions of frames with coordinates are read by the names of their columns."""

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.scale._blocks import checked_rows, tally_of_block

GRID = ik.Grid(5, 5, cell_size=(22.0, 16.0), unit="km", bounds=(45.0, 46.0, 9.0, 10.0))
NOISE = ik.PlanarLaplace(GRID, 0.8)
DEGREES = pd.DataFrame({"lon": [9.5, 9.55], "lat": [45.5, 45.3]})


def test_the_rows_that_workers_keep_are_those_of_a_tally():
    np.testing.assert_allclose(
        checked_rows(NOISE.of_points, DEGREES, False)[:, :2], [[40, 55], [44, 33]]
    )
    plane = ik.PlanarGeometric(GRID, 0.8)
    assert checked_rows(plane, DEGREES, False).tolist() == [[2, 2], [1, 2]]
    with pytest.raises(ik.errors.AlphabetMismatch, match="in columns lat and lon"):
        checked_rows(NOISE.of_points, DEGREES.to_numpy(), False)


@pytest.mark.parametrize("mechanism", [NOISE, NOISE.of_points, ik.PlanarGeometric(GRID, 0.8)])
def test_the_tally_of_a_block_is_that_of_the_frame(mechanism):
    block, whole = tally_of_block(mechanism, DEGREES, False), mechanism.tally(DEGREES)
    np.testing.assert_array_equal(block.parts[0].reports, whole.parts[0].reports)
