"""Compare published numbers with ours: the recorded verdict must be the computed one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

from ibukit._ground import arguments
from ibukit_claims._comparison import Comparison
from ibukit_claims._published import AGREES, KEY, InvalidClaim, load_published
from ibukit_claims._setting import is_published, say

if TYPE_CHECKING:
    import pandas as pd


def beside(stem: str, ours: Mapping[tuple[str, ...], Any]) -> pd.DataFrame:
    """Compare every printed number of the claims that `ours` speaks of.

    The test is ``|ours - paper| <= bound``. The bound is 0 (tolerance kind `exact`), the tolerance
    (`absolute`; `rounding`, where it is half a unit of the last printed digit), tolerance *
    ``|paper|`` (`relative`) or tolerance * our standard error (`standard_errors`).

    Parameters
    ----------
    stem : str
        As for `load_published`.
    ours : mapping
        From (claim, quantity), where that names one row, or (claim, setting, quantity), to our
        number or to the pair (number, standard error).

    Returns
    -------
    pandas.DataFrame
        The rows of those claims with ours, standard_error, paper, difference, tolerance (in words),
        verdict (computed) and recorded (the file's verdict). A row recorded as not checkable or as
        a setting needs no number of ours; a setting of ours, if given, must be the paper's.

    Raises
    ------
    InvalidClaim
        If a key names no row or several, or a row of a claim has no number of ours.
    ValueError
        If a number of ours is not finite, or its standard error not above 0.

    Examples
    --------
    >>> bound = {("A-N1", "n times the bound on the squared error of raw INV"): 277.28}
    >>> list(beside("consistency", bound)["verdict"])
    ['deviates']
    """
    import pandas as pd

    rows = load_published(stem)
    keys = list(rows[KEY].itertuples(index=False, name=None))
    numbers = {}
    for name, number in ours.items():
        fits = [key for key in keys if name in (key, (key[0], key[2]))]
        if len(fits) != 1 or fits[0] in numbers:
            of_claim = [key for key in keys if key[0] in name]
            raise InvalidClaim(
                f"{name} must name one row of {stem}.csv, once; it names {len(fits)} of {of_claim}"
            )
        numbers[fits[0]] = _number(name, number)
    claims = {key[0] for key in numbers}
    table = []
    for key, row in zip(keys, rows.to_dict("records"), strict=True):
        if key[0] in claims:
            if key not in numbers and row["verdict"] not in ("not checkable", "setting"):
                raise InvalidClaim(
                    f"ours must have a number for {key}: {stem}.csv has {row['printed']} there"
                )
            table.append(_compare(row, *numbers.get(key, (math.nan, math.nan))))
    return pd.DataFrame(table)


def check(table: pd.DataFrame) -> None:
    """Raise AssertionError unless each recorded verdict is the computed one.

    So a recorded deviation that now agrees fails as well. Outside the published setting (see
    `published`) each verdict that differs is printed instead.

    Parameters
    ----------
    table : pandas.DataFrame
        What `beside` returns, or several of these concatenated.

    Examples
    --------
    >>> row = ("A-N1", "n times the bound on the squared error of raw INV")
    >>> check(beside("consistency", {row: 277.28}))
    """
    wrong = [
        f"{row['claim']} ({row['setting']}) {row['quantity']}: ours {row['ours']:.10g}, "
        f"paper {row['printed']}, tolerance {row['tolerance']}: computed {row['verdict']}, "
        f"recorded {row['recorded']}"
        for row in table.to_dict("records")
        if row["verdict"] != row["recorded"]
    ]
    if not is_published():
        for text in wrong:
            say(text)
    elif wrong:
        todo = "Find out why. If the computation is right, write its verdict into data/published"
        raise AssertionError("\n".join([*wrong, f"{todo}, with a note."]))


def show(table: pd.DataFrame) -> Comparison:
    """A table of published numbers beside ours, a row for each result.

    The columns are what, where, ours, paper, difference and verdict; rows that deviate come first.
    Settings are not among the results: in HTML they stand below the table, folded. Our number and
    the difference have one decimal more than the paper prints, or as many if both must be equal.

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
    >>> row = ("A-N1", "n times the bound on the squared error of raw INV")
    >>> table = beside("consistency", {row: 277.28})
    >>> [line.split()[-4:] for line in repr(show(table)).splitlines()]
    [['ours', 'paper', 'difference', 'verdict'], ['277.280', '227.28', '50.000', 'deviates']]
    """
    results = table[table["verdict"] != "setting"]
    if results.empty:
        raise InvalidClaim(
            "table must have a result to show; settings are inputs, and listed by `settings`"
        )
    inputs = [_texts(row) for row in table[table["verdict"] == "setting"].to_dict("records")]
    return Comparison(
        [_texts(row) for row in results.to_dict("records")],
        [f"{row['what']}: {row['paper']} ({row['where']})" for row in inputs],
    )


def _number(name: tuple[str, ...], number: Any) -> tuple[float, float]:
    """Our number and its standard error, NaN where it has none."""
    value, error = number if isinstance(number, tuple) else (number, None)
    if (
        isinstance(value, bool)
        or not isinstance(value, Real)
        or not math.isfinite(arguments.as_float(value))
    ):
        raise ValueError(
            f"ours[{name}] must be a finite number, or (number, standard error), got {number!r}"
        )
    return float(value), math.nan if error is None else arguments.positive(
        f"standard error of ours[{name}]", error
    )


def _compare(row: dict[Any, Any], ours: float, error: float) -> dict[Any, Any]:
    """One row of the comparison, with the verdict that the numbers give."""
    paper, kind, tolerance = row["value"], row["tolerance_kind"], row["tolerance"]
    if kind == "standard_errors" and math.isnan(error) and not math.isnan(ours):
        raise InvalidClaim(
            f"ours must be (number, standard error) for {tuple(row[column] for column in KEY)}"
        )
    said, bound = {
        "absolute": (f"{tolerance:g}", tolerance),
        "rounding": (f"{tolerance:g} (rounding)", tolerance),
        "relative": (f"{100 * tolerance:g} %", tolerance * abs(paper)),
        "standard_errors": (f"{tolerance:g} standard errors", tolerance * error),
    }.get(kind, (kind or "none", 0.0))
    difference = ours - paper
    # decimals are rounded to binary: a difference on the edge must not fail by its last bits
    slack = 0.0 if kind in ("", "exact") else 4 * math.ulp(max(abs(ours), abs(paper)))
    agreed = row["verdict"] if row["verdict"] in (*AGREES, "setting") else "reproduced"
    verdict = agreed if abs(difference) <= bound + slack else "deviates"
    compared = {
        "ours": ours,
        "standard_error": error,
        "paper": paper,
        "difference": difference,
        "tolerance": said,
    }
    if math.isnan(difference):
        verdict = "setting" if row["verdict"] == "setting" else "not checkable"
    return {**row, **compared, "verdict": verdict, "recorded": row["verdict"]}


def _texts(row: dict[Any, Any]) -> dict[str, str]:
    """A row of the comparison as a reader sees it."""
    what = ", ".join(filter(None, (row["quantity"], row["setting"]))) + (
        f" ({row['unit']})" if row["unit"] else ""
    )
    if math.isnan(row["paper"]):
        ours, paper, difference = "–", "unreadable", "–"
    else:
        digits = len(row["printed"].partition(".")[2])
        more = digits + (row["tolerance"] != "exact")
        if (
            row["verdict"] == "deviates"
        ):  # show at least the first digit of the difference, which a reader must see
            more = max(more, -math.floor(math.log10(abs(row["difference"]))))
        paper = f"{row['paper']:,.{digits}f}"
        ours, difference = (
            f"{row[name]:z,.{more}f}".replace("nan", "–") for name in ("ours", "difference")
        )
    texts = {"what": what, "where": row["where"], "ours": ours, "paper": paper}
    return {**texts, "difference": difference, "verdict": row["verdict"]}
