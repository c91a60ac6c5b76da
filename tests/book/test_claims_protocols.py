"""Published numbers on protocols in use, single tables that the book repeats:
they have no lines in the ledger.
"""

import numpy as np
import pytest

import ibukit_claims as claims
import repetitions
from ibukit_claims import _repetitions as kept

NUMBERS = {"Wang2017-T2": 9 * 4, "Acharya2019-runs": 36 * 4, "Li2020-beta": 1}


def test_tables_are_whole():
    rows = claims.load_published("protocols")
    assert rows["claim"].value_counts().to_dict() == NUMBERS


@pytest.mark.parametrize(
    ("claim", "setting", "quantity", "printed"),
    [
        ("Wang2017-T2", "k-RR, k = 1024", "n Var*, eps = 0.5", "2432.40"),
        (
            "Acharya2019-runs",
            "uniform, k = 1000, eps = 1",
            "l1 error after norm-mul, Hadamard",
            "0.9178",
        ),
    ],
)
def test_numbers_are_as_they_are_printed(claim, setting, quantity, printed):
    rows = claims.load_published("protocols").set_index(claims.KEY)
    assert rows.loc[(claim, setting, quantity), "printed"] == printed


SHORT = ("k-RR", "RAPPOR", "subset selection", "Hadamard")  # the columns of the kept repetitions


def distances(stored, repeated):
    """By how many standard errors the mean of our repetitions is above a stored mean of 30."""
    means, counts = (np.array([f(x) for x in repeated]) for f in (np.mean, len))
    spread = np.array([np.std(x, ddof=1) for x in repeated])
    return (means - stored) / (spread * np.sqrt(1 / counts + 1 / 30))


def test_all_errors_that_acharya_et_al_store_are_ours_up_to_chance():
    rows = claims.load_published("protocols").set_index(claims.KEY)
    stored, repeated = [], []
    for row in repetitions.read(kept.FOLDER / "protocols.csv"):
        study, _, setting = row["what"].partition("; ")[0].partition(", ")
        if study == "norm-mul":
            quantity = f"l1 error after norm-mul, {SHORT[int(row['column'])]}"
            stored.append(rows.loc[("Acharya2019-runs", setting, quantity), "value"])
            repeated.append(np.array(row["values"].split(), dtype=float))
    assert len(stored) == 36 * 4
    z = distances(np.array(stored), repeated)
    assert abs(z.mean()) < 3 * z.std(ddof=1) / np.sqrt(len(z))
    assert 0.8 < z.std(ddof=1) < 1.3
    assert np.mean(np.abs(z) > 2) < 0.1
    wrong = distances(np.array(stored), [1.02 * x for x in repeated])  # the control: 2 % more
    assert abs(wrong.mean()) > 3 * wrong.std(ddof=1) / np.sqrt(len(z))


def test_a_variance_that_is_wrong_in_its_last_digit_is_found():
    rows = claims.load_published("protocols")
    ours = {
        (row.claim, row.setting, row.quantity): row.value
        for row in rows[rows["claim"] == "Wang2017-T2"].itertuples()
    }
    levels = np.array([0.5, 1.0, 2.0, 4.0])
    for level, variance in zip(
        levels, 4 * np.exp(levels) / np.expm1(levels) ** 2, strict=True
    ):  # of OUE
        ours["Wang2017-T2", "OUE", f"n Var*, eps = {level:g}"] = float(variance)
    claims.check(claims.beside("protocols", ours))
    ours["Wang2017-T2", "OUE", "n Var*, eps = 1"] += 0.01
    with pytest.raises(AssertionError, match="computed deviates"):
        claims.check(claims.beside("protocols", ours))
