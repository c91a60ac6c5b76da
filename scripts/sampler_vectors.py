"""Write the test vectors of the page *Samplers for phones*: words in, report out.

    python scripts/sampler_vectors.py

Reports are those of the package's exact samplers, drawn from the words that are recorded. The words
are random, except that the first one is sometimes set to the digits of the first coin, where the
next word decides, or to the number next to them.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import ibukit as ik
from ibukit import exact

FILE = Path(__file__).resolve().parents[1] / "book" / "_static" / "sampler-vectors.json"
LEVELS = (0.05, 0.5, 1.0, 3.0)
REPEATS = 6


class Recorded:
    """A source of given words, and then of random ones, that keeps the words that were read."""

    digits = 64

    def __init__(self, first: list[int], rng: np.random.Generator) -> None:
        self._first, self._rng, self.read = list(first), rng, []

    def draw(self, n: int, width: int) -> np.ndarray:
        """Return the upper bits of the next words."""
        words = [
            self._first.pop(0) if self._first else int(self._rng.integers(2**64, dtype=np.uint64))
            for _ in range(n)
        ]
        self.read += words
        return np.array(words, dtype=np.uint64) >> np.uint64(64 - width)


def mechanisms() -> list[tuple[Any, exact.ExactProbability]]:
    """The mechanisms, each with the probability of the first coin that it tosses."""
    found: list[tuple[Any, exact.ExactProbability]] = []
    for epsilon in LEVELS:
        r = Fraction(epsilon)
        found += [(ik.RandomizedResponse(k, epsilon), exact.odds(k - 1, r)) for k in (2, 5, 200)]
        found += [(ik.Rappor(6, epsilon), exact.odds(1, r / 2))]
        found += [(ik.OptimizedUnaryEncoding(6, epsilon), exact.odds(1, r))]
        coin = exact.odds(1, r) if r < 1 else exact.exponential(r)
        found += [(ik.LinearGeometric(ik.Line(0, 9), epsilon), coin)]
        found += [(ik.TruncatedGeometric(ik.Line(0, 9), epsilon), coin)]
    return found


def vector(mechanism: Any, secret: int, random_bits: Recorded) -> dict[str, Any]:
    """One test vector."""
    codes = mechanism.alphabet.bounded  # an alphabet without an end has labels alone
    [report] = mechanism._release_from([secret], codes, random_bits)
    return {
        "mechanism": type(mechanism).__name__,
        "k": mechanism.k,
        "epsilon": str(Fraction(mechanism.epsilon)),
        "secret": secret,
        "words": [f"{word:016x}" for word in random_bits.read],
        "report": report.tolist(),
    }


def vectors() -> list[dict[str, Any]]:
    """All test vectors, the same each time."""
    rng, found = np.random.default_rng(64), []
    for mechanism, coin in mechanisms():
        head = coin.floor(64)
        starts: list[list[int]] = [[]] * REPEATS + [[head - 1], [head + 1]]
        # For a row of bits, the package reads the words that settle ties after the words of all
        # bits.
        if not isinstance(mechanism, (ik.Rappor, ik.OptimizedUnaryEncoding)):
            starts += [[head], [head, 0]]
        for start in starts:
            secret = int(rng.integers(mechanism.k))
            found.append(vector(mechanism, secret, Recorded(start, rng)))
    return found


def text() -> str:
    """The text of the file, with one vector on each line."""
    lines = ",\n".join(json.dumps(each) for each in vectors())
    return f"[\n{lines}\n]\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf8")
    print(f"wrote {FILE.name}: {len(vectors())} test vectors")
