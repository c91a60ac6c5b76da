"""Turn overflow in closed forms into ValueErrors that name the arguments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit.errors import TooLarge

# Beyond this k and k + 1 are the same double.
MAX_K = 2**53


@contextmanager
def refuse_overflow(**given: Any) -> Iterator[None]:
    """Raise ValueError with the names and values of arguments that lead to an overflow or 1 / 0."""
    try:
        # numpy raises FloatingPointError, Python's math OverflowError or ZeroDivisionError: all are
        # ArithmeticError.
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            yield
    except ArithmeticError:
        values = ", ".join(f"{name}={value:g}" for name, value in given.items())
        raise ValueError(
            f"{' and '.join(given)} must be less extreme, or the result overflows, got {values}"
        ) from None


def number_of_secrets(k: Any, least: int, most: int = MAX_K) -> int:
    """Check a number of secrets: whole, at least `least` and at most `most`."""
    secrets = arguments.whole("k", k, least)
    if secrets > most:
        raise TooLarge(f"k must be at most {most}, got {arguments.readable(secrets)}")
    return secrets
