"""The tables of data/ as rows of texts."""

from __future__ import annotations

import csv
from pathlib import Path


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, in order."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
