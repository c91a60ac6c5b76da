"""``ibukit estimate``: from a table of reports to a distribution."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ibukit.cli.models import mechanism_of
from ibukit.cli.output import check_output, write
from ibukit.estimators import Gap, Steps, ibu, inv, mle
from ibukit.tables import TableReports
from ibukit.tables.paths import PARQUET, data_files
from ibukit.tables.readers import open_table
from ibukit.tables.table import ReportTable
from ibukit.tables.text import TextFile
from ibukit.tally.tally import Tally
from ibukit.tally.tally_groups import TallyGroups


def run(options: argparse.Namespace) -> None:
    """Read the reports, estimate their distribution, and write it."""
    # Options and output are checked first: reading the reports may take long.
    estimator = _estimator(options)
    mechanism = mechanism_of(options)
    check_output(options.out, groups=options.groups is not None, inputs=_inputs(options))
    tally = _tally(options, mechanism)
    estimate = estimator(tally)
    write(estimate, options.interval, options.out)
    print(estimate, file=sys.stderr)
    if tally.dropped:
        dropped = ", ".join(f"{number} {reason}" for reason, number in tally.dropped.items())
        print(f"dropped: {dropped}", file=sys.stderr)


def _inputs(options: argparse.Namespace) -> list[str]:
    """Return the files that are read, of which none may be replaced by the estimate."""
    named = [options.reports, options.mechanism, options.labels]
    inputs = [path for path in named if isinstance(path, str)]
    if options.reports.lower().endswith(PARQUET):
        # A pattern stands for several.
        inputs += [file.path for file in data_files([options.reports])]
    return inputs


def _estimator(options: argparse.Namespace) -> Any:
    """Return the function from a tally to an estimate; refuse options that do not apply."""
    name = options.estimator or ("mle" if options.steps is None else "ibu")
    if options.steps is not None and name != "ibu":
        raise ValueError(
            f"--steps does not apply with --estimator {name}: leave it out, or say --estimator ibu"
        )
    if options.interval is not None and not 0 < options.interval < 1:
        raise ValueError(
            f"--interval must be between 0 and 1, such as 0.95, got {options.interval}"
        )
    if options.interval is not None and name.startswith("inv"):
        raise ValueError(f"--interval does not apply with --estimator {name}: use mle")
    # The names that the paper uses, each with the argument `post` of `inv` that it stands for.
    posts: dict[str, Any] = {"inv": "none", "inv-n": "normalize", "inv-p": "project"}

    def estimate(tally: Any) -> Any:
        if name == "mle":
            return mle(tally)
        if name == "ibu":
            return ibu(tally, stop=Gap(1e-6) if options.steps is None else Steps(options.steps))
        return inv(tally, post=posts[name])

    return estimate


def _tally(options: argparse.Namespace, mechanism: Any) -> Tally | TallyGroups:
    path = options.reports
    if path.lower().endswith(PARQUET):
        if options.delimiter is not None:
            raise ValueError("--delimiter does not apply to Parquet: leave it out")
        table = open_table(path)
        return Tally.from_table(table, mechanism, **_columns(options, table))
    text = TextFile(path, options.delimiter)
    # A file with a single column may have no line of column names.
    text.headless = _is_report(text, mechanism, options)
    return Tally.from_table(text, mechanism, **_columns(options, text))


def _columns(options: argparse.Namespace, table: ReportTable) -> dict[str, Any]:
    """Return the arguments of `Tally.from_table` that the options stand for."""
    groups = None if options.groups is None else options.groups.split(",")
    others = (options.epsilon_column, options.count_column, *(groups or ()))
    report = options.column
    if report is None:
        # By default the reports are in the only column that no other option names.
        report = [name for name in table.names if name not in others]
        if len(report) != 1:
            raise ValueError(
                f"--column must name one of the columns {table.names} of {options.reports}"
            )
    return {
        "report": report[0] if len(report) == 1 else report,
        "count": options.count_column,
        "epsilon": options.epsilon_column,
        "by": None,
        "unknown": options.unknown,
        "missing": options.missing,
        "groups": groups,
    }


def _is_report(text: TextFile, mechanism: Any, options: argparse.Namespace) -> bool:
    """Return whether the first line is a report instead of the name of the only column."""
    if (
        len(text.names) != 1
        or options.column
        or options.epsilon_column
        or options.count_column
        or options.groups
    ):
        return False
    return TableReports(text, mechanism, report=text.names[0]).takes(text.names[0])
