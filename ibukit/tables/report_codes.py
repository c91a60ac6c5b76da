"""Convert values of columns to codes of an alphabet or to rows of bits.

A value that is not a label has the code -1; one that is not a row of bits is marked False.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Ints
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.bit_texts import bits_in_texts
from ibukit.errors import AlphabetMismatch


def codes_of_values(values: NDArray[Any], alphabet: Alphabet, textual: bool) -> Ints:
    """Return codes of values, -1 for values that are not labels.

    Parameters
    ----------
    values : ndarray, shape (s,)
        Values, none of which is missing.
    alphabet : Alphabet
    textual : bool
        Whether a text stands for the label that is written in the same way. If no label is a text,
        it always does, because a column of texts then holds numbers.
    """
    if isinstance(alphabet, Line):
        numbers, known = whole_numbers(values)
        # On a line the code follows from the number; no table of labels is needed.
        inside = known & (numbers >= alphabet.first) & (numbers <= alphabet.last)
        return np.where(inside, numbers - alphabet.first, -1)
    has_texts = any(isinstance(label, str) for label in alphabet.values.tolist())
    find = _finder(alphabet, textual or not has_texts)
    return np.array([find(value) for value in values.tolist()], dtype=np.int64)


def codes_of_tuples(values: NDArray[Any], alphabet: Alphabet, textual: bool) -> Ints:
    """Return codes of labels whose parts stand in several columns, shape (s, width)."""
    labels = alphabet.values.tolist()
    if textual:
        labels = [tuple(map(str, label)) for label in labels]
    code_of = {label: code for code, label in enumerate(labels)}
    return np.array([code_of.get(tuple(row), -1) for row in values.tolist()], dtype=np.int64)


def has_tuples(alphabet: Alphabet, width: int) -> bool:
    """Return whether all labels are tuples of `width` parts."""
    return not isinstance(alphabet, Line) and all(
        isinstance(label, tuple) and len(label) == width for label in alphabet.values.tolist()
    )


def whole_numbers(values: NDArray[Any]) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the values as integers, and whether each is one; texts may be, booleans are not."""
    if values.dtype.kind in "iu":
        # Unsigned numbers may be too large for 64 signed bits.
        known = values <= np.iinfo(np.int64).max
        return np.where(known, values, 0).astype(np.int64), np.asarray(known)
    read = [_whole(value) for value in values.tolist()]
    known = np.array([number is not None for number in read], dtype=bool)
    return np.array([number or 0 for number in read], dtype=np.int64), known


def _whole(value: Any) -> int | None:
    if isinstance(value, str):
        value = number_in(value)
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        return None
    number = float(value)
    return int(value) if number.is_integer() and abs(number) < 2**62 else None  # type: ignore[arg-type]


def numbers_in_rows(values: NDArray[Any]) -> NDArray[Any]:
    """Return rows of numbers, shape (s, width), NaN for other values; integers stay integers."""
    if values.dtype != object and values.dtype.kind != "U":
        return values
    import pandas as pd

    cells = values.astype(object).ravel()
    numbers = pd.to_numeric(pd.Series(cells), errors="coerce").to_numpy()
    return np.asarray(numbers, dtype=None if numbers.dtype == np.int64 else np.float64).reshape(
        values.shape
    )


def number_in(text: str) -> int | float | None:
    """Return the number that a text represents, or None."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _finder(alphabet: Alphabet, textual: bool) -> Callable[[Any], int]:
    """Return a function from a value to its code, -1 if it has none."""
    labels = alphabet.values.tolist()  # noqa: PD011 -- an alphabet is not a frame
    code_of = alphabet._code_of
    code_of_text = {str(label): code for label, code in code_of.items()} if textual else {}
    if textual and len(code_of_text) < len(code_of):
        twice = next(str(a) for i, a in enumerate(labels) if code_of_text[str(a)] != i)
        raise AlphabetMismatch(
            f"labels must differ as text in a file, but {twice!r} stands for two of them: pass the "
            "table as a frame, whose columns have types"
        )

    def find(value: Any) -> int:
        if not isinstance(value, Hashable):
            return -1
        if textual and isinstance(value, str):
            # The text of a label comes first; "1.0" also matches the number 1.
            code = code_of_text.get(value)
            value = value if code is not None else number_in(value)
            return code if code is not None else code_of.get(value, -1)
        code = code_of.get(value, -1)
        # True == 1 in Python: booleans must not match integer labels.
        return code if code < 0 or isinstance(value, bool) == isinstance(labels[code], bool) else -1

    return find


def bit_rows(values: NDArray[Any], width: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return rows of 0 and 1, shape (s, width), and whether each value is such a row.

    Parameters
    ----------
    values : ndarray, shape (s,) of texts such as "0101" or of lists, or (s, columns)
    width : int
    """
    rows = np.zeros((len(values), width), dtype=np.uint8)
    known = np.zeros(len(values), dtype=bool)
    if values.ndim == 2:
        if values.shape[1] == width:
            known = ((values == 0) | (values == 1)).all(axis=1)
            rows[known] = values[known]
        return rows, known
    texts = np.array([isinstance(value, str) for value in values], dtype=bool)
    rows[texts], known[texts] = bits_in_texts(values[texts].tolist(), width)
    for index in np.flatnonzero(~texts):
        row = np.asarray(values[index]) if arguments.ndim(values[index]) == 1 else np.zeros(0)
        if row.shape == (width,) and row.dtype.kind in "biuf" and ((row == 0) | (row == 1)).all():
            rows[index], known[index] = row, True
    return rows, known


def numbered_bits(values: NDArray[Any], width: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return rows (number, text of bits) as rows of number and bits, and which rows are valid.

    Parameters
    ----------
    values : ndarray, shape (s, 2)
    width : int
        Number of bits.
    """
    numbers, whole = whole_numbers(values[:, 0])
    bits, known = bits_in_texts(values[:, 1].tolist(), width)
    return np.column_stack([numbers, bits]), whole & known


def rows_of_lists(values: NDArray[Any]) -> NDArray[Any]:
    """Return lists of one length as rows, shape (s, width); other values unchanged."""
    widths = {len(value) if arguments.ndim(value) == 1 else 0 for value in values}
    return (
        np.array([list(value) for value in values])
        if len(widths) == 1 and widths != {0}
        else values
    )
