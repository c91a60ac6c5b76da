"""Run the suite as if on other machines: other kernels of BLAS, numpy, numba and libm, and noise.

    python scripts/portable.py [--jobs N] [--only "NAME ..."] [--tests "PATH ..."] [PYTEST ARGUMENT
    ...]

The script prints one line for each run: its name, what passed and failed, and the seconds. The exit
code is 1 if a test fails, or if a library did not run as asked. What this processor cannot run
(kernels with AVX-512, say) is named as left out. Some tests are not run again: those of the scripts
and of the tables of claims, which compute nothing for a reader, and those of the cells that a
chapter shows, because every chapter is run whole. Logs are in _build/portable.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import suite_run

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "_build" / "portable"
LEFT_OUT = (
    "tests/scripts",
    "tests/book/test_ledger.py",
    "tests/book/test_verdict_page.py",
    "tests/book/test_shown_code.py",
)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS")
# the features of a processor that are switched off; the names are those of glibc 2.33 and newer,
# and unknown names are passed over
PLAIN_LIBM = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4"}
# the same kernels have other names where a build leaves a kind out or calls it by its first
# processor
SAME_KERNELS = {"Prescott": {"Prescott", "Katmai"}, "Zen": {"Zen", "Haswell"}}
ELSEWHERE = {
    "PYTHONHASHSEED": "1",
    "TZ": "Asia/Kathmandu",
    "LC_ALL": "C",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONUTF8": "0",
}
PROBE = """
import json, sys
import numba, numpy, threadpoolctl
import scipy.linalg
from numpy._core import _multiarray_umath as umath
import ibukit
noise = sys.modules.get("rounding_noise")
libraries = threadpoolctl.threadpool_info()
print(json.dumps({
    "blas": sorted({lib["architecture"] for lib in libraries if lib.get("architecture")}),
    "simd": [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]],
    "numba": str(numba.core.config.CPU_NAME or "host"),
    "noise": bool(noise),
}))
"""


@dataclass(frozen=True)
class Machine:
    """One machine to be emulated: what to ask of each library."""

    name: str
    blas: str | None = None
    """The kernels of OpenBLAS; None for those that it chooses."""
    simd: str | None = None
    """The newest of numpy's instruction sets left on: "avx512", "avx2" or "none"; None for all."""
    numba: str | None = None
    threads: int | None = None
    noise: int | None = None
    """Seed of the rounding noise."""
    needs: str = ""
    """The feature that the processor must have, as the kernel calls it."""
    more: dict[str, str] = field(default_factory=dict)

    def environment(self, features: Sequence[str]) -> dict[str, str]:
        """The variables that emulate this machine on one with these features of numpy's."""
        found = dict(self.more)
        if self.blas:
            found["OPENBLAS_CORETYPE"] = self.blas
        if self.numba:
            found["NUMBA_CPU_NAME"] = self.numba
        if off := [name for name in features if self._is_off(name)]:
            found["NPY_DISABLE_CPU_FEATURES"] = " ".join(off)
        if self.threads:
            found |= dict.fromkeys(THREADS, str(self.threads))
        if self.noise is not None:
            found["IBUKIT_ROUNDING_NOISE"] = str(self.noise)
            path = [str(ROOT / "tests" / "rounding"), os.environ.get("PYTHONPATH", "")]
            found["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        return found

    def _is_off(self, feature: str) -> bool:
        wide = "AVX512" in feature or feature == "X86_V4"
        return (
            self.simd == "none"
            or (self.simd == "avx2" and wide)
            or (self.simd == "avx512" and feature != "X86_V3")
        )

    def missed(self, seen: dict[str, object]) -> str:
        """The differences between what the probe found and what was asked for; "" if none."""
        wanted = SAME_KERNELS.get(self.blas or "", {self.blas})
        blas = set(seen["blas"])  # type: ignore[call-overload]
        if self.blas and not blas <= wanted:
            return f"OpenBLAS runs {'/'.join(sorted(blas))}, not {self.blas}"
        if on := [name for name in seen["simd"] if self._is_off(name)]:  # type: ignore[attr-defined]
            return f"numpy still uses {' '.join(on)}"
        if self.numba and seen["numba"] != self.numba:
            return f"numba compiles for {seen['numba']}, not {self.numba}"
        if (self.noise is not None) != seen["noise"]:
            return (
                "there is no rounding noise"
                if self.noise is not None
                else "there is rounding noise"
            )
        return ""


MACHINES = (
    Machine("as-it-is"),
    Machine("haswell", "Haswell", "avx2", "haswell", threads=1, needs="avx2"),
    Machine("skylake", "SkylakeX", "avx512", "skylake-avx512", threads=4, needs="avx512f"),
    Machine("zen", "Zen", "avx2", threads=2, needs="avx2", more=ELSEWHERE),
    Machine("prescott", "Prescott", "none", "generic", threads=1, more=PLAIN_LIBM),
    *(Machine(f"noise-{seed}", noise=seed) for seed in (1, 2, 3)),
)


def can_run(machine: Machine) -> bool:
    """True if this processor has what the machine needs.

    Only Linux tells what a processor has; on other systems no kernels can be chosen.
    """
    info = Path("/proc/cpuinfo")
    if not machine.blas:
        return True
    if platform.machine() not in ("x86_64", "AMD64") or not info.exists():
        return False
    return not machine.needs or machine.needs in info.read_text("utf8").split()


def probe(environment: dict[str, str]) -> dict[str, object]:
    """The kernels that the libraries say they run in this environment."""
    found = subprocess.run(
        [sys.executable, "-c", PROBE],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(found.stdout.splitlines()[-1]))


def run(machine: Machine, features: Sequence[str], jobs: int, rest: Sequence[str]) -> bool:
    """Run the suite on one machine and print its line; True if all was well."""
    environment = os.environ | machine.environment(features)
    if missed := machine.missed(probe(environment)):
        print(f"{machine.name:10} NOT EMULATED: {missed}", flush=True)
        return False
    arguments = ["-n", str(jobs), *(f"--ignore={path}" for path in LEFT_OUT), *rest]
    return suite_run.run(machine.name, sys.executable, ROOT, OUT, environment, arguments)


def main() -> int:
    """Carry out the command line; 1 where a run failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="processes of pytest (default: %(default)s)"
    )
    names = [machine.name for machine in MACHINES]
    parser.add_argument(
        "--only", metavar="NAMES", default="", help=f"some of {' '.join(names)}; all by default"
    )
    parser.add_argument(
        "--tests", default="", help="what to run (default: all tests and all chapters)"
    )
    arguments, rest = parser.parse_known_args()
    if unknown := set(arguments.only.split()) - set(names):
        parser.error(f"--only must name some of {' '.join(names)}, got {' '.join(sorted(unknown))}")
    rest = [*suite_run.tests_named(parser, arguments.tests, ROOT), *rest]
    features = probe(dict(os.environ))["simd"]
    well = True
    for machine in MACHINES:
        if machine.name not in (arguments.only.split() or names):
            continue
        if not can_run(machine):
            print(f"{machine.name:10} left out: this processor cannot run it", flush=True)
            continue
        well &= run(machine, features, arguments.jobs, rest)  # type: ignore[arg-type]
    return int(not well)


if __name__ == "__main__":
    sys.exit(main())
