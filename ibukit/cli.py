"""The command line: estimate the distribution behind a file of reports."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

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
        tally = mechanism.tally(reports)
        estimate = _estimate(tally, options)
        _write(estimate, options.out)
    except (IbukitError, ValueError, OSError, MemoryError, csv.Error) as error:
        print("ibukit: " + " ".join(str(error).split()), file=sys.stderr)
        return 2
    print(estimate, file=sys.stderr)
    return 0


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # argparse would print the usage first: several lines
        self.exit(2, f"ibukit: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _OneLineParser(prog="ibukit", description="Reconstruct distributions from private reports.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("estimate", help="estimate the distribution behind a CSV file of reports")
    command.add_argument("reports", type=Path, metavar="REPORTS.csv", help="one report a line; a header names a column")
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
    # utf-8-sig: spreadsheets put a byte-order mark before the header
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        names = list(rows.fieldnames or [])
        alone = column is None and len(names) == 1
        column = names[0] if alone else column
        if column is None or names.count(column) != 1:
            raise ValueError(f"--column must name one of the columns {names} of {path}, got {column!r}")
        values: list[tuple[int, str | None]] = []
        if alone and _is_whole(column):
            values.append((1, column))  # no header: this, too, is a report
        for row in rows:
            if None in row:
                raise ValueError(f"line {rows.line_num} of {path} must have {len(names)} field(s), it has more")
            values.append((rows.line_num, row[column]))
    for line, value in values:
        if not _is_whole(value):
            raise ValueError(f"line {line} of {path} must hold a whole number, got {value!r}")
    return [int(value or "") for _, value in values]


def _is_whole(text: str | None) -> bool:
    try:
        int(text or "")
    except ValueError:
        return False
    return True


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
