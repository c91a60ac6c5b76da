"""A sampler's law by following every branch of its random bits,
until too little is undecided to matter.
"""

from collections import defaultdict
from fractions import Fraction

import numpy as np


class Undecided(Exception):
    """The sampler asks for more bits than it was given; `args` has how many."""


class Scripted:
    """Bits that are given in advance."""

    def __init__(self, words, digits):
        self.digits = digits
        self._words = iter(words)

    def draw(self, n, width):
        """The next `n` of them."""
        drawn = []
        for _ in range(n):
            word = next(self._words, None)
            if word is None:
                raise Undecided(width)
            drawn.append(word)
        return np.array(drawn, dtype=np.uint64)


class Seeded:
    """Bits with a seed, so that a test has one outcome; no such thing leaves a device."""

    digits = 64

    def __init__(self, rng):
        self.rng = rng

    def draw(self, n, width):
        """The next `n`, of this many digits each."""
        return self.rng.integers(2**width - 1, size=n, dtype=np.uint64, endpoint=True)


def law(sampler, digits=2, depth=10):
    """Probability of each outcome that is reached within about `depth` bits,
    and what is left: exact fractions.
    """
    found, left = defaultdict(Fraction), Fraction(0)
    todo = [((), Fraction(1))]
    while todo:
        words, mass = todo.pop()
        if mass < Fraction(1, 2**depth):
            left += mass
            continue
        try:
            outcome = sampler(Scripted(words, digits))
        except Undecided as more:
            branches = 2 ** more.args[0]
            todo += [((*words, word), mass / branches) for word in range(branches)]
        else:
            found[outcome] += mass
    return dict(found), left


def assert_law(sampler, probabilities, digits=2, depth=10, most_left=0.1):
    """No outcome has more than its probability already,
    or less than it even with all that is left.
    """
    found, left = law(sampler, digits, depth)
    assert left <= most_left
    assert set(found) <= set(probabilities)
    for outcome, probability in probabilities.items():
        reached = float(found.get(outcome, 0))
        assert reached - 1e-12 <= probability <= reached + float(left) + 1e-12, outcome
