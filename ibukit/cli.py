"""The command line: estimate the distribution behind a file of reports."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ibukit.alphabet import Line
from ibukit.errors import IbukitError
from ibukit.estimate import Estimate
from ibukit.estimators import Gap, Steps, ibu, inv, mle
from ibukit.mechanisms import (
    Exponential,
    LinearGeometric,
    LinearLaplace,
    Mechanism,
    RandomizedResponse,
    TruncatedGeometric,
)
from ibukit.tally import Tally

MECHANISMS: dict[str, Callable[[Line, float], Mechanism]] = {
    "k-rr": RandomizedResponse,
    "geometric": LinearGeometric,
    "truncated-geometric": TruncatedGeometric,
    "laplace": LinearLaplace,
    "exponential": Exponential,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0, or 2 with one line on standard error.

    Examples
    --------
    >>> main(["estimate", "missing.csv", "--mechanism", "k-rr", "--epsilon", "2", "--k", "15"])
    2
    """
    options = _parser().parse_args(arguments)
    try:
        mechanism = MECHANISMS[options.mechanism](Line(options.first, options.first + options.k - 1), options.epsilon)
        reports = _read_column(options.reports, options.column)
        # untruncated geometric noise reports any integer, the others one of the secrets
        if isinstance(mechanism, LinearGeometric):
            tally = mechanism.tally(reports)
        else:
            tally = mechanism.tally(mechanism.alphabet.codes(reports))
        estimate = _estimate(tally, options)
    except (IbukitError, ValueError, OSError) as error:
        print("ibukit: " + " ".join(str(error).split()), file=sys.stderr)
        return 2
    _write(estimate, options.out)
    print(estimate, file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ibukit", description="Reconstruct distributions from private reports.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("estimate", help="estimate the distribution behind a CSV file of reports")
    command.add_argument("reports", type=Path, metavar="REPORTS.csv", help="one report a line, with a header")
    command.add_argument("--mechanism", choices=MECHANISMS, required=True)
    command.add_argument("--epsilon", type=float, required=True, help="per unit of distance, but for k-rr")
    command.add_argument("--k", type=int, required=True, help="number of possible secrets")
    command.add_argument("--first", type=int, default=0, help="the least secret; the others follow (default 0)")
    command.add_argument("--column", help="column that holds the reports (default: the only one)")
    command.add_argument("--estimator", choices=["ibu", "mle", "inv-n", "inv-p"], default="ibu")
    command.add_argument("--steps", type=int, help="stop ibu after so many steps instead of at a gap of 1e-6")
    command.add_argument("--out", type=Path, metavar="OUT.csv", help="where to write (default: standard output)")
    return parser


def _read_column(path: Path, column: str | None) -> list[int]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        names = list(rows.fieldnames or [])
        if column is None and len(names) == 1:
            column = names[0]
        if column not in names:
            raise ValueError(f"--column must name one of the columns {names} of {path}, got {column!r}")
        values = [row[column] for row in rows]
    reports = []
    for line, value in enumerate(values, start=2):
        try:
            reports.append(int(value))
        except (TypeError, ValueError):
            raise ValueError(f"line {line} of {path} must hold a whole number, got {value!r}") from None
    return reports


def _estimate(tally: Tally, options: argparse.Namespace) -> Estimate:
    if options.estimator == "mle":
        return mle(tally)
    if options.estimator == "inv-n":
        return inv(tally, post="normalize")
    if options.estimator == "inv-p":
        return inv(tally, post="project")
    return ibu(tally, stop=Gap(1e-6) if options.steps is None else Steps(options.steps))


def _write(estimate: Estimate, out: Path | None) -> None:
    lines = ["value,probability\n"]
    values = estimate.alphabet.values.tolist()
    lines += [f"{value},{p!r}\n" for value, p in zip(values, estimate.distribution.tolist(), strict=True)]
    if out is None:
        sys.stdout.writelines(lines)
    else:
        out.write_text("".join(lines), encoding="utf-8")
