"""Loops that run as plain Python until to compile them pays."""

import importlib.util

import numpy as np
import pytest

from ibukit._ground import numba_fallback as plain_first
from ibukit.solvers import _line_kernels, line

LOOPS = """
from numba import njit

@njit(cache=True, error_model="numpy")
def inner(x):
    return 1.0 / x[0]

@njit(cache=True, error_model="numpy")
def outer(x):
    return inner(x) + 1.0
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """The module of loops as a new process finds it."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    path = tmp_path / "some_loops.py"
    path.write_text(LOOPS, encoding="utf-8")

    def load():
        spec = importlib.util.spec_from_file_location("some_loops", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_plain_until_so_much_was_worked_on_then_compiled_then_from_the_cache(start):
    loops, x = start(), np.array([4.0])
    first = plain_first.InterpretUntilWorthCompiling(loops, "outer", 10)
    for size in (4, 6):
        assert first.for_size(size).outer(x) == 1.25
    assert loops.outer.signatures == loops.inner.signatures == []
    assert first.for_size(1) is loops
    assert loops.outer(x) == 1.25
    assert loops.outer.signatures
    assert first.for_size(1) is loops
    again = start()
    assert plain_first.InterpretUntilWorthCompiling(again, "outer", 10).for_size(1) is again, (
        "there is a file of it"
    )


def test_a_large_problem_is_compiled_for_at_once(start):
    loops = start()
    first = plain_first.InterpretUntilWorthCompiling(loops, "outer", 10)
    assert first.for_size(11) is loops
    assert first.for_size(1) is loops, "the caller has compiled it"


def test_what_is_no_compiled_loop_is_left_alone(start):
    loops = start()
    loops.outer = loops.outer.py_func  # as with NUMBA_DISABLE_JIT=1
    assert plain_first.InterpretUntilWorthCompiling(loops, "outer", 10).for_size(1) is loops


def test_a_quotient_by_0_is_infinite_and_nobody_is_warned(start):
    assert plain_first.plain(start()).outer(np.array([0.0])) == np.inf


@pytest.mark.parametrize("decay", [0.999, 0.9, 0.1])
def test_the_line_has_one_answer_either_way(decay, rng, monkeypatch):
    channel = line.LineChannel(40, decay, np.arange(40), np.ones(40))
    q = rng.dirichlet(np.ones(40))
    compiled, steps = line.maximise(channel, q, 1e-10)
    used = plain_first.plain(_line_kernels)
    monkeypatch.setattr(plain_first, "is_compiled_or_cached", lambda loop: False)
    monkeypatch.setattr(plain_first, "plain", lambda loops: used)
    monkeypatch.setattr(
        line, "LOOPS", plain_first.InterpretUntilWorthCompiling(_line_kernels, "climb", 10**6)
    )
    assert line.LOOPS.for_size(40) is used
    plain, again = line.maximise(channel, q, 1e-10)
    assert steps == again
    np.testing.assert_allclose(plain, compiled, rtol=1e-9, atol=1e-15)
