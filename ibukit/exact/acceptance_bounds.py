"""Bounds of the chances of many offsets at once, by whole numbers of 64 bits.

On a fine lattice hardly an offset comes twice, so each has a chance of its own, and digits by
`decimal` would take a tenth of a millisecond for each. Bounds 2^-20 apart decide but once in a
million times; then the digits are computed.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from ibukit._ground.arguments import Ints
from ibukit.exact.probabilities import exponential

# A little below the root of 1/2: the distance of an offset is at least so much of the sum of its
# two sides. The noise of that sum is drawn first, and kept so often that the noise of the distance
# is left, about three times in four.
MIN_SLOPE = Fraction(7, 10)

# binary digits after the point: of a length in units of 1 / epsilon, and of a chance
LENGTH_DIGITS = 24
CHANCE_DIGITS = 31
# digits of a rate beyond those of a length; a side is computed of at most so many steps, and to at
# most so many nats
RATE_DIGITS = 32
STEPS_COMPUTED = 2**RATE_DIGITS
NATS_COMPUTED = 64
# a chance is looked up by ten digits of its exponent at a time
LOOKED_UP = 10
# More than all roundings together. A length is too small by less than 2 units of its last digit:
# one for the rate, one for the product. So d is too small by less than 4 and the sum of the sides
# by less than 4, and what is left of both is off by less than 5 after its own rounding: 5 * 2^7
# units of a chance. Looking it up takes away less than 5 more.
CHANCE_SLACK = 2**10
# offsets whose lengths stay in the processor's cache
SIZES_AT_ONCE = 2**15


def excess_bounds(rates: tuple[Fraction, Fraction], sizes: Ints) -> tuple[Ints, Ints]:
    """Whole numbers below and above 2^31 e^-(d - slope (u + v)).

    u = i times the first rate, v = j times the second, d the root of u^2 + v^2. Where u or v is too
    large for 64 bits the bounds are 0 and 2^31.

    Parameters
    ----------
    rates : two fractions above 0
        Nats of a step along each side.
    sizes : ndarray of int, shape (n, 2)
        Steps i, j along both sides, none negative.
    """
    low, high = (np.empty(len(sizes), dtype=np.int64) for _ in range(2))
    for start in range(0, len(sizes), SIZES_AT_ONCE):
        part = slice(start, start + SIZES_AT_ONCE)
        low[part], high[part] = _bounds(rates, sizes[part])
    return low, high


def _bounds(rates: tuple[Fraction, Fraction], sizes: Ints) -> tuple[Ints, Ints]:
    lengths, fit = np.empty_like(sizes), np.ones(len(sizes), dtype=bool)
    for side, rate in enumerate(rates):
        most = min(STEPS_COMPUTED, int(NATS_COMPUTED / rate))
        here = sizes[:, side] <= most
        step = int(rate * 2 ** (LENGTH_DIGITS + RATE_DIGITS)) if most else 0
        lengths[:, side] = np.where(here, sizes[:, side], 0) * step >> RATE_DIGITS
        fit &= here
    distance = whole_root((lengths**2).sum(axis=1))
    slope, of = MIN_SLOPE.as_integer_ratio()
    chance = exp_table(np.maximum((of * distance - slope * lengths.sum(axis=1)) // of, 0))
    certain = 2**CHANCE_DIGITS
    return (
        np.where(fit, np.maximum(chance - CHANCE_SLACK, 0), 0),
        np.where(fit, np.minimum(chance + CHANCE_SLACK, certain), certain),
    )


def whole_root(squares: Ints) -> Ints:
    """The largest whole numbers whose squares are at most these, which are below 2^62, digit by digit."""
    root, left = np.zeros_like(squares), squares.copy()
    for place in range(60, -2, -2):
        bit = 1 << place
        here = left >= root + bit
        left -= here * (root + bit)
        root >>= 1
        root += here * bit
    return root


def exp_table(exponents: Ints) -> Ints:
    """About 2^31 e^-r, for r a whole number of 2^-24, below 64: too small by less than 5, and never too large."""
    chance = np.full(exponents.shape, 2**CHANCE_DIGITS)
    for place, table in enumerate(_tables()):
        digits = exponents >> LOOKED_UP * place & 2**LOOKED_UP - 1
        chance = chance * table[digits] >> CHANCE_DIGITS
    return np.asarray(chance)


@cache
def _tables() -> list[Ints]:
    """2^31 e^-r rounded down, for r = 0..1023 units of 2^-24, of 2^-14 and of 2^-4."""
    units = [Fraction(1, 2 ** (LENGTH_DIGITS - LOOKED_UP * place)) for place in range(3)]
    return [
        np.array(
            [2**CHANCE_DIGITS]
            + [exponential(n * unit).floor(CHANCE_DIGITS) for n in range(1, 2**LOOKED_UP)]
        )
        for unit in units
    ]
