"""Run the tests, without the chapters, on every supported Python and on the lowest dependencies.

    python scripts/versions.py [--jobs N] [--only "NAME ..."] [--tests "PATH ..."] [PYTEST ARGUMENT
    ...]

Each run has an environment of its own under _build/versions, which uv makes afresh; the lowest
versions are the lowest that pyproject.toml allows. The interpreter comes from pyenv or from this
machine, or uv installs it. One line is printed for each run, and the exit code is 1 if a test
fails. A Python that is not available here, or for which a dependency has no wheel, is left out and
named with the reason. Logs are in _build/versions.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import suite_run

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "_build" / "versions"
UV = Path(sys.executable).with_name("uv")
# Tests import mypy and Playwright as well.
EXTRAS = ".[bayes,data,book,test,lint,browser]"
WHAT_IS_HERE = """
import platform, numpy, scipy, numba
libraries = (numpy, scipy, numba)
print(platform.python_version(), *(f"{each.__name__} {each.__version__}" for each in libraries))
"""


@dataclass(frozen=True)
class Version:
    """One environment: a Python, and which versions of the dependencies."""

    name: str
    python: str
    resolution: str = "highest"


VERSIONS = (
    Version("lowest", "3.11", "lowest-direct"),
    *(Version(python, python) for python in ("3.11", "3.12", "3.13", "3.14")),
)


def uv(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Call uv and keep what it says."""
    return subprocess.run([UV, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def find_python(version: str) -> str | None:
    """The path of an interpreter: of pyenv, of this machine, or one that uv can install."""
    for home in sorted(
        Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}.*")
    ):
        if (python := home / "bin" / "python").exists():
            return str(python)
    found = uv("python", "find", version)
    if found.returncode and uv("python", "install", version).returncode == 0:
        found = uv("python", "find", version)
    return found.stdout.strip() if found.returncode == 0 else None


def make(version: Version) -> str:
    """Make the environment; return the reason if it cannot be made, or "" if it was made."""
    python = find_python(version.python)
    if python is None:
        return f"there is no Python {version.python} here, and none could be installed"
    home = OUT / version.name
    shutil.rmtree(home, ignore_errors=True)
    if (made := uv("venv", "-q", "--seed", "-p", python, home)).returncode:
        return made.stderr.strip().splitlines()[-1]
    # only wheels: a package without one for this Python would compile for many minutes, or fail
    choose = ["--resolution", version.resolution, "--only-binary", ":all:", "--no-binary", "ibukit"]
    if (
        made := uv("pip", "install", "-q", "-p", home / "bin" / "python", *choose, "-e", EXTRAS)
    ).returncode:
        return " ".join(made.stderr.split())[:400]
    return ""


def run(version: Version, jobs: int, rest: Sequence[str]) -> bool:
    """Run the suite in its environment and print its line; True if all was well."""
    if reason := make(version):
        print(f"{version.name:10} left out: {reason}", flush=True)
        return True
    python = OUT / version.name / "bin" / "python"
    well = suite_run.run(version.name, python, ROOT, OUT, os.environ, ["-n", str(jobs), *rest])
    shown = subprocess.run(
        [python, "-c", WHAT_IS_HERE], capture_output=True, text=True, check=False
    )
    print(f"           {shown.stdout.strip()}", flush=True)
    return well


def main() -> int:
    """Carry out the command line; 1 where a run failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="processes of pytest (default: %(default)s)"
    )
    parser.add_argument(
        "--tests", default="ibukit tests", help="what to run (default: %(default)s)"
    )
    names = [version.name for version in VERSIONS]
    parser.add_argument(
        "--only", metavar="NAMES", default="", help=f"some of {' '.join(names)}; all by default"
    )
    arguments, rest = parser.parse_known_args()
    if unknown := set(arguments.only.split()) - set(names):
        parser.error(f"--only must name some of {' '.join(names)}, got {' '.join(sorted(unknown))}")
    rest = [*suite_run.tests_named(parser, arguments.tests, ROOT), *rest]
    OUT.mkdir(parents=True, exist_ok=True)
    chosen = [version for version in VERSIONS if version.name in (arguments.only.split() or names)]
    return int(sum(run(version, arguments.jobs, rest) for version in chosen) < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
