"""Forms of reports, for code that reads them from tables and files."""

from __future__ import annotations

from enum import Enum


class ReportKind(Enum):
    """Form in which the reports of a mechanism are written down."""

    LABELS = "labels of a finite list, the mechanism's `report_alphabet`"
    NUMBERS = "numbers or pairs of numbers that stand for themselves"
    POINTS = "points (x, y) in the plane of a grid"
    CELLS = "cells (row, column) of a grid that is continued without end"
    REALS = "real numbers, which are counted by classes of a finite list"
    BITS = "rows of one bit for each secret"
    ROWS = "rows of several numbers that stand for themselves"
