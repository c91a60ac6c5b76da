"""Recompute the distances that chapters read from data/repetitions by running the chapters.

    python scripts/repetitions.py CHAPTER [...] [--to FOLDER]

Writes FOLDER/CHAPTER.csv. It has one row for each population, seed, mechanism and estimator that
the chapter asks `claims.repeated` for: a digest of the estimator's code, the number of repetitions,
the mean distance and its standard error, and the distance of each repetition in order, with nine
digits. Repetition r has the reports that `ibukit.replicate` gives it. For a chapter that asks for
`claims.remembered`, the file has one row for each name, tallies and column.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from tqdm import tqdm

import ibukit as ik
import notebooks
from ibukit_claims import _repetitions as kept
from ibukit_claims._code import code_of

# The first cell of code need not be the one that imports `ibukit_claims`.
ENDING = """
import sys
import ibukit_claims as claims
sys.path.insert(0, {scripts!r})
import repetitions
claims.repeated = repetitions.recorder({path!r})
claims.remembered = repetitions.keeper({path!r})
"""


def rows_of(
    found: Any,
    population: Any,
    mechanism: Any,
    estimators: Mapping[str, Callable[..., Any]],
    seed: int,
) -> list[dict[str, Any]]:
    """The rows of the file for one mechanism, from the table that `replicate` returns for it."""
    rows = []
    for name, one in found.groupby("estimator", sort=False):
        words = list(dict.fromkeys(one["status"]))
        epsilon = one["epsilon"].iloc[0]
        row = dict(zip(kept.ASKED, (*kept.asked(population, mechanism, seed), name), strict=True))
        row |= {"code": code_of(estimators[name])}
        row |= {
            "n": int(np.sum(population.counts)),
            "epsilon": "" if np.isnan(epsilon) else f"{epsilon:g}",
        }
        row |= {
            "stop": one["stop"].iloc[0],
            "status": words[0] if len(words) == 1 else " ".join(one["status"]),
        }
        row |= {
            "repetitions": len(one),
            "mean": f"{one['emd'].mean():.9g}",
            "error": f"{one['emd'].sem():.2g}",
        }
        rows.append(row | {"emd": " ".join(f"{x:.9g}" for x in one["emd"])})
    return rows


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a file, none if it is not there."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def key(row: dict[str, Any]) -> tuple[str, ...]:
    """The columns that identify a row."""
    return tuple(
        str(row[name]) for name in (kept.ASKED if "estimator" in row else kept.COMPUTED[:3])
    )


def add(path: Path, rows: Sequence[dict[str, Any]], columns: Sequence[str] = kept.KEPT) -> None:
    """Put rows into a file; of two about the same, the one with more repetitions stays."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in (*read(path), *rows):
        about = key(row)
        if about not in found or int(row["repetitions"]) > int(found[about]["repetitions"]):
            found[about] = row
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, columns, lineterminator="\n")
        table.writeheader()
        table.writerows(found.values())


def recorder(path: str, n_jobs: int = 2) -> Callable[..., Any]:
    """The stand-in of `claims.repeated` while a chapter runs here: it computes and adds a row."""

    def repeated(
        chapter: str,
        population: Any,
        mechanisms: Sequence[Any],
        estimators: Mapping[str, Callable[..., Any]],
        repetitions: int,
        seed: int,
    ) -> Any:
        import pandas as pd

        made = []
        for mechanism in mechanisms:
            made.append(
                ik.replicate(population, [mechanism], estimators, repetitions, seed, n_jobs=n_jobs)
            )
            add(Path(path), rows_of(made[-1], population, mechanism, estimators, seed))
        return pd.concat(made, ignore_index=True)

    return repeated


def keeper(path: str) -> Callable[..., Any]:
    """The stand-in of `claims.remembered`."""

    def remembered(
        chapter: str, what: str, tallies: Iterable[Any], compute: Callable[[], Any]
    ) -> Any:
        reports, found, rows = kept.of_reports(tallies), np.asarray(compute(), dtype=float), []
        for i, values in enumerate(found.T):
            row = {"what": what, "reports": reports, "column": i, "code": code_of(compute)}
            row |= {"repetitions": len(values)}
            row |= {
                "mean": f"{values.mean():.9g}",
                "error": f"{values.std(ddof=1) / np.sqrt(len(values)):.2g}",
            }
            rows.append(row | {"values": " ".join(f"{x:.9g}" for x in values)})
        add(Path(path), rows, kept.COMPUTED)
        return found

    return remembered


def make(chapter: Path, to: Path) -> None:
    """Run a chapter in a copy that computes all and reads nothing, and write what it repeats."""
    to.unlink(missing_ok=True)
    notebook = nbformat.read(chapter, 4)
    first = next(cell for cell in notebook.cells if cell["cell_type"] == "code")
    first["source"] += ENDING.format(scripts=str(Path(__file__).parent), path=str(to))
    notebooks.execute(notebook, chapter.parent)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("chapters", nargs="+", metavar="CHAPTER")
    parser.add_argument("--to", type=Path, default=kept.FOLDER, metavar="FOLDER")
    chosen = parser.parse_args(arguments)
    chosen.to.mkdir(exist_ok=True)
    for name in tqdm(chosen.chapters, disable=None, unit="chapter"):
        [path] = [path for path in notebooks.chapters() if path.stem == name]
        new = chosen.to.resolve() / f"{name}.part"
        make(path, new)
        new.replace(new.with_suffix(".csv"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
