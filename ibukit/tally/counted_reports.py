"""The counted reports of a tally as a table: a row for each distinct report."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ibukit.domain.report_kind import ReportKind
from ibukit.tally.part import TallyPart

if TYPE_CHECKING:
    import pandas as pd

# An HTML table has at most this many rows, those with the largest counts.
MAX_ROWS_SHOWN = 10
NAMES = {ReportKind.POINTS: ["x", "y"], ReportKind.CELLS: ["row", "col"]}


def counted_reports(parts: tuple[TallyPart, ...]) -> pd.DataFrame:
    """Return the distinct reports with their counts, one part after the other.

    Rows of bits are strings of 0 and 1. Points fill the columns x and y, cells the columns row and
    col, other reports of several numbers the columns report_0, report_1, ... With several parts,
    the column mechanism says through which mechanism a report came.
    """
    # pandas takes a second to import.
    import pandas as pd

    frames = [
        pd.DataFrame({**_columns(part), "count": part.counts}).assign(
            **({"mechanism": repr(part.mechanism)} if len(parts) > 1 else {})
        )
        for part in parts
    ]
    if len({tuple(frame.columns) for frame in frames}) > 1:
        # A column that one mechanism has and another lacks would turn from integers to floats.
        frames = [frame.astype(_nullable(frame)) for frame in frames]
    return pd.concat(frames, ignore_index=True)


def _nullable(frame: pd.DataFrame) -> dict[str, str]:
    """Return the types of the numeric columns of reports that may have missing values."""
    kinds = {"i": "Int64", "u": "UInt64", "f": "Float64"}
    return {
        str(name): kinds[dtype.kind]
        for name, dtype in frame.dtypes.items()
        if name != "count" and dtype.kind in kinds
    }


def _columns(part: TallyPart) -> dict[str, NDArray[Any]]:
    """Return the columns of the distinct reports of one part."""
    mechanism: Any = part.mechanism
    reports = mechanism.label_reports(mechanism.restore_reports(part.reports))
    if reports.ndim == 1:
        return {"report": reports}
    if mechanism.report_kind is ReportKind.BITS:
        texts = ["".join(row) for row in reports.astype(np.uint8).astype(str)]
        return {"report": np.array(texts, dtype=object)}
    names = NAMES.get(mechanism.report_kind, [f"report_{i}" for i in range(reports.shape[1])])
    return dict(zip(names, reports.T, strict=True))


def as_html(title: str, frame: pd.DataFrame) -> str:
    """Return a title and an HTML table of the most frequent reports."""
    most = frame.sort_values("count", ascending=False, kind="stable").head(MAX_ROWS_SHOWN)
    table = most.to_html(index=False, border=0, justify="left", max_cols=8)
    more = len(frame) - len(most)
    rest = f"<p>and {more:,} other reports</p>" if more else ""
    return f"<div><p>{escape(title)}</p>{table}{rest}</div>"
