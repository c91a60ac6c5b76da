"""Matrices from outside: arrays, frames and sparse matrices, with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.alphabet import Alphabet, Line, as_alphabet, consecutive
from ibukit.errors import AlphabetMismatch, InvalidDistribution, TooLarge

# Bytes of the dense form of a sparse matrix, 2 GiB; larger ones are refused.
MAX_BYTES = 2**31


class LabelledMatrix(NamedTuple):
    """A matrix, and the labels of its rows and columns if it had some."""

    rows: Floats
    row_labels: list[Any] | None = None
    column_labels: list[Any] | None = None


def read_matrix(
    matrix: Any,
    name: str = "matrix",
    shape: str = "one row for each secret and one column for each report",
) -> LabelledMatrix:
    """Copy a matrix of any kind into an array and read its labels.

    `name` is the argument and `shape` what its rows and columns are, for messages.
    """
    row_labels = column_labels = None
    # Sparse matrices and DataFrames of any library become arrays; a frame's labels are kept.
    if sparse.issparse(matrix):
        matrix = _to_dense(name, matrix)
    elif hasattr(matrix, "column_names") and hasattr(matrix, "to_pandas"):
        # A table of Arrow: numpy would drop its labels.
        return read_matrix(matrix.to_pandas(), name, shape)
    elif hasattr(matrix, "columns") and hasattr(matrix, "to_numpy"):
        row_labels, column_labels = (
            _labels(getattr(matrix, "index", None)),
            _labels(matrix.columns),
        )
        matrix = matrix.to_numpy()
    # The conversion would lose a mask, even that of a single masked row in a list.
    rows = matrix if isinstance(matrix, (list, tuple)) else [matrix]
    if any(isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row) for row in rows):
        raise InvalidDistribution(
            f"{name} must not have masked entries: enter the numbers that belong there; leaving a "
            "row or column out changes the estimate"
        )
    try:
        converted = np.asarray(matrix)
        # Numbers in text are refused, not parsed: "1,5" or "1e-3" may mean something else there.
        if converted.dtype.kind == "O":
            arguments.refuse_text(converted)
        array = np.array(converted if converted.dtype.kind in "biufO" else "text", dtype=np.float64)
        # Adding 0.0 turns -0.0 into 0.0: equal matrices must have equal bytes, which are hashed.
        array += 0.0
    except (TypeError, ValueError, OverflowError):
        raise InvalidDistribution(
            f"{name} must be a rectangular array of numbers, got {_describe(matrix)}"
        ) from None
    if array.ndim != 2 or 0 in array.shape:
        raise InvalidDistribution(
            f"{name} must have two dimensions, got shape {array.shape}; it has {shape}"
        )
    return LabelledMatrix(array, row_labels, column_labels)


def _to_dense(name: str, matrix: Any) -> Floats:
    """The dense form of a sparse matrix; TooLarge if it takes more than 2 GiB."""
    n_bytes = 8.0 * matrix.shape[0] * matrix.shape[-1]
    if n_bytes > MAX_BYTES:
        raise TooLarge(
            f"{name} of shape {matrix.shape} takes {n_bytes:.3g} bytes when it is written out (at "
            f"most {MAX_BYTES:.3g}): merge secrets or reports, or take a mechanism that knows its "
            "structure"
        )
    return matrix.toarray()


def _labels(index: Any) -> list[Any] | None:
    """The labels of a DataFrame's rows or columns; None if they are 0, 1, 2, ... in order."""
    return None if index is None or consecutive(index) == Line(0, len(index) - 1) else list(index)


def _describe(matrix: Any) -> str:
    """Describe a matrix that could not be converted, for an error message."""
    # A complex matrix would lose its imaginary parts without a word.
    try:
        if np.iscomplexobj(matrix):
            return "complex ones; if the imaginary parts do not matter, pass its real part"
    except ValueError:
        pass  # rows of different lengths
    if isinstance(matrix, Sequence) and not isinstance(matrix, str):
        lengths = [
            len(row) if hasattr(row, "__len__") and not isinstance(row, str) else None
            for row in matrix
        ]
        if None not in lengths and len(set(lengths)) > 1:
            x = next(i for i, length in enumerate(lengths) if length != lengths[0])
            return (
                f"rows of different lengths: row 0 has {lengths[0]} entries, row {x} has "
                f"{lengths[x]}"
            )
    return f"{type(matrix).__name__} with other entries"


def refuse_entries(rows: Floats, name: str = "matrix") -> None:
    """Raise InvalidDistribution if an entry is negative or NaN."""
    bad = ~(rows >= 0)
    if bad.any():
        x, z = np.argwhere(bad)[0]
        raise InvalidDistribution(
            f"{name} must not have negative or NaN entries, got {rows[x, z]} at row {x}, column {z}"
        )


def order_of(what: str, labels: list[Any], alphabet: Alphabet) -> Ints:
    """Place of each label of the alphabet among the labels of the matrix."""
    # Rows of a frame may stand in any order: they are matched with the alphabet by label.
    alphabet_of(what, labels)
    place = {label: i for i, label in enumerate(labels)}
    wanted = alphabet.values.tolist()
    known = set(wanted)
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise AlphabetMismatch(f"{what} for {unknown[0]!r}, which is not in {alphabet!r}")
    return np.array([place[label] for label in wanted], dtype=np.int64)


def alphabet_of(what: str, labels: list[Any]) -> Alphabet:
    """The alphabet of labels of rows or columns; AlphabetMismatch if one occurs twice."""
    try:
        several = len(set(labels)) < len(labels)
    except TypeError:  # what cannot be a label is refused by the alphabet
        several = False
    if several:
        twice = next(label for label in labels if labels.count(label) > 1)
        raise AlphabetMismatch(f"{what} twice for {twice!r}: labels must be distinct")
    return as_alphabet(labels)
