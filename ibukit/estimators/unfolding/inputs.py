"""Counts, background and response of an unfolding, in the forms in which people have them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import SUM_TOLERANCE, Floats
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.grid import Grid
from ibukit.domain.labels import aligned_counts
from ibukit.domain.matrices import read_matrix
from ibukit.errors import AlphabetMismatch, InvalidDistribution
from ibukit.mechanisms import MatrixMechanism
from ibukit.mechanisms.matrix_entries import MAX_ROUNDING, cause_of_sums, if_transposed
from ibukit.tally.tally import Tally, make_tally_part
from ibukit.tally.trials import refuse_trials


def read_response(matrix: Any, efficiency: Any) -> tuple[MatrixMechanism, float]:
    """Return the response as a mechanism, and the unit in which its rows are at most 1."""
    if isinstance(matrix, MatrixMechanism):
        if efficiency is not None:
            raise ValueError(
                "efficiency must be left out where matrix is a MatrixMechanism, which knows its own"
            )
        refuse_trials(
            [matrix],
            "an unfolding",
            "take mle(mechanism.tally_counts(counts)), whose intervals know the trials; it has no "
            "background",
        )
        return matrix, 1.0
    matrix, secrets, reports = _flat_response(matrix)
    if secrets is not None and arguments.ndim(efficiency) == 2:
        cells = np.asarray(efficiency)
        efficiency = cells.ravel() if cells.shape == (secrets.n_rows, secrets.n_cols) else cells
    unit = 1.0
    stated = efficiency is True
    if efficiency is None or stated:
        rows = read_matrix(matrix).rows
        largest = rows.sum(axis=1).max()
        # Without efficiencies the rows of a Poisson model may sum to more than 1: the numbers of
        # secrets are then in another unit.
        exceeds = 1 + MAX_ROUNDING < largest < math.inf and (rows >= 0).all()
        if exceeds and not cause_of_sums(rows) and (stated or not if_transposed(rows)):
            unit = float(largest)
            matrix = matrix / unit if hasattr(matrix, "columns") else rows / unit
    mechanism = MatrixMechanism(
        matrix, secrets, reports, True if efficiency is None else efficiency
    )
    cause = cause_of_sums(mechanism.matrix()) if efficiency is None else ""
    if cause:
        raise InvalidDistribution(
            f"matrix must have a row for each secret, with the probabilities of its reports: "
            f"{cause}; pass efficiency=True if its rows do sum to the probabilities of being seen"
        )
    # Foreign programs write the response with a column for each secret: its columns sum to 1.
    columns = mechanism.matrix().sum(axis=0)
    if (
        efficiency is None
        and mechanism.efficiency is not None
        and np.abs(columns - 1).max() <= SUM_TOLERANCE
    ):
        raise InvalidDistribution(
            "matrix must have a row for each secret, but here the columns sum to 1 and the rows do "
            "not: is it transposed? Pass matrix.T if so, or efficiency=True if its rows sum to the "
            "probabilities of being seen"
        )
    return mechanism, unit


def _flat_response(matrix: Any) -> tuple[Any, Grid | None, Grid | None]:
    """Return a matrix with a row for each cell of the truth and a column for each reported cell.

    Two-dimensional bins have a response of four dimensions: true row and column, then reported row
    and column. Any other matrix is returned unchanged, without grids.
    """
    if _ndim(matrix) < 3:
        return matrix, None, None
    try:
        array = np.asarray(matrix)
        shape: Any = array.shape
    except ValueError:  # rows of different lengths
        shape = "uneven"
    if len(shape) != 4 or 0 in shape:
        raise InvalidDistribution(
            "matrix must have two dimensions, or four (true row and column, then reported row and "
            f"column) where the bins have two, got shape {shape}; if only the true or only the "
            "reported bins have two, list these in one order, and give a row for each true bin"
        )
    rows, columns, reported_rows, reported_columns = shape
    secrets, reports = Grid(rows, columns), Grid(reported_rows, reported_columns)
    return array.reshape(len(secrets), len(reports)), secrets, reports


def _ndim(values: Any) -> int:
    """The number of dimensions of an array, a frame or nested lists, which may be uneven."""
    if isinstance(values, (list, tuple)):
        return 1 + (_ndim(values[0]) if values else 0)
    return int(getattr(values, "ndim", 0))


def tally_of(mechanism: MatrixMechanism, counts: Floats) -> Tally:
    """Return the tally of counts that may be weights."""
    # Whole counts become integers, so that what needs numbers of people is available.
    whole = (counts == np.rint(counts)).all() and counts.max() < 2.0**53
    return Tally(
        (
            make_tally_part(
                mechanism, np.arange(mechanism.m), counts.astype(np.int64) if whole else counts
            ),
        )
    )


def read_counts(counts: Any, labels: Alphabet) -> Floats:
    """Return the counts in the order of the reports."""
    return np.asarray(
        aligned_counts("counts", _flat("counts", counts, labels), labels, weighted=True)
    )


def read_background(background: Any, labels: Alphabet) -> Floats:
    """Return the background in the order of the reports; a missing one is an error, not 0."""
    background = _flat("background", background, labels)
    if isinstance(background, Mapping) or hasattr(background, "reindex"):
        known = set(dict(background.items()))
        for label in labels.values.tolist():
            if label not in known:
                raise AlphabetMismatch(
                    f"background must have a number for each report, got none for {label!r}"
                )
    return np.asarray(aligned_counts("background", background, labels, weighted=True))


def _flat(name: str, values: Any, labels: Alphabet) -> Any:
    """Return numbers of two-dimensional bins in one dimension; any others unchanged."""
    is_frame = hasattr(values, "columns") and hasattr(values, "to_numpy")
    if is_frame and values.shape[1] != 1:
        index, columns = list(values.index), list(values.columns)
        numbers = values.to_numpy()
        if isinstance(labels, Grid) and _number_cells(index, columns, labels):
            return _cells(name, numbers, labels)
        # Labels may be pairs of a row's label and a column's, as in a stacked frame.
        pairs = [(*_levels(row), *_levels(column)) for row in index for column in columns]
        if all(isinstance(label, tuple) for label in labels.values.tolist()):
            return dict(zip(pairs, numbers.ravel().tolist(), strict=True))
        raise AlphabetMismatch(
            f"{name} must have one number for each of the {len(labels)} reports, got a frame of "
            f"shape {numbers.shape} whose labels are not theirs: give the columns of matrix a "
            "MultiIndex of the labels of rows and columns, or take a matrix of four dimensions"
        )
    if is_frame or _ndim(values) < 2:
        return values
    try:
        return _cells(name, np.asarray(values), labels)
    except AlphabetMismatch:
        raise
    except ValueError:  # rows of different lengths
        raise AlphabetMismatch(
            f"{name} must have rows of the same length, got rows of different lengths"
        ) from None


def _cells(name: str, numbers: Any, labels: Alphabet) -> Any:
    if isinstance(labels, Grid) and numbers.shape == (labels.n_rows, labels.n_cols):
        return numbers.ravel()
    wanted = (
        f"shape {(labels.n_rows, labels.n_cols)}"
        if isinstance(labels, Grid)
        else f"one number for each of the {len(labels)} reports"
    )
    raise AlphabetMismatch(
        f"{name} must have {wanted}, got shape {numbers.shape}: for bins of two dimensions give a "
        "matrix of four dimensions (true row and column, reported row and column) or "
        f"reports=Grid(rows, columns); or give {name} in one dimension, in the order of the "
        "columns of matrix"
    )


def _number_cells(index: list[Any], columns: list[Any], grid: Grid) -> bool:
    first_row, first_column = grid.values[0].tolist()
    return index == list(range(first_row, first_row + len(index))) and columns == list(
        range(first_column, first_column + len(columns))
    )


def _levels(label: Any) -> tuple[Any, ...]:
    """The levels of a label; a label of a plain index has one."""
    return label if isinstance(label, tuple) else (label,)
