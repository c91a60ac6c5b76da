"""Published numbers beside ours: agreement is computed, and the recorded verdict must be the computed one."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

from ibukit import _validate
from ibukit.datasets import DATA
from ibukit.errors import IbukitError

if TYPE_CHECKING:
    import pandas as pd

KEY = ["claim", "setting", "quantity"]
WORDS = {
    "read": ("text", "table", "axis"),
    "tolerance_kind": ("exact", "absolute", "relative", "standard_errors", "rounding"),
    "verdict": ("reproduced", "deviates", "not checkable", "open"),
}
COLUMNS = [
    *("claim", "where", "setting", "quantity", "value", "unit", "read"),
    *("stop", "repetitions", "tolerance_kind", "tolerance", "verdict", "note"),
]
NUMBER = re.compile(r"-?\d+(\.\d+)?")


class InvalidClaim(IbukitError, ValueError):
    """A table of published numbers, or what is set beside it, is not in order."""


def load_published(stem: str) -> pd.DataFrame:
    """Every number that a paper prints, one a row, from data/published/<stem>.csv.

    The file is ours and grows with the chapters: it is checked for sense, not for a hash.

    Parameters
    ----------
    stem : str
        "consistency", "geometric", "freewill", "estimators" or "privic".

    Returns
    -------
    pandas.DataFrame
        The columns of the file; `value` and `tolerance` are numbers, NaN where the file has none; `printed` is the
        value in the paper's own digits.

    Raises
    ------
    InvalidClaim
        If there is no such file, or it lacks a column, has a word or number that is not allowed, or has the same
        (claim, setting, quantity) twice. The message names file, line, column and value.

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
            raise InvalidClaim(f"{path.name} must have the columns {', '.join(COLUMNS)}, got {', '.join(columns)}")
        seen: dict[tuple[str, ...], str] = {}
        rows = [_row(fields, f"{path.name}, line {reader.line_num}", seen) for fields in reader]
    return pd.DataFrame(rows, columns=[*COLUMNS, "printed"])


def beside(stem: str, ours: Mapping[tuple[str, ...], Any]) -> pd.DataFrame:
    """``|ours - paper| <= bound`` for every number printed under the claims that `ours` speaks of.

    The bound is 0 (tolerance kind `exact`), the tolerance (`absolute`; `rounding`, where it is half a unit of the last
    printed digit), tolerance * ``|paper|`` (`relative`) or tolerance * our standard error (`standard_errors`).

    Parameters
    ----------
    stem : str
        As for `load_published`.
    ours : mapping
        From (claim, quantity), where that names one row, or (claim, setting, quantity), to our number or to the pair
        (number, standard error).

    Returns
    -------
    pandas.DataFrame
        The rows of those claims with ours, standard_error, paper, difference, tolerance (in words), verdict (computed)
        and recorded (the file's verdict). What is recorded as not checkable needs no number of ours.

    Raises
    ------
    InvalidClaim
        If a key names no row or several, or a row of a claim has no number of ours.
    ValueError
        If a number of ours is not finite, or its standard error not above 0.

    Examples
    --------
    >>> list(beside("consistency", {("A-F1a", "eps_g of the ages"): 0.05})["verdict"])
    ['reproduced']
    """
    import pandas as pd

    rows = load_published(stem)
    keys = list(rows[KEY].itertuples(index=False, name=None))
    numbers = {}
    for name, number in ours.items():
        fits = [key for key in keys if name in (key, (key[0], key[2]))]
        if len(fits) != 1 or fits[0] in numbers:
            of_claim = [key for key in keys if key[0] in name]
            raise InvalidClaim(f"{name} must name one row of {stem}.csv, once; it names {len(fits)} of {of_claim}")
        numbers[fits[0]] = _number(name, number)
    claims = {key[0] for key in numbers}
    table = []
    for key, row in zip(keys, rows.to_dict("records"), strict=True):
        if key[0] in claims:
            if key not in numbers and row["verdict"] != "not checkable":
                raise InvalidClaim(f"ours must have a number for {key}: {stem}.csv has {row['printed']} there")
            table.append(_compare(row, *numbers.get(key, (math.nan, math.nan))))
    return pd.DataFrame(table)


def check(table: pd.DataFrame) -> None:
    """AssertionError unless each recorded verdict is the computed one: a deviation that came to agree fails too.

    Parameters
    ----------
    table : pandas.DataFrame
        What `beside` returns, or several of these concatenated.

    Examples
    --------
    >>> check(beside("consistency", {("A-F1a", "eps_g of the ages"): 0.05}))
    """
    wrong = [
        f"{row['claim']} ({row['setting']}) {row['quantity']}: ours {row['ours']:.10g}, paper {row['printed']}, "
        f"tolerance {row['tolerance']}: computed {row['verdict']}, recorded {row['recorded']}"
        for row in table.to_dict("records")
        if row["verdict"] != row["recorded"]
    ]
    if wrong:
        todo = "Find out why. If the computation is right, write its verdict into data/published, with a note."
        raise AssertionError("\n".join([*wrong, todo]))


class Comparison:
    """Texts in columns, drawn the same every time."""

    def __init__(self, table: pd.DataFrame):
        self.table = table

    def __repr__(self) -> str:
        return self.table.to_string(index=False)

    def _repr_html_(self) -> str:
        import pandas as pd

        with pd.option_context("display.max_colwidth", None):
            html: str = self.table.to_html(index=False, border=0, justify="left")
        return html.replace("<th>", '<th scope="col">')  # so that a screen reader names the column of a number


