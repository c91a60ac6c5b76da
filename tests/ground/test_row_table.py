"""Rows of whole numbers are found again in the table of all rows between them."""

from __future__ import annotations

import numpy as np
import pytest

from ibukit._ground.row_table import row_table


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, np.float64])
def test_places_are_in_the_order_of_the_rows(dtype):
    info = np.finfo(dtype) if dtype is np.float64 else np.iinfo(dtype)
    low = int(max(info.min, -(2**52)))
    rows = np.array([[low, 5], [low + 200, 3], [low, 3], [low + 1, 4]], dtype=dtype)
    table = row_table(rows, 603)
    assert table is not None
    assert table.size == 603
    places = table.places(rows)
    assert places.tolist() == [2, 600, 0, 4]
    again = table.rows(places)
    assert again.dtype == dtype
    assert np.array_equal(again, rows)


def test_a_table_that_would_be_too_long_is_not_made():
    rows = np.array([[np.iinfo(np.int64).min, 0], [np.iinfo(np.int64).max, 0]])
    assert row_table(rows, 2**64) is not None
    assert row_table(rows, 2**64 - 1) is None
    assert row_table(np.array([[0.0, 0.0], [1e300, 1.0]]), 1000) is None


@pytest.mark.parametrize("varying", [[], [3], [0, 68, 69]])
def test_columns_of_one_number_may_be_many(varying):
    rows = np.full((8, 70), 7, dtype=np.uint8)
    rows[:, varying] += np.random.default_rng(5).integers(0, 2, (8, len(varying)), dtype=np.uint8)
    table = row_table(rows, 8)
    assert table is not None
    assert table.rows(table.places(rows)).tolist() == rows.tolist()
    again = table.rows(np.arange(table.size)).tolist()
    assert again == sorted(again)
