"""What saves `smooth` time changes no answer: near starts, factors used twice, small transforms."""

from dataclasses import replace

import numpy as np
import pytest

import ibukit as ik
from ibukit.estimators import _curvature, _plane_curvature, _roughness, choose_penalty
from ibukit.estimators._roughness import Fit, fit, nearest_fit, roughness_on, start_near
from test_smoothing_planes import both, tally_of, without_matrices  # noqa: F401


def blurred(k, n, rng):
    x = np.arange(k) / k
    matrix = np.exp(-(((x[:, None] - x) / 0.1) ** 2) / 2)
    law = 0.1 + np.exp(-(((x - 0.3) / 0.1) ** 2) / 2)
    mechanism = ik.MatrixMechanism(matrix / matrix.sum(axis=1, keepdims=True))
    return mechanism.simulate(rng.multinomial(n, law / law.sum()), rng)


def best_fit(tally, weight, start=None):
    roughness = roughness_on(tally.alphabet)
    start = np.zeros(tally.k) if start is None else start
    return fit(tally, roughness, weight, start, 1e-13, determined=True)


TALLIES = {
    "matrix": lambda rng: blurred(40, 5000, rng),
    "line": lambda rng: ik.LinearGeometric(ik.Line(0, 24), 0.5).simulate([40] * 20 + [5] * 5, rng),
    "plane": lambda rng: tally_of("9 x 7"),
}


@pytest.mark.parametrize("name", TALLIES)
def test_the_trend_is_the_derivative_of_the_best_fit(name, rng, without_matrices):  # noqa: F811
    tally = TALLIES[name](rng)
    weight, change = 30 / tally.n, 1e-4
    here, more, less = (best_fit(tally, weight * np.exp(step)) for step in (0, change, -change))
    difference = (more.u - less.u) / (2 * change)
    assert np.abs(difference).max() > 0.1
    np.testing.assert_allclose(here.trend, difference, atol=1e-4 * np.abs(difference).max())


@pytest.mark.parametrize("ratio", [0.9, 1.1, 1.3])
def test_a_start_from_a_neighbouring_penalty_is_nearer_than_its_fit(ratio, rng):
    tally = blurred(40, 5000, rng)
    roughness, weight = roughness_on(tally.alphabet), 30 / tally.n
    near, there = best_fit(tally, weight), best_fit(tally, weight * ratio)
    start = start_near(tally, roughness, near, weight * ratio)
    assert np.abs(start - there.u).max() < 0.7 * np.abs(near.u - there.u).max()
    assert np.log(np.exp(start).mean()) == pytest.approx(0, abs=1e-12)
    # A point that is no fit, as the uniform start, has no trend.
    uniform = Fit(np.zeros(40), np.inf, 0)
    assert start_near(tally, roughness, uniform, weight) is uniform.u
    assert nearest_fit([uniform, near, there], weight * ratio**0.9) is there


def test_nearly_uniform_fits_are_continued_in_the_inverse_of_the_weight(rng):
    tally = blurred(40, 5000, rng)
    roughness, weight = roughness_on(tally.alphabet), 1e12 / tally.n
    near, there = best_fit(tally, weight), best_fit(tally, weight / 10)
    start = start_near(tally, roughness, near, weight / 10)
    np.testing.assert_allclose(start, there.u, atol=1e-3 * np.abs(there.u).max())


@pytest.mark.parametrize("n", [3000, 10**6])
def test_a_factor_that_serves_again_saves_others_and_leaves_the_penalty(n, monkeypatch, rng):
    tally, calls = blurred(40, n, rng), []
    counted = _roughness.dense_curvature
    monkeypatch.setattr(
        _roughness, "dense_curvature", lambda matrix: calls.append(0) or counted(matrix)
    )
    found, with_reuse = choose_penalty(tally), len(calls)
    answer = ik.smooth(tally, found, 1e-10)
    calls.clear()
    monkeypatch.setattr(_roughness, "REUSE_BELOW", 0.0)
    assert choose_penalty(tally) == pytest.approx(found, rel=0.01)
    assert with_reuse < 0.95 * len(calls)
    np.testing.assert_allclose(
        ik.smooth(tally, found, 1e-10).distribution, answer.distribution, atol=1e-6
    )


@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("name", ["9 x 7", "one row", "oblong cells"])
def test_matrices_of_cosines_are_the_transforms(name, careful, without_matrices, monkeypatch):  # noqa: F811
    tally, rng = tally_of(name), np.random.default_rng(1)
    x, u = rng.standard_normal((2, tally.k))
    plane, _ = both(tally, u / 2, 0.1, careful)
    assert len(plane._levels) > (name != "oblong cells")
    found = plane._precondition(x)
    monkeypatch.setattr(_plane_curvature, "MAX_SIDE_OF_MATRICES", 0)
    error = 1e-12 if careful else 1e-5
    np.testing.assert_allclose(
        plane._precondition(x), found, rtol=0, atol=error * np.abs(found).max()
    )


def test_cells_without_mass_are_on_the_last_level(without_matrices):  # noqa: F811
    """Their share of the reports' term is below the largest by more than the range of doubles."""
    tally = tally_of("9 x 7")
    plane, _ = both(tally, np.where(np.arange(63) < 20, 0.0, -1400.0), 0.1, True)
    plane = replace(plane, w=1e6 * plane.w)
    _, tau = plane._reports_term
    assert tau.min() == 0
    assert tau.max() > 100
    assert np.isfinite(plane._precondition(np.ones(63))).all()


def test_what_is_not_a_number_has_no_factor():
    matrix = np.eye(3)
    for wrong in (np.nan, np.inf):
        for at in ((1, 1), (2, 0)):
            spoilt = matrix.copy()
            spoilt[at] = wrong
            assert _curvature.dense_curvature(spoilt) is None
