"""The bars that ibukit sets itself, judged from what was measured. They gate nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log10

from benchmarks.race import Row

DENSE = {
    "W1": "ibukit, as a matrix",
    "W2-0.2": "ibukit",
    "W2-1": "ibukit",
    "W2-3": "ibukit",
    "W5": "ibukit",
}
PARTS = ("mixed, k-RR", "mixed, truncated geometric", "mixed, RAPPOR")
# a problem of ten times the size may take a little more than ten times as long, because it no
# longer fits in the cache
LINEAR = 1.15


@dataclass(frozen=True)
class Bar:
    """One requirement: met or not, or None where it was not measured."""

    bar: str
    required: str
    measured: str
    met: bool | None


class Races:
    """The rows by workload and contender; only rows with a time count."""

    def __init__(self, rows: Iterable[Row]):
        self.rows = {(row.workload, row.contender): row for row in rows if row.seconds is not None}

    def get(self, workload: str, contender: str = "ibukit") -> Row | None:
        return self.rows.get((workload, contender))

    def starting(self, workload: str, prefix: str) -> list[Row]:
        return [
            row
            for (name, who), row in self.rows.items()
            if name == workload and who.startswith(prefix)
        ]


def judge(rows: Iterable[Row]) -> list[Bar]:
    """All bars, in the order of the workloads."""
    races = Races(rows)
    bars = []
    for name, who in DENSE.items():
        bars += _dense(races, name, who)
    one, other = races.get("W1"), races.get("W1", "ibukit, as a matrix")
    bars.append(
        _at_most(
            "W1: time by its structure / as a matrix",
            0.1,
            one and other and one.seconds / other.seconds,
        )
    )
    bars += _certified(races, "W3-1e6", 1e-12)
    bars.append(_time_in(races, "W3-1e6", "a pass over a vector", "vector passes", 20, below=True))
    for name in ("W4-20", "W4-100"):
        bars += _certified(races, name, 1e-10)
        bars.append(_iterations(races, name, 12, "passes over the bits, as counted by the solver"))
        bars.append(_memory(races, name, "the packed bits", 3))
    for name in ("W6-line-1e5", "W6-line-1e7"):
        bars += [*_certified(races, name, 1e-10), _iterations(races, name, 30)]
        bars.append(_memory(races, name, "vectors of length k", 40))
    bars.append(_linear(races))
    for name in ("W6-plane", "W6-remapped"):
        bars += [*_certified(races, name, 1e-8), _iterations(races, name, 30)]
        bars.append(_time_in(races, name, "ibukit, IBU steps", "FFT-IBU steps", 10_000, below=True))
    bars += _certified(races, "mixed", 1e-8)
    pooled, *alone = (races.get(name) for name in ("mixed", *PARTS))
    slower = pooled and all(alone) and pooled.seconds / max(row.seconds for row in alone)
    return [*bars, _at_most("mixed: time / slowest part alone", 3, slower)]


def _dense(races: Races, name: str, who: str) -> list[Bar]:
    ours = races.get(name, who)
    label = f"{name} ({who})"
    conic = min(races.starting(name, "cvxpy + Clarabel"), key=lambda row: row.seconds, default=None)
    plain = races.get(name, "numpy IBU")
    bars = _certified(races, name, 1e-10, who)
    # compare at the gap that Clarabel reaches, which is rarely as small as ours
    loose = races.get(name, "ibukit, to 1e-6")
    if ours and conic and loose and loose.gap <= conic.gap and loose.seconds < ours.seconds:
        ours, full = loose, ours
    else:
        full = ours
    if ours is None or conic is None:
        bars.append(Bar(f"{label}: fastest Clarabel / ours", ">= 20", "not measured", None))
    else:
        ratio, closer = conic.seconds / ours.seconds, ours.gap <= max(conic.gap, 1e-10)
        measured = (
            f"{ratio:.1f} ({conic.contender}, gap {conic.gap:.0e} to our {max(ours.gap, 0):.0e})"
        )
        bars.append(
            Bar(f"{label}: fastest Clarabel / ours", ">= 20", measured, ratio >= 20 and closer)
        )
    bars.append(
        _at_least(
            f"{label}: numpy IBU / ours", 400, full and plain and plain.seconds / full.seconds
        )
    )
    return [*bars, _iterations(races, name, 15, who=who)]


def _certified(races: Races, name: str, tol: float, who: str = "ibukit") -> list[Bar]:
    row = races.get(name, who)
    if row is None or row.gap is None:
        return [Bar(f"{name} ({who}): certified gap", f"<= {tol:g}", "not measured", None)]
    return [
        Bar(
            f"{name} ({who}): certified gap",
            f"<= {tol:g}",
            f"{max(row.gap, 0):.1e}",
            row.gap <= tol,
        )
    ]


def _iterations(
    races: Races, name: str, most: int, what: str = "iterations", who: str = "ibukit"
) -> Bar:
    row = races.get(name, who)
    return _at_most(f"{name} ({who}): {what}", most, row and row.iterations)


def _time_in(
    races: Races, name: str, yardstick: str, unit: str, most: float, below: bool = False
) -> Bar:
    """Our time in units of one iteration of a yardstick."""
    ours, stick = races.get(name), races.get(name, yardstick)
    value = ours and stick and ours.seconds / (stick.seconds / (stick.iterations or 1))
    return _at_most(f"{name}: CPU time in {unit}", most, value, below)


def _memory(races: Races, name: str, unit: str, most: float) -> Bar:
    row = races.get(name)
    return _at_most(
        f"{name}: peak memory of the call / {unit}", most, row and row.memory, below=True
    )


def _linear(races: Races) -> Bar:
    small, large = races.get("W6-line-1e5"), races.get("W6-line-1e7")
    value = (
        small
        and large
        and log10((large.seconds / large.iterations) / (small.seconds / small.iterations)) / 2
    )
    return _at_most("W6-line: power of k in the time of an iteration, 1e5 to 1e7", LINEAR, value)


def _at_most(bar: str, most: float, value: float | Row | None, below: bool = False) -> Bar:
    return _compared(
        bar, f"{'<' if below else '<='} {most:g}", value, lambda v: v < most if below else v <= most
    )


def _at_least(bar: str, least: float, value: float | Row | None) -> Bar:
    return _compared(bar, f">= {least:g}", value, lambda v: v >= least)


def _compared(
    bar: str, required: str, value: float | Row | None, passes: Callable[[float], bool]
) -> Bar:
    if value is None or value is False:
        return Bar(bar, required, "not measured", None)
    return Bar(bar, required, f"{value:.3g}", passes(value))
