"""Forms of reports in a table: whether a mechanism accepts them, and what they are in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit.domain.alphabet import Line
from ibukit.domain.grid import Grid
from ibukit.domain.report_kind import ReportKind


def accepted_by(mechanism: Any, reports: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether the mechanism accepts each report."""
    # A mechanism accepts or refuses an array as a whole. If it refuses one, both halves are tried.
    try:
        mechanism.check_reports(mechanism.code_reports(reports))
    except ValueError:
        if len(reports) < 2:
            return np.zeros(len(reports), dtype=bool)
        # With few bad reports among many, this takes few more checks than there are bad ones.
        half = len(reports) // 2
        return np.concatenate(
            [accepted_by(mechanism, part) for part in (reports[:half], reports[half:])]
        )
    return np.ones(len(reports), dtype=bool)


def has_bit_texts(values: NDArray[Any], mechanism: Any) -> bool:
    """Return whether reports of a number and bits have their bits as texts in a second column."""
    return (
        mechanism.report_kind is ReportKind.ROWS
        and hasattr(mechanism, "_bits")
        and values.ndim == 2
        and values.shape[1] == 2
        and any(isinstance(value, str) for value in values[:, 1].tolist())
    )


def name_of(mechanism: Any) -> str:
    """Return the name of the mechanism's class."""
    return type(mechanism).__name__


def reports_of(mechanism: Any) -> str:
    """Return the reports of a mechanism in words."""
    if mechanism.report_kind is ReportKind.BITS:
        return (
            f"rows of {mechanism.k} bits, as text or in as many columns (strings of 0 and 1, or "
            'hexadecimal ones that begin with "0x")'
        )
    if mechanism.report_kind is ReportKind.ROWS:
        bits = (
            f", or in two, of which the second has strings of {mechanism._bits} bits"
            if hasattr(mechanism, "_bits")
            else ""
        )
        return f"rows of numbers, as lists or in as many columns{bits}"
    if mechanism.report_kind in (ReportKind.POINTS, ReportKind.CELLS):
        return f"{mechanism.report_kind.value}, here {mechanism.alphabet!r}"
    if mechanism.report_kind is not ReportKind.LABELS:
        return "numbers"
    alphabet = mechanism.report_alphabet
    if isinstance(alphabet, (Line, Grid)):
        return repr(alphabet)
    labels = alphabet.values.tolist()
    return ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")
