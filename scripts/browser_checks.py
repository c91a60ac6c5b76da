"""Run every check of the built book in headless Chromium, several at once.

    python scripts/browser_checks.py [--controls] [--jobs N]

`check_book` is run first and alone, with all the jobs for itself, because it measures how soon a
page shows its first words. The other checks then share the jobs. With --controls the checks are
shown pages that are broken on purpose instead, which only a change of a check makes necessary. All
checks are run even if one fails. The output of a check is printed when the check ends, and the last
lines name the checks that failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
SELF_TEST = "--self-test"
# The longest checks come first, so that at the end no job is left alone with a long one.
SHARED = (
    ("print_book.py", "--check"),
    ("check_moving_figures.py",),
    ("check_try.py",),
    ("check_slides.py",),
    ("check_figure_files.py",),
    ("first_minute.py",),
)
CONTROLS = (
    ("check_book.py", SELF_TEST),
    ("check_try.py", SELF_TEST),
    ("check_slides.py", SELF_TEST),
    ("check_moving_figures.py", SELF_TEST),
    ("print_book.py", SELF_TEST),
    ("check_figure_files.py", SELF_TEST),
)


def alone(jobs: int) -> tuple[str, ...]:
    """The check that nothing may disturb."""
    return ("check_book.py", "--jobs", str(jobs))


def run(command: tuple[str, ...], scripts: Path = SCRIPTS) -> bool:
    """Run one check and print what it said, in one piece; True if it found nothing."""
    start = time.monotonic()
    ended = subprocess.run(
        [sys.executable, str(scripts / command[0]), *command[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    name, verdict = " ".join(command), "" if ended.returncode == 0 else ", FAILED"
    said = f"--- {name} ({time.monotonic() - start:.0f} s{verdict})\n{ended.stdout}"
    print(said, end="", flush=True)
    return ended.returncode == 0


def failures(
    first: Iterable[tuple[str, ...]],
    shared: Iterable[tuple[str, ...]],
    jobs: int,
    scripts: Path = SCRIPTS,
) -> list[str]:
    """The checks that failed, after all of them were run: the first one by one."""
    failed = [" ".join(command) for command in first if not run(command, scripts)]
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(run, command, scripts): command for command in shared}
        failed += [
            " ".join(running[ended]) for ended in as_completed(running) if not ended.result()
        ]
    return failed


def main() -> int:
    """Carry out the command line; 1 where a check failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--controls", action="store_true", help="show the checks pages that are broken on purpose"
    )
    parser.add_argument("--jobs", type=int, default=2, help="checks that run at once")
    arguments = parser.parse_args()
    jobs = arguments.jobs
    failed = failures(*(((), CONTROLS) if arguments.controls else ([alone(jobs)], SHARED)), jobs)
    print(*(f"browser_checks: {name} failed" for name in failed), sep="\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
