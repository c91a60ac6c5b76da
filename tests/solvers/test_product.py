"""Products in single precision without the interpreter's lock,
against numpy's and against scipy's.
"""

import ctypes

import numpy as np
import pytest
from scipy.linalg.blas import ssyrk

from ibukit.solvers.dense import product
from ibukit.solvers.dense.product import lower_product


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (400, 37), (0, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_it_is_the_lower_triangle_of_the_product(shape, order, rng):
    rows = np.array(rng.random(shape), dtype=np.float32, order=order)
    found = lower_product(rows)
    np.testing.assert_allclose(found, np.tril(rows.T @ rows), rtol=1e-5)
    if shape[0]:
        assert np.array_equal(found, ssyrk(1.0, rows.T, lower=1))


def test_rows_that_are_some_of_others(rng):
    rows = rng.random((40, 12)).astype(np.float32)
    assert np.array_equal(lower_product(rows[::3, 1:7]), lower_product(rows[::3, 1:7].copy()))


def test_other_threads_may_run_meanwhile():
    """How ctypes calls it: what has the flag of the interpreter's own functions holds the lock."""
    held = ctypes.PYFUNCTYPE(None)._flags_ & ~ctypes.CFUNCTYPE(None)._flags_
    assert held
    assert not product._SSYRK._flags_ & held
