"""The stored coverage where a matrix was measured: complete, and made anew in part."""

from __future__ import annotations

import numpy as np
import pytest

import ibukit as ik
import measured_matrix_coverage as coverage

SETTINGS = list(coverage.settings())
STORED = {coverage.key(row): row for row in coverage.read(coverage.FILE)}
STUDY = np.array([[103, 19], [2, 399]]), np.array([50, 3280])
FEW = 60  # draws


def setting_of(*names):
    return coverage.Setting(*names)


def disagreement(new, stored):
    """In standard errors of the difference of two shares."""
    return abs(new["covered"] - float(stored["covered"])) / np.hypot(
        float(new["error"]), float(stored["error"])
    )


def test_designs_are_crossed():
    assert len(set(SETTINGS)) == len(SETTINGS) == 4 * 3 * 2 * 2 + 3
    for setting in SETTINGS:
        assert setting.rows.sum(axis=1) == pytest.approx(1)
        assert setting.theta.sum() == pytest.approx(1)
        assert (setting.theta >= 0).all()


def test_every_row_is_there_and_no_other():
    assert set(STORED) == {
        (*map(str, setting), method)
        for setting in SETTINGS
        for method in coverage.METHODS
        if setting.has(method)
    }


def test_the_rows_say_what_was_measured():
    for row in STORED.values():
        share, draws = float(row["covered"]), int(row["draws"])
        assert draws == coverage.DRAWS * coverage.METHODS[row["method"]]
        assert float(row["level"]) == coverage.LEVEL
        # Half a draw more of each kind, so that no error is 0.
        share = (share * draws + 0.5) / (draws + 1)
        assert float(row["error"]) == pytest.approx(np.sqrt(share * (1 - share) / draws), abs=1e-5)
        assert float(row["width"]) > 0


def test_the_guarantee_is_kept_and_is_seen_to_fail_without_the_trials():
    """One in 700 questions that hold exactly would be short by more than three errors."""
    for row in STORED.values():
        if row["method"] == "guaranteed":
            assert float(row["covered"]) + 3 * float(row["error"]) >= 0.95, row
    assert (
        min(float(r["covered"]) for r in STORED.values() if r["method"] == "known guaranteed") < 0.6
    )


@pytest.mark.parametrize(
    ("setting", "method"),
    [
        (("test", "rare", "50", 300), "known profile"),
        (("weak test", "common", "50", 3_000), "Rogan-Gladen"),
        (("test", "none", "500", 3_000), "Lang-Reiczigel"),
        (("weak classifier", "common", "500", 300), "wald"),
    ],
)
def test_the_stored_draws_are_made_anew(setting, method):
    new = coverage.measure(setting_of(*setting), method, coverage.DRAWS)
    assert new["covered"] == float(STORED[coverage.key(new)]["covered"])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["profile", "posterior", "guaranteed", "bootstrap"])
def test_the_slow_draws_are_made_anew(method):
    draws = round(coverage.DRAWS * coverage.METHODS[method])
    new = coverage.measure(setting_of("test", "rare", "50", 3_000), method, draws)
    assert new["covered"] == float(STORED[coverage.key(new)]["covered"])


def test_half_the_width_is_seen_to_cover_less(monkeypatch):
    """The control."""
    interval = coverage.interval

    def halved(*arguments):
        lower, upper = interval(*arguments)
        return (3 * lower + upper) / 4, (lower + 3 * upper) / 4

    monkeypatch.setattr(coverage, "interval", halved)
    new = coverage.measure(setting_of("weak test", "common", "50", 3_000), "profile", 2 * FEW)
    assert disagreement(new, STORED[coverage.key(new)]) > 4


def test_the_formula_of_rogan_and_gladen_is_walds_interval_inside():
    ends = coverage.interval(*STUDY, "Rogan-Gladen", 0)
    assert ends == pytest.approx(coverage.interval(*STUDY, "wald", 0), abs=1e-7)


def test_the_formula_of_lang_and_reiczigel_by_their_own_terms():
    """The formula of 2014 as their program has it, with z^2 and two pseudo-observations."""
    z, (n, kp), (ill, ka), (well, kb) = 1.959963984540054, (3330, 50), (122, 103), (401, 399)
    p = (kp + z**2 / 2) / (n + z**2)
    a, b = (ka + 1) / (ill + 2), (kb + 1) / (well + 2)
    share = (p + b - 1) / (a + b - 1)
    of_ill, of_well = a * (1 - a) / (ill + 2), b * (1 - b) / (well + 2)
    variance = p * (1 - p) / (n + z**2) + share**2 * of_ill + (1 - share) ** 2 * of_well
    middle = share + 2 * z**2 * (share * of_ill - (1 - share) * of_well)
    half = z * np.sqrt(variance) / (a + b - 1)
    found = coverage.lang_reiczigel(*STUDY)
    assert found == pytest.approx((middle - half, middle + half), abs=1e-12)


def test_the_posterior_is_that_of_draws_from_it():
    """By importance sampling from the priors of the share and the trials, 200,000 draws.

    The ends lie on a grid of 1 / 2,001 and rest on 400 matrices; half a thousandth is their error.
    """
    rng = np.random.default_rng(1)
    trials, reports = np.array([[45, 5], [30, 170]]), np.array([400, 600])
    ill, well = (rng.beta(*(row + 1), 200_000) for row in trials)
    share = rng.random(200_000)
    p = well + (ill - well) * share
    fits = reports @ np.log([p, 1 - p])
    order = np.argsort(share)
    mass = np.cumsum(np.exp(fits - fits.max())[order])
    mass /= mass[-1]
    lower, upper = coverage.posterior(trials, reports)
    inside = np.diff(np.interp([lower, upper], share[order], mass))[0]
    assert inside == pytest.approx(coverage.LEVEL, abs=0.01)


def test_a_tally_that_no_matrix_explains_counts_as_missed():
    trials, reports = np.array([[95, 5], [300, 700]]), np.array([5, 4995])
    assert np.isnan(coverage.interval(trials, reports, "guaranteed", 0)).all()


def test_what_was_interrupted_goes_on(tmp_path):
    file, together = tmp_path / "coverage.csv", tmp_path / "together.csv"
    few = ["--matrices", "Santa Clara", "--draws", "4"]
    coverage.main([*few, "--methods", "wald", "--to", str(file)])
    first = coverage.read(file)
    coverage.main([*few, "--methods", "wald", "profile", "--to", str(file)])
    both = coverage.read(file)
    assert [row for row in both if row["method"] == "wald"] == first
    coverage.main([*few, "--methods", "wald", "profile", "--to", str(together)])
    assert file.read_text() == together.read_text()


def test_both_samples_are_drawn_from_the_truth():
    """Four standard errors of the mean of 400 draws, for eight means: one alarm in 2,000."""
    setting = setting_of("classifier", "common", "50", 300)
    trials, reports = zip(*(setting.draw(i) for i in range(400)), strict=True)
    for mean, expected, size in (
        (np.mean(trials, axis=0), 50 * setting.rows, 50),
        (np.mean(reports, axis=0), 300 * setting.theta @ setting.rows, 300),
    ):
        error = np.sqrt(expected * (1 - expected / size) / 400)
        assert (np.abs(mean - expected) < 4.5 * error).all()
    assert ik.quantize(setting.theta).sum() == 1
