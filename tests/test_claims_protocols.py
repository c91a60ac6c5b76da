"""Published numbers on protocols in use, single tables that the book repeats: they have no lines in the ledger."""

import numpy as np
import pytest

from ibukit import claims

NUMBERS = {"Wang2017-T2": 9 * 4, "Acharya2019-runs": 4 * 4, "Li2020-beta": 1}


def test_tables_are_whole():
    rows = claims.load_published("protocols")
    assert rows["claim"].value_counts().to_dict() == NUMBERS


@pytest.mark.parametrize(
    ("claim", "setting", "quantity", "printed"),
    [
        ("Wang2017-T2", "k-RR, k = 1024", "n Var*, eps = 0.5", "2432.40"),
        ("Acharya2019-runs", "uniform, k = 1000, eps = 1", "l1 error after norm-mul, Hadamard", "0.918"),
    ],
)
def test_numbers_are_as_they_are_printed(claim, setting, quantity, printed):
    rows = claims.load_published("protocols").set_index(claims.KEY)
    assert rows.loc[(claim, setting, quantity), "printed"] == printed


def test_a_variance_that_is_wrong_in_its_last_digit_is_found():
    rows = claims.load_published("protocols")
    ours = {
        (row.claim, row.setting, row.quantity): row.value for row in rows[rows["claim"] == "Wang2017-T2"].itertuples()
    }
    levels = np.array([0.5, 1.0, 2.0, 4.0])
    for level, variance in zip(levels, 4 * np.exp(levels) / np.expm1(levels) ** 2, strict=True):  # of OUE
        ours["Wang2017-T2", "OUE", f"n Var*, eps = {level:g}"] = float(variance)
    claims.check(claims.beside("protocols", ours))
    ours["Wang2017-T2", "OUE", "n Var*, eps = 1"] += 0.01
    with pytest.raises(AssertionError, match="computed deviates"):
        claims.check(claims.beside("protocols", ours))
