"""An estimate as CSV, JSON, Parquet or GeoJSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ibukit.errors import MissingExtra
from ibukit.estimate import Estimate
from ibukit.grid import Grid

SUFFIXES = (".csv", ".json", ".parquet", ".geojson")


def check_output(out: str | None) -> None:
    """Refuse what could not be written, before anything is computed."""
    if out is None:
        return
    if Path(out).suffix not in SUFFIXES:
        raise ValueError(f"--out must end in {', '.join(SUFFIXES)}, got {out!r}")
    if not Path(out).absolute().parent.is_dir():
        raise FileNotFoundError(f"--out must be in a folder that exists, got {out!r}")


def write(estimate: Estimate, level: float | None, out: str | None) -> None:
    """Write one row for each secret, with an interval where a level is given."""
    columns = _columns(estimate, level)
    suffix = ".csv" if out is None else Path(out).suffix
    if suffix == ".csv":
        lines = [",".join(columns), *(",".join(map(_field, row)) for row in zip(*columns.values(), strict=True))]
        text = "\n".join(lines) + "\n"
    elif suffix == ".json":
        text = json.dumps(_document(estimate, columns), indent=1) + "\n"
    elif suffix == ".geojson":
        text = _geojson(estimate, columns)
    else:
        return _write_parquet(columns, str(out))
    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        Path(out).write_text(text, encoding="utf-8")
    return None


def _columns(estimate: Estimate, level: float | None) -> dict[str, list[Any]]:
    values = estimate.alphabet.values
    columns: dict[str, list[Any]] = (
        {"row": values[:, 0].tolist(), "col": values[:, 1].tolist()} if values.ndim == 2 else {"value": values.tolist()}
    )
    columns["probability"] = estimate.distribution.tolist()
    if level is not None:
        lower, upper = estimate.interval(level)
        columns |= {"lower": lower.tolist(), "upper": upper.tolist()}
    return columns


def _field(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def _document(estimate: Estimate, columns: dict[str, list[Any]]) -> dict[str, Any]:
    tally = estimate.tally
    return {
        "method": estimate.method,
        "status": estimate.status.value,
        "n_iter": estimate.n_iter,
        "gap": estimate.gap,
        "log_likelihood": estimate.log_likelihood,
        "n": None if tally is None else tally.n,
        "dropped": {} if tally is None else dict(tally.dropped),
        "estimate": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    }


def _geojson(estimate: Estimate, columns: dict[str, list[Any]]) -> str:
    if not isinstance(estimate.alphabet, Grid) or estimate.alphabet.bounds is None:
        raise ValueError("--out must not be GeoJSON: only the cells of a grid with --bounds have a place on the map")
    frame = estimate.alphabet.to_geodataframe(columns["probability"], "probability")
    for name in ("lower", "upper"):
        if name in columns:
            frame[name] = columns[name]
    return str(frame.to_json()) + "\n"


def _write_parquet(columns: dict[str, list[Any]], out: str) -> None:
    import pandas as pd

    try:
        pd.DataFrame(columns).to_parquet(out, index=False)
    except ImportError as error:
        raise MissingExtra(f'{out} needs pyarrow, which is not installed: pip install "ibukit[tables]"') from error
