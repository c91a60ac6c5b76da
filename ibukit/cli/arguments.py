"""Commands and options of the command line."""

from __future__ import annotations

import argparse
import re
from typing import NoReturn

from ibukit._ground.doors import words_of

ESTIMATE_BY = ("mle", "ibu", "inv", "inv-n", "inv-p")

EXAMPLES = """examples:
  ibukit estimate reports.csv --mechanism k-rr --labels bike,bus,car,train --epsilon 2
  ibukit estimate reports-eps.csv --mechanism k-rr --labels bike,bus,car,train \
--epsilon-column eps --interval 0.95
  ibukit estimate ages.csv.gz --mechanism truncated-geometric --first 17 --k 74 --epsilon 0.5 \
--out ages.json
  ibukit estimate reports.csv --mechanism matrix.csv --column report --unknown drop --out shares.csv
  ibukit estimate - --mechanism mechanism.json < reports.csv
  ibukit plan k-rr --labels bike,bus,car,train --epsilon 2 --width 0.02
  ibukit plan matrix.csv --width 0.05 --level 0.9 --near counts.csv --of bike,bus
"""


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # argparse would print several lines of usage before the message.
        self.exit(2, f"ibukit: {message} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    """Print the version, which is looked up only when it is asked for, because this takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"ibukit {version('ibukit')}")
        parser.exit(0)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = _OneLineParser(
        prog="ibukit", description="Reconstruct distributions from locally private reports."
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = top.add_subparsers(required=True, metavar="COMMAND", dest="command")
    _estimate(commands)
    check = commands.add_parser(
        "check",
        help="how private a mechanism is, and whether its reports identify the distribution",
    )
    # All three commands take a mechanism by the same options.
    _mechanism(check.add_argument_group("mechanism"), positional=True)
    _plan(commands)
    return top


def _estimate(commands: argparse._SubParsersAction[_OneLineParser]) -> None:
    command = commands.add_parser(
        "estimate",
        help="estimate the distribution behind a table of reports",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "reports",
        metavar="REPORTS",
        help="CSV, also gzipped; Parquet; a folder of such files, or a pattern of their names in "
        "quotes, as 'lake/*/part0*'; - for standard input",
    )
    columns = command.add_argument_group("columns")
    columns.add_argument(
        "--column",
        action="append",
        metavar="NAME",
        help="of the reports (default: the only one); twice for cells",
    )
    columns.add_argument(
        "--epsilon-column", metavar="NAME", help="of the epsilon that each report was made with"
    )
    columns.add_argument(
        "--count-column", metavar="NAME", help="how often each report was seen (default: once)"
    )
    columns.add_argument(
        "--groups",
        metavar="NAMES",
        help="columns that name groups, with commas between: one table, an estimate for each group",
    )
    columns.add_argument(
        "--delimiter", metavar="CHARACTER", help="between columns (default: a comma, in .tsv a tab)"
    )
    # Both options have the same choices as the arguments of `Tally.from_table`.
    for what in ("unknown", "missing"):
        columns.add_argument(
            f"--{what}",
            choices=words_of("ibukit estimate", f"--{what}"),
            default="raise",
            help=f"{what} reports (drop: as if they were like the others)",
        )
    _mechanism(command.add_argument_group("mechanism"), positional=False)
    result = command.add_argument_group("result")
    result.add_argument("--estimator", choices=ESTIMATE_BY, help="(default mle; with --steps ibu)")
    result.add_argument("--steps", type=int, metavar="N", help="stop ibu after N steps")
    result.add_argument(
        "--interval", type=float, metavar="LEVEL", help="add confidence intervals, e.g. 0.95"
    )
    result.add_argument(
        "--out",
        metavar="FILE",
        help=".csv, .json, .parquet or .geojson (default: CSV on standard output)",
    )


def _plan(commands: argparse._SubParsersAction[_OneLineParser]) -> None:
    command = commands.add_parser(
        "plan",
        help="how many reports it takes",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _mechanism(command.add_argument_group("mechanism"), positional=True)
    wanted = command.add_argument_group("what for")
    wanted.add_argument(
        "--width", type=float, default=0.01, help="of the intervals, end to end (default 0.01)"
    )
    wanted.add_argument("--level", type=float, default=0.95, help="of the intervals (default 0.95)")
    wanted.add_argument(
        "--difference",
        type=float,
        metavar="D",
        help="plan a test that finds this difference, instead of a width",
    )
    wanted.add_argument(
        "--power", type=float, default=0.8, help="chance of finding it (default 0.8)"
    )
    wanted.add_argument(
        "--groups",
        type=int,
        default=2,
        help="2: between two groups; 1: of one group from a value (default 2)",
    )
    wanted.add_argument(
        "--of",
        metavar="A,B",
        help="the share of these secrets together (default: each probability)",
    )
    wanted.add_argument(
        "--near",
        metavar="FILE",
        help="CSV of labels and counts or probabilities (default: the worst case)",
    )


def _mechanism(group: argparse._ArgumentGroup, positional: bool) -> None:
    known = "a name such as k-rr, a matrix (.csv, .npy), or parameters (.yaml, .json)"
    if positional:
        group.add_argument("mechanism", metavar="MECHANISM", help=known)
    else:
        group.add_argument("--mechanism", metavar="MECHANISM", help=known, required=True)
    group.add_argument(
        "--epsilon",
        type=float,
        help="privacy parameter; per unit of distance where the noise has one",
    )
    group.add_argument(
        "--labels", metavar="A,B,C", help="the secrets in order, or a file with one on each line"
    )
    group.add_argument("--k", type=int, help="number of secrets, which are whole numbers")
    group.add_argument("--first", type=int, help="the least of them (default 0)")
    group.add_argument("--rows", type=int, help="of a grid, the secrets of planar mechanisms")
    group.add_argument("--cols", type=int, help="of a grid")
    group.add_argument(
        "--cell-size",
        type=float,
        metavar="KM",
        help="side of a cell (default: 1, or from the bounds)",
    )
    group.add_argument("--bounds", type=_bounds, metavar="S,N,W,E", help="of a grid, in degrees")


def _bounds(text: str) -> tuple[float, ...]:
    try:
        edges = tuple(float(part) for part in re.split(r"[,\s]+", text.strip()))
    except ValueError:
        edges = ()
    if len(edges) != 4:
        raise argparse.ArgumentTypeError(
            f"must be four numbers, south,north,west,east, got {text!r}"
        )
    return edges
