"""Every number that a paper prints: the tables in data/published, read and checked for sense."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

from ibukit.datasets import DATA
from ibukit.errors import IbukitError

if TYPE_CHECKING:
    import pandas as pd

KEY = ["claim", "setting", "quantity"]
VERDICTS = (
    "setting",
    "reproduced",
    "fitted",
    "holds with a condition",
    "deviates",
    "not checkable",
    "open",
)
WORDS = {
    "read": ("text", "table", "axis"),
    "tolerance_kind": ("exact", "absolute", "relative", "standard_errors", "rounding"),
    "verdict": VERDICTS,
}
# any of these verdicts may stand for a number that agrees; with the last two, a note says what was
# chosen, or what must be given
AGREES = ("reproduced", "fitted", "holds with a condition")
WITH_NOTE = ("fitted", "holds with a condition", "deviates", "not checkable")
COLUMNS = [
    *("claim", "where", "setting", "quantity", "value", "unit", "read"),
    *("stop", "repetitions", "tolerance_kind", "tolerance", "verdict", "note"),
]
NUMBER = re.compile(r"-?\d+(\.\d+)?")


class InvalidClaim(IbukitError, ValueError):
    """A table of published numbers, or what is set beside it, is not in order."""


def load_published(stem: str) -> pd.DataFrame:
    """Every number that a paper prints, one a row, from data/published/<stem>.csv.

    The file is our own and grows with the chapters, so its content is checked, not its hash.

    Parameters
    ----------
    stem : str
        "consistency", "geometric", "freewill", "estimators", "privic" or "protocols".

    Returns
    -------
    pandas.DataFrame
        The columns of the file; `value` and `tolerance` are numbers, NaN where the file has none;
        `printed` is the value in the paper's own digits.

    Raises
    ------
    InvalidClaim
        If there is no such file, or it lacks a column, has a word or number that is not allowed, or
        has the same (claim, setting, quantity) twice. The message names file, line, column and
        value.

    Examples
    --------
    >>> rows = load_published("consistency").set_index(["claim", "quantity"])
    >>> float(rows.loc[("A-D13", "people"), "value"])
    48842.0
    """
    import pandas as pd

    path = DATA / "published" / f"{stem}.csv"
    if not path.is_file():
        stems = ", ".join(sorted(file.stem for file in path.parent.glob("*.csv")))
        raise InvalidClaim(f"stem must be one of {stems}, got {stem!r}")
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        columns = next(reader, [])
        if columns != COLUMNS:
            raise InvalidClaim(
                f"{path.name} must have the columns {', '.join(COLUMNS)}, got {', '.join(columns)}"
            )
        seen: dict[tuple[str, ...], str] = {}
        rows = [_row(fields, f"{path.name}, line {reader.line_num}", seen) for fields in reader]
    return pd.DataFrame(rows, columns=[*COLUMNS, "printed"])


def settings(stem: str, *names: str) -> pd.DataFrame:
    """The choices of a paper, as it prints them: inputs that we take over.

    Parameters
    ----------
    stem : str
        As for `load_published`.
    *names : str
        Claims; none means all.

    Returns
    -------
    pandas.DataFrame
        Indexed by (claim, setting, quantity): value, unit, where.

    Raises
    ------
    InvalidClaim
        If a claim has no setting in this file.

    Examples
    --------
    >>> float(settings("consistency", "A-D13").loc[("A-D13", "Adult", "people"), "value"])
    48842.0
    """
    rows = load_published(stem)
    rows = rows[rows["verdict"] == "setting"]
    if unknown := [name for name in names if name not in set(rows["claim"])]:
        raise InvalidClaim(f"names must be claims with a setting in {stem}.csv, got {unknown[0]!r}")
    return rows[rows["claim"].isin(names or rows["claim"])].set_index(KEY)[
        ["value", "unit", "where"]
    ]


def _row(fields: list[str], place: str, seen: dict[tuple[str, ...], str]) -> dict[str, Any]:
    """A line of the file with its numbers read, or the reason why not."""
    row: dict[str, Any] = dict(zip(COLUMNS, fields, strict=False))

    def want(column: str, wanted: str, met: object) -> None:
        if not met:
            raise InvalidClaim(
                f"{place}, column {column}: must be {wanted}, got {row.get(column)!r}"
            )

    want(
        "note",
        f"the last of {len(COLUMNS)} fields, not of {len(fields)}",
        len(fields) == len(COLUMNS),
    )
    for column in ("claim", "where", "quantity"):
        want(column, "filled in", row[column])
    for column, words in WORDS.items():
        # a row that is still open may leave its tolerance to the chapter
        may_lack = column == "tolerance_kind" and row["verdict"] in (
            "open",
            "not checkable",
            "setting",
        )
        want(
            column,
            f"one of {', '.join(words)}",
            row[column] in words or (may_lack and not row[column]),
        )
    value, tolerance, no_bound = (
        row["value"],
        row["tolerance"],
        row["tolerance_kind"] in ("", "exact"),
    )
    want(
        "value",
        "a number in digits",
        NUMBER.fullmatch(value) or (row["verdict"] == "not checkable" and not value),
    )
    if no_bound:
        want("tolerance", "empty where the kind is exact or empty", not tolerance)
    else:
        want(
            "tolerance",
            "a number above 0 in digits",
            NUMBER.fullmatch(tolerance) and float(tolerance) > 0,
        )
    if row["verdict"] in WITH_NOTE:
        want("note", f"filled in where the verdict is {row['verdict']!r}", row["note"])
    want(
        "repetitions",
        "a whole number above 0, or empty",
        re.fullmatch(r"([1-9]\d*)?", row["repetitions"]),
    )
    key = tuple(row[column] for column in KEY)
    want("quantity", f"another one: {key} is in {seen.get(key)} already", key not in seen)
    seen[key] = place
    return {
        **row,
        "value": float(value or "nan"),
        "tolerance": float(tolerance or "nan"),
        "printed": value,
    }
