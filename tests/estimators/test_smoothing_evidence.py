"""The penalty on a large plane:
the slope of the evidence against differences of the exact one, and where it ends.
"""

import math

import numpy as np
import pytest

import ibukit as ik
from ibukit.estimators import _plane_evidence, smoothing
from ibukit.estimators._plane_evidence import slope
from ibukit.estimators._roughness import Fit, fit, roughness_on
from test_smoothing_planes import (  # noqa: F401 - fixtures
    dense,
    on_the_plane,
    tally_of,
    without_matrices,
)

SMALL = ["9 x 7", "oblong cells", "from outside"]


def exact_slope(tally, roughness, log_penalty):
    """By determinants, from either side."""

    def evidence(log):
        optimum = fit(
            tally, roughness, math.exp(log) / tally.n, np.zeros(tally.k), 1e-11, determined=True
        )
        return smoothing._evidence(tally, roughness, math.exp(log), optimum)

    return (evidence(log_penalty + 0.05) - evidence(log_penalty - 0.05)) / 0.1


def drawn_slope(tally, roughness, log_penalty, signs):
    penalty = math.exp(log_penalty)
    return slope(
        tally,
        roughness,
        penalty,
        fit(tally, roughness, penalty / tally.n, np.zeros(tally.k), 1e-9),
        signs,
    )


@pytest.mark.parametrize("name", SMALL)
def test_the_slope_is_that_of_the_exact_evidence(name, without_matrices, on_the_plane):  # noqa: F811
    tally = tally_of(name)
    reference, roughness = dense(tally), roughness_on(tally.alphabet)
    around = math.log(ik.choose_penalty(reference)) + np.array([-2.0, 0.0, 2.0])
    exact = np.array([exact_slope(reference, roughness, log) for log in around])
    on_the_plane()
    found = np.array([drawn_slope(tally, roughness, log, 48) for log in around])
    assert exact[0] > 0 > exact[2]
    assert np.abs(found - exact).max() < 0.06 * np.ptp(exact)


@pytest.mark.parametrize("name", SMALL)
def test_the_penalty_is_that_of_most_evidence(name, without_matrices, on_the_plane, monkeypatch):  # noqa: F811
    tally = tally_of(name)
    exact = ik.choose_penalty(dense(tally))
    on_the_plane()
    monkeypatch.setattr(smoothing, "MAX_CELLS_BY_DETERMINANTS", 0)
    found = ik.choose_penalty(tally)
    assert 0.8 < found / exact < 1.25


def test_all_calls_draw_the_same_signs(without_matrices, on_the_plane, monkeypatch):  # noqa: F811
    tally = tally_of("oblong cells")
    on_the_plane()
    monkeypatch.setattr(smoothing, "MAX_CELLS_BY_DETERMINANTS", 0)
    assert ik.choose_penalty(tally) == ik.choose_penalty(tally)


@pytest.mark.parametrize(("top", "found"), [(5.0, 5.0), (0.001, 3.0), (1000.0, 3.0)])
def test_where_more_draws_see_no_top_between_the_neighbours_the_best_of_all_is_taken(
    top, found, monkeypatch
):
    """Few draws see it at 3, the third of five penalties."""

    def seen(tally, roughness, penalty, optimum, signs):
        return math.log((3.0 if signs == _plane_evidence.FEW_SIGNS else top) / penalty)

    monkeypatch.setattr(_plane_evidence, "slope", seen)
    monkeypatch.setattr(_plane_evidence, "fit", lambda *settings: start)
    tally, start = (
        ik.RandomizedResponse(2, 1.0).tally_counts([1, 1]),
        Fit(np.zeros(2), 0.0, 0),
    )
    best = _plane_evidence.most_evidence(tally, None, [27.0, 9.0, 3.0, 1.0, 1 / 3], start, math.inf)
    assert best == pytest.approx(found, rel=_plane_evidence.LOG_PENALTY_TOLERANCE)


def test_signs_do_not_err_where_the_penalty_alone_decides(without_matrices, on_the_plane):  # noqa: F811
    """Under a heavy penalty H' is H: one draw says what a hundred say."""
    tally = tally_of("9 x 7")
    roughness = roughness_on(tally.alphabet)
    on_the_plane()
    one, many = (
        drawn_slope(tally, roughness, math.log(1e4 * tally.n), signs) for signs in (1, 100)
    )
    assert one == pytest.approx(many, abs=0.1)  # plain draws would err by five


def test_reports_that_show_no_departure_from_uniform_get_the_largest_penalty(
    without_matrices,  # noqa: F811
    on_the_plane,  # noqa: F811
    monkeypatch,
):
    tally = ik.TruncatedPlanarGeometric(ik.Grid(9, 7), 0.3).tally_counts(np.full(63, 3))
    on_the_plane()
    monkeypatch.setattr(smoothing, "MAX_CELLS_BY_DETERMINANTS", 0)
    assert np.ptp(ik.smooth(tally).distribution) < 1e-4


def test_two_thousand_cells_and_more_take_no_determinant(monkeypatch):
    side = 46
    x, y = (np.arange(side) / side for _ in "xy")
    people = np.random.default_rng(1).multinomial(
        10**5, ik.normalize((0.1 + np.outer(x * (1 - x), y)).ravel())
    )
    tally = ik.TruncatedPlanarGeometric(ik.Grid(side, side), 0.3).simulate(
        people, np.random.default_rng(2)
    )
    monkeypatch.setattr(smoothing, "_evidence", None)
    found = ik.smooth(tally)
    assert found.status is ik.Status.CONVERGED
    truth = people / people.sum()
    assert (
        np.abs(found.distribution - truth).sum()
        < 0.3 * np.abs(ik.mle(tally, tol=1e-6).distribution - truth).sum()
    )


@pytest.mark.slow
def test_the_penalty_of_65_536_cells(monkeypatch):
    side = 256
    x, y = (np.arange(side) / side for _ in "xy")
    curve = np.exp(-(((x[:, None] - 0.3) / 0.1) ** 2 + ((y - 0.6) / 0.2) ** 2) / 2).ravel() + 0.05
    people = np.random.default_rng(1).multinomial(10**6, curve / curve.sum())
    tally = ik.TruncatedPlanarGeometric(ik.Grid(side, side), 0.2).simulate(
        people, np.random.default_rng(2)
    )
    found = ik.choose_penalty(tally)
    roughness = roughness_on(tally.alphabet)
    monkeypatch.setattr(_plane_evidence, "SEED_OF_SIGNS", 1)
    below, above = (
        drawn_slope(tally, roughness, math.log(found) + move, 16) for move in (-0.3, 0.3)
    )
    assert below > 0 > above
