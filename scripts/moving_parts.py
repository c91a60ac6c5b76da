"""The vocabulary in which moving figures are described: tables, axes, numbers as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SHARE = 1e-4  # the unit in which the curves are written, less than a pixel


def plain(x: float) -> str:
    """Two digits of a number; a small one as a multiple of a power of ten."""
    exponent = int(f"{x:.1e}".split("e")[1])
    if exponent < -4:
        return plain_power(x)
    return f"{float(f'{x:.2g}'):,.{max(0, 1 - exponent)}f}"


def plain_power(x: float) -> str:
    """Two digits of a large number, times a power of ten."""
    mantissa, exponent = f"{x:.1e}".split("e")
    return f"{mantissa} × 10{str(int(exponent)).translate(SUPERSCRIPT)}"


def rounded(values: Iterable[float], unit: float = SHARE) -> list[int]:
    """Whole multiples of a unit."""
    return [round(float(x) / unit) for x in values]


def table(by: str, values: list[Any]) -> dict[str, Any]:
    """A value for each setting of some controls."""
    return {"by": by.split(), "values": values}


def axis(
    start: float, end: float, ticks: dict[float, str], title: str, log: bool = False
) -> dict[str, Any]:
    """One axis."""
    return {"from": start, "to": end, "ticks": list(ticks.items()), "title": title} | (
        {"log": True} if log else {}
    )
