"""Build the book; a warning is an error, and nothing stale is reused.

    python scripts/build_book.py [--jobs N] [ARGUMENT OF jupyter-book build ...]

Chapters are run N at a time, and their results go into the cache that jupyter-book reads;
jupyter-book itself would run them one after another.

Three things would otherwise let a wrong book look right:

* The execution cache is keyed on the cells of a chapter alone, so a change in ibukit/, data/ or the
  results of the benchmarks leaves old numbers standing. Those folders are therefore hashed, and a
  new hash empties _build. (Not _build/bench.)
* Sphinx does not read an unchanged page twice, so the next build does not repeat the warnings of
  a failed one. After a failure the parsed pages are dropped.
* Without the option -W, the build succeeds even if a chapter raises an error.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import nbformat
import yaml
from jupyter_cache import get_cache
from jupyter_cache.executors import load_executor
from tqdm import tqdm

import figure_files
import light_book
import page_loading
import slides
import unbroken_numbers
from notebooks import SECONDS_PER_CELL, chapters, kernel_settings, without_ports

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "_build"
STAMP = BUILD / ".fingerprint"
KEPT = "bench"  # results of `make bench` are not part of the book, and take long to make again
INPUTS = (
    "ibukit",
    "data",
    "benchmarks/results",
    "book/_ext",
    "book/_templates",
    "scripts/figure_data.py",
    "requirements.lock",
    "_config.yml",
    "_toc.yml",
)


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
    """Remove everything that a build of the book left."""
    for path in build.iterdir():
        if path.name == KEPT:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def run_ahead(path: Path, cache: Path) -> bool:
    """Run a chapter into the cache, unless it is there; False if it raised an error."""
    without_ports()
    store = get_cache(cache)
    uri = store.add_nb_to_project(str(path)).uri
    result = load_executor("local-serial", store).run_and_cache(
        filter_uris=[uri], timeout=SECONDS_PER_CELL
    )
    return not (result.excepted or result.errored)


def one_thread() -> None:
    """Give BLAS one thread, so that chapters share the cores: waiting threads double the time."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def run_all_ahead(jobs: int, paths: list[Path], cache: Path) -> list[Path]:
    """Run chapters into the cache, several at once, the longest first; return those that raised."""
    get_cache(
        cache
    ).list_cache_records()  # creates the database, which two processes must not do at once
    paths = sorted(paths, key=lambda path: -len(nbformat.read(path, 4).cells))
    with ProcessPoolExecutor(jobs, initializer=one_thread if jobs > 1 else None) as pool:
        runs = {pool.submit(run_ahead, path, cache): path for path in paths}
        done = tqdm(as_completed(runs), total=len(runs), disable=None, unit="chapter")
        return [runs[run] for run in done if not run.result()]


def executes() -> bool:
    """True if the configuration runs chapters into the cache; False if it takes stored outputs."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    return bool(config["execute"]["execute_notebooks"] == "cache")


def main() -> int:
    """Build and return the status of the build."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1, help="chapters that run at once")
    arguments, others = parser.parse_known_args()
    wanted = fingerprint()
    if BUILD.exists() and (not STAMP.exists() or STAMP.read_text() != wanted):
        print(
            "book: the package, the data or the configuration changed, so every chapter runs anew"
        )
        clear(BUILD)
    BUILD.mkdir(exist_ok=True)
    STAMP.write_text(wanted)
    os.environ.update(kernel_settings())
    if executes():
        for path in run_all_ahead(arguments.jobs, chapters(), BUILD / ".jupyter_cache"):
            # jupyter-book runs the chapter once more and says where it stopped
            print(f"book: {path.relative_to(ROOT)} raised", file=sys.stderr)
    status = subprocess.run(
        [
            Path(sys.executable).with_name("jupyter-book"),
            "build",
            ROOT,
            "-W",
            "--keep-going",
            *others,
        ],
        cwd=ROOT,
        check=False,
    ).returncode
    if not status:
        light_book.lighten(BUILD / "html")
        page_loading.finish(BUILD / "html")
        slides.write(BUILD / "html")
        for fault in figure_files.finish(BUILD / "html"):
            print(f"book: {fault}", file=sys.stderr)
            status = 1
        unbroken_numbers.finish(BUILD / "html")
    else:
        shutil.rmtree(BUILD / ".doctrees", ignore_errors=True)
        for report in sorted((BUILD / "html" / "reports").rglob("*.err.log")):
            print(
                f"book: a chapter raised; its traceback is in {report.relative_to(ROOT)}",
                file=sys.stderr,
            )
    return status


if __name__ == "__main__":
    sys.exit(main())
