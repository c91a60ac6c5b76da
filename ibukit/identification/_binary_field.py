"""Rank of bit rows over the field with two elements: exact, and 64 times as fast as in doubles."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Ints


def rank(rows: NDArray[np.uint8], width: int, enough: int | None = None) -> int:
    """Dimension of the span of packed bit rows (n, ceil(width / 8)) where 1 + 1 = 0.

    Rows that are independent over this field are independent over the reals, because an odd
    determinant is not 0; the converse is false. Rows are read in blocks until the rank is `enough`.
    """
    enough = width if enough is None else enough
    basis = np.empty((0, rows.shape[1]), dtype=np.uint8)
    # A block takes rows from everywhere: the rows of a tally are sorted, and neighbours look alike.
    n_blocks = math.ceil(len(rows) / (2 * width + 8))
    for start in range(n_blocks):
        basis = _reduced(np.concatenate([basis, rows[start::n_blocks]]), width)
        if len(basis) >= enough:
            break
    return len(basis)


def _reduced(rows: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """Gaussian elimination: a maximal set of independent rows."""
    rows = rows.copy()
    done = 0
    for column in range(width):
        # Bits of this column in the rows that are not pivots yet; the first one that is set becomes
        # the pivot and is added (exclusive or) to the others.
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
