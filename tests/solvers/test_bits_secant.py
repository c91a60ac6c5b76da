"""What a step changes in the gradient corrects the Hessian
that was counted from some of the rows.
"""

import numpy as np
import pytest

import ibukit as ik
from ibukit.solvers import bits
from ibukit.solvers.bits import BitReports
from ibukit.solvers.pooled import PooledModel


def test_the_corrected_hessian_explains_the_step_and_stays_definite(rng):
    root = rng.normal(size=(12, 12))
    hessian, moved = root @ root.T, rng.normal(size=12)
    fallen = 1.3 * hessian @ moved + 0.1 * moved
    corrected = bits._bfgs_update(hessian, moved, fallen)
    np.testing.assert_allclose(corrected @ moved, fallen, rtol=1e-9)
    np.testing.assert_allclose(corrected, corrected.T, rtol=1e-9)
    assert np.linalg.eigvalsh(corrected)[0] > 0


@pytest.mark.parametrize("fallen", [np.zeros(3), -np.ones(3), np.full(3, np.nan)])
def test_a_step_that_shows_no_curvature_changes_nothing(fallen):
    hessian = np.eye(3)
    assert bits._bfgs_update(hessian, np.ones(3), fallen) is hessian
    assert bits._bfgs_update(hessian, np.zeros(3), fallen) is hessian


def test_a_hessian_that_is_not_definite_is_left_alone():
    hessian = -0.1 * np.eye(3)
    assert bits._bfgs_update(hessian, np.ones(3), np.ones(3)) is hessian


def test_it_saves_passes_over_the_rows(monkeypatch, rng):
    k, n = 100, 100_000
    theta = 1 / np.arange(1, k + 1)
    tally = ik.LocalHashing(k, 2.0).simulate(rng.multinomial(n, theta / theta.sum()), rng)

    def solved():
        return bits.maximise(
            [BitReports(tally.operator, tally.counts, n)], PooledModel((), k), np.empty(0), 1e-9
        )

    found, passes = solved()
    monkeypatch.setattr(bits, "_bfgs_update", lambda hessian, moved, fallen: hessian)
    same, more = solved()
    assert passes < more
    assert np.abs(found - same).max() < 1e-4
    assert ik.gap(tally, found) < 1e-9
