"""Probabilities as real numbers, known to any number of binary digits: fractions, and functions of e^-r.

A uniform real number is below a chance with exactly that chance. Both are compared digit by digit,
and the first digits nearly always decide; where they do not, more are computed and more are drawn.
So nothing is rounded, whatever the number of digits that were computed at first.

The logarithm and the exponential function are those of `decimal`, which rounds them correctly to
any number of digits: one step down and one up are bounds.
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

# decimal digits for the first try, beyond those that are asked for
SPARE_DIGITS = 12
LOG_DIGITS = 60


class Chance:
    """A real number from 0 to 1, 1 excluded, by bounds that can be as narrow as one likes.

    Parameters
    ----------
    bounds : callable
        From a number of decimal digits to fractions below and above it.
    """

    def __init__(self, bounds: Callable[[int], Bounds]):
        self._bounds = bounds

    def floor(self, digits: int) -> int:
        """The whole number just below 2^digits times the chance: its first binary digits."""
        precision = SPARE_DIGITS + digits // 3
        while True:
            low, high = (shifted(bound, digits) for bound in self._bounds(precision))
            if low == high:
                return low
            precision *= (
                2  # it ends: none of these numbers but the fractions has finitely many digits
            )


def shifted(number: Fraction, digits: int) -> int:
    """The whole number just below 2^digits times a fraction that is not negative."""
    return (number.numerator << digits) // number.denominator


def ratio(number: Fraction) -> Chance:
    """A rational chance."""
    if not 0 <= number < 1:
        raise ValueError(f"number must be from 0 to 1, 1 excluded, got {number}")
    return Chance(lambda _: (number, number))


def exponential(exponent: Fraction) -> Chance:
    """The chance e^-exponent of an exponent above 0."""
    return Chance(lambda precision: exp_minus(exponent, exponent, precision))


def odds(factor: Fraction | int, exponent: Fraction) -> Chance:
    """The chance of which the odds are c : 1, where c is the factor times e^-exponent."""

    def bounds(precision: int) -> Bounds:
        low, high = (factor * bound for bound in exp_minus(exponent, exponent, precision))
        return low / (1 + low), high / (1 + high)

    return Chance(bounds)


def distance_excess(epsilon: Fraction, north: Fraction, east: Fraction, slope: Fraction) -> Chance:
    """The chance e^-(epsilon (d - slope (north + east))) with d the root of north^2 + east^2, d the larger."""

    def bounds(precision: int) -> Bounds:
        low, high = root(north**2 + east**2, precision)
        less = slope * (north + east)
        return exp_minus(epsilon * (low - less), epsilon * (high - less), precision)

    return Chance(bounds)


def log_up(number: Fraction) -> float:
    """The natural logarithm of a fraction from 1, rounded up to a double."""
    above = _context(LOG_DIGITS, ROUND_CEILING).divide(
        Decimal(number.numerator), Decimal(number.denominator)
    )
    exact = _context(LOG_DIGITS).ln(above)
    if not exact:
        return 0.0
    exact = _context(LOG_DIGITS).next_plus(exact)
    nearest = float(exact)
    return nearest if Decimal(nearest) >= exact else math.nextafter(nearest, math.inf)


def exp_minus(least: Fraction, most: Fraction, precision: int) -> Bounds:
    """Bounds of e^-r for all r from `least` to `most`."""
    context = _context(precision)
    highest = context.next_plus(context.exp(_rounded(least, precision, ROUND_FLOOR).copy_negate()))
    lowest = context.next_minus(context.exp(_rounded(most, precision, ROUND_CEILING).copy_negate()))
    return _fraction(lowest), _fraction(highest)


def root(number: Fraction, precision: int) -> Bounds:
    """Bounds of the square root."""
    context = _context(precision)
    highest = context.next_plus(context.sqrt(_rounded(number, precision, ROUND_CEILING)))
    lowest = context.next_minus(context.sqrt(_rounded(number, precision, ROUND_FLOOR)))
    return _fraction(lowest), _fraction(highest)


def _rounded(number: Fraction, precision: int, way: str) -> Decimal:
    return _context(precision, way).divide(Decimal(number.numerator), Decimal(number.denominator))


def _context(precision: int, way: str = ROUND_HALF_EVEN) -> Context:
    """A context of its own: the thread's may raise or round as its user likes, and a sum with it would round."""
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
