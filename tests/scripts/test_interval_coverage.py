"""The stored coverage of intervals: complete, made anew in part, and interrupted without loss."""

from __future__ import annotations

import numpy as np
import pytest

import interval_coverage as coverage

DRAWS = 100
SETTINGS = list(coverage.settings())
NAMED = {setting[:4]: setting for setting in SETTINGS}
KEY = (*coverage.SETTING, "question", "target", "method")


def key(row):
    return tuple(str(row[name]) for name in KEY)


STORED = {key(row): row for row in coverage.read(coverage.FILE)}


def disagreement(new, stored):
    """In standard errors of the difference of two shares."""
    return abs(new["covered"] - float(stored["covered"])) / np.hypot(
        float(new["error"]), float(stored["error"])
    )


def test_mechanisms_truths_and_sizes_are_crossed():
    assert len(NAMED) == len(SETTINGS) == 12 * 6 * 3
    assert [family for family, _ in coverage.mechanisms()][::2] == list(coverage.FAMILIES)
    for mechanism in coverage.mechanisms().values():
        for theta in coverage.truths(mechanism.k).values():
            assert theta.sum() == pytest.approx(1)
            assert (theta >= 0).all()


def test_every_row_is_there_and_no_other():
    wanted = {
        (*map(str, setting[:4]), question, target, method)
        for setting in SETTINGS
        for method in coverage.METHODS
        if setting.has(method)
        for question in ("largest", "smallest", "half")
        for target in ("distribution", "frequencies")[: 1 + (method in coverage.OF_FREQUENCIES)]
    }
    assert set(STORED) == wanted


def test_the_rows_say_what_was_measured():
    for row in STORED.values():
        share, draws = float(row["covered"]), int(row["draws"])
        assert draws == coverage.DRAWS // (1 + (row["method"] in coverage.SLOW))
        assert float(row["level"]) == coverage.LEVEL
        # Half a draw more of each kind, so that no error is 0.
        share = (share * draws + 0.5) / (draws + 1)
        assert float(row["error"]) == pytest.approx(np.sqrt(share * (1 - share) / draws), abs=1e-5)
        assert float(row["width"]) > 0


def test_no_question_of_the_default_or_of_a_guarantee_falls_short():
    """Nominal 95 %: none counts below 93 % by more than two standard errors, as is promised."""
    for row in STORED.values():
        held = float(row["covered"]) + 2 * float(row["error"])
        if row["method"] == "auto":
            assert held >= 0.93, row
        elif row["method"] in ("guaranteed", "betting"):
            # One in 500 questions that hold exactly would be outside three errors.
            assert held + float(row["error"]) >= 0.95, row


def test_the_profile_is_seen_to_fall_short():
    """The control: the same count finds an interval that does not hold."""
    worst = min(float(row["covered"]) for name, row in STORED.items() if name[-1] == "profile")
    assert worst < 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method"),
    [
        (("k-RR", "strong", "vertex", 300), "auto"),
        (("line", "mild", "real", 3_000), "auto"),
        (("plane", "mild", "vertex", 300), "profile"),
        (("matrix", "strong", "few of many", 300), "auto"),
        (("unary", "strong", "two values", 3_000), "guaranteed"),
    ],
)
def test_other_draws_cover_as_often(name, method, monkeypatch):
    """Four standard errors: a false alarm in one of ten thousand comparisons."""
    monkeypatch.setattr(coverage, "SEED", 1)
    for new in coverage.measure(NAMED[name], [method], DRAWS):
        assert disagreement(new, STORED[key(new)]) < 4


def test_the_stored_draws_are_made_anew():
    [setting] = [NAMED["line", "mild", "real", 3_000]]
    for new in coverage.measure(setting, ["profile"], coverage.DRAWS):
        assert new["covered"] == float(STORED[key(new)]["covered"])


def test_a_narrower_interval_is_seen_to_cover_less(monkeypatch):
    """The control: half the width."""
    monkeypatch.setattr(coverage, "ends", halved(coverage.ends))
    for row in coverage.measure(NAMED["line", "mild", "real", 3_000], ["profile"], DRAWS):
        if row["question"] == "largest":
            assert disagreement(row, STORED[key(row)]) > 4


def halved(ends):
    def narrower(*arguments):
        lower, upper = ends(*arguments)
        return (3 * lower + upper) / 4, (lower + 3 * upper) / 4

    return narrower


def test_what_was_interrupted_goes_on(tmp_path):
    file = tmp_path / "coverage.csv"
    few = ["--mechanisms", "matrix", "--sizes", "300", "--draws", "2"]
    coverage.main([*few, "--methods", "wald", "--to", str(file)])
    first = coverage.read(file)
    coverage.main([*few, "--methods", "wald", "profile", "--to", str(file)])
    both = coverage.read(file)
    assert [row for row in both if row["method"] == "wald"] == first
    together = tmp_path / "together.csv"
    coverage.main([*few, "--methods", "wald", "profile", "--to", str(together)])
    assert file.read_text() == together.read_text()
