"""Build the book; a warning is an error, and nothing stale is reused.

Three things would otherwise let a wrong book look right:

* The execution cache is keyed on the cells of a chapter alone, so a change in ibukit/, data/ or the results of the
  benchmarks leaves old numbers standing. Those folders are therefore hashed, and a new hash empties _build.
  (Not _build/bench.)
* Sphinx does not read an unchanged page twice, so the warnings of a failed build are gone in the next one. After a
  failure the parsed pages are dropped.
* Without -W a chapter that raises still ends in success.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "_build"
STAMP = BUILD / ".fingerprint"
KEPT = "bench"  # what `make bench` leaves there is no part of the book, and takes long to make again
INPUTS = ("ibukit", "data", "benchmarks/results", "book/_ext", "requirements.lock", "_config.yml", "_toc.yml")


def fingerprint(root: Path = ROOT) -> str:
    """Hash of everything but the chapters that decides what they show."""
    digest = hashlib.sha256(sys.version.encode())
    for name in INPUTS:
        top = root / name
        files = [top] if top.is_file() else top.rglob("*")
        for path in sorted(p for p in files if p.is_file() and "__pycache__" not in p.parts):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def clear(build: Path) -> None:
    """Remove all that came of building the book."""
    for path in build.iterdir():
        if path.name == KEPT:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def main() -> int:
    """Build and return the status of the build."""
    wanted = fingerprint()
    if BUILD.exists() and (not STAMP.exists() or STAMP.read_text() != wanted):
        print("book: the package, the data or the configuration changed, so every chapter runs anew")
        clear(BUILD)
    BUILD.mkdir(exist_ok=True)
    STAMP.write_text(wanted)
    status = subprocess.run(
        [Path(sys.executable).with_name("jupyter-book"), "build", ROOT, "-W", "--keep-going", *sys.argv[1:]],
        cwd=ROOT,
        check=False,
    ).returncode
    if status:
        shutil.rmtree(BUILD / ".doctrees", ignore_errors=True)
        for report in sorted((BUILD / "html" / "reports").rglob("*.err.log")):
            print(f"book: a chapter raised; its traceback is in {report.relative_to(ROOT)}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
