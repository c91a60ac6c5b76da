"""Independence over the field with two elements: exact, and on packed bits sixty-four times cheaper than in doubles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Ints


def rank(rows: NDArray[np.uint8], width: int, enough: int | None = None) -> int:
    """Dimension of the span of packed bit rows (n, ceil(width / 8)) where 1 + 1 = 0.

    Independent over this field is independent over the reals (an odd determinant is not 0), never
    the other way round. Reads the rows in stretches and stops once the rank is `enough`.
    """
    enough = width if enough is None else enough
    basis = np.empty((0, rows.shape[1]), dtype=np.uint8)
    size = 2 * width + 8
    for start in range(0, len(rows), size):
        basis = _reduced(np.concatenate([basis, rows[start : start + size]]), width)
        if len(basis) >= enough:
            break
    return len(basis)


def _reduced(rows: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """Gaussian elimination: as many independent rows as there are."""
    rows = rows.copy()
    done = 0
    for column in range(width):
        bits: Ints = rows[done:, column >> 3] >> (7 - (column & 7)) & 1
        holders = done + np.flatnonzero(bits)
        if not len(holders):
            continue
        rows[[done, holders[0]]] = rows[[holders[0], done]]
        rows[holders[1:]] ^= rows[done]
        done += 1
        if done == len(rows):
            break
    return rows[:done]
