"""The command line: from reports to an estimate, what a mechanism lets through, and how many reports it takes."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from ibukit.cli.arguments import parser
from ibukit.errors import IbukitError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is 0, 2 with one line on standard error, or 130 after Ctrl-C.

    Examples
    --------
    >>> main(["estimate", "missing.csv", "--mechanism", "k-rr", "--epsilon", "2", "--k", "15"])
    2
    """
    try:
        options = parser().parse_args(arguments)
        _command(options.command)(options)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of the output has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (IbukitError, ValueError, TypeError, OSError, MemoryError) as error:
        # what the library calls an argument is an option here
        message = re.sub(r'\b(unknown|missing)="drop"', r"--\1 drop", " ".join(str(error).split()))
        print(f"ibukit: {message}", file=sys.stderr)
        return 2
    return 0


def _command(name: str) -> Callable[[argparse.Namespace], None]:
    # commands load what they need, and `ibukit --version` nothing
    run: Callable[[argparse.Namespace], None] = import_module(f"ibukit.cli.{name}").run
    return run
