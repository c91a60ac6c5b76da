"""Run tests on an emulated 64-bit Arm processor, or say in one sentence what that needs.

    python scripts/arm.py [--only "NAME ..."] [--tests "PATH ..."] [--go-on] [PYTEST ARGUMENT ...]

QEMU translates every instruction, so only files are needed: Debian's Python for Arm, which is
unpacked but not installed, and the wheels of requirements.lock for Arm. All of these files, 2 GB,
are kept under _build/arm. A test takes twenty to fifty times as long as on this machine's own
processor. Without --tests a sample of the tests is run, which takes twenty minutes on a free core.
A folder is run in pieces, one for each of its folders and files, and each piece has a log of its
own; --go-on leaves out the pieces that have passed. Chapters are never run, nor are tests that
start a process of their own, because that process would not be emulated.

One line is printed for each piece, and the exit code is 1 if a test fails. Logs are in _build/arm.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import suite_run

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "_build" / "arm"
UV = Path(sys.executable).with_name("uv")
QEMU = "qemu-aarch64-static"
# for each program that is looked for, the package that installs it
PACKAGES = {QEMU: "qemu-user-static", "mmdebstrap": "mmdebstrap"}
# The wheels are chosen for the Python of this release of Debian.
DEBIAN, PYTHON = "bookworm", "3.11"
IN_DEBIAN = "python3,libgomp1,libstdc++6"
SAMPLE = (
    "tests/privacy/test_closed_forms.py",
    "tests/solvers/test_bits.py",
    "tests/solvers/test_plane_precision.py",
    "tests/estimators/test_ibu.py",
    "tests/estimators/test_mle.py",
)
PROBE = """
import json, platform
import numpy as np, scipy, threadpoolctl
from scipy.linalg.blas import ssyrk
error = 0.0
for shape in ((40, 5), (400, 37), (300, 200)):
    rows = np.random.default_rng(0).random(shape)
    exact = rows.T @ rows
    found = np.tril(ssyrk(1.0, rows.astype(np.float32).T, lower=1))
    off = np.abs(found - np.tril(exact)).max() / exact.max()
    error = max(error, float(off) if np.isfinite(off) else 9.0)
print(json.dumps({
    "machine": platform.machine(),
    "versions": (
        f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
    ),
    "blas": sorted({lib.get("architecture", "") for lib in threadpoolctl.threadpool_info()}),
    "error": error,
}))
"""


@dataclass(frozen=True)
class Processor:
    """One emulated processor: the name that QEMU has for it."""

    name: str
    cpu: str
    what: str


PROCESSORS = (
    Processor("plain", "cortex-a57", "Armv8 without wide vectors"),
    Processor("all", "max", "every feature that QEMU knows, SVE and SME among them"),
)


def missing(which: Callable[[str], str | None] = shutil.which) -> str:
    """The sentence that names what has to be installed; "" if all is there."""
    packages = [package for program, package in PACKAGES.items() if not which(program)]
    if not packages:
        return ""
    named = " and ".join(packages)
    return f"make arm needs {named}: on Debian, apt-get install {' '.join(packages)}"


def pieces(paths: Sequence[str], root: Path = ROOT) -> list[str]:
    """The paths to be run one after the other; a folder with folders is replaced by its pieces."""
    found = []
    for path in paths:
        own = root / path
        folders = (
            sorted(each.name for each in own.iterdir() if _has_tests(each)) if own.is_dir() else []
        )
        if not folders:
            found.append(path)
            continue
        files = sorted(each.name for each in own.glob("test_*.py"))
        found += pieces([f"{path.rstrip('/')}/{name}" for name in folders + files], root)
    return found


def _has_tests(folder: Path) -> bool:
    return folder.is_dir() and any(folder.rglob("test_*.py"))


def has_passed(results: Path) -> bool:
    """True if pytest left the results of at least one test, and no test failed."""
    if not results.exists():
        return False
    cases = list(ET.parse(results).iter("testcase"))
    return bool(cases) and not any(
        case.find(kind) is not None for case in cases for kind in ("failure", "error")
    )


def say(probed: dict[str, object], processor: Processor) -> str:
    """The line about a processor: what runs there, and whether BLAS is right there."""
    error = float(probed["error"])  # type: ignore[arg-type]
    blas = "/".join(probed["blas"])  # type: ignore[arg-type]
    single = "right" if error <= 1e-5 else f"wrong by {error:.0%}" if error < 9 else "not finite"
    return (
        f"{processor.name:10} {processor.what}: {probed['machine']}, {probed['versions']}, "
        f"OpenBLAS for {blas}, single precision {single}"
    )


def call(*command: str | Path) -> None:
    """Run a command that fetches something; an error ends the script with what it said."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{Path(command[0]).name} failed: {' '.join(done.stderr.split())[-600:]}")


