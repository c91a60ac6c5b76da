"""Where random bits come from, and what a mechanism says of how it is drawn from them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

WORD = 64


class Source(Protocol):
    """Independent fair bits; tests hand in bits of their own, to follow every branch of a sampler."""

    digits: int
    """How many binary digits of a uniform number are drawn at a time, from 1 to 64."""

    def draw(self, n: int, width: int) -> Words:
        """`n` whole numbers, each uniform from 0 to 2^width - 1."""


class OperatingSystem:
    """The operating system's generator, made for keys: what was drawn does not tell what will be."""

    digits = WORD

    def draw(self, n: int, width: int) -> Words:
        """`n` whole numbers, each uniform from 0 to 2^width - 1."""
        words = np.frombuffer(os.urandom(n * WORD // 8), dtype=np.uint64)
        return np.asarray(words >> np.uint64(WORD - width))


OPERATING_SYSTEM = OperatingSystem()


class Exact(NamedTuple):
    """How reports are drawn without a rounding, and the level that they then have."""

    draw: Callable[[NDArray[Any], Source], NDArray[Any]]
    """From the codes of secrets, shape (n,), to reports in the form of a mechanism's `draw`."""
    level: Callable[[], float]
    """The least epsilon of the law that is drawn, rounded up where it is no double."""
