"""``ibukit estimate``: from a table of reports to a distribution."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from ibukit.cli.models import mechanism_of
from ibukit.cli.output import check_output, write
from ibukit.estimators import Gap, Steps, ibu, inv, mle
from ibukit.tables import TableReports
from ibukit.tables.parquet import ParquetFiles
from ibukit.tables.paths import DataFile, data_files
from ibukit.tables.table import ReportTable
from ibukit.tables.text import TextFile, TextFiles
from ibukit.tally.tally import Tally


def run(options: argparse.Namespace) -> None:
    """Read the reports, estimate their distribution, and write it."""
    # Options and output are checked first: reading the reports may take long.
    estimator = _estimator(options)
    mechanism = mechanism_of(options)
    files = _files(options.reports)
    read = [options.reports, options.mechanism, options.labels, *(file.path for file in files)]
    inputs = [path for path in read if isinstance(path, str)]
    check_output(options.out, groups=options.groups is not None, inputs=inputs)
    table = _table(files, mechanism, options)
    tally = Tally.from_table(table, mechanism, **_columns(options, table))
    estimate = estimator(tally)
    write(estimate, options.interval, options.out)
    print(estimate, file=sys.stderr)
    if tally.dropped:
        dropped = ", ".join(f"{number} {reason}" for reason, number in tally.dropped.items())
        print(f"dropped: {dropped}", file=sys.stderr)


def _files(path: str) -> list[DataFile]:
    """Return the files that the reports are in: one, those of a folder, or those of a pattern."""
    file = DataFile(path, {})
    # A file that is named itself is text unless its name says Parquet, and may be a pipe.
    alone = path == "-" or (os.path.exists(path) and not os.path.isdir(path))
    return [file] if alone and not file.columnar else data_files([path])


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


def _table(files: list[DataFile], mechanism: Any, options: argparse.Namespace) -> ReportTable:
    if files[0].columnar:
        if options.delimiter is not None:
            raise ValueError("--delimiter does not apply to Parquet: leave it out")
        return ParquetFiles(files)
    texts = []
    for file in files:
        text = TextFile(file.path, options.delimiter, file.partition)
        # A file with a single column may have no line of column names.
        own = [name for name in text.names if name not in file.partition]
        text.headless = len(own) == 1 and _is_report(own[0], text, mechanism, options)
        texts.append(text)
    return TextFiles(texts)


def _columns(options: argparse.Namespace, table: ReportTable) -> dict[str, Any]:
    """Return the arguments of `Tally.from_table` that the options stand for."""
    groups = _names_of_groups(options)
    others = (options.epsilon_column, options.count_column, *groups)
    report = options.column
    if report is None:
        # By default the reports are in the only column that no other option names.
        report = list(dict.fromkeys(name for name in table.names if name not in others))
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
        "groups": groups or None,
    }


def _names_of_groups(options: argparse.Namespace) -> list[str]:
    return [] if options.groups is None else options.groups.split(",")


def _is_report(first: str, text: TextFile, mechanism: Any, options: argparse.Namespace) -> bool:
    """Return whether the first line is a report instead of the name of the only column."""
    # Other columns may be in the names of folders.
    others = (options.epsilon_column, options.count_column, *_names_of_groups(options))
    if options.column is not None or first in others:
        return False
    if options.epsilon_column is not None:
        # What counts is which reports there are, and not how likely they are.
        mechanism = mechanism(1.0)
    return TableReports(text, mechanism, report=first).takes(first)
