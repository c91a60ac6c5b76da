"""Rows of bits that are written as texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Hexadecimal digits need a sign in front: without it "10" could be bits whose zeros got lost.
HEXADECIMAL = ("0x", "0X")
# Bits of a hexadecimal digit.
BITS_PER_DIGIT = 4


def bits_in_texts(texts: Sequence[Any], width: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return rows of 0 and 1, shape (s, width), and whether each value is the text of such a row.

    A text has a character 0 or 1 for each bit, the first bit first; or it is "0x", followed by the
    same row as a number in hexadecimal digits, with its leading zeros.

    Examples
    --------
    >>> bits_in_texts(["00101", "0x05", "101"], 5)[1]
    array([ True,  True, False])
    """
    rows = np.zeros((len(texts), width), dtype=np.uint8)
    written = [_written(text, width) for text in texts]
    at = np.flatnonzero([text is not None for text in written])
    # Texts are decoded together: the characters "0" and "1" become 0 and 1, others are larger.
    joined = "".join(text for text in written if text is not None)
    read = np.frombuffer(joined.encode(), dtype=np.uint8).reshape(-1, width) - ord("0")
    good = (read <= 1).all(axis=1)
    rows[at[good]] = read[good]
    known = np.zeros(len(texts), dtype=bool)
    known[at[good]] = True
    return rows, known


def _written(text: Any, width: int) -> str | None:
    """Return the bits as characters, or None if there are not `width` of them."""
    if not isinstance(text, str) or not text.isascii():
        return None
    if text.startswith(HEXADECIMAL) and len(text) == 2 + -(-width // BITS_PER_DIGIT):
        try:
            text = format(int(text, 16), f"0{width}b")
        except ValueError:
            return None
    return text if len(text) == width else None
