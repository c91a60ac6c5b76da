"""The steps by which a fixed point is found: positive, and never up."""

import importlib

import numpy as np
import pytest


@pytest.mark.parametrize("start", [(0.998, 0.001, 0.001), (1e-6, 0.5, 0.5 - 1e-6)])
def test_damped_steps_stay_positive_and_never_go_up(start, rng, monkeypatch):
    """Of -sum q log p + sum theta, however far the start."""
    module = importlib.import_module("ibukit.identification.fixed_points")
    rows, q, met, curvature = (
        rng.dirichlet(np.full(6, 0.3), 3),
        rng.dirichlet(np.ones(6)),
        [],
        module._inverse_curvature,
    )
    monkeypatch.setattr(
        module, "_inverse_curvature", lambda *given: (met.append(given[2]), curvature(*given))[1]
    )
    module._newton(rows, q, np.array(start), 3)
    p = np.array(met) @ rows
    assert len(met) > 5
    assert (p > 0).all()
    assert (np.diff(np.sum(met, axis=1) - np.log(p) @ q) <= 1e-12).all()
