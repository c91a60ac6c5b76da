"""Probabilities as real numbers with any number of binary digits: fractions and functions of e^-r.

A uniform real number is below p with probability exactly p. Both are compared digit by digit, and
the first digits nearly always decide; if they are equal, more digits of p are computed, and more of
the uniform number are drawn. So nothing is rounded, however many digits were computed at first.

The logarithm and the exponential function are those of `decimal`, which rounds them correctly to
any number of digits, so that one step down and one step up are bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
)
from fractions import Fraction

Bounds = tuple[Fraction, Fraction]

# Decimal digits that are computed beyond the requested ones, so that the first try nearly always
# suffices; and digits of a logarithm before it is rounded to a double.
SPARE_DIGITS = 12
LOG_DIGITS = 60


class ExactProbability:
    """A real number in [0, 1), given by bounds that can be arbitrarily narrow.

    Parameters
    ----------
    bounds : callable
        A function from a number of decimal digits to fractions below and above the number.
    """

    def __init__(self, bounds: Callable[[int], Bounds]):
        self._bounds = bounds

    def floor(self, digits: int) -> int:
        """Return floor(2^digits p), which has the first binary digits of p."""
        precision = SPARE_DIGITS + digits // 3
        while True:
            low, high = (floor_shifted(bound, digits) for bound in self._bounds(precision))
            if low == high:
                return low
            # In the end both bounds have the same floor: among these numbers only fractions have
            # finitely many binary digits, and their bounds are equal.
            precision *= 2


def floor_shifted(number: Fraction, digits: int) -> int:
    """Return floor(2^digits number) of a fraction that is not negative."""
    return (number.numerator << digits) // number.denominator


def rational(number: Fraction) -> ExactProbability:
    """Return a rational probability."""
    if not 0 <= number < 1:
        raise ValueError(f"number must be from 0 to 1, 1 excluded, got {number}")
    return ExactProbability(lambda _: (number, number))


def exponential(exponent: Fraction) -> ExactProbability:
    """Return the probability e^-exponent of an exponent above 0."""
    return ExactProbability(lambda precision: exp_minus_bounds(exponent, exponent, precision))


def odds(factor: Fraction | int, exponent: Fraction) -> ExactProbability:
    """Return the probability with odds c : 1, where c is the factor times e^-exponent."""

    def bounds(precision: int) -> Bounds:
        low, high = (factor * bound for bound in exp_minus_bounds(exponent, exponent, precision))
        return low / (1 + low), high / (1 + high)

    return ExactProbability(bounds)


def distance_excess(
    epsilon: Fraction, north: Fraction, east: Fraction, slope: Fraction
) -> ExactProbability:
    """Return e^-(epsilon (d - slope (north + east))) with d the root of north^2 + east^2.

    The slope must be so small that the exponent is not positive.
    """

    def bounds(precision: int) -> Bounds:
        low, high = sqrt_bounds(north**2 + east**2, precision)
        less = slope * (north + east)
        return exp_minus_bounds(epsilon * (low - less), epsilon * (high - less), precision)

    return ExactProbability(bounds)


def log_rounded_up(number: Fraction) -> float:
    """Return the natural logarithm of a fraction of at least 1, rounded up to a double."""
    above = _context(LOG_DIGITS, ROUND_CEILING).divide(
        Decimal(number.numerator), Decimal(number.denominator)
    )
    exact = _context(LOG_DIGITS).ln(above)
    if not exact:
        return 0.0
    exact = _context(LOG_DIGITS).next_plus(exact)
    nearest = float(exact)
    return nearest if Decimal(nearest) >= exact else math.nextafter(nearest, math.inf)


def exp_minus_bounds(least: Fraction, most: Fraction, precision: int) -> Bounds:
    """Return bounds of e^-r that hold for all r from `least` to `most`."""
    # The decimal functions round correctly, so one step outwards makes a result a bound.
    context = _context(precision)
    highest = context.next_plus(context.exp(_rounded(least, precision, ROUND_FLOOR).copy_negate()))
    lowest = context.next_minus(context.exp(_rounded(most, precision, ROUND_CEILING).copy_negate()))
    return _fraction(lowest), _fraction(highest)


def sqrt_bounds(number: Fraction, precision: int) -> Bounds:
    """Return bounds of the square root."""
    context = _context(precision)
    highest = context.next_plus(context.sqrt(_rounded(number, precision, ROUND_CEILING)))
    lowest = context.next_minus(context.sqrt(_rounded(number, precision, ROUND_FLOOR)))
    return _fraction(lowest), _fraction(highest)


def _rounded(number: Fraction, precision: int, way: str) -> Decimal:
    return _context(precision, way).divide(Decimal(number.numerator), Decimal(number.denominator))


def _context(precision: int, way: str = ROUND_HALF_EVEN) -> Context:
    """Return a decimal context that does not depend on the settings of the thread."""
    return Context(
        prec=precision,
        rounding=way,
        Emin=MIN_EMIN,
        Emax=MAX_EMAX,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[],
    )


def _fraction(number: Decimal) -> Fraction:
    return Fraction(*number.as_integer_ratio())
