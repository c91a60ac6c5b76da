"""Checks of arrays of numbers and of lists of labels, before anything is converted.

numpy silently converts many values (texts to numbers, True to 1, masked values to whatever the mask
hides), so each check looks at the types before it converts. `arguments` also offers these checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit.errors import AlphabetMismatch

# What to do about a missing value, in messages.
WITHOUT_IT = (
    "enter it, or remove it with what belongs to it in other arguments, which is right only if "
    "missing ones are like the others"
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def integers(name: str, values: ArrayLike, ndim: int = 1) -> Ints:
    """Return an array of 64-bit integers; floats are accepted if all are whole."""
    array = whole_array(name, values)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}")
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    # Arrays of objects are nullable integers of pandas, or lists that mix kinds of numbers.
    if array.dtype.kind == "O":
        array = _unboxed(name, array)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be whole numbers, got an array of type {array.dtype}")
    if array.dtype.kind == "f":
        # float16 cannot hold 2^62, with which the entries are compared.
        array = array.astype(np.float64)
        bad = ~(np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2.0**62))
        if bad.any():
            lost = f" (a missing value: {WITHOUT_IT})" if np.isnan(array[bad][0]) else ""
            raise ValueError(
                f"{name} must be whole numbers, got {array[bad][0]} at index"
                f" {first_index(bad)}{lost}"
            )
    elif array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must fit in 64 signed bits, got {array.max()}")
    return array.astype(np.int64)


def _unboxed(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Convert an array of Python numbers to a numeric one; the error names any other element."""
    for index, value in enumerate(array.ravel().tolist()):
        if is_missing(value):
            raise ValueError(f"{name} has a missing value at index {index}: {WITHOUT_IT}")
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ValueError(f"{name} must be whole numbers, got {value!r} at index {index}")
    return np.array(array.tolist())


def is_missing(label: Any) -> bool:
    """Return whether a value is missing: None, NaN, NaT, pandas' NA or numpy's mask."""
    if label is None or label is np.ma.masked or type(label).__name__ in ("NAType", "NaTType"):
        return True
    # NaN is the only number that differs from itself.
    return isinstance(label, (float, np.floating)) and label != label


def labelled(name: str, values: Any) -> tuple[list[Any] | None, Any] | None:
    """Return labels and entries of a mapping, a Series or a frame of one column, or None.

    The labels are None if they only number the entries in order, starting from 0, as pandas'
    default index does.
    """
    if isinstance(values, Mapping):
        return list(values.keys()), list(values.values())
    index = getattr(values, "index", None)
    # Lists have a method `index`.
    if index is None or callable(index):
        return None
    if getattr(values, "ndim", 1) != 1:
        if values.shape[1] != 1:
            raise ValueError(
                f"{name} must be a Series, a mapping or an array, got a frame of "
                f"{values.shape[1]} columns: take one of them"
            )
        values = values.iloc[:, 0]
    return None if _only_numbers(index) else list(index), values.to_numpy()


def _only_numbers(index: Any) -> bool:
    """Return whether an index of pandas is 0, 1, 2, ... in order."""
    return index.dtype.kind in "iu" and bool((index == np.arange(len(index))).all())


def refuse_labels(name: str, values: Any) -> None:
    """Raise AlphabetMismatch for a vector whose labels nobody has looked at.

    The labels would be lost, and the entries would be taken by their positions.
    """
    found = labelled(name, values)
    if found is not None and found[0] is not None:
        raise AlphabetMismatch(
            f"{name} must be an array here, got a {type(values).__name__} with labels, which are "
            "not known to this function: bring its entries into the order that is meant, and give "
            "these as an array"
        )


def refuse_labelled_frame(name: str, values: Any) -> None:
    """Raise AlphabetMismatch for a frame whose rows and columns have labels."""
    if not hasattr(values, "columns"):
        return
    # Only pandas labels rows. The columns of other frames have names.
    index = getattr(values, "index", None)
    if index is None or not (_only_numbers(index) and _only_numbers(values.columns)):
        raise AlphabetMismatch(
            f"{name} must be an array here, got a frame with labels: bring its rows into the "
            "order of the alphabet and its columns into that of the reports, and give these as "
            "an array"
        )


def whole_array(name: str, values: Any) -> NDArray[Any]:
    """Return `values` as an array; refuse masked values, sets, mappings, iterators and strings."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        index = first_index(np.ma.getmaskarray(values))
        raise ValueError(f"{name} has a missing value (masked) at index {index}: {WITHOUT_IT}")
    if values is None or isinstance(values, (str, bytes, Set, Mapping, Iterator)):
        raise ValueError(f"{name} must be a list, an array or a Series, got {_kind(values)}")
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(
            f"{name} must be a list, an array or a Series, got rows of different lengths"
        ) from None
    return in_microseconds(array) if array.dtype.kind == "M" else array


def in_microseconds(moments: NDArray[Any]) -> NDArray[Any]:
    """Return moments in the unit of Python's datetime, or as they are if this would round them.

    In other units numpy lists them as dates, or as integers, which are not the same labels.
    """
    with np.errstate(over="ignore"):
        found = moments.astype("M8[us]")
        same = (found.astype(moments.dtype) == moments) | np.isnat(moments)
    return found if same.all() else moments


def numbers(
    name: str, values: Any, what: str = "an array of numbers", error: type[ValueError] = ValueError
) -> Floats:
    """Return an array of real numbers, of any shape, as doubles.

    numpy alone would accept masked values, drop imaginary parts, parse texts and convert dates to
    days since 1970.
    """
    rows = values if isinstance(values, (list, tuple)) else [values]
    if any(isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row) for row in rows):
        raise error(f"{name} must be {what}, got a missing value (masked): {WITHOUT_IT}")
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            refuse_text(array)
        elif array.dtype.kind not in "biuf":
            raise TypeError(array.dtype)
        return array.astype(np.float64, copy=False)
    # ValueError: rows of different lengths. OverflowError: an int that is too large for a double.
    except (TypeError, ValueError, OverflowError):
        raise error(f"{name} must be {what}, got {_numbers_instead(values)}") from None


def refuse_text(array: NDArray[Any]) -> None:
    """Raise TypeError if an array of objects holds texts or complex numbers."""
    for value in array.ravel().tolist():
        if isinstance(value, (str, bytes, complex, np.complexfloating)):
            raise TypeError(value)


def _numbers_instead(values: Any) -> str:
    try:
        kind = str(np.asarray(values).dtype.kind)
    except (ValueError, TypeError):
        kind = ""
    hints = {
        "c": ", complex ones: if the imaginary parts do not matter, pass the real part",
        "U": " of text",
    }
    return type(values).__name__ + ("" if isinstance(values, str) else hints.get(kind, ""))


def listed(name: str, values: Any) -> list[Any]:
    """Return labels as a list, each of its own type."""
    # numpy would turn the list [1, "a"] into ["1", "a"].
    if isinstance(values, (list, tuple)):
        return list(values)
    array = whole_array(name, values)
    if array.ndim != 1:
        several = "; take one column of a frame, as in frame['report']" if array.ndim == 2 else ""
        raise ValueError(f"{name} must have 1 dimension, got shape {array.shape}{several}")
    return array.tolist()


def _kind(values: Any) -> str:
    if isinstance(values, (str, bytes)):
        return f"{values!r}, which is one"
    return "None" if values is None else f"a {type(values).__name__}"


def first_index(bad: NDArray[np.bool_]) -> Any:
    """Return the index of the first True: an int, or a tuple in more than one dimension."""
    where = np.argwhere(bad)[0]
    return int(where[0]) if where.size == 1 else tuple(int(i) for i in where)
