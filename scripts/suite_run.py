"""Run the tests once, in an environment of their own, and print the result in one line."""

from __future__ import annotations

import argparse
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path


def reason(case: ET.Element) -> str:
    """The first line of what pytest said of a test that failed."""
    for kind in ("failure", "error"):
        if (found := case.find(kind)) is not None:
            return next(iter((found.get("message") or found.text or "").strip().splitlines()), "")[
                :200
            ]
    return ""


def tests_named(parser: argparse.ArgumentParser, tests: str, root: Path) -> list[str]:
    """The paths of the option --tests; a path that is not there ends the script with a message.

    Otherwise pytest on several processes would prepare for a minute or more, and find no tests.
    """
    paths = tests.split()
    if missing := [path for path in paths if not (root / path.partition("::")[0]).exists()]:
        parser.error(f"--tests must name files or folders of tests, got {' '.join(missing)}")
    return paths


def run(
    name: str,
    python: str | Path,
    root: Path,
    out: Path,
    environment: Mapping[str, str],
    rest: Sequence[str],
) -> bool:
    """Run pytest in `root`, print the line and every test that failed; True if all was well.

    The log and the results are `out`/NAME.log and NAME.xml.
    """
    out.mkdir(parents=True, exist_ok=True)
    results, log = out / f"{name}.xml", out / f"{name}.log"
    results.unlink(missing_ok=True)
    began = time.monotonic()
    command = [python, "-m", "pytest", "-q", f"--junitxml={results}", *rest]
    with log.open("w", encoding="utf8") as file:
        code = subprocess.run(
            command, cwd=root, env=environment, stdout=file, stderr=file, check=False
        ).returncode
    seconds = time.monotonic() - began
    cases = list(ET.parse(results).iter("testcase")) if results.exists() else []
    bad = [
        case for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    good = len(cases) - len(bad) - skipped
    left = f" {skipped:4} skipped" if skipped else ""
    print(f"{name:10} {good:6} passed {len(bad):4} failed{left} {seconds:6.0f} s", flush=True)
    for case in bad:
        print(f"           FAILED {case.get('classname')}::{case.get('name')}: {reason(case)}")
    if code and not bad:
        print(f"           pytest ended with {code}: see {log.relative_to(root)}")
    return code == 0 and bool(cases)
