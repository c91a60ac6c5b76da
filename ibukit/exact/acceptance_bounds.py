"""Bounds of the acceptance probabilities of many offsets at once, by integers of 64 bits.

Offsets of planar noise are drawn by rejection. On a fine lattice hardly any offset occurs twice, so
each has its own acceptance probability, and computing the digits by `decimal` would take a tenth of
a millisecond for each. Bounds that are 2^-20 apart decide all but one offset in a million, and only
for that one are the digits computed.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from ibukit._ground.arguments import Ints
from ibukit.exact.probabilities import exponential

# Slope of the proposal, a little below the root of 1/2. The distance d of an offset with sides u, v
# is at least MIN_SLOPE (u + v). Noise with density e^-(MIN_SLOPE (u + v)) is proposed and accepted
# with probability e^-(d - MIN_SLOPE (u + v)), so that the density of accepted offsets is e^-d.
# About three of four proposals are accepted.
MIN_SLOPE = Fraction(7, 10)

# Binary digits after the point of a length, in units of 1 / epsilon, and of a probability.
LENGTH_DIGITS = 24
PROBABILITY_DIGITS = 31
# Further digits of a rate; and the largest sides for which bounds are computed, in steps of the
# lattice and in nats. Beyond either, intermediate numbers might not fit in 64 bits.
RATE_DIGITS = 32
MAX_STEPS = 2**RATE_DIGITS
MAX_NATS = 64
# e^-r is a product of three factors from tables, each for ten binary digits of r.
TABLE_DIGITS = 10
# A bound of all rounding errors, in units of the last digit of a probability. A length is too small
# by less than 2 units of its last digit, one for the rate and one for the product. So d and the sum
# of the sides are both too small by less than 4 units, and their difference is off by less than 5
# after its own rounding, which is 5 * 2^7 units of a probability. The tables subtract less than 5
# more.
ROUNDING_SLACK = 2**10
# Number of offsets worked on at a time, so that their lengths stay in the cache of the processor.
OFFSETS_PER_CHUNK = 2**15


def acceptance_bounds(rates: tuple[Fraction, Fraction], sizes: Ints) -> tuple[Ints, Ints]:
    """Return integers below and above 2^31 e^-(d - slope (u + v)).

    u is i times the first rate, v is j times the second, and d is the root of u^2 + v^2. If u or v
    is too large for 64 bits, the bounds are 0 and 2^31.

    Parameters
    ----------
    rates : two fractions above 0
        Nats per step along each side.
    sizes : ndarray of int, shape (n, 2)
        Numbers of steps i, j along both sides, none of them negative.
    """
    low, high = (np.empty(len(sizes), dtype=np.int64) for _ in range(2))
    for start in range(0, len(sizes), OFFSETS_PER_CHUNK):
        part = slice(start, start + OFFSETS_PER_CHUNK)
        low[part], high[part] = _bounds(rates, sizes[part])
    return low, high


def _bounds(rates: tuple[Fraction, Fraction], sizes: Ints) -> tuple[Ints, Ints]:
    """Return the bounds of a chunk of offsets."""
    # Sides in fixed-point numbers with LENGTH_DIGITS binary digits.
    lengths, fit = np.empty_like(sizes), np.ones(len(sizes), dtype=bool)
    for side, rate in enumerate(rates):
        most = min(MAX_STEPS, int(MAX_NATS / rate))
        small = sizes[:, side] <= most
        step = int(rate * 2 ** (LENGTH_DIGITS + RATE_DIGITS)) if most else 0
        lengths[:, side] = np.where(small, sizes[:, side], 0) * step >> RATE_DIGITS
        fit &= small
    distance = integer_sqrt((lengths**2).sum(axis=1))
    # The exponent d - slope (u + v), with the slope as a fraction of integers.
    slope, denominator = MIN_SLOPE.as_integer_ratio()
    exponent = (denominator * distance - slope * lengths.sum(axis=1)) // denominator
    probability = exp_minus_fixed_point(np.maximum(exponent, 0))
    certain = 2**PROBABILITY_DIGITS
    return (
        np.where(fit, np.maximum(probability - ROUNDING_SLACK, 0), 0),
        np.where(fit, np.minimum(probability + ROUNDING_SLACK, certain), certain),
    )


def integer_sqrt(squares: Ints) -> Ints:
    """Return the integer square roots, rounded down, of numbers below 2^62."""
    # One binary digit of the root in each step, as in long division by hand: `remainder` is the
    # number minus the square of the digits known so far.
    root, remainder = np.zeros_like(squares), squares.copy()
    for place in range(60, -2, -2):
        bit = 1 << place
        digit = remainder >= root + bit
        remainder -= digit * (root + bit)
        root >>= 1
        root += digit * bit
    return root


def exp_minus_fixed_point(exponents: Ints) -> Ints:
    """Return 2^31 e^-r for r = exponents / 2^24 below 64, too small by less than 5 units."""
    # e^-r is the product of a factor for each group of ten binary digits of r. Each product is
    # rounded down, so the result is never too large.
    probability = np.full(exponents.shape, 2**PROBABILITY_DIGITS)
    for place, table in enumerate(_tables()):
        digits = exponents >> TABLE_DIGITS * place & 2**TABLE_DIGITS - 1
        probability = probability * table[digits] >> PROBABILITY_DIGITS
    return probability


@cache
def _tables() -> list[Ints]:
    """Return 2^31 e^-r rounded down, for r = 0..1023 units of 2^-24, of 2^-14 and of 2^-4."""
    units = [Fraction(1, 2 ** (LENGTH_DIGITS - TABLE_DIGITS * place)) for place in range(3)]
    return [
        np.array(
            [2**PROBABILITY_DIGITS]
            + [exponential(n * unit).floor(PROBABILITY_DIGITS) for n in range(1, 2**TABLE_DIGITS)]
        )
        for unit in units
    ]
