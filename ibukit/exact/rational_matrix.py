"""A matrix of doubles as one of fractions with a common denominator 2^bits, which is drawn as it is."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.errors import TooLarge
from ibukit.exact.probabilities import log_up
from ibukit.exact.random_bits import WORD, Source

# binary digits of a double
SIGNIFICANT = 53
# a matrix of Python's whole numbers takes about 60 bytes an entry
MAX_FRACTIONS = 2**22


class Table:
    """Row-stochastic fractions next to a matrix of doubles: weights / 2^bits, shape (k, m).

    Every entry is taken as the fraction that it is, a row is divided by its sum, and what is below
    2^-bits goes to its largest entry. There are so many bits that an entry moves by less than 2^-52
    of itself beyond what the division does, and none that is above 0 becomes 0.
    """

    def __init__(self, matrix: Floats):
        self.matrix = matrix
        smallest = math.frexp(float(matrix[matrix > 0].min()))[1]
        self.bits = WORD * -(-(SIGNIFICANT + 1 - smallest) // WORD)
        self._rows: dict[int, list[int]] = {}

    def weights(self, x: int) -> list[int]:
        """The numerators of a row; they sum to 2^bits."""
        parts, exponents = np.frexp(self.matrix[x])
        whole = np.ldexp(parts, SIGNIFICANT).astype(np.int64).tolist()
        shifts = (exponents + (self.bits - SIGNIFICANT)).tolist()
        entries = [
            number << shift if number else 0 for number, shift in zip(whole, shifts, strict=True)
        ]
        total = sum(entries)
        scaled = [(entry << self.bits) // total for entry in entries]
        scaled[scaled.index(max(scaled))] += 2**self.bits - sum(scaled)
        return scaled

    def draw(self, secrets: Ints, source: Source) -> Ints:
        """One column for each row that is named: how many cumulative weights a uniform number reaches."""
        reports = np.empty(len(secrets), dtype=np.int64)
        for x in np.unique(secrets).tolist():
            users = np.flatnonzero(secrets == x)
            reports[users] = self._columns(self._cumulative(x), len(users), source)
        return reports

    def _cumulative(self, x: int) -> list[int]:
        if x not in self._rows:
            self._rows[x] = [
                reached for reached in accumulate(self.weights(x)) if reached < 2**self.bits
            ]
        return self._rows[x]

    def _columns(self, cumulative: list[int], n: int, source: Source) -> Ints:
        heads = np.array(self._digits(cumulative, source.digits), dtype=np.uint64)
        words = source.draw(n, source.digits)
        found = np.searchsorted(heads, words, side="left")
        # the first digits are the same: once in about 2^64 / m
        for place in np.flatnonzero(found != np.searchsorted(heads, words, side="right")).tolist():
            found[place] = self._by_more_digits(cumulative, int(words[place]), source)
        return np.asarray(found)

    def _by_more_digits(self, cumulative: list[int], number: int, source: Source) -> int:
        known = source.digits
        while known < self.bits:
            number = (number << source.digits) + int(source.draw(1, source.digits)[0])
            known += source.digits
            heads = self._digits(cumulative, known)
            column = bisect_left(heads, number)
            if column == bisect_right(heads, number):
                return column
        return bisect_right(
            self._digits(cumulative, known), number
        )  # all digits are known, and equality is reached

    def _digits(self, cumulative: list[int], digits: int) -> list[int]:
        return [(reached << digits) >> self.bits for reached in cumulative]

    def level(self) -> float:
        """The least epsilon for all pairs of secrets, rounded up; inf where a 0 stands beside another entry."""
        worst = Fraction(1)
        for column in zip(*self._all, strict=True):
            low, high = min(column), max(column)
            if high and not low:
                return math.inf
            if high * worst.denominator > worst.numerator * low:
                worst = Fraction(high, low)
        return log_up(worst)

    def level_per_distance(self, distances: Floats) -> float:
        """The least epsilon per unit of distance, rounded up.

        It is too large by less than 1e-12 nats over the least distance.
        """
        logs = np.array(
            [[math.log(weight) if weight else -math.inf for weight in row] for row in self._all]
        )
        # the logarithms of whole numbers are right to two units in the last place, and so are
        # differences of two
        slack = 8 * math.ulp(self.bits * math.log(2))
        worst = 0.0
        for x in range(1, len(logs)):
            with np.errstate(invalid="ignore"):
                apart = np.fmax.reduce(
                    np.abs(logs[:x] - logs[x]), axis=1
                )  # NaN, a report of neither: passed over
            worst = max(worst, float(((apart + slack) / distances[:x, x]).max()))
        return worst * (1 + 2.0**-50)

    @cached_property
    def _all(self) -> list[list[int]]:
        if self.matrix.size > MAX_FRACTIONS:
            raise TooLarge(
                f"the matrix has {self.matrix.size} entries, and the level of what is released is computed of at most "
                f"{MAX_FRACTIONS}: merge secrets or reports, or take a mechanism with a sampler of its own"
            )
        return [self.weights(x) for x in range(len(self.matrix))]
