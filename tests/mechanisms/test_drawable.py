"""Probabilities rounded on their bits are those that arithmetic rounds, to the last one."""

import numpy as np
import pytest

from ibukit.mechanisms import draws


def by_arithmetic(p):
    mantissa, exponent = np.frexp(p)
    return np.ldexp(
        np.rint(np.ldexp(mantissa, draws.SIGNIFICANT_BITS)), exponent - draws.SIGNIFICANT_BITS
    )


KINDS = {
    "of all sizes": lambda rng: np.exp(-700 * rng.random(20_000)),
    "halves between two": lambda rng: np.ldexp(
        (2 * rng.integers(2**31, 2**32, 20_000) + 1).astype(float), -40
    ),
    "next to halves": lambda rng: np.nextafter(
        np.ldexp((2 * rng.integers(2**31, 2**32, 20_000) + 1) * 1.0, -40), 1.0
    ),
    "round up to the next power": lambda rng: np.array(
        [1 - 2.0**-53, 1 - 2.0**-33, 1 - 2.0**-34, 1 - 2.0**-32]
    ),
    "simple": lambda rng: np.array([0.0, 1.0, 0.5, 0.1, 1 / 3, 2.0**-1022]),
    "below the normal ones": lambda rng: np.array([5e-324, 1.2345678901e-310, 2.2e-308, 0.5, 0.0]),
    "whole": lambda rng: rng.integers(0, 2**40, 1000),
    "not in order": lambda rng: rng.random((40, 60)).T[:, ::2],
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_bits_are_those_of_arithmetic(kind, rng):
    p = KINDS[kind](rng)
    wanted = by_arithmetic(p)
    wanted = wanted / wanted.sum(axis=-1, keepdims=True)
    assert np.array_equal(draws.drawable(p), wanted)
    assert np.array_equal(draws._rounded(np.asarray(p, dtype=float)), by_arithmetic(p))


def test_what_is_given_is_not_written_to(rng):
    p = rng.random(50)
    before = p.copy()
    draws.drawable(p)
    assert np.array_equal(p, before)
