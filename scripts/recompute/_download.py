"""Fetch a publisher's file once, or take a local copy: shared by the scripts here."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pooch

DATA = Path(__file__).resolve().parents[2] / "data"


def options(description: str, files: Sequence[str]) -> argparse.Namespace:
    """The arguments every script takes."""
    parser = argparse.ArgumentParser(
        description=f"{description} Needs the network unless --from names a folder."
    )
    parser.add_argument(
        "--from", dest="folder", type=Path, help=f"a folder that holds {', '.join(files)}"
    )
    parser.add_argument(
        "--to", type=Path, default=DATA, help="where to write the tables (default: data/)"
    )
    return parser.parse_args()


def obtain(address: str, known_hash: str | None, folder: Path | None) -> Path:
    """The local copy in `folder`, or the publisher's file, downloaded with a progress bar."""
    name = address.rsplit("/", 1)[-1]
    if folder is not None:
        return folder / name
    if known_hash is None:
        print(f"no hash is known for {name}: what was downloaded is used as it is", file=sys.stderr)
    return Path(pooch.retrieve(address, known_hash=known_hash, fname=name, progressbar=True))


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table the way data/ keeps it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)
    print(f"wrote {path}")
