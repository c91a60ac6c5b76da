"""Format the chapters to the 79 columns that a page shows, or say what that would do.

    python scripts/narrow.py [--write] [FILE ...]

Without --write the chapters are formatted in a copy. For each one is printed which visible cells would have more than
15 lines, and which have lines that ruff cannot make shorter (strings, comments). Both are for an author to settle. What
keeps the chapters so afterwards is the setting in `book/chapters/ruff.toml`:

    extend = "../../pyproject.toml"
    line-length = 79
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import nbformat

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = 79  # of code in the column of a page at 1280 px
LINES = 15  # of a visible cell, as in tests/test_chapters.py
UNSEEN = {"remove-cell", "remove-input", "hide-cell", "hide-input"}


class Left(NamedTuple):
    """What is left for the author of a chapter."""

    cells: int  # visible cells with code
    long: list[str]  # those with too many lines
    wide: list[str]  # those with lines that are still too wide


def left(path: Path) -> Left:
    """What is wrong with the visible cells of a chapter."""
    cells = [c for c in nbformat.read(path, 4).cells if c["cell_type"] == "code"]
    seen = [c for c in cells if not UNSEEN & set(c["metadata"].get("tags", []))]
    long = [c["id"] for c in seen if len(c["source"].splitlines()) > LINES]
    wide = [c["id"] for c in seen if any(len(line) > COLUMNS for line in c["source"].splitlines())]
    return Left(len(seen), long, wide)


def narrow(paths: list[Path]) -> None:
    """Let ruff format some files in place."""
    ruff = Path(sys.executable).with_name("ruff")
    config = ["--config", str(ROOT / "pyproject.toml"), "--config", f"line-length={COLUMNS}"]
    subprocess.run([ruff, "format", "-q", "--no-cache", *config, *paths], check=True)


def main() -> int:
    """Carry out the command line; 1 where something is left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="format the chapters themselves, not a copy")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: every chapter")
    arguments = parser.parse_args()
    paths = arguments.files or sorted((ROOT / "book" / "chapters").glob("*.ipynb"))
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.write:
            paths = [Path(shutil.copy(path, folder)) for path in paths]
        before = {path: left(path) for path in paths}
        narrow(paths)
        after = {path: left(path) for path in paths}
    for path, found in after.items():
        print(
            f"{path.stem}: {found.cells} visible cells, {len(before[path].wide)} wider than {COLUMNS} columns before,"
        )
        print(f"    {len(found.wide)} after: {' '.join(found.wide) or 'none'}")
        print(f"    {len(found.long)} of more than {LINES} lines: {' '.join(found.long) or 'none'}")
    total = [sum(counts) for counts in zip(*((f.cells, len(f.long), len(f.wide)) for f in after.values()), strict=True)]
    print(f"narrow: {total[0]} visible cells, {total[1]} of more than {LINES} lines, {total[2]} wider than {COLUMNS}")
    return int(total[1] + total[2] > 0)


if __name__ == "__main__":
    sys.exit(main())
