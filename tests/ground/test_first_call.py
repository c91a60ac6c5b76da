"""A process that needs only a closed form, or a short line, neither imports numba nor compiles."""

import os
import subprocess
import sys

import numpy as np
import pytest

import ibukit as ik
from ibukit._ground import numba_fallback
from ibukit._ground.numba_fallback import InterpretUntilWorthCompiling, NumpyUntilWorthCompiling
from ibukit.channels import _line_kernels as sweeps
from ibukit.channels import _score_kernels, response
from ibukit.channels import line as channel_line
from ibukit.solvers import _line_kernels, line
from ibukit.solvers.responses import _water_filling_kernels, water_filling

CLOSED_FORM = """
import sys
import ibukit as ik
mechanism = ik.RandomizedResponse(["a", "b", "c", "d"], 1.0)
estimate = ik.mle(mechanism.tally_counts({"a": 40, "b": 30, "c": 20, "d": 10}))
assert estimate.gap < 1e-12
print(*sys.modules)
"""


ON_A_LINE = """
import sys
import ibukit as ik
estimate = ik.mle(ik.TruncatedGeometric(50, 0.3).tally_counts(range(1, 51)))
assert estimate.gap < 1e-9
print(*sys.modules)
"""


MANY_SWEEPS = """
import sys
import numpy as np
from ibukit.channels import LineChannel
channel = LineChannel(100_000, 0.5, np.arange(100_000), np.ones(100_000))
for _ in range(3):
    channel.forward(np.full(100_000, 1e-5))
print(*sys.modules)
"""


def modules_after(code, **settings):
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | settings,
    )
    return set(run.stdout.split())


def test_the_closed_form_does_without_numba_and_scipy_optimize():
    assert modules_after(CLOSED_FORM) & {"numba", "scipy.optimize"} == set()
    of_bits = CLOSED_FORM.replace("RandomizedResponse", "OptimizedUnaryEncoding").replace(
        'tally_counts({"a": 40, "b": 30, "c": 20, "d": 10})', "tally([[1, 0, 0, 1]])"
    )
    assert "numba" in modules_after(of_bits), "the test must see it"
    assert "scipy.optimize" in modules_after("import scipy.optimize, sys; print(*sys.modules)")


def test_the_line_does_without_numba_if_nothing_is_compiled_yet(tmp_path):
    kept = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert "numba" not in modules_after(ON_A_LINE, **kept)
    assert "numba" in modules_after(MANY_SWEEPS, **kept)
    # the loops are there now, and quicker than plain Python
    assert "numba" in modules_after(ON_A_LINE, **kept)


@pytest.mark.parametrize("decay", [0.999, 0.3, 1e-200])
def test_a_sweep_has_the_same_bits_before_and_after_compiling(decay, rng):
    theta = rng.dirichlet(np.full(300, 0.1))
    plain = numba_fallback.plain(sweeps)
    assert np.array_equal(plain.sweep(theta, decay), sweeps.sweep(theta, decay))
    both = zip(
        plain.sweep_with_steps(theta, decay), sweeps.sweep_with_steps(theta, decay), strict=True
    )
    assert all(np.array_equal(a, b) for a, b in both)


def test_positions_are_swept_by_python_until_compiling_pays(monkeypatch):
    monkeypatch.setattr(numba_fallback, "is_compiled_or_cached", lambda loop: False)
    loops = InterpretUntilWorthCompiling(sweeps, "sweep", channel_line.POSITIONS_BY_PYTHON)
    monkeypatch.setattr(channel_line, "SWEEPS", loops)
    channel = channel_line.LineChannel(100_000, 0.5, np.arange(100_000), np.ones(100_000))
    theta = np.full(100_000, 1e-5)
    first, second, third = (channel.forward(theta) for _ in range(3))
    assert loops.for_size(1) is sweeps
    assert np.array_equal(first, third)
    assert np.array_equal(first, second)


def some_reports(rng, k):
    """Reports of a few secrets, their counts, and two numbers of a channel."""
    size = int(rng.integers(1, k + 1))
    reports = np.sort(rng.choice(k, size, replace=False))
    counts = rng.integers(1, 1000, size)
    if rng.random() < 0.5:
        counts = counts * 10 ** rng.uniform(-5, 5, size)
    return reports, counts, 10 ** rng.uniform(-4, -1), 10 ** rng.uniform(-3, 0)


@pytest.mark.parametrize("k", [1, 2, 5, 31, 32, 33, 300, 1024])
def test_numpy_gives_the_bits_of_the_loops(k, rng):
    for _ in range(20):
        reports, counts, off, contrast = some_reports(rng, k)
        level = water_filling._level_of_few(counts, float(counts.sum()), contrast, off)
        assert level == _water_filling_kernels.water_level(
            counts, float(counts.sum()), contrast, off
        )
        theta, right = np.zeros((2, k))
        water_filling._fill_few(theta, reports, counts, level, contrast, off)
        _water_filling_kernels.fill(right, reports, counts, level, contrast, off)
        assert np.array_equal(theta, right)
        total = _score_kernels.sum_few_in_blocks(theta)
        assert total == pytest.approx(_score_kernels.sum_in_blocks(theta), rel=1e-14)
        for size in (k, 0):
            g, right_g = np.zeros((2, size))
            arguments = total, reports, counts, off, contrast
            found = _score_kernels.score_few_responses(theta, g, *arguments)
            assert found == _score_kernels.score_responses(theta, right_g, *arguments)
            assert np.array_equal(g, right_g)


def test_frequencies_below_the_noise_share_the_mass_either_way():
    for put in (water_filling._fill_few, _water_filling_kernels.fill):
        theta = np.zeros(3)
        put(theta, np.arange(3), np.array([2.0, 2.0, 1.0]), 1e9, 1.0, 0.5)
        assert np.array_equal(theta, [0.5, 0.5, 0.0])


def test_an_impossible_report_has_the_likelihood_0_either_way():
    scores = (_score_kernels.score_few_responses, _score_kernels.score_responses)
    for score in scores:
        logs, least, _ = score(
            np.array([1.0, 0.0]), np.empty(0), 1.0, np.arange(2), np.array([3, 4]), 0.0, 1.0
        )
        assert logs == -np.inf
        assert least == 0


def test_a_line_of_5000_positions_is_not_compiled_for(monkeypatch):
    monkeypatch.setattr(numba_fallback, "is_compiled_or_cached", lambda loop: False)
    loops = InterpretUntilWorthCompiling(_line_kernels, "climb", line.POSITIONS_BY_PYTHON)
    assert loops.for_size(5000) is not _line_kernels
    assert loops.for_size(1) is _line_kernels


def test_after_many_calls_the_loops_take_over_and_nothing_changes(monkeypatch):
    tally = ik.RandomizedResponse(40, 1.0).tally_counts(np.arange(1, 41))
    results = []
    for calls in (10, 0):
        for module in (response, water_filling):
            monkeypatch.setattr(module, "FIRST_CALLS", NumpyUntilWorthCompiling(calls))
        results.append(ik.mle(tally))
    first, second = results
    assert np.array_equal(first.distribution, second.distribution)
    assert (first.log_likelihood, first.gap) == (second.log_likelihood, second.gap)
    few = NumpyUntilWorthCompiling(2)
    assert [few.takes_one() for _ in range(4)] == [True, True, False, False]
