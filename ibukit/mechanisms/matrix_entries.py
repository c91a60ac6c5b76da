"""Conversion and checks of the matrix, labels and efficiencies given to `MatrixMechanism`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ibukit._ground import arguments
from ibukit._ground.arguments import SUM_TOLERANCE, Floats, Ints
from ibukit.domain.alphabet import Alphabet, Line, as_alphabet, consecutive
from ibukit.errors import AlphabetMismatch, InvalidDistribution, TooLarge

# Bytes of the dense form of a sparse matrix, 2 GiB; larger ones are refused.
MAX_BYTES = 2**31
# Largest deviation of a row's sum that may be rounding to four digits or more. Larger ones are
# refused also with normalize=True.
MAX_ROUNDING = 1e-4


class LabelledMatrix(NamedTuple):
    """A matrix, and the labels of its rows and columns if it had some."""

    rows: Floats
    secrets: list[Any] | None = None
    reports: list[Any] | None = None


def read_matrix(matrix: Any) -> LabelledMatrix:
    """Copy a matrix of any kind into an array, shape (k, m), and read its labels."""
    secrets = reports = None
    # Sparse matrices and DataFrames of any library become arrays; a frame's labels are kept.
    if sparse.issparse(matrix):
        matrix = _to_dense(matrix)
    elif hasattr(matrix, "columns") and hasattr(matrix, "to_numpy"):
        secrets, reports = _labels(getattr(matrix, "index", None)), _labels(matrix.columns)
        matrix = matrix.to_numpy()
    # A mask would be lost in the conversion, also that of a masked row in a list.
    rows = matrix if isinstance(matrix, (list, tuple)) else [matrix]
    if any(isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row) for row in rows):
        raise InvalidDistribution(
            "matrix must not have masked entries; fill them, or leave the secret or report out"
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
            f"matrix must be a rectangular array of numbers, got {_describe(matrix)}"
        ) from None
    if array.ndim != 2 or 0 in array.shape:
        raise InvalidDistribution(
            f"matrix must have two dimensions, got shape {array.shape}; it has one row for each "
            "secret and one column for each report"
        )
    return LabelledMatrix(array, secrets, reports)


def _to_dense(matrix: Any) -> Floats:
    """The dense form of a sparse matrix; TooLarge if it takes more than 2 GiB."""
    n_bytes = 8.0 * matrix.shape[0] * matrix.shape[-1]
    if n_bytes > MAX_BYTES:
        raise TooLarge(
            f"matrix of shape {matrix.shape} takes {n_bytes:.3g} bytes when it is written out (at "
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


def refuse_entries(rows: Floats) -> None:
    """Raise InvalidDistribution if an entry is negative or NaN."""
    bad = ~(rows >= 0)
    if bad.any():
        x, z = np.argwhere(bad)[0]
        raise InvalidDistribution(
            f"matrix must not have negative or NaN entries, got {rows[x, z]} at row {x}, column {z}"
        )


def read_efficiency(rows: Floats, efficiency: Any, secrets: Alphabet) -> Floats | None:
    """Probability of being seen for each secret, shape (k,); None if nothing is ever lost."""
    # True takes the sums of the rows as the efficiencies; False is as good as None.
    by_rows = isinstance(efficiency, (bool, np.bool_))
    if efficiency is None or (by_rows and not efficiency):
        return None
    values = rows.sum(axis=1) if by_rows else _efficiency_values(efficiency, secrets, rows.shape[1])
    bad = ~((values > 0) & (values <= 1 + SUM_TOLERANCE))
    if bad.any():
        x = int(np.argmax(bad))
        if values[x] == 0:
            why = (
                "such a secret is never seen, and no report tells how frequent it is: leave its "
                "row out"
            )
        elif by_rows and 0 <= values[x] - 1 <= MAX_ROUNDING:
            why = (
                "if that is rounding, MatrixMechanism(matrix, normalize=True) divides it out of "
                "rows that sum to 1"
            )
        else:
            why = cause_of_sums(rows) if by_rows else ""
            why = why or (
                "it is the probability that a secret is seen at all; if the rows have another "
                "unit, divide the whole matrix by a number at least as large as its largest row "
                "sum, and the counts that are found by the same number"
            )
        what = (
            f"row {x} of matrix sums to {values[x]:.12g}"
            if by_rows
            else f"got {values[x]} at index {x}"
        )
        raise InvalidDistribution(
            f"efficiency must be above 0 and at most 1, {what}; {why}{if_transposed(rows)}"
        )
    return None if (np.abs(values - 1) <= SUM_TOLERANCE).all() else np.minimum(values, 1.0)


def _efficiency_values(efficiency: Any, secrets: Alphabet, m: int) -> Floats:
    """Efficiencies in the order of the secrets, from a number, array, dict or Series."""
    k = len(secrets)
    # A dict, or a Series, which is known by its method `reindex`.
    if isinstance(efficiency, Mapping) or hasattr(efficiency, "reindex"):
        by_label, wanted = dict(efficiency.items()), secrets.values.tolist()
        for label in wanted:
            if label not in by_label:
                raise AlphabetMismatch(
                    f"efficiency must have a value for each secret, got none for {label!r}"
                )
        efficiency = [by_label[label] for label in wanted]
    values = arguments.numbers(
        "efficiency", efficiency, f"True, a number, or {k} numbers", InvalidDistribution
    )
    if values.shape not in ((), (k,)):
        hint = "; matrix has as many columns: is it transposed?" if values.shape == (m,) else ""
        raise AlphabetMismatch(
            f"efficiency must have one value for each of the {k} secrets, got shape "
            f"{values.shape}{hint}"
        )
    return np.array(np.broadcast_to(values, (k,)))


def check_sums(rows: Floats, efficiency: Floats | None, normalize: bool) -> Floats:
    """Return the rows if they sum to what they should: to 1, or to the efficiencies.

    With efficiencies, rows that sum to 1 are the probabilities among the reports that are seen, and
    are multiplied by them. With `normalize`, rows that are off by rounding are divided by their
    sum.
    """
    sums = rows.sum(axis=1)
    target = np.ones(len(rows)) if efficiency is None else efficiency
    if efficiency is not None and _max_deviation(sums, 1.0) <= MAX_ROUNDING:
        rows, sums = rows * efficiency[:, None], sums * efficiency
    off = np.abs(sums - target) / target
    allowed = MAX_ROUNDING if normalize else SUM_TOLERANCE
    bad = ~(off <= allowed)
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidDistribution(_advice(rows, sums, target, efficiency, normalize, row))
    # A row within the tolerance is left as it is, so that normalizing twice changes nothing.
    return rows * np.where(off > SUM_TOLERANCE, target / sums, 1.0)[:, None] if normalize else rows


def _max_deviation(sums: Floats, target: Floats | float) -> float:
    return float(np.abs(sums - target).max())


def _advice(
    rows: Floats, sums: Floats, target: Floats, efficiency: Floats | None, normalize: bool, x: int
) -> str:
    """Error message for the sum of row x, with the remedy that most often fits."""
    within = MAX_ROUNDING if normalize else SUM_TOLERANCE
    wanted = "1"
    if efficiency is not None:
        wanted = f"the efficiencies, or each to 1 (row {x}: {target[x]:.12g})"
    message = (
        f"matrix must have rows that sum to {wanted} (within {within:g}), row {x} sums to "
        f"{sums[x]:.12g}; "
    )
    # From the most specific cause to the most general one: rounding, a transposed matrix, rows that
    # do not fit the efficiencies, lost reports, counts.
    if np.isfinite(sums).all() and float((np.abs(sums - target) / target).max()) <= MAX_ROUNDING:
        return message + "if that is rounding, normalize=True divides it out of each row"
    transposed = if_transposed(rows)
    if transposed:
        return message.removesuffix("; ") + transposed
    if efficiency is not None:
        if (
            rows.shape[0] == rows.shape[1]
            and _max_deviation(rows.sum(axis=0), efficiency) <= MAX_ROUNDING
        ):
            return (
                message
                + "its columns do: is it transposed? Pass matrix.T, with one row for each secret"
            )
        return message + "efficiency=True takes the sums of the rows themselves"
    return message + (
        cause_of_sums(rows)
        or "each row must have the probabilities of the reports of one secret: if the columns are "
        "the secrets, pass matrix.T; if lost reports are counted, give them a column of their own; "
        "only if a row sums to the probability that a report of its secret arrives at all, pass "
        "efficiency=True"
    )


def cause_of_sums(rows: Floats) -> str:
    """Return why rows do not sum to 1, and what to do, if their entries betray it; or ""."""
    sums, total = rows.sum(axis=1), float(rows.sum())
    if not np.isfinite(rows).all() or len(rows) < 2:
        return ""
    by_row = "divide each row by its sum, as in matrix / matrix.sum(axis=1, keepdims=True)"
    if abs(total - 1) <= MAX_ROUNDING:
        return f"its entries sum to 1 in all, as joint frequencies do: {by_row}"
    if (np.abs(sums - 100) <= 100 * MAX_ROUNDING).all():
        return "its rows sum to 100, as percentages do: pass matrix / 100"
    if abs(total - 100) <= 100 * MAX_ROUNDING:
        return f"its entries sum to 100 in all, as percentages of secret and report do: {by_row}"
    if (rows == np.rint(rows)).all() and (sums > 1).all():
        return (
            "its entries are whole numbers, as counts of trials are: divide each row by the number "
            "of its trials, which is its sum if every trial has a report; intervals then take the "
            "matrix as exactly known"
        )
    return ""


def if_transposed(rows: Floats) -> str:
    """Hint that the matrix may be transposed; empty unless its columns sum to 1."""
    sums = rows.sum(axis=0)
    if not (np.abs(sums - 1) <= MAX_ROUNDING).all():
        return ""
    return "; its columns do: is it transposed? Pass matrix.T, with one row for each secret"


def align(
    table: LabelledMatrix, alphabet: Any, reports: Any
) -> tuple[Floats, Alphabet, Alphabet | None]:
    """Rows in the order of the secrets, columns in that of the reports, and both alphabets.

    The labels of the matrix are the alphabets where none are given; otherwise rows and columns are
    matched with the given alphabets by label.
    """
    rows, k, m = table.rows, *table.rows.shape
    if alphabet is None:
        secrets = as_alphabet(k) if table.secrets is None else as_alphabet(table.secrets)
    else:
        secrets = as_labels(alphabet)
        if len(secrets) != k:
            raise AlphabetMismatch(
                f"matrix must have one row for each of the {len(secrets)} secrets, got {k} rows"
            )
        if table.secrets is not None:
            rows = rows[_order("matrix has a row", table.secrets, secrets)]
    if reports is None:
        # Columns without labels beside labelled rows are numbered: they are not the secrets.
        numbered = None if table.secrets is None else as_alphabet(m)
        return rows, secrets, numbered if table.reports is None else as_alphabet(table.reports)
    named = as_labels(reports)
    if len(named) != m:
        raise AlphabetMismatch(
            f"reports must have one label for each of the {m} columns, got {len(named)}"
        )
    if table.reports is not None:
        rows = rows[:, _order("matrix has a column", table.reports, named)]
    return rows, secrets, named


def as_labels(labels: Any) -> Alphabet:
    """Return an alphabet, or make one of a number or of labels."""
    return as_alphabet(labels)


def _order(what: str, labels: list[Any], alphabet: Alphabet) -> Ints:
    """Place of each label of the alphabet among the labels of the matrix."""
    # Rows of a frame may stand in any order: they are matched with the alphabet by label.
    place = {label: i for i, label in enumerate(labels)}
    wanted = alphabet.values.tolist()
    unknown = [label for label in labels if label not in set(wanted)]
    if unknown:
        raise AlphabetMismatch(f"{what} for {unknown[0]!r}, which is not in {alphabet!r}")
    if len(place) != len(labels):
        raise AlphabetMismatch(f"{what} twice for one label")
    return np.array([place[label] for label in wanted], dtype=np.int64)
