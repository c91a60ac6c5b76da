"""The command line: ``ibukit estimate``, ``ibukit check`` and ``ibukit plan``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

from ibukit.cli.arguments import parser
from ibukit.errors import IbukitError

# Messages of the library name its arguments; here they are options, or nothing.
OPTIONS = {
    r'\b(unknown|missing)="(\w+)"': r"--\1 \2",
    r"; say weighted=True if these are weights": "",
    r"Grid\.from_bounds\((\S+), (\S+), (\S+), (\S+), n_rows, n_cols\), or Grid\.covering\(.*?\)": (
        r"--bounds=\1,\2,\3,\4"
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    The code is 0 for success, 2 after an error, with one line on standard error, and 130 after
    Ctrl-C.

    Examples
    --------
    >>> main(["estimate", "missing.csv", "--mechanism", "k-rr", "--epsilon", "2", "--k", "15"])
    2
    """
    try:
        options = parser().parse_args(arguments)
        COMMANDS[options.command](options)
    except KeyboardInterrupt:
        return 130
    # The reader of the output, such as `head`, has closed the pipe.
    except BrokenPipeError:
        # Python flushes standard output at exit; without this it would fail once more, with a
        # traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (IbukitError, ValueError, TypeError, OSError, MemoryError) as error:
        print(f"ibukit: {_message(error)}", file=sys.stderr)
        return 2
    return 0


def _message(error: Exception) -> str:
    """Return one line for people who know the command line only."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror is not None:
        # The text of an error of the system begins with its number.
        text = error.strerror
        if error.filename is not None:
            text = f"{str(error.filename)!r} must be a file that can be opened, got: {text}"
    text = " ".join(text.split())
    for words, option in OPTIONS.items():
        text = re.sub(words, option, text)
    return text


# Each command imports what it needs when it runs, so that `ibukit --version` loads nothing.
def _check(options: argparse.Namespace) -> None:
    from ibukit.cli.check import run

    run(options)


def _estimate(options: argparse.Namespace) -> None:
    from ibukit.cli.estimate import run

    run(options)


def _plan(options: argparse.Namespace) -> None:
    from ibukit.cli.plan import run

    run(options)


COMMANDS = {"check": _check, "estimate": _estimate, "plan": _plan}