def show(table: pd.DataFrame) -> Comparison:
    """What | where | ours | paper | difference | verdict, a row for each number.

    Ours and the difference have one decimal more than the paper prints, or as many where the two must be equal.

    Parameters
    ----------
    table : pandas.DataFrame
        What `beside` returns, or several of these concatenated.

    Returns
    -------
    Comparison
        Draws itself in a notebook and in print, the same every time.

    Examples
    --------
    >>> show(beside("consistency", {("A-F1a", "eps_g of the ages"): 0.05}))
                            what           where ours paper difference    verdict
    eps_g of the ages (per year) Fig. 1, Sec. 7.1 0.05  0.05       0.00 reproduced
    """
    import pandas as pd

    return Comparison(pd.DataFrame([_texts(row) for row in table.to_dict("records")]))


def _row(fields: list[str], place: str, seen: dict[tuple[str, ...], str]) -> dict[str, Any]:
    """A line of the file with its numbers read, or the reason why not."""
    row: dict[str, Any] = dict(zip(COLUMNS, fields, strict=False))

    def want(column: str, wanted: str, met: object) -> None:
        if not met:
            raise InvalidClaim(f"{place}, column {column}: must be {wanted}, got {row.get(column)!r}")

    want("note", f"the last of {len(COLUMNS)} fields, not of {len(fields)}", len(fields) == len(COLUMNS))
    for column in ("claim", "where", "quantity"):
        want(column, "filled in", row[column])
    for column, words in WORDS.items():
        # what is still open may leave its tolerance to the chapter
        may_lack = column == "tolerance_kind" and row["verdict"] in ("open", "not checkable")
        want(column, f"one of {', '.join(words)}", row[column] in words or (may_lack and not row[column]))
    value, tolerance, no_bound = row["value"], row["tolerance"], row["tolerance_kind"] in ("", "exact")
    want("value", "a number in digits", NUMBER.fullmatch(value) or (row["verdict"] == "not checkable" and not value))
    if no_bound:
        want("tolerance", "empty where the kind is exact or empty", not tolerance)
    else:
        want("tolerance", "a number above 0 in digits", NUMBER.fullmatch(tolerance) and float(tolerance) > 0)
    want("repetitions", "a whole number above 0, or empty", re.fullmatch(r"([1-9]\d*)?", row["repetitions"]))
    key = tuple(row[column] for column in KEY)
    want("quantity", f"another one: {key} is in {seen.get(key)} already", key not in seen)
    seen[key] = place
    return {**row, "value": float(value or "nan"), "tolerance": float(tolerance or "nan"), "printed": value}


def _number(name: tuple[str, ...], number: Any) -> tuple[float, float]:
    """Our number and its standard error, NaN where it has none."""
    value, error = number if isinstance(number, tuple) else (number, None)
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(_validate.as_float(value)):
        raise ValueError(f"ours[{name}] must be a finite number, or (number, standard error), got {number!r}")
    return float(value), math.nan if error is None else _validate.positive(f"standard error of ours[{name}]", error)


def _compare(row: dict[Any, Any], ours: float, error: float) -> dict[Any, Any]:
    """One row of the comparison, with the verdict that the numbers give."""
    paper, kind, tolerance = row["value"], row["tolerance_kind"], row["tolerance"]
    if kind == "standard_errors" and math.isnan(error) and not math.isnan(ours):
        raise InvalidClaim(f"ours must be (number, standard error) for {tuple(row[column] for column in KEY)}")
    said, bound = {
        "absolute": (f"{tolerance:g}", tolerance),
        "rounding": (f"{tolerance:g} (rounding)", tolerance),
        "relative": (f"{100 * tolerance:g} %", tolerance * abs(paper)),
        "standard_errors": (f"{tolerance:g} standard errors", tolerance * error),
    }.get(kind, (kind or "none", 0.0))
    difference = ours - paper
    # decimals are stored in binary: a difference on the edge must not fall off by its last bits
    slack = 0.0 if kind in ("", "exact") else 4 * math.ulp(max(abs(ours), abs(paper)))
    verdict = "reproduced" if abs(difference) <= bound + slack else "deviates"
    compared = {"ours": ours, "standard_error": error, "paper": paper, "difference": difference, "tolerance": said}
    verdict = "not checkable" if math.isnan(difference) else verdict
    return {**row, **compared, "verdict": verdict, "recorded": row["verdict"]}


def _texts(row: dict[Any, Any]) -> dict[str, str]:
    """A row of the comparison as a reader sees it."""
    what = ", ".join(filter(None, (row["quantity"], row["setting"]))) + (f" ({row['unit']})" if row["unit"] else "")
    if math.isnan(row["paper"]):
        ours, paper, difference = "–", "unreadable", "–"
    else:
        digits = len(row["printed"].partition(".")[2])
        more = digits + (row["tolerance"] != "exact")
        if row["verdict"] == "deviates":  # and must be seen to, so at least its first digit is shown
            more = max(more, -math.floor(math.log10(abs(row["difference"]))))
        paper = f"{row['paper']:,.{digits}f}"
        ours, difference = (f"{row[name]:z,.{more}f}".replace("nan", "–") for name in ("ours", "difference"))
    texts = {"what": what, "where": row["where"], "ours": ours, "paper": paper}
    return {**texts, "difference": difference, "verdict": row["verdict"]}