def fetch() -> None:
    """Unpack Debian's Python and the locked wheels for Arm, unless they are there."""
    OUT.mkdir(parents=True, exist_ok=True)
    _once(
        OUT / "debian",
        DEBIAN + IN_DEBIAN,
        lambda to: call(
            "mmdebstrap",
            "--variant=extract",
            "--architectures=arm64",
            f"--include={IN_DEBIAN}",
            DEBIAN,
            to,
        ),
    )
    lock = ROOT / "requirements.lock"
    _once(
        OUT / "site",
        hashlib.sha256(lock.read_bytes()).hexdigest(),
        lambda to: call(
            UV,
            "pip",
            "install",
            "-q",
            "--python-platform",
            "aarch64-manylinux_2_28",
            "--python-version",
            PYTHON,
            "--only-binary",
            ":all:",
            "--target",
            to,
            "-r",
            lock,
        ),
    )


def _once(to: Path, version: str, make: Callable[[Path], None]) -> None:
    """Make a folder again unless it is of this version."""
    stamp = to.with_suffix(".ok")
    if stamp.exists() and stamp.read_text("utf8") == version:
        return
    shutil.rmtree(to, ignore_errors=True)
    make(to)
    stamp.write_text(version, "utf8")


def python_of(processor: Processor) -> Path:
    """A script that runs Python on this processor."""
    script = OUT / f"python-{processor.name}"
    script.write_text(
        f'#!/bin/sh\nexec {QEMU} -cpu {processor.cpu} -L "{OUT}/debian" '
        f'"{OUT}/debian/usr/bin/python{PYTHON}" "$@"\n',
        "utf8",
    )
    script.chmod(0o755)
    return script


def environment(processor: Processor) -> dict[str, str]:
    """The variables of a run: our sources, the wheels for Arm, one thread, compiled loops kept."""
    path = [ROOT, ROOT / "book/_ext/claims", OUT / "site"]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    return (
        os.environ
        | threads
        | {
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "NUMBA_CACHE_DIR": str(OUT / f"numba-{processor.name}"),
        }
    )


def run(processor: Processor, tests: Sequence[str], goes_on: bool, rest: Sequence[str]) -> bool:
    """Run the pieces on one processor and print their lines; True if all was well."""
    python, own = python_of(processor), environment(processor)
    probed = subprocess.run(
        [python, "-c", PROBE], env=own, capture_output=True, text=True, check=False
    )
    if probed.returncode:
        print(
            f"{processor.name:10} NOT EMULATED: {' '.join(probed.stderr.split())[-300:]}",
            flush=True,
        )
        return False
    print(say(json.loads(probed.stdout.splitlines()[-1]), processor), flush=True)
    failed, each = 0, pieces(tests)
    for piece in each:
        name = (
            f"{processor.name}-{piece.removeprefix('tests/').removesuffix('.py').replace('/', '-')}"
        )
        if goes_on and has_passed(OUT / f"{name}.xml"):
            print(f"{name}: has passed before", flush=True)
            continue
        options = ["-n", "0", "-p", "no:cacheprovider", piece, *rest]
        failed += not suite_run.run(name, python, ROOT, OUT, own, options)
    print(f"{processor.name:10} {len(each) - failed} of {len(each)} pieces passed", flush=True)
    return failed == 0


def main() -> int:
    """Carry out the command line; 1 where a run failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [processor.name for processor in PROCESSORS]
    parser.add_argument(
        "--only", metavar="NAMES", default="", help=f"some of {' '.join(names)}; all by default"
    )
    parser.add_argument(
        "--tests", default=" ".join(SAMPLE), help="what to run (default: %(default)s)"
    )
    parser.add_argument("--go-on", action="store_true", help="leave out what has passed before")
    arguments, rest = parser.parse_known_args()
    if unknown := set(arguments.only.split()) - set(names):
        parser.error(f"--only must name some of {' '.join(names)}, got {' '.join(sorted(unknown))}")
    tests = suite_run.tests_named(parser, arguments.tests, ROOT)
    if sentence := missing():
        print(sentence, file=sys.stderr)
        return 1
    fetch()
    chosen = [each for each in PROCESSORS if each.name in (arguments.only.split() or names)]
    well = [run(each, tests, arguments.go_on, rest) for each in chosen]
    return int(not all(well))


if __name__ == "__main__":
    sys.exit(main())
