"""The tables that are printed, and the tables that are written to results/."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from benchmarks.bars import Bar
from benchmarks.race import Row

LONGEST = 70
VERDICT = {True: "yes", False: "NO", None: "-"}


def frame_of_races(rows: Iterable[Row]) -> pd.DataFrame:
    """All rows, with each one's time as a multiple of ours on the same workload."""
    table = pd.DataFrame([asdict(row) for row in rows]).astype({"iterations": "Int64"})
    ours = table[table.contender == "ibukit"].set_index("workload").seconds
    table.insert(3, "ratio", table.seconds.astype(float) / table.workload.map(ours).astype(float))
    return table


def rows_of_races(path: Path) -> list[Row]:
    """The rows of an earlier run.

    Contenders race within a workload, so that one workload can be run again.
    """
    table = pd.read_csv(path, dtype={"iterations": "Int64"}).drop(columns="ratio")
    filled = table.astype(object).where(table.notna(), None)
    return [Row(**{**row, "note": row["note"] or ""}) for row in filled.to_dict("records")]


def frame_of_bars(bars: Iterable[Bar]) -> pd.DataFrame:
    table = pd.DataFrame([asdict(bar) for bar in bars])
    return table.assign(met=table.met.map(VERDICT))


def text(table: pd.DataFrame) -> str:
    """Numbers of three digits on the right, words on the left, a dash for what is not there."""
    columns = []
    for name in table:
        cells = [str(name), *(_cell(value) for value in table[name])]
        width = max(map(len, cells))
        words = any(isinstance(value, str) for value in table[name])
        columns.append([cell.ljust(width) if words else cell.rjust(width) for cell in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _cell(value: object) -> str:
    if pd.isna(value):
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e12 else f"{value:.3g}"
    words = str(value)
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 3]}..."


def write(table: pd.DataFrame, path: Path) -> None:
    """Write a table with four digits, which are more than the clock is worth."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False, float_format="%.4g", lineterminator="\n")
