"""Sources of random bits, and the exact sampler of a mechanism that draws from them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

# Number of bits of a word, the largest number that is drawn at a time.
WORD = 64


class RandomBits(Protocol):
    """Independent fair bits; tests pass bits of their own, to follow every branch of a sampler."""

    digits: int
    """Number of binary digits of a uniform number that are drawn at a time, from 1 to 64."""

    def draw(self, n: int, width: int) -> Words:
        """Return `n` integers, each uniform from 0 to 2^width - 1."""


class OperatingSystem:
    """The cryptographic generator of the operating system: past draws do not predict later ones."""

    digits = WORD

    def draw(self, n: int, width: int) -> Words:
        """Return `n` integers, each uniform from 0 to 2^width - 1."""
        words = np.frombuffer(os.urandom(n * WORD // 8), dtype=np.uint64)
        return words >> np.uint64(WORD - width)


OPERATING_SYSTEM = OperatingSystem()


class ExactSampler(NamedTuple):
    """A sampler without rounding, and the privacy parameter of the law that it draws from."""

    draw: Callable[[NDArray[Any], RandomBits], NDArray[Any]]
    """From the codes of secrets, shape (n,), to reports in the form of a mechanism's `draw`."""
    epsilon: Callable[[], float]
    """Return the least epsilon of the law that is drawn, rounded up to a double."""
