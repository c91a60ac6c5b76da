"""Write an estimate as CSV, JSON, Parquet or GeoJSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from ibukit._ground.extras import missing_extra
from ibukit.domain.grid import Grid
from ibukit.estimate import Estimate
from ibukit.estimate.estimate_groups import EstimateGroups
from ibukit.files.atomic import replace

# Significant digits of printed numbers: further ones are rounding errors of the computation. Files
# have all digits.
DIGITS = 12

SUFFIXES = (".csv", ".json", ".parquet", ".geojson")
TABLE_SUFFIXES = (".csv", ".parquet")


def check_output(out: str | None, *, groups: bool = False, inputs: Iterable[str] = ()) -> None:
    """Refuse an output that cannot be written, before anything is computed."""
    if out is None:
        return
    if Path(out).suffix not in SUFFIXES:
        raise ValueError(f"--out must end in {', '.join(SUFFIXES)}, got {out!r}")
    if groups and Path(out).suffix not in TABLE_SUFFIXES:
        raise ValueError(
            f"--out must end in {' or '.join(TABLE_SUFFIXES)} with --groups, got {out!r}"
        )
    if not Path(out).absolute().parent.is_dir():
        raise FileNotFoundError(f"--out must be in a folder that exists, got {out!r}")
    for path in inputs:
        if _is_same_file(out, path):
            raise ValueError(
                f"--out must not be a file that is read, got {out!r}: the estimate would replace it"
            )


def _is_same_file(out: str, path: str) -> bool:
    """Return whether two paths, or a path and standard input, are the same file."""
    try:
        there = os.fstat(sys.stdin.fileno()) if path == "-" else os.stat(path)
        return os.path.samestat(os.stat(out), there)
    # One of the two files does not exist yet, or there is no standard input.
    except (OSError, ValueError, AttributeError):
        return False


def write(estimate: Estimate | EstimateGroups, level: float | None, out: str | None) -> None:
    """Write an estimate, with intervals if there is a level.

    A file is replaced as a whole, so that nobody reads half of it.
    """
    if out is None:
        sys.stdout.write(_printed(estimate, level))
        sys.stdout.flush()
        return
    suffix = Path(out).suffix
    if suffix == ".parquet":
        # The content is made completely before the file is touched.
        content = _parquet(estimate, level, out)
    else:
        content = _text(estimate, level, suffix).encode()
    replace(Path(out), content)


def _text(estimate: Estimate | EstimateGroups, level: float | None, suffix: str) -> str:
    if suffix == ".csv" or isinstance(estimate, EstimateGroups):
        return _csv(estimate, level)
    return _json(estimate, level) if suffix == ".json" else _geojson(estimate, level)


def _csv(estimate: Estimate | EstimateGroups, level: float | None) -> str:
    return str(estimate.to_frame(level).to_csv(lineterminator="\n"))


def _printed(estimate: Estimate | EstimateGroups, level: float | None) -> str:
    """Return the table for people: numbers with the digits that are certain, labels in full."""
    frame = estimate.to_frame(level)
    # Objects are not formatted.
    index = frame.index
    frame.index = (
        index.set_levels([labels.astype(object) for labels in index.levels])  # type: ignore[misc]
        if isinstance(index, pd.MultiIndex)
        else index.astype(object)
    )
    return str(frame.to_csv(lineterminator="\n", float_format=f"%.{DIGITS}g"))


def _json(estimate: Estimate, level: float | None) -> str:
    return estimate.to_json(level) + "\n"


def _geojson(estimate: Estimate, level: float | None) -> str:
    if not isinstance(estimate.alphabet, Grid) or estimate.alphabet.bounds is None:
        raise ValueError(
            "--out must not be GeoJSON: only the cells of a grid with --bounds have a place on the "
            "map"
        )
    return str(estimate.to_geodataframe(level).to_json()) + "\n"


def _parquet(estimate: Estimate | EstimateGroups, level: float | None, out: str) -> bytes:
    try:
        return bytes(estimate.to_frame(level).reset_index().to_parquet(index=False))
    except ImportError as error:
        raise missing_extra(out, "pyarrow") from error
