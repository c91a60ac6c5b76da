"""PRIVIC: the time of a cycle in the authors' program and here, and a comparison of the results.

    .venv/bin/python -m benchmarks.privic FOLDER [ROUNDS]

The two programs take turns. FOLDER holds the authors' repository, blitzwas/PRIVIC on GitHub (MIT),
as files or as a git directory without any files. Its scripts do not run as they are: they import
names that contain an invisible character. So only the functions needed here are taken out of
privic_functions.py and run, word for word. Times are CPU seconds at beta = 1, medians of ROUNDS
(3); the run takes about six minutes. Writes results/privic.csv.
"""

from __future__ import annotations

import ast
import contextlib
import io
import math
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ibukit as ik
from benchmarks.measure import clocked

RESULTS = Path(__file__).parent / "results" / "privic.csv"
SOURCE = "privic_functions.py"
# dataset, steps of Blahut-Arimoto and of the update in a cycle (section 6), and how the authors'
# names end
CITIES = {
    "Paris": ("privic_paris", 8, 10, "Paris"),
    "San Francisco": ("privic_san_francisco", 5, 5, "SF"),
}
BETA, SEED = 1.0, 1


def source(folder: Path) -> str:
    if (folder / SOURCE).is_file():
        return (folder / SOURCE).read_text(encoding="utf-8")
    asked = ["git", f"--git-dir={folder}", "show", f"HEAD:{SOURCE}"]
    return subprocess.run(
        asked, check=True, capture_output=True, text=True, encoding="utf-8"
    ).stdout


def functions(text: str, ending: str, n_rows: int, n_cols: int) -> dict[str, Any]:
    """The authors' functions for one city, in a namespace with the few globals that they read."""
    wanted = {f"PosToVal{ending}", f"BlahutArimoto{ending}", "IBU"}
    found = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name in wanted
    ]
    missing = wanted - {node.name for node in found}
    if missing:
        raise SystemExit(f"{SOURCE} must define {', '.join(sorted(missing))}")
    city, k = ending.lower(), n_rows * n_cols
    names: dict[str, Any] = {"np": np, "math": math, "time": time}
    names |= {
        f"X_{city}_lat": np.arange(n_rows),
        f"X_{city}_long": np.arange(n_cols),
        f"N_X_{city}": k,
    }
    exec(compile(ast.Module(found, []), SOURCE, "exec"), names)
    return names


def silent(call: Callable[[], Any]) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        return call()


def one_round(text: str, city: str) -> list[dict[str, object]]:
    """One round of both programs, from the same prior and the same reports.

    The authors' program counts the cells from the other corner.
    """
    name, ba_steps, ibu_steps, ending = CITIES[city]
    data = ik.datasets.load_gowalla(name)
    grid, k = data.alphabet, len(data.alphabet)
    theirs = functions(text, ending, grid.n_rows, grid.n_cols)
    flat, cells = np.full(k, 1 / k), list(product(range(grid.n_rows), range(grid.n_cols)))

    their_ba, ours_ba = theirs[f"BlahutArimoto{ending}"], ik.blahut_arimoto
    channel, slow = clocked(
        lambda: silent(lambda: their_ba(np.tile(flat, (k, 1)), flat, BETA, ba_steps))
    )
    mechanism, fast = clocked(lambda: ours_ba(flat, grid, BETA, ba_steps))
    off = float(np.abs(channel[::-1, ::-1] - mechanism.matrix()).max())
    rows = [
        {
            "city": city,
            "k": k,
            "part": "BA",
            "steps": ba_steps,
            "theirs": slow,
            "ours": fast,
            "off": off,
        }
    ]

    tally = mechanism.simulate(data.counts, np.random.default_rng(SEED))
    q = np.zeros(k)
    (part,) = tally.parts
    q[part.reports] = tally.frequencies
    estimate, slow = clocked(
        lambda: silent(lambda: theirs["IBU"](flat, q[::-1], channel, ibu_steps, cells, cells)[1])
    )
    found, fast = clocked(lambda: ik.ibu(tally, stop=ik.Steps(ibu_steps)))
    off = float(np.abs(estimate[::-1] - found.distribution).max())
    return [
        *rows,
        {
            "city": city,
            "k": k,
            "part": "IBU",
            "steps": ibu_steps,
            "theirs": slow,
            "ours": fast,
            "off": off,
        },
    ]


def measured(text: str, rounds: int) -> pd.DataFrame:
    """Medians over the rounds, in which the two programs and the two cities take turns."""
    for city in CITIES:  # what is compiled on the first call is not part of a cycle
        data = ik.datasets.load_gowalla(CITIES[city][0])
        warm = ik.blahut_arimoto(data.distribution, data.alphabet, BETA, 2)
        ik.ibu(warm.simulate(data.counts, np.random.default_rng(SEED)), stop=ik.Steps(2))
    rows = pd.DataFrame(
        [row for _ in range(rounds) for city in CITIES for row in one_round(text, city)]
    )
    by = rows.groupby(["city", "k", "part", "steps"], sort=False)
    table = by[["theirs", "ours"]].median().rename(columns=lambda name: f"{name}_seconds")
    table = table.map(lambda seconds: float(f"{seconds:.3g}"))
    return table.assign(
        rounds=rounds, off=by["off"].max().map(lambda off: float(f"{off:.0e}"))
    ).reset_index()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    table = measured(source(Path(sys.argv[1])), int(sys.argv[2]) if len(sys.argv) == 3 else 3)
    table.to_csv(RESULTS, index=False)
    print(table.to_string())
