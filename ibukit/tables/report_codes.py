"""From the values of a column to the places of an alphabet, and to rows of bits; -1 or False where there is none."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Ints
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.grid import Grid
from ibukit.errors import AlphabetMismatch


def places(values: NDArray[Any], alphabet: Alphabet, textual: bool) -> Ints:
    """Codes of values, -1 for what is no label.

    Parameters
    ----------
    values : ndarray, shape (s,)
        None of them missing.
    alphabet : Alphabet
    textual : bool
        Whether a text stands for the label that is written so.
    """
    if isinstance(alphabet, Line):
        numbers, known = whole_numbers(values, textual)
        inside = known & (numbers >= alphabet.first) & (numbers <= alphabet.last)
        return np.where(inside, numbers - alphabet.first, -1)
    find = _finder(alphabet, textual)
    return np.array([find(value) for value in values.tolist()], dtype=np.int64)


def whole_numbers(values: NDArray[Any], textual: bool) -> tuple[Ints, NDArray[np.bool_]]:
    """Whole numbers, and which of the values are some; truth values are none."""
    if values.dtype.kind in "iu":
        known = values <= np.iinfo(np.int64).max
        return np.where(known, values, 0).astype(np.int64), np.asarray(known)
    read = [_whole(value, textual) for value in values.tolist()]
    known = np.array([number is not None for number in read], dtype=bool)
    return np.array([number or 0 for number in read], dtype=np.int64), known


def _whole(value: Any, textual: bool) -> int | None:
    if textual and isinstance(value, str):
        value = number_in(value)
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        return None
    number = float(value)
    return int(value) if number.is_integer() and abs(number) < 2**62 else None  # type: ignore[arg-type]


def numbers_in_rows(values: NDArray[Any], textual: bool) -> NDArray[Any]:
    """Rows of numbers, shape (s, width), NaN for what is none; whole numbers keep all their digits."""
    if values.dtype != object and values.dtype.kind != "U":
        return values
    import pandas as pd

    cells = values.astype(object).ravel()
    if not textual:
        cells[[isinstance(value, str) for value in cells]] = None
    numbers = pd.to_numeric(pd.Series(cells), errors="coerce").to_numpy()
    return np.asarray(numbers, dtype=None if numbers.dtype == np.int64 else np.float64).reshape(
        values.shape
    )


def number_in(text: str) -> int | float | None:
    """The number that a text is, None if it is none."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _finder(alphabet: Alphabet, textual: bool) -> Callable[[Any], int]:
    """A function from a value to its code, -1 if there is none."""
    labels = alphabet.values.tolist()  # noqa: PD011 -- of an alphabet, no frame
    code_of = {label: code for code, label in enumerate(labels)}
    code_of_text = {str(label): code for code, label in enumerate(labels)} if textual else {}
    if textual and len(code_of_text) < len(labels):
        twice = next(str(a) for i, a in enumerate(labels) if code_of_text[str(a)] != i)
        raise AlphabetMismatch(
            f"labels must differ as text in a file, {twice!r} stands for two of them"
        )

    def find(value: Any) -> int:
        if not isinstance(value, Hashable):
            return -1
        if textual and isinstance(value, str):
            code = code_of_text.get(value)
            value = value if code is not None else number_in(value)
            return code if code is not None else code_of.get(value, -1)
        code = code_of.get(value, -1)
        # Python holds True for 1; a column of truth values does not mean the labels 0 and 1
        return code if code < 0 or isinstance(value, bool) == isinstance(labels[code], bool) else -1

    return find


def bit_rows(values: NDArray[Any], width: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Rows of 0 and 1, shape (s, width), and which of the values are one.

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
    fits = [len(value) == width and value.isascii() for value in values[texts]]
    at = np.flatnonzero(texts)[np.array(fits, dtype=bool)]
    read = np.frombuffer("".join(values[at]).encode(), dtype=np.uint8).reshape(-1, width) - ord("0")
    good = (read <= 1).all(axis=1)
    rows[at[good]], known[at[good]] = read[good], True
    for place in np.flatnonzero(~texts):
        row = np.asarray(values[place]) if np.ndim(values[place]) == 1 else np.zeros(0)
        if row.shape == (width,) and row.dtype.kind in "biuf" and ((row == 0) | (row == 1)).all():
            rows[place], known[place] = row, True
    return rows, known


def rows_of_lists(values: NDArray[Any]) -> NDArray[Any]:
    """Lists of one length as rows of numbers, shape (s, width); as they are where they are none."""
    widths = {len(value) if np.ndim(value) == 1 else 0 for value in values}
    return (
        np.array([list(value) for value in values])
        if len(widths) == 1 and widths != {0}
        else values
    )


def cells(pairs: NDArray[Any], grid: Grid) -> Ints:
    """Codes of the cells of (row, column) pairs, or of (lat, lon) points if the grid has bounds; -1 outside.

    As for the grid itself, integers are rows and columns.

    Parameters
    ----------
    pairs : ndarray, shape (s, 2)
    grid : Grid
    """
    codes = np.full(len(pairs), -1, dtype=np.int64)
    if grid.bounds is None or pairs.dtype.kind in "iu":
        away = np.asarray(pairs, dtype=np.float64) - grid.first
        inside = ((away >= 0) & (away < [grid.n_rows, grid.n_cols]) & (away % 1 == 0)).all(axis=1)
        codes[inside] = (away[inside] @ [grid.n_cols, 1]).astype(np.int64)
        return codes
    south, north, west, east = grid.bounds
    lat, lon = np.asarray(pairs, dtype=np.float64).T
    inside = (lat >= south) & (lat <= north) & (lon >= west) & (lon <= east)
    codes[inside] = grid.locate(lat[inside], lon[inside])
    return codes
