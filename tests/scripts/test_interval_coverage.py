"""The stored coverage of intervals: complete, made anew in part, and interrupted without loss."""

from __future__ import annotations

import numpy as np
import pytest

import interval_coverage as coverage

DRAWS = 150
SETTINGS = list(coverage.settings())
STORED = {coverage.key(row): row for row in coverage.read(coverage.FILE)}


def of(name, noise):
    [(place, setting)] = [
        (i, s) for i, s in enumerate(SETTINGS) if (s.name, s.noise) == (name, noise)
    ]
    return place, setting


def disagreement(new, stored):
    """In standard errors of the difference of two shares."""
    return abs(new["covered"] - float(stored["covered"])) / np.hypot(
        float(new["error"]), float(stored["error"])
    )


def test_every_row_is_there_and_no_other():
    wanted = set()
    for setting in SETTINGS:
        for n in setting.sizes:
            for method in coverage.METHODS:
                if coverage.can(setting, n, method):
                    targets = ("distribution", "frequencies")[
                        : 1 + (method in coverage.OF_FREQUENCIES)
                    ]
                    wanted |= {
                        (setting.name, setting.noise, str(n), cell, target, method)
                        for cell in setting.cells
                        for target in targets
                    }
    assert set(STORED) == wanted


def test_the_rows_say_what_was_measured():
    for row in STORED.values():
        assert int(row["draws"]) >= 1000
        assert float(row["level"]) == coverage.LEVEL
        share, draws = float(row["covered"]), int(row["draws"])
        assert float(row["error"]) == pytest.approx(np.sqrt(share * (1 - share) / draws), abs=1e-3)
        assert float(row["width"]) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "noise", "n", "method"),
    [
        ("vertex", "strong", 300, "profile"),
        ("ages", "mild", 30_000, "wald"),
        ("vertex", "strong", 300, "betting"),
    ],
)
def test_other_draws_cover_as_often(name, noise, n, method):
    """Four standard errors: a false alarm in one of ten thousand comparisons."""
    place, setting = of(name, noise)
    for new in coverage.measure(setting, n, [method], DRAWS, (1, place, n)):
        assert disagreement(new, STORED[coverage.key(new)]) < 4


def test_a_narrower_interval_is_seen_to_cover_less(monkeypatch):
    """The control: half the width."""
    monkeypatch.setattr(coverage, "ends", halved(coverage.ends))
    place, setting = of("ages", "mild")
    found = {
        row["cell"]: row
        for row in coverage.measure(setting, 30_000, ["profile"], DRAWS, (1, place, 30_000))
    }
    row = found["largest"]
    assert disagreement(row, STORED[coverage.key(row)]) > 4


def halved(ends):
    def narrower(*arguments):
        lower, upper = ends(*arguments)
        return (3 * lower + upper) / 4, (lower + 3 * upper) / 4

    return narrower


def test_what_was_interrupted_goes_on(tmp_path):
    file, few = (
        tmp_path / "coverage.csv",
        ["--settings", "vertex", "--sizes", "300", "--draws", "3"],
    )
    coverage.main([*few, "--methods", "wald", "--to", str(file)])
    first = coverage.read(file)
    coverage.main([*few, "--methods", "wald", "profile", "--to", str(file)])
    both = coverage.read(file)
    assert [row for row in both if row["method"] == "wald"] == first
    together = tmp_path / "together.csv"
    coverage.main([*few, "--methods", "wald", "profile", "--to", str(together)])
    assert file.read_text() == together.read_text()
