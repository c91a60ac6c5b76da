"""Closed forms are refused by name where doubles do not hold them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit.errors import TooLarge

# beyond it k and k + 1 are the same double
MAX_K = 2**53


@contextmanager
def within_doubles(**given: Any) -> Iterator[None]:
    """Say which arguments lead to numbers that no double holds, in place of an overflow or a division by 0."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            yield
    except ArithmeticError:
        values = ", ".join(f"{name}={value:g}" for name, value in given.items())
        raise ValueError(
            f"{' and '.join(given)} must be such that doubles hold the result, got {values}"
        ) from None


def number_of_secrets(k: Any, least: int, most: int = MAX_K) -> int:
    """A whole number of secrets that is not beyond what is computed with."""
    secrets = arguments.whole("k", k, least)
    if secrets > most:
        raise TooLarge(f"k must be at most {most}, got {arguments.readable(secrets)}")
    return secrets
