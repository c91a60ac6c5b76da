"""Conversion of real reports to arrays of finite numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.errors import AlphabetMismatch


def real_numbers(name: str, values: Any, ndim: int = 1) -> Floats:
    """Return values as an array of finite numbers, shape (n,) or (n, 2)."""
    array = arguments.whole_array(name, values)
    if array.size == 0:
        array = np.zeros((0, 2)[:ndim])
    if array.dtype.kind not in "iufO":
        raise ValueError(f"{name} must be numbers, got an array of type {array.dtype}")
    numbers = arguments.numbers(name, array, "numbers")
    if numbers.ndim != ndim or (ndim == 2 and numbers.shape[1] != 2):
        wanted = "(n,)" if ndim == 1 else "(n, 2): x and y of each point"
        raise ValueError(f"{name} must have shape {wanted}, got {numbers.shape}")
    bad = ~np.isfinite(numbers) if ndim == 1 else ~np.isfinite(numbers).all(axis=1)
    if bad.any():
        first = int(np.argmax(bad))
        raise AlphabetMismatch(
            f"{name} must be finite numbers, got {numbers[first]} at index {first}: remove missing "
            "ones before the call, which is right only if they are like the others"
        )
    return numbers
