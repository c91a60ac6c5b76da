"""A row-stochastic matrix of fractions with denominator 2^bits, which is drawn without rounding."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.errors import TooLarge
from ibukit.exact.probabilities import log_rounded_up
from ibukit.exact.random_bits import WORD, RandomBits

# Number of binary digits of a double.
SIGNIFICANT = 53
# Largest number of entries of which the privacy parameter is computed. A Python integer takes about
# 60 bytes, so this many take 250 MB.
MAX_INTEGERS = 2**22


class RationalMatrix:
    """Row-stochastic fractions weights / 2^bits that approximate a matrix of doubles, shape (k, m).

    Every double is taken as the exact fraction that it is, and divided by the sum of its row; the
    remainders below 2^-bits are added to the largest entry of the row. The number of bits is so
    large that, apart from the division, an entry changes by less than 2^-52 of itself, and no
    positive entry becomes 0.
    """

    def __init__(self, matrix: Floats):
        self.matrix = matrix
        smallest = math.frexp(float(matrix[matrix > 0].min()))[1]
        self.bits = WORD * -(-(SIGNIFICANT + 1 - smallest) // WORD)
        self._rows: dict[int, list[int]] = {}

    def weights(self, x: int) -> list[int]:
        """Return the numerators of a row; they sum to 2^bits."""
        # A double is an integer of 53 binary digits times a power of 2.
        parts, exponents = np.frexp(self.matrix[x])
        significands = np.ldexp(parts, SIGNIFICANT).astype(np.int64).tolist()
        shifts = (exponents + (self.bits - SIGNIFICANT)).tolist()
        entries = [
            number << shift if number else 0
            for number, shift in zip(significands, shifts, strict=True)
        ]
        total = sum(entries)
        scaled = [(entry << self.bits) // total for entry in entries]
        scaled[scaled.index(max(scaled))] += 2**self.bits - sum(scaled)
        return scaled

    def draw(self, secrets: Ints, random_bits: RandomBits) -> Ints:
        """Draw one column for each row in `secrets`, by inversion of the cumulative weights."""
        reports = np.empty(len(secrets), dtype=np.int64)
        for x in np.unique(secrets).tolist():
            users = np.flatnonzero(secrets == x)
            reports[users] = self._columns(self._cumulative(x), len(users), random_bits)
        return reports

    def _cumulative(self, x: int) -> list[int]:
        if x not in self._rows:
            self._rows[x] = [
                reached for reached in accumulate(self.weights(x)) if reached < 2**self.bits
            ]
        return self._rows[x]

    def _columns(self, cumulative: list[int], n: int, random_bits: RandomBits) -> Ints:
        heads = np.array(self._digits(cumulative, random_bits.digits), dtype=np.uint64)
        words = random_bits.draw(n, random_bits.digits)
        columns = np.searchsorted(heads, words, side="left")
        undecided = columns != np.searchsorted(heads, words, side="right")
        # A uniform number begins like a cumulative weight once in about 2^64 / m draws.
        for user in np.flatnonzero(undecided).tolist():
            columns[user] = self._compare_more_digits(cumulative, int(words[user]), random_bits)
        return columns

    def _compare_more_digits(
        self, cumulative: list[int], number: int, random_bits: RandomBits
    ) -> int:
        known = random_bits.digits
        while known < self.bits:
            number = (number << random_bits.digits) + int(
                random_bits.draw(1, random_bits.digits)[0]
            )
            known += random_bits.digits
            heads = self._digits(cumulative, known)
            column = bisect_left(heads, number)
            if column == bisect_right(heads, number):
                return column
        # All digits are known: the number equals the cumulative weight, and belongs to the next
        # column.
        return bisect_right(self._digits(cumulative, known), number)

    def _digits(self, cumulative: list[int], digits: int) -> list[int]:
        return [(reached << digits) >> self.bits for reached in cumulative]

    def epsilon(self) -> float:
        """Return the least epsilon for all pairs of secrets, rounded up.

        It is infinite if a column has both a 0 and a positive entry.
        """
        worst = Fraction(1)
        for column in zip(*self._all, strict=True):
            low, high = min(column), max(column)
            if high and not low:
                return math.inf
            if high * worst.denominator > worst.numerator * low:
                worst = Fraction(high, low)
        return log_rounded_up(worst)

    def epsilon_per_distance(self, distances: Floats) -> float:
        """Return the least epsilon per unit of distance, rounded up.

        It is too large by less than 1e-12 nats over the least distance.
        """
        logs = np.array(
            [[math.log(weight) if weight else -math.inf for weight in row] for row in self._all]
        )
        # Logarithms of integers are right to two units in the last place, and so are differences of
        # two.
        slack = 8 * math.ulp(self.bits * math.log(2))
        worst = 0.0
        for x in range(1, len(logs)):
            # A report that neither secret makes gives inf - inf = NaN, which fmax skips.
            with np.errstate(invalid="ignore"):
                ratios = np.fmax.reduce(np.abs(logs[:x] - logs[x]), axis=1)
            worst = max(worst, float(((ratios + slack) / distances[:x, x]).max()))
        return worst * (1 + 2.0**-50)

    @cached_property
    def _all(self) -> list[list[int]]:
        if self.matrix.size > MAX_INTEGERS:
            raise TooLarge(
                f"the matrix has {self.matrix.size} entries, and the level of what is released is "
                f"computed of at most {MAX_INTEGERS}: merge secrets or reports, or take a "
                "mechanism with a sampler of its own"
            )
        return [self.weights(x) for x in range(len(self.matrix))]
