"""Plant small faults into a copy of the package, one by one, and run the tests nearest to each.

    python scripts/mutants.py [--n 60] [--seed 0] [--room "solvers bayes/_gibbs"] [--limit 120]
    python scripts/mutants.py --by-hand [--room "solvers bayes/_gibbs"] [--limit 120]

The faults are a seeded sample of all faults of `source_faults` in the package, or in some of its
rooms. The tests of a module are those in its row of tests/nearest_tests.csv and its own doctests,
and a run stops at the first test that fails; the tests of a kernel are those of `kernel_coverage`,
without JIT. A fault counts as found if its run goes beyond the limit of processor time. In the end
all tests that found a fault are run without a fault, so that a test which fails anyway does not
count. Faults that change no result are in tests/equivalent_mutants.csv, with the reason. The script
prints each fault that no test found, and the score. The exit code is 1 if fewer than 90 % are
found.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import importlib.util
import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tqdm import tqdm

import kernel_coverage
import pytest_server
import source_faults

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "_build" / "mutants"
COPIED = (
    *("ibukit", "tests", "data", "scripts", "benchmarks"),
    *("book/_ext", "book/extend.md", "conftest.py", "pyproject.toml", "README.md"),
    *("book/notation.md", "book/reference/from-your-file.md"),
    *("book/_static/figures.css", "book/_static/schematics.css"),
)
MIN_SCORE = 0.9


@dataclass(frozen=True)
class Mutant:
    """A fault and the file, relative to the root, that it is planted into."""

    file: str
    fault: source_faults.Fault
    text: str

    @property
    def lines(self) -> tuple[str, str]:
        """The line as it is and as it becomes."""
        number = self.fault.line - 1
        after = self.fault.planted(self.text).splitlines()
        return self.text.splitlines()[number].strip(), after[number].strip()

    @property
    def name(self) -> tuple[str, str, str, str]:
        """The file, the line above, the line and what it becomes, not its number."""
        above = ["", *self.text.splitlines()][self.fault.line - 1].strip()
        return self.file, above, *self.lines

    def __str__(self) -> str:
        before, after = self.lines
        return f"{self.file}:{self.fault.line}  {before}  ->  {after}"


@dataclass(frozen=True)
class Verdict:
    """The result of a run: "found", "endless" or "survived"; and the tests that failed."""

    kind: str
    tests: tuple[str, ...] = ()


def is_kernel(file: str) -> bool:
    """True if the functions of a file are compiled."""
    return file.endswith("kernels.py")


def modules(root: Path, rooms: Sequence[str] = ()) -> list[str]:
    """The files of some rooms, or those whose paths in the package begin so; all files if none.

    An `__init__.py` that defines no function is left out, because it only imports names.
    """
    package = root / "ibukit"
    begin = tuple(f"ibukit/{room}" + "/" * (package / room).is_dir() for room in rooms)
    found = [
        p
        for p in sorted(package.rglob("*.py"))
        if p.relative_to(root).as_posix().startswith(begin or "")
    ]
    return [
        p.relative_to(root).as_posix()
        for p in found
        if p.name != "__init__.py" or re.search(r"^def ", p.read_text("utf8"), re.MULTILINE)
    ]


def sample(root: Path, rooms: Sequence[str], n: int, seed: int) -> list[Mutant]:
    """Sample `n` of all faults, in the order of their files; all of them if there are no more.

    The sample is the faults whose names have the least hashes with the seed, so a change elsewhere
    leaves a fault in the sample.
    """
    every = []
    for file in modules(root, rooms):
        text = (root / file).read_text("utf8")
        every += [Mutant(file, fault, text) for fault in source_faults.faults(text)]
    hashes = [hashlib.sha256(repr((seed, *mutant.name)).encode()).digest() for mutant in every]
    by_hash = sorted(range(len(every)), key=hashes.__getitem__)
    programs = (i for i in by_hash if is_program(every[i].fault.planted(every[i].text)))
    return [every[i] for i in sorted(itertools.islice(programs, n))]


def by_hand(root: Path, rooms: Sequence[str]) -> list[Mutant]:
    """The faults of tests/planted_faults.csv, as people make them, in some rooms.

    A fault is left out if its text is no longer in its file, or is there more than once.
    """
    files = set(modules(root, rooms))
    found = []
    with (root / "tests" / "planted_faults.csv").open(encoding="utf8", newline="") as table:
        for row in csv.DictReader(table):
            if row["file"] not in files:
                continue
            text = (root / row["file"]).read_text("utf8")
            if text.count(row["text"]) == 1:
                start = text.index(row["text"])
                line = text.count("\n", 0, start) + 1
                fault = source_faults.Fault(line, start, row["text"], row["becomes"])
                found.append(Mutant(row["file"], fault, text))
    return found


def is_program(source: str) -> bool:
    """True if a text is Python; if it is not, a fault would be found without a test."""
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def equivalents(root: Path) -> dict[tuple[str, str, str, str], str]:
    """The faults that change no result, by `Mutant.name`; and why."""
    with (root / "tests" / "equivalent_mutants.csv").open(encoding="utf8", newline="") as file:
        return {
            (row["file"], row["above"], row["line"], row["becomes"]): row["reason"]
            for row in csv.DictReader(file)
        }


def nearest(root: Path) -> dict[str, list[str]]:
    """For each module the test files that are nearest to it, the nearest first."""
    with (root / "tests" / "nearest_tests.csv").open(encoding="utf8", newline="") as file:
        rows = {f"ibukit/{row['module']}.py": row["tests"].split() for row in csv.DictReader(file)}
    compiled = {file: list(kernel_coverage.TESTS) for file in modules(root) if is_kernel(file)}
    paths = {
        path.stem: path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py")
    }
    named = {file: [f"test_{name}" for name in names] for file, names in rows.items()}
    return {
        file: [paths.get(name, f"tests/{name}.py") for name in names]
        for file, names in named.items()
    } | compiled


def copy(root: Path, to: Path) -> None:
    """Bring the copy of the tree up to date; unchanged files stay, with their compiled code."""
    ours = {
        p
        for name in COPIED
        for p in ([root / name] if (root / name).is_file() else (root / name).rglob("*"))
    }
    made = ("__pycache__", ".hypothesis")
    ours = {
        p
        for p in ours
        if p.is_file() and not any(part in made for part in p.relative_to(root).parts)
    }
    for path in [
        p for p in to.rglob("*") if p.is_file() and not any(part in made for part in p.parts)
    ]:
        if root / path.relative_to(to) not in ours:
            path.unlink()
    for path in ours:
        there, is_now = to / path.relative_to(root), path.stat()
        if not there.exists() or (there.stat().st_mtime, there.stat().st_size) != (
            is_now.st_mtime,
            is_now.st_size,
        ):
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, there)


@contextmanager
def planted(tree: Path, mutant: Mutant) -> Iterator[None]:
    """Plant the fault into the copy, and afterwards put the file back as it was."""
    path = tree / mutant.file
    before, text = path.stat(), path.read_text("utf8")
    path.write_text(mutant.fault.planted(text), "utf8")
    try:
        yield
    finally:
        path.write_text(text, "utf8")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        # bytecode knows its source by size and second, and two faults may have both in common
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


@cache
def server() -> pytest_server.PytestServer:
    """The process that runs all tests."""
    return pytest_server.PytestServer()


def run(tree: Path, arguments: Sequence[str], limit: float, plain: bool) -> Verdict:
    """Run pytest in the copy, without JIT if `plain`."""
    quiet = (
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
        *(kernel_coverage.QUIET if plain else ()),
    )
    command = ["-q", "--tb=no", "-p", "no:cacheprovider", *quiet, *arguments]
    code, said, _ = server().pytest(tree, command, limit, plain)
    if code is None:
        return Verdict("endless")
    if code in (4, 5):  # a file that is missing, or no test in it
        raise RuntimeError(f"no tests ran, look at tests/nearest_tests.csv:\n{said}")
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+?(?:::.*?)?)(?: - .*)?$", said, re.MULTILINE)
    return Verdict("found" if code else "survived", tuple(failed))


def tests_of(tree: Path, file: str, near: dict[str, list[str]]) -> list[str]:
    """The tests to run for a module: the tests nearest to it, then its doctests."""
    own = [file] if ">>>" in (tree / file).read_text("utf8") and not is_kernel(file) else []
    return [*near[file], *own]


def judge(
    mutants: Sequence[Mutant], tree: Path, near: dict[str, list[str]], limit: float
) -> dict[Mutant, str]:
    """The result of each fault, after a run without a fault of every test that found one."""
    verdicts: dict[Mutant, Verdict] = {}
    with tqdm(mutants, unit="fault") as bar:
        for mutant in bar:
            with planted(tree, mutant):
                tests = ["-x", *tests_of(tree, mutant.file, near)]
                verdicts[mutant] = run(tree, tests, limit, is_kernel(mutant.file))
            if verdicts[mutant].kind == "survived":
                bar.write(f"survived: {mutant}", file=sys.stdout)
            kinds = [verdict.kind for verdict in verdicts.values()]
            bar.set_postfix({kind: kinds.count(kind) for kind in ("found", "endless", "survived")})
    kinds = {mutant: verdict.kind for mutant, verdict in verdicts.items()}
    for mutant in mutants:
        if not stands(mutant, verdicts, tree, near, limit):
            kinds[mutant] = "undecided"
    return kinds


def stands(
    mutant: Mutant,
    verdicts: dict[Mutant, Verdict],
    tree: Path,
    near: dict[str, list[str]],
    limit: float,
) -> bool:
    """True if the tests that found a fault pass without one.

    If they did not end or could not start, all tests of the module must pass.
    """
    verdict, plain = verdicts[mutant], is_kernel(mutant.file)
    if verdict.kind == "survived":
        return True
    if not verdict.tests:
        return run(tree, tests_of(tree, mutant.file, near), limit, plain).kind == "survived"
    found = sorted(
        {
            test
            for other in verdicts
            if is_kernel(other.file) == plain
            for test in verdicts[other].tests
        }
    )
    wrong = failing(tree, tuple(found), 10 * limit, plain)
    return not wrong & set(verdict.tests)


@cache
def failing(tree: Path, tests: tuple[str, ...], limit: float, plain: bool) -> frozenset[str]:
    """The tests that fail without a fault; all tests if the run does not tell which."""
    verdict = run(tree, tests, limit, plain)
    return frozenset() if verdict.kind == "survived" else frozenset(verdict.tests or tests)


def main() -> int:
    """Carry out the command line; 1 where too few faults are found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=60, help="how many faults (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="which sample (default: %(default)s)")
    parser.add_argument(
        "--room",
        default="",
        help="where: some of the package's rooms, or what paths in it begin with (default: all)",
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=120,
        help="seconds of processor time a fault may take (default: %(default)s)",
    )
    parser.add_argument(
        "--by-hand",
        action="store_true",
        help="the faults of tests/planted_faults.csv instead of a sample",
    )
    arguments = parser.parse_args()
    rooms = arguments.room.split()
    if arguments.n < 1:
        parser.error(f"--n must be at least 1, got {arguments.n}")
    if unknown := [room for room in rooms if not modules(ROOT, [room])]:
        parser.error(f"--room must name rooms or files of ibukit/, got {' '.join(unknown)}")
    drawn = (
        by_hand(ROOT, rooms)
        if arguments.by_hand
        else sample(ROOT, rooms, arguments.n, arguments.seed)
    )
    if not drawn:
        table = "tests/planted_faults.csv has" if arguments.by_hand else "there is"
        parser.error(f"{table} no fault for --room {arguments.room}")
    known = equivalents(ROOT)
    same = [mutant for mutant in drawn if mutant.name in known]
    tree = OUT / "tree"
    copy(ROOT, tree)
    kinds = judge(
        [mutant for mutant in drawn if mutant not in same], tree, nearest(ROOT), arguments.limit
    )
    server().close()
    for mutant in (mutant for mutant in kinds if kinds[mutant] == "undecided"):
        print(f"undecided, its tests fail without it: {mutant}")
    found = sum(kind in ("found", "endless") for kind in kinds.values())
    # If no fault has an effect, none is missed.
    score = found / len(kinds) if kinds else 1.0
    counted = {
        kind: list(kinds.values()).count(kind)
        for kind in ("found", "endless", "survived", "undecided")
    }
    counts = ", ".join(f"{many} {kind}" for kind, many in counted.items())
    source = "by hand" if arguments.by_hand else f"seed {arguments.seed}"
    print(
        f"score {100 * score:.0f} %, {source}: of {len(drawn)} faults {counts},"
        f" {len(same)} without effect"
    )
    return int(score < MIN_SCORE)


if __name__ == "__main__":
    sys.exit(main())
