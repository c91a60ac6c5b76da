"""Run small cases of every compiled loop without JIT and say which of their lines were run.

    python scripts/kernel_coverage.py [PYTEST ARGUMENT ...]

The lines are those of ibukit's `_*kernels.py`, and `TESTS` run them. Nothing is compiled, because
no tool sees compiled lines. The exit code is 1 if a test fails or fewer than 98 % of the lines are
run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "_build" / "kernels"
KERNELS = "ibukit/**/_*kernels.py"
TESTS = ("tests/plain_kernels.py", "tests/plain_solvers.py")
MIN_PER_CENT = 98
# without JIT, Python's scalars warn where compiled code does not: when hashes wrap round, and when
# 1 / 0 is infinite
QUIET = ("-W", "ignore::RuntimeWarning")


def main(rest: Sequence[str]) -> int:
    """Run the tests, print the lines not run; 1 where there are too many, or a test fails."""
    OUT.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "COVERAGE_FILE": str(OUT / "lines")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "book" / "_ext" / "claims")])
    coverage = [sys.executable, "-m", "coverage"]
    tests = [
        *coverage,
        "run",
        f"--include={KERNELS}",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *QUIET,
    ]
    failed = subprocess.run(
        [*tests, *(rest or TESTS)], cwd=ROOT, env=environment, check=False
    ).returncode
    report = [
        *coverage,
        "report",
        "--show-missing",
        "--precision=1",
        f"--fail-under={MIN_PER_CENT}",
    ]
    few = subprocess.run(report, cwd=ROOT, env=environment, check=False).returncode
    return int(bool(failed or few))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
