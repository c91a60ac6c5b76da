"""Conversion and checks of the matrix, labels and efficiencies given to `MatrixMechanism`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import SUM_TOLERANCE, Floats
from ibukit.domain.alphabet import Alphabet, as_alphabet
from ibukit.domain.matrices import (
    LabelledMatrix,
    alphabet_of,
    order_of,
    read_matrix,
    refuse_entries,
)
from ibukit.errors import AlphabetMismatch, InvalidDistribution

# Largest deviation of a row's sum that may be rounding to four digits or more. Larger deviations
# are refused even with normalize=True.
MAX_ROUNDING = 1e-4
# Largest count of trials: whole numbers up to it are exact doubles.
MAX_TRIALS = 2.0**53


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

    If efficiencies are given, rows that sum to 1 are the probabilities among the reports that are
    seen, and are multiplied by the efficiencies. With `normalize`, rows that are off by rounding
    are divided by their sum.
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
        "if the entries are likelihoods of what was observed, known up to a factor each, take "
        "Tally.from_likelihoods(matrix.T, counts); only if a row sums to the probability that a "
        "report of its secret arrives at all, pass efficiency=True"
    )


def cause_of_sums(rows: Floats) -> str:
    """Return why rows do not sum to 1 and what to do, or "" if their entries do not show it."""
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
            "its entries are whole numbers, as counts of trials are: take "
            "MatrixMechanism.from_trials(counts), which divides each row by its sum, the number of "
            "its trials, and whose intervals know that the matrix was measured; a matrix divided "
            "by hand is taken as exactly known"
        )
    return ""


def if_transposed(rows: Floats) -> str:
    """Hint that the matrix may be transposed; empty unless its columns sum to 1."""
    sums = rows.sum(axis=0)
    if not (np.abs(sums - 1) <= MAX_ROUNDING).all():
        return ""
    return "; its columns do: is it transposed? Pass matrix.T, with one row for each secret"


def read_trials(counts: Any) -> LabelledMatrix:
    """Return counts of trials with their labels: whole numbers, at least one in each row."""
    table = read_matrix(counts, "counts")
    refuse_entries(table.rows, "counts")
    bad = (table.rows != np.rint(table.rows)) | (table.rows > MAX_TRIALS)
    if bad.any():
        x, z = np.argwhere(bad)[0]
        raise InvalidDistribution(
            f"counts must be whole numbers of trials up to 2^53, got {table.rows[x, z]} at row {x},"
            f" column {z}; if it is a matrix of probabilities, pass it to MatrixMechanism(matrix), "
            "which takes it as exactly known"
        )
    empty = ~table.rows.any(axis=1)
    if empty.any():
        raise InvalidDistribution(
            f"counts must have at least one trial of each secret, row {int(np.argmax(empty))} has "
            "none: nothing is known of its reports; leave the row out if there are no such secrets"
        )
    return table


def align(
    table: LabelledMatrix, alphabet: Any, reports: Any
) -> tuple[Floats, Alphabet, Alphabet | None]:
    """Rows in the order of the secrets, columns in that of the reports, and both alphabets.

    If no alphabets are given, the labels of the matrix are the alphabets; otherwise rows and
    columns are matched with the given alphabets by label.
    """
    rows, k, m = table.rows, *table.rows.shape
    if alphabet is None:
        secrets = (
            as_alphabet(k)
            if table.row_labels is None
            else alphabet_of("matrix has a row", table.row_labels)
        )
    else:
        secrets = as_labels(alphabet)
        if len(secrets) != k:
            raise AlphabetMismatch(
                f"matrix must have one row for each of the {len(secrets)} secrets, got {k} rows"
            )
        if table.row_labels is not None:
            rows = rows[order_of("matrix has a row", table.row_labels, secrets)]
    if reports is None:
        # Columns without labels beside labelled rows are numbered: they are not the secrets.
        numbered = None if table.row_labels is None else as_alphabet(m)
        return (
            rows,
            secrets,
            numbered
            if table.column_labels is None
            else alphabet_of("matrix has a column", table.column_labels),
        )
    named = as_labels(reports)
    if len(named) != m:
        raise AlphabetMismatch(
            f"reports must have one label for each of the {m} columns, got {len(named)}"
        )
    if table.column_labels is not None:
        rows = rows[:, order_of("matrix has a column", table.column_labels, named)]
    return rows, secrets, named


def as_labels(labels: Any) -> Alphabet:
    """Return an alphabet, or make one of a number or of labels."""
    return as_alphabet(labels)
