"""The stored exact coverage for two secrets: complete, as promised, and made anew in part."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

import two_secrets_coverage as coverage

STORED = coverage.read(coverage.FILE)
# The least coverage that is promised; rare tallies, with 1e-5 together, count as missed.
FLOORS = {"guaranteed": 0.95 - 1e-5, "calibrated": 0.95 - 1e-5, "auto": 0.93}


def test_every_row_is_there_and_no_other():
    assert set(STORED) == {
        (matrix, n, method)
        for matrix in coverage.MECHANISMS
        for n in coverage.SIZES
        for method in coverage.METHODS
    }
    for row in STORED.values():
        assert (float(row["level"]), int(row["truths"])) == (coverage.LEVEL, coverage.TRUTHS)
        assert float(row["least"]) <= float(row["inside"])
        assert float(row["least"]) <= float(row["mean"]) <= 1
        assert 0 < float(row["width"]) <= 1


@pytest.mark.parametrize(("method", "floor"), FLOORS.items())
def test_what_is_promised_is_kept(method, floor):
    assert min(float(row["least"]) for key, row in STORED.items() if key[2] == method) >= floor


@pytest.mark.parametrize("method", ["profile", "wald", "bootstrap", "credible"])
def test_the_others_cover_less_somewhere(method):
    """The control: by enumeration an approximate method is seen to be one."""
    assert min(float(row["inside"]) for key, row in STORED.items() if key[2] == method) < 0.93


@pytest.mark.parametrize(
    "key",
    [
        *(("test", 10, method) for method in coverage.METHODS),
        ("forced response", 50, "auto"),
        ("k-RR at epsilon 0.5", 50, "profile"),
        ("k-RR at epsilon 2", 400, "calibrated"),
        ("test", 400, "wald"),
    ],
    ids=lambda key: ", ".join(map(str, key)),
)
def test_rows_are_made_anew(key):
    row = coverage.row(*key)
    assert row.keys() == STORED[key].keys()
    assert {name: str(value) for name, value in row.items()} == STORED[key]


def test_the_row_of_clopper_and_pearson_by_their_formula():
    n, (least, most) = 10, (0.01, 0.85)
    x = np.arange(n + 1)
    with np.errstate(invalid="ignore"):
        low = np.where(x > 0, beta.ppf(0.025, x, n - x + 1), 0.0)
        high = np.where(x < n, beta.ppf(0.975, x + 1, n - x), 1.0)
    lower, upper = (np.clip((p - least) / (most - least), 0, 1) for p in (low, high))
    chances = coverage.chances(coverage.MECHANISMS["test"], n)
    covered = coverage.covered(chances, lower, upper)
    row = STORED["test", n, "guaranteed"]
    found = [covered.min(), covered.mean(), (chances @ (upper - lower)).mean()]
    stored = [float(row[name]) for name in ("least", "mean", "width")]
    # The file has six digits, and 1e-6 of the tallies do not count in it.
    assert found == pytest.approx(stored, abs=2e-6)


def test_a_narrower_interval_is_seen_to_cover_less(monkeypatch):
    """The control: nine tenths of the width."""
    intervals = coverage.intervals

    def narrower(*arguments):
        lower, upper = intervals(*arguments)
        return 0.95 * lower + 0.05 * upper, 0.05 * lower + 0.95 * upper

    monkeypatch.setattr(coverage, "intervals", narrower)
    for method, floor in FLOORS.items():
        assert float(coverage.row("test", 50, method)["least"]) < floor


def test_rows_of_other_methods_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "SIZES", (10,))
    file = tmp_path / "coverage.csv"
    coverage.main(["--methods", "wald", "--to", str(file)])
    before = coverage.read(file)
    coverage.main(["--methods", "auto", "--to", str(file)])
    after = coverage.read(file)
    assert {key: row for key, row in after.items() if key[2] == "wald"} == before
    assert len(after) == 2 * len(before) == 2 * len(coverage.MECHANISMS)
